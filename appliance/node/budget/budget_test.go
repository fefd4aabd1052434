package budget

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

func text(m api.NodeMemory) string {
	var all []string
	for _, p := range m.Parts {
		all = append(all, fmt.Sprintf("%s %d×%d", p.Name, p.Count, p.Bytes/p.Count/mib))
	}
	return fmt.Sprintf("%s; instances %d of %d", strings.Join(all, ", "), m.InstancesBytes/mib, m.TotalBytes/mib)
}

func TestOf(t *testing.T) {
	for name, c := range map[string]struct {
		runs Runs
		want string
	}{
		"unknown":          {Runs{OSDs: 3, Networks: true}, "; instances 0 of 0"},
		"a small trial":    {Runs{Memory: 2560 * mib, Networks: true}, "system 1×563, basalt 1×768, networks 1×384, page-cache 1×384; instances 460 of 2560"},
		"no room":          {Runs{Memory: gib, OSDs: 2}, "system 1×532, basalt 1×768, osds 2×1024, page-cache 1×384; instances 0 of 1024"},
		"without networks": {Runs{Memory: 16 * gib}, "system 1×839, basalt 1×768, page-cache 1×512; instances 14264 of 16384"},
		"Ceph on a small one": {Runs{Memory: 16 * gib, Networks: true, OSDs: 2, Monitor: true, Manager: true},
			"system 1×839, basalt 1×768, networks 1×384, osds 2×2048, monitors 1×1024, managers 1×512, page-cache 1×512; instances 8248 of 16384"},
		"a server": {Runs{Memory: 512 * gib, Networks: true, OSDs: 10, Monitor: true, Manager: true, GPUs: 8},
			"system 1×10997, basalt 1×768, networks 1×384, osds 10×4096, monitors 1×1024, managers 1×512, gpus 8×256, page-cache 1×16384; instances 451210 of 524288"},
		"half in huge pages":              {Runs{Memory: 64 * gib, HugePages: 32 * gib}, "system 1×1822, basalt 1×768, page-cache 1×2048, huge-pages 1×32768; instances 28129 of 65536"},
		"OSDs that aim at something else": {Runs{Memory: 16 * gib, OSDs: 1, OSDMemory: 6 * gib}, "system 1×839, basalt 1×768, osds 1×6144, page-cache 1×512; instances 8120 of 16384"},
	} {
		if got := text(Of(c.runs)); got != c.want {
			t.Errorf("budget of %s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// TestBudgetProperties checks that the parts and the instances' memory add up to
// the whole if there is enough, and that another OSD never leaves more for
// instances.
func TestBudgetProperties(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(3, seed))
		runs := Runs{Memory: r.Int64N(1 << 40), OSDs: r.IntN(24), Monitor: r.IntN(2) == 0, Manager: r.IntN(2) == 0, Networks: r.IntN(2) == 0, GPUs: r.IntN(9), HugePages: r.Int64N(1 << 36)}
		b := Of(runs)
		sum := b.InstancesBytes
		for _, p := range b.Parts {
			if p.Bytes <= 0 || p.Count <= 0 {
				t.Fatalf("budget of %+v has part %+v, want positive bytes and count", runs, p)
			}
			sum += p.Bytes
		}
		if sum != runs.Memory && (b.InstancesBytes != 0 || sum < runs.Memory) {
			t.Fatalf("budget of %+v adds up to %d: %s; want the machine's memory", runs, sum, text(b))
		}
		more := runs
		more.OSDs++
		if Of(more).InstancesBytes > b.InstancesBytes {
			t.Fatalf("budget of %+v: another OSD leaves %d bytes for instances, want at most %d", runs, Of(more).InstancesBytes, b.InstancesBytes)
		}
	}
}
