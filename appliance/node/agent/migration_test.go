package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// moveTo makes a migration and does what the planner does until it has ended.
func (w *town) moveTo(from, to *house) {
	w.t.Helper()
	w.moves++
	id := w.moveID()
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindMigration, ID: id, Name: id, Data: api.Encode(api.MigrationSpec{Instance: "ins-1"})})
	in, _ := w.instance("ins-1")
	a := in.Assignment
	a.MigrateTo = to.id
	w.assign(api.KindInstance, "ins-1", a)
	w.assign(api.KindMigration, w.moveID(), api.MigrationAssignment{Source: from.id, Target: to.id, Phase: api.MigrationPreparing})
}

func (w *town) moveID() string { return fmt.Sprintf("mig-%d", w.moves) }

func (w *town) migration() api.Migration {
	m, _ := read[api.Migration](w, api.KindMigration, w.moveID())
	return m
}

// follow is the planner: it gives the instance to the target, or leaves it,
// when the migration has ended. It reports whether it did.
func (w *town) follow() bool {
	m := w.migration()
	if m.Assignment.Phase.Ended() || !m.Status.Phase.Ended() {
		return m.Assignment.Phase.Ended()
	}
	if m.Status.Phase == api.MigrationSucceeded {
		for _, h := range w.houses {
			if h.id == m.Assignment.Target {
				w.give("ins-1", h, nil)
			}
		}
	}
	ma := m.Assignment
	ma.Phase = m.Status.Phase
	w.assign(api.KindMigration, w.moveID(), ma)
	if m.Status.Phase != api.MigrationSucceeded {
		in, _ := w.instance("ins-1")
		a := in.Assignment
		a.MigrateTo = ""
		w.assign(api.KindInstance, "ins-1", a)
	}
	return true
}

func (w *town) ended() api.MigrationPhase {
	w.t.Helper()
	w.until("the migration has ended", w.follow)
	return w.migration().Assignment.Phase
}

func migrating(t *testing.T, pool string) (w *town, a, b *house) {
	w = newTown(t, 2, pool == api.PoolShared)
	a, b = w.houses[0], w.houses[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", pool, nil)
	w.until("runs on a", func() bool { return w.runsOn("ins-1", a) })
	w.pass(10 * time.Second)
	return w, a, b
}

func TestMigrate(t *testing.T) {
	for _, pool := range []string{api.PoolShared, api.PoolLocal} {
		t.Run(pool, func(t *testing.T) {
			w, a, b := migrating(t, pool)
			before, _ := w.instance("ins-1")
			a.machines.MigrationStep(func(context.Context, api.InstanceID, hypervisor.MigrationProgress) error {
				return errors.Join(a.Sweep(a.ctx), b.Sweep(b.ctx)) // whose is it now?
			})
			w.moveTo(a, b)
			if p := w.ended(); p != api.MigrationSucceeded {
				t.Fatalf("%s: %s", p, w.migration().Status.LastError)
			}
			w.until("runs on b", func() bool { return w.runsOn("ins-1", b) })
			w.pass(time.Minute)
			after, _ := w.instance("ins-1")
			if !after.Status.StartedAt.Equal(*before.Status.StartedAt) || b.starts("ins-1") != 0 || a.starts("ins-1") != 1 {
				t.Errorf("it was restarted: %+v", after.Status)
			}
			if left := a.left(); left != "" {
				t.Errorf("left on the source: %s", left)
			}
			if v, err := b.local.Volume(context.Background(), "vol-ins-1"); (err == nil) != (pool == api.PoolLocal) || err == nil && !v.Standalone {
				t.Errorf("volume on the target: %+v, %v", v, err)
			}
			st := w.migration().Status
			if st.StartedAt == nil || st.EndedAt == nil || st.TotalBytes == 0 || st.ProgressBytes != st.TotalBytes {
				t.Errorf("status %+v", st)
			}
		})
	}
}

func TestAMigrationIsAborted(t *testing.T) {
	w, a, b := migrating(t, api.PoolLocal)
	a.machines.MigrationStep(func(ctx context.Context, id api.InstanceID, p hypervisor.MigrationProgress) error {
		if p.Phase == hypervisor.MigrationCopying && p.TransferredBytes > 0 {
			m := w.migration()
			m.Spec.Abort = true
			w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindMigration, ID: w.moveID(), Expect: api.AnyRevision, Data: api.Encode(m.Spec)})
			return context.Canceled
		}
		return nil
	})
	w.moveTo(a, b)
	if p := w.ended(); p != api.MigrationAborted {
		t.Fatalf("%s: %s", p, w.migration().Status.LastError)
	}
	w.until("b is clean", func() bool { return b.left() == "" })
	if !w.runsOn("ins-1", a) || a.starts("ins-1") != 1 {
		t.Error("it does not run on as it did")
	}
}

