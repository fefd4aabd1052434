package drivertest

import (
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// testUsage checks that the counters of a running domain grow, and start from
// zero with a new QEMU, and that a domain that is stopped or missing has none.
func testUsage(t *testing.T, b *bench) {
	stopped := b.domain(t)
	d := b.booted(t)
	of := func(id api.InstanceID) (hypervisor.Usage, bool) {
		t.Helper()
		all, err := b.Usage(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(u hypervisor.Usage) bool { return u.ID == id })
		if i < 0 {
			return hypervisor.Usage{}, false
		}
		return all[i], true
	}
	if u, ok := of(stopped.ID); ok {
		t.Errorf("usage of a stopped domain = %+v, want none", u)
	}
	var first hypervisor.Usage
	b.until(t, "the domain has used CPU time", func() (ok bool) {
		first, ok = of(d.ID)
		return ok && first.CPUNanos > 0
	})
	if first.MemoryBytes != uint64(d.MemoryBytes) || first.ResidentBytes == 0 {
		t.Errorf("usage = %+v, want %d bytes of memory and some resident", first, d.MemoryBytes)
	}
	if b.Slow && (first.ReadBytes < 512 || first.ReadOps == 0) {
		t.Errorf("usage of a booted guest = %+v, want at least 512 bytes read", first)
	}
	b.until(t, "the domain has used more CPU time", func() bool {
		u, ok := of(d.ID)
		if ok && (u.CPUNanos < first.CPUNanos || u.ReadBytes < first.ReadBytes || u.WriteBytes < first.WriteBytes) {
			t.Fatalf("counters decreased from %+v to %+v", first, u)
		}
		return ok && u.CPUNanos > first.CPUNanos
	})
	if err := b.Destroy(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	if u, ok := of(d.ID); ok {
		t.Errorf("usage of a destroyed domain = %+v, want none", u)
	}
}
