package drivertest

import (
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/hypervisor"
)

// testAbilities: what the hypervisor says it can make, it makes.
func testAbilities(t *testing.T, b *bench) {
	a, err := b.Abilities(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Machines) == 0 || !slices.IsSortedFunc(a.Machines, func(x, y string) int { return hypervisor.CompareMachines(y, x) }) {
		t.Fatalf("the machine types are %v, want some, the newest first", a.Machines)
	}
	d := b.domain(t)
	d.Machine = a.Machines[min(1, len(a.Machines)-1)]
	if err := b.Define(b.ctx, d); err != nil {
		t.Fatalf("a machine of type %s: %v", d.Machine, err)
	}
	if err := b.Load(b.ctx, d.ID); err != nil {
		t.Errorf("a machine of type %s: %v", d.Machine, err)
	}
}