func TestAVGPUDoesNotMove(t *testing.T) {
	w := newTown(t, 2, true)
	a, b := w.houses[0], w.houses[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, func(_ *api.InstanceSpec, as *api.InstanceAssignment) {
		as.Gpu, as.VgpuVramBytes = "gpu-node-1-soft0", 1<<30
	})
	w.until("runs", func() bool { return w.runsOn("ins-1", a) })
	w.moveTo(a, b)
	if p := w.ended(); p != api.MigrationFailed || w.migration().Status.LastError == "" {
		t.Fatalf("%s", p)
	}
	w.until("runs on", func() bool { return w.runsOn("ins-1", a) })
}

// Source or target is killed at each thing that either does, and at each step
// of the machine's way; at the end it runs once.
func TestKilledAnywhereInAMigration(t *testing.T) {
	for _, pool := range []string{api.PoolShared, api.PoolLocal} {
		for _, who := range []int{0, 1} {
			step := 1
			if testing.Short() {
				step = 6
			}
			for at := 1; ; at += step {
				hit := false
				t.Run(fmt.Sprint(pool, who, at), func(t *testing.T) { hit = testKilledInMigration(t, pool, who, at) })
				if !hit || t.Failed() {
					if at < 5 {
						t.Errorf("only %d moments", at)
					}
					break
				}
			}
		}
	}
}

func testKilledInMigration(t *testing.T, pool string, who, at int) (hit bool) {
	w, a, b := migrating(t, pool)
	victim := w.houses[who]
	moment := func() bool {
		if at--; at == 0 {
			hit = true
			victim.kill()
		}
		return hit
	}
	for _, h := range w.houses {
		h.step = func(string) { moment() }
	}
	died := errors.New("died")
	a.machines.MigrationStep(func(context.Context, api.InstanceID, hypervisor.MigrationProgress) error {
		if moment() {
			return died // with the agent goes the tunnel
		}
		return nil
	})
	a.machines.Fault(func(op string, _ api.InstanceID) error {
		if op == "MigrateResume" && moment() {
			return died
		}
		return nil
	})
	b.machines.Fault(func(op string, _ api.InstanceID) error {
		if (op == "PrepareMigration" || op == "FinishMigration") && moment() {
			return died
		}
		return nil
	})
	w.moveTo(a, b)
	w.pass(5 * time.Second)
	at = 0
	if victim.Stepper == nil {
		victim.start()
	}
	for _, h := range w.houses {
		h.step = nil
		h.machines.Fault(nil)
	}
	p := w.ended()
	on, off := a, b
	if p == api.MigrationSucceeded {
		on, off = b, a
	}
	w.until("runs", func() bool { return w.runsOn("ins-1", on) })
	w.until("nothing is left elsewhere", func() bool { return off.left() == "" })
	w.pass(time.Minute)
	if v, err := on.local.Volume(context.Background(), "vol-ins-1"); pool == api.PoolLocal && (err != nil || v.Standalone != (on == b)) {
		t.Errorf("its disk is not the one that was copied: %+v, %v", v, err)
	}
	if !w.runsOn("ins-1", on) || off.left() != "" {
		t.Errorf("%s: it does not stay as it is", p)
	}
	return hit
}

