package drivertest

import (
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// testAbilities checks that a machine with the reported machine types and CPU
// can be created.
func testAbilities(t *testing.T, b *bench) {
	a, err := b.Abilities(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Machines) == 0 || !slices.IsSortedFunc(a.Machines, func(x, y string) int { return hypervisor.CompareMachines(y, x) }) {
		t.Fatalf("machine types = %v, want at least one, sorted from the newest", a.Machines)
	}
	d := b.domain(t)
	d.Machine = a.Machines[min(1, len(a.Machines)-1)]
	if err := b.Define(b.ctx, d); err != nil {
		t.Fatalf("define a machine of type %s: %v", d.Machine, err)
	}
	if err := b.Load(b.ctx, d.ID); err != nil {
		t.Errorf("load a machine of type %s: %v", d.Machine, err)
	}
	if a.CPU.Model == "" { // a libvirt without KVM
		return
	}
	if err := b.CheckCPU(b.ctx, a.CPU); err != nil {
		t.Errorf("CheckCPU of the reported processor %+v = %v, want nil", a.CPU, err)
	}
	best, err := b.BaselineCPU(b.ctx, []hypervisor.CPU{a.CPU, a.CPU})
	if err != nil {
		t.Fatal(err)
	}
	if why := a.CPU.API().Incompatible(best.API()); why != "" || best.Model != a.CPU.Model || best.AddressBits != a.CPU.AddressBits {
		t.Errorf("BaselineCPU of twice the same processor = %+v, want %+v: %s", best, a.CPU, why)
	}
	wantCode(t, "a processor without a name", b.CheckCPU(b.ctx, hypervisor.CPU{}), api.CodeInvalid)
	if !b.Slow {
		better := a.CPU
		better.Features = append(slices.Clone(better.Features), "avx512f")
		wantCode(t, "a better processor", b.CheckCPU(b.ctx, better), api.CodeState)
	}
}
