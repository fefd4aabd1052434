package api

import (
	"strings"
	"testing"
)

func TestQuotaExceededInWords(t *testing.T) {
	render := Object{Kind: KindProject, Meta: Meta{ID: "prj-5f14091f6211", Name: "render"}}
	for _, c := range []struct {
		holder            Object
		quota             string
		limit, used, more int64
		want              string
	}{
		{render, QuotaVRAM, 64 << 30, 18 << 30, 60 << 30, "VRAM quota of project render exceeded: 18 GiB of 64 GiB used, 60 GiB requested"},
		{render, QuotaGPUShare, 200, 150, 75, "GPU time quota of project render exceeded: 150% of 200% used, 75% requested"},
		{render, QuotaVCPUs, 8, 0, 16, "vCPU quota of project render exceeded: 0 of 8 used, 16 requested"},
		{Object{Kind: KindOrganization, Meta: Meta{ID: "org-000000000001"}}, "securityGroups", 1000, 1000, 1,
			"security group quota of organization org-000000000001 exceeded: 1000 of 1000 used, 1 requested"},
		{render, QuotaSpend, 0, 0, 1, "nothing new can be created or started in project render"},
	} {
		if got := QuotaExceeded(c.holder, c.quota, c.limit, c.used, c.more).Message; got != c.want {
			t.Errorf("message for quota %s = %q, want %q", c.quota, got, c.want)
		}
	}
	for _, name := range quotaNames() {
		if noun := QuotaNoun(name); noun == "" || strings.HasSuffix(noun, "s") || strings.Contains(noun, "api ") {
			t.Errorf("QuotaNoun(%s) = %q, want a singular noun without \"api \"", name, noun)
		}
	}
}

func TestWholeMebibytes(t *testing.T) {
	err := ValidateInstance(InstanceSpec{Flavor: "f", Image: "i", Power: PowerRunning, Vgpu: &VGPUSpec{VramBytes: 4_000_000_000, Pool: "default"}})
	if want := "spec.vgpu.vramBytes: must be a whole number of MiB, e.g. 3814MiB, got 4000000000 bytes"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("ValidateInstance of VRAM that is not whole MiB = %v, want %s", err, want)
	}
	if err := ValidateInstance(InstanceSpec{Image: "i", Power: PowerRunning}); err == nil || !strings.HasPrefix(err.Error(), "spec.flavor: choose a flavor") {
		t.Errorf("ValidateInstance without a flavor = %v, want an error that begins with spec.flavor", err)
	}
}