// dead waits for the agent's death in the middle of the migration.
func (w *town) dead(h *house) {
	w.t.Helper()
	w.pass(time.Second)
	if p := w.migration().Status.Phase; h.Stepper != nil || p != api.MigrationCopying {
		w.t.Fatalf("%s did not die on the way: %s", h.id, p)
	}
}

// The last step of a crash: the machine stands still at the source.
func TestAStrandedMachineRunsOn(t *testing.T) {
	w, a, b := migrating(t, api.PoolShared)
	a.machines.MigrationStep(func(_ context.Context, id api.InstanceID, p hypervisor.MigrationProgress) error {
		if p.Phase == hypervisor.MigrationCopying {
			a.kill()
			return errors.New("died")
		}
		return nil
	})
	w.moveTo(a, b)
	w.dead(a)
	a.machines.Strand("ins-1")
	a.start()
	if p := w.ended(); p != api.MigrationFailed {
		t.Errorf("%s", p)
	}
	w.until("runs on a", func() bool { return w.runsOn("ins-1", a) })
	if a.starts("ins-1") != 1 {
		t.Error("it was restarted")
	}
}

// The same when the target has received all of it: its QEMU has the locks of
// the disks, and nothing runs on before the source has had it let go.
func TestAStrandedMachineWhoseTargetHoldsItsDisksRunsOn(t *testing.T) {
	w, a, b := migrating(t, api.PoolShared)
	a.machines.MigrationStep(func(_ context.Context, _ api.InstanceID, p hypervisor.MigrationProgress) error {
		if p.Phase == hypervisor.MigrationSwitching {
			a.kill()
			return errors.New("died")
		}
		return nil
	})
	w.moveTo(a, b)
	w.dead(a)
	a.machines.StrandReceived("ins-1", b.machines)
	b.cut = true // it is not there to let go
	a.start()
	w.pass(30 * time.Second)
	if s, _ := a.machines.Status(context.Background(), "ins-1"); s.State != hypervisor.Outgoing || w.migration().Status.Phase.Ended() {
		t.Fatalf("decided while the target holds the disks: %s, %+v", s.State, w.migration().Status)
	}
	b.cut = false
	if p := w.ended(); p != api.MigrationFailed {
		t.Errorf("%s", p)
	}
	w.until("runs on a", func() bool { return w.runsOn("ins-1", a) })
	w.until("b is clean", func() bool { return b.left() == "" })
	if a.starts("ins-1") != 1 {
		t.Error("it was restarted")
	}
}

// The source's node dies: the target reports whether it has the machine.
func TestTheSourceIsLost(t *testing.T) {
	for _, phase := range []string{"copying", "received"} {
		t.Run(phase, func(t *testing.T) {
			w, a, b := migrating(t, api.PoolShared)
			died := errors.New("died")
			a.machines.MigrationStep(func(_ context.Context, _ api.InstanceID, p hypervisor.MigrationProgress) error {
				if phase == "copying" && p.Phase == hypervisor.MigrationCopying {
					a.die()
					return died
				}
				return nil
			})
			a.machines.Fault(func(op string, _ api.InstanceID) error {
				if op == "MigrateResume" {
					a.die()
					return died
				}
				return nil
			})
			w.moveTo(a, b)
			w.pass(30 * time.Second)
			w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
			p := w.ended()
			if p == api.MigrationSucceeded != (phase == "received") {
				t.Errorf("%s", p)
			}
			if p == api.MigrationFailed {
				w.give("ins-1", b, nil)
			}
			w.until("runs on b", func() bool { return w.runsOn("ins-1", b) })
			if n := b.starts("ins-1"); (n == 0) != (phase == "received") {
				t.Errorf("%d starts on b", n)
			}
			a.machines.Fault(nil)
			a.lease = true
			a.start()
			w.until("a is clean", func() bool { return a.left() == "" })
			w.pass(10 * time.Minute)
			w.meter()
			if _, by := w.used(api.MeterVCPU, "ins-1"); by[b.id] < 2*590 || by[b.id] > 2*620 {
				t.Errorf("counted %v: more than it has run on b", by)
			}
		})
	}
}

