package api

import (
	"errors"
	"testing"
)

// TestHugePagesOfAnInstance checks that huge pages must divide the memory and exclude a
// virtual GPU.
func TestHugePagesOfAnInstance(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name   string
		spec   InstanceSpec
		flavor FlavorSpec
		pages  HugePages
		fault  bool
	}{
		{"none", InstanceSpec{}, FlavorSpec{MemoryBytes: gib}, "", false},
		{"the flavor's", InstanceSpec{}, FlavorSpec{MemoryBytes: gib, HugePages: HugePages2Mi}, HugePages2Mi, false},
		{"its own", InstanceSpec{HugePages: HugePages1Gi}, FlavorSpec{MemoryBytes: 2 * gib, HugePages: HugePages2Mi}, HugePages1Gi, false},
		{"not whole", InstanceSpec{HugePages: HugePages1Gi}, FlavorSpec{MemoryBytes: gib / 2}, HugePages1Gi, true},
		{"with a virtual GPU", InstanceSpec{HugePages: HugePages2Mi, Vgpu: &VGPUSpec{}}, FlavorSpec{MemoryBytes: gib}, HugePages2Mi, true},
		{"of the flavor, with a virtual GPU", InstanceSpec{Vgpu: &VGPUSpec{}}, FlavorSpec{MemoryBytes: gib, HugePages: HugePages2Mi}, HugePages2Mi, true},
	} {
		if got := c.spec.HugePagesOf(c.flavor); got != c.pages {
			t.Errorf("%s: HugePagesOf = %q, want %q", c.name, got, c.pages)
		}
		err := c.spec.CheckHugePages(c.flavor)
		var e *Error
		if c.fault != (err != nil) || err != nil && (!errors.As(err, &e) || e.Field != "spec.hugePages") {
			t.Errorf("%s: error %v, want an error at spec.hugePages: %v", c.name, err, c.fault)
		}
	}
	for _, s := range []FlavorSpec{{Vcpus: 1, MemoryBytes: gib, HugePages: "4Ki"}, {Vcpus: 1, MemoryBytes: gib + 1<<20, HugePages: HugePages1Gi}, {Vcpus: 1, MemoryBytes: 65 << 20, HugePages: HugePages2Mi}} {
		var e *Error
		if err := ValidateFlavor(s); !errors.As(err, &e) || e.Field != "spec.hugePages" {
			t.Errorf("ValidateFlavor(%+v) = %v, want an error at spec.hugePages", s, err)
		}
	}
}
