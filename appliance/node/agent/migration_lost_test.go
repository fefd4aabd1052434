package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// TestSourceOfDiskCopyLost loses the source of a machine whose disk is
// copied along, and which may still run there: the target's decision determines
// where the newest disk is.
func TestSourceOfDiskCopyLost(t *testing.T) {
	const atA, atB = 0, 1
	for _, c := range []struct {
		name    string
		moment  string // at which the source's agent dies
		removed bool   // the operator has removed it for good
		knows   bool   // the target can decide alone
		on      int    // where it runs in the end
		starts  int    // of the machine on that node
	}{
		{"while it is copied", "copying", false, true, atA, 1},
		{"when it has let go, and nobody lets it run", "received", false, true, atA, 2},
		{"… and is removed", "received", true, true, atB, 0},
		{"when it runs there", "runs", false, true, atB, 0},
		{"when it has run there, and nobody saw it", "ended", false, false, atB, 1},
		{"… and is removed", "ended", true, true, atB, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, a, b := migrating(t, api.PoolLocal)
			died := errors.New("died")
			cut := func() { // the fence does not kill what can run nowhere else
				a.die()
				a.cut = true
			}
			a.machines.MigrationStep(func(_ context.Context, _ api.InstanceID, p hypervisor.MigrationProgress) error {
				if c.moment == "copying" && p.Phase == hypervisor.MigrationCopying {
					cut()
					return died
				}
				return nil
			})
			a.machines.Fault(func(op string, _ api.InstanceID) error {
				if op == "MigrateResume" && c.moment == "received" {
					cut()
					return died
				}
				return nil
			})
			a.step = func(string) { // it is killed before it learns that the machine was migrated
				s, err := a.machines.Status(context.Background(), "ins-1")
				if err == nil && s.State == hypervisor.Missing && a.Stepper != nil {
					if c.moment == "ended" {
						b.machines.Crash("ins-1", "killed")
					}
					cut()
				}
			}
			w.moveTo(a, b)
			w.pass(30 * time.Second)
			if a.Stepper != nil || w.migration().Status.Phase != api.MigrationCopying {
				t.Fatalf("source's agent alive: %t, migration %+v; want it killed while copying", a.Stepper != nil, w.migration().Status)
			}
			if c.removed {
				w.apply(api.Command{Op: api.OpDelete, Kind: api.KindNode, ID: string(a.id), Expect: api.AnyRevision})
			} else {
				w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
			}
			w.pass(time.Minute)
			if m := w.migration().Status; m.Phase.Ended() != c.knows || !c.knows && !strings.Contains(m.LastError, "node-1") {
				t.Fatalf("status from the target = %+v, want it ended: %t, or waiting for node-1", m, c.knows)
			}
			on, off := a, b
			if c.on == atB {
				on, off = b, a
			}
			a.step = nil
			a.machines.Fault(nil)
			a.machines.MigrationStep(nil)
			if c.knows && c.on == atB {
				w.ended()
				w.until("ins-1 runs on b without a", func() bool { return w.runsOn("ins-1", b) })
			}
			if !c.removed {
				a.cut, a.lease = false, true
				a.start()
				w.ended()
				w.until("nothing left on the other node", func() bool { return off.left() == "" })
			}
			w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", on) })
			if n := on.starts("ins-1"); n != c.starts {
				t.Errorf("%d starts of ins-1, want %d", n, c.starts)
			}
			if v, err := on.local.Volume(context.Background(), "vol-ins-1"); err != nil || v.Standalone != (on == b) {
				t.Errorf("root volume = %+v, error %v; want the copied one: %t", v, err, on == b)
			}
		})
	}
}