// The target's node dies with the machine in its hands: it runs again here, or
// waits for its disk if that was copied.
func TestTheTargetIsLost(t *testing.T) {
	for _, local := range []string{api.PoolShared, api.PoolLocal} {
		w, a, b := migrating(t, local)
		a.machines.Fault(func(op string, _ api.InstanceID) error {
			if op == "MigrateResume" {
				b.cut = true
				b.die()
				return errors.New("the target is gone")
			}
			return nil
		})
		w.moveTo(a, b)
		w.pass(30 * time.Second)
		if w.migration().Status.Phase.Ended() || a.starts("ins-1") != 1 {
			t.Fatalf("decided without knowing: %+v", w.migration().Status)
		}
		w.node(b, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
		if local == api.PoolLocal {
			if p := w.ended(); p != api.MigrationSucceeded {
				t.Errorf("%s", p)
			}
			b.cut, b.lease = false, true
			b.machines.Fault(nil)
			b.start()
			w.until("runs on b", func() bool { return w.runsOn("ins-1", b) })
			w.until("a is clean", func() bool { return a.left() == "" })
			continue
		}
		if p := w.ended(); p != api.MigrationFailed {
			t.Errorf("%s", p)
		}
		w.until("runs on a again", func() bool { return w.runsOn("ins-1", a) })
		b.cut, b.lease = false, true
		b.machines.Fault(nil)
		b.start()
		w.until("b is clean", func() bool { return b.left() == "" })
	}
}

// What has arrived dies before it was let run: it is started again where its
// disk is.
func TestTheMachineDiesOnTheTarget(t *testing.T) {
	for _, pool := range []string{api.PoolShared, api.PoolLocal} {
		t.Run(pool, func(t *testing.T) {
			w, a, b := migrating(t, pool)
			a.machines.Fault(func(op string, id api.InstanceID) error {
				if op == "MigrateResume" {
					b.machines.Lose(id)
					return errors.New("its QEMU is dead")
				}
				return nil
			})
			w.moveTo(a, b)
			on, off, starts, phase := a, b, 2, api.MigrationFailed
			if pool == api.PoolLocal {
				on, off, starts, phase = b, a, 1, api.MigrationSucceeded
			}
			if p := w.ended(); p != phase {
				t.Errorf("%s: %s", p, w.migration().Status.LastError)
			}
			w.until("it runs again", func() bool { return w.runsOn("ins-1", on) })
			w.until("nothing is left elsewhere", func() bool { return off.left() == "" })
			if n := on.starts("ins-1"); n != starts {
				t.Errorf("%d starts", n)
			}
		})
	}
}

// The lease ends in the middle of a migration and comes back: what the fence
// ended is started again.
func TestTheFenceEndsItOnTheMove(t *testing.T) {
	w, a, b := migrating(t, api.PoolShared)
	a.machines.MigrationStep(func(_ context.Context, _ api.InstanceID, p hypervisor.MigrationProgress) error {
		if p.Phase == hypervisor.MigrationCopying {
			a.lapse()
			clear(a.fenced) // and forgets it
			return errors.New("killed")
		}
		return nil
	})
	w.moveTo(a, b)
	w.pass(time.Second)
	a.lease = true
	if p := w.ended(); p != api.MigrationFailed {
		t.Errorf("%s", p)
	}
	w.until("runs again", func() bool { return w.runsOn("ins-1", a) })
}
