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

// moveTo creates a migration with the assignments that the planner would make.
func (w *testCluster) moveTo(from, to *testNode) {
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

func (w *testCluster) moveID() string { return fmt.Sprintf("mig-%d", w.moves) }

func (w *testCluster) migration() api.Migration {
	m, _ := read[api.Migration](w, api.KindMigration, w.moveID())
	return m
}

// follow acts as the planner when the migration has ended: it assigns the instance
// to the target, or leaves it. It reports whether the migration has ended.
func (w *testCluster) follow() bool {
	m := w.migration()
	if m.Assignment.Phase.Ended() || !m.Status.Phase.Ended() {
		return m.Assignment.Phase.Ended()
	}
	if m.Status.Phase == api.MigrationSucceeded {
		for _, h := range w.nodes {
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

func (w *testCluster) ended() api.MigrationPhase {
	w.t.Helper()
	w.until("the migration ended", w.follow)
	return w.migration().Assignment.Phase
}

func migrating(t *testing.T, pool string) (w *testCluster, a, b *testNode) {
	w = newTestCluster(t, 2, pool == api.PoolShared)
	a, b = w.nodes[0], w.nodes[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", pool, nil)
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	w.pass(10 * time.Second)
	return w, a, b
}

func TestMigrate(t *testing.T) {
	for _, pool := range []string{api.PoolShared, api.PoolLocal} {
		t.Run(pool, func(t *testing.T) {
			w, a, b := migrating(t, pool)
			before, _ := w.instance("ins-1")
			a.machines.MigrationStep(func(context.Context, api.InstanceID, hypervisor.MigrationProgress) error {
				return errors.Join(a.Sweep(a.ctx), b.Sweep(b.ctx)) // no sweep may remove it in any phase
			})
			w.moveTo(a, b)
			if p := w.ended(); p != api.MigrationSucceeded {
				t.Fatalf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
			}
			w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
			w.pass(time.Minute)
			after, _ := w.instance("ins-1")
			if !after.Status.StartedAt.Equal(*before.Status.StartedAt) || b.starts("ins-1") != 0 || a.starts("ins-1") != 1 {
				t.Errorf("status after the migration = %+v with %d starts on a and %d on b; want startedAt %v and one start on a", after.Status, a.starts("ins-1"), b.starts("ins-1"), before.Status.StartedAt)
			}
			if left := a.left(); left != "" {
				t.Errorf("left on the source: %s, want nothing", left)
			}
			if v, err := b.local.Volume(context.Background(), "vol-ins-1"); (err == nil) != (pool == api.PoolLocal) || err == nil && !v.Standalone {
				t.Errorf("local volume on the target = %+v, error %v; want a standalone one only with a local pool", v, err)
			}
			st := w.migration().Status
			if st.StartedAt == nil || st.EndedAt == nil || st.TotalBytes == 0 || st.ProgressBytes != st.TotalBytes {
				t.Errorf("status of the migration = %+v, want start, end and all bytes done", st)
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
		t.Fatalf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationAborted)
	}
	w.until("nothing left on b", func() bool { return b.left() == "" })
	if !w.runsOn("ins-1", a) || a.starts("ins-1") != 1 {
		t.Errorf("ins-1 runs on a: %t, starts %d; want it to continue with its one start", w.runsOn("ins-1", a), a.starts("ins-1"))
	}
}

func TestVGPUCannotMigrate(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, func(_ *api.InstanceSpec, as *api.InstanceAssignment) {
		as.Gpu, as.VgpuVramBytes = "gpu-node-1-soft0", 1<<30
	})
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
	w.moveTo(a, b)
	if p := w.ended(); p != api.MigrationFailed || w.migration().Status.LastError == "" {
		t.Fatalf("migration phase = %s (%q), want %s with an error", p, w.migration().Status.LastError, api.MigrationFailed)
	}
	w.until("ins-1 still runs on a", func() bool { return w.runsOn("ins-1", a) })
}

// TestKilledAnywhereInAMigration kills source or target at each of their actions,
// and at each phase of the transfer; in the end the machine must run once.
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
						t.Errorf("the migration has %d moments to be killed at, want at least 5", at)
					}
					break
				}
			}
		}
	}
}

func testKilledInMigration(t *testing.T, pool string, who, at int) (hit bool) {
	w, a, b := migrating(t, pool)
	victim := w.nodes[who]
	moment := func() bool {
		if at--; at == 0 {
			hit = true
			victim.kill()
		}
		return hit
	}
	for _, h := range w.nodes {
		h.step = func(string) { moment() }
	}
	died := errors.New("died")
	a.machines.MigrationStep(func(context.Context, api.InstanceID, hypervisor.MigrationProgress) error {
		if moment() {
			return died // the tunnel ends with the agent
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
	for _, h := range w.nodes {
		h.step = nil
		h.machines.Fault(nil)
	}
	p := w.ended()
	on, off := a, b
	if p == api.MigrationSucceeded {
		on, off = b, a
	}
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", on) })
	w.until("nothing left on the other node", func() bool { return off.left() == "" })
	w.pass(time.Minute)
	if v, err := on.local.Volume(context.Background(), "vol-ins-1"); pool == api.PoolLocal && (err != nil || v.Standalone != (on == b)) {
		t.Errorf("root volume = %+v, error %v; want the copied one: %t", v, err, on == b)
	}
	if !w.runsOn("ins-1", on) || off.left() != "" {
		t.Errorf("a minute after the migration ended as %s: runs: %t, left on the other node: %q; want it running and nothing", p, w.runsOn("ins-1", on), off.left())
	}
	return hit
}

// dead lets time pass and fails the test unless the agent was killed in the middle
// of the migration.
func (w *testCluster) dead(h *testNode) {
	w.t.Helper()
	w.pass(time.Second)
	if p := w.migration().Status.Phase; h.Stepper != nil || p != api.MigrationCopying {
		w.t.Fatalf("agent of %s not killed while copying: phase %s", h.id, p)
	}
}

// TestAStrandedMachineRunsOn kills the source at the last step: the machine is left
// paused at the source.
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
	a.machines.CrashMigration("ins-1")
	a.start()
	if p := w.ended(); p != api.MigrationFailed {
		t.Errorf("migration phase = %s, want %s", p, api.MigrationFailed)
	}
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	if a.starts("ins-1") != 1 {
		t.Errorf("%d starts of ins-1 on a, want one", a.starts("ins-1"))
	}
}

// TestDisksAlreadyOnTarget is the same when the target
// has received everything: its QEMU has the locks of the disks, and nothing is
// resumed before the source has had it release them.
func TestDisksAlreadyOnTarget(t *testing.T) {
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
	a.machines.CrashReceivedMigration("ins-1", b.machines)
	b.cut = true // it cannot be asked to release the disks
	a.start()
	w.pass(30 * time.Second)
	if s, _ := a.machines.Status(context.Background(), "ins-1"); s.State != hypervisor.Outgoing || w.migration().Status.Phase.Ended() {
		t.Fatalf("while the target holds the disks: domain %s, migration %+v; want outgoing and not ended", s.State, w.migration().Status)
	}
	b.cut = false
	if p := w.ended(); p != api.MigrationFailed {
		t.Errorf("migration phase = %s, want %s", p, api.MigrationFailed)
	}
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	w.until("nothing left on b", func() bool { return b.left() == "" })
	if a.starts("ins-1") != 1 {
		t.Errorf("%d starts of ins-1 on a, want one", a.starts("ins-1"))
	}
}

// TestTheSourceIsLost loses the source's node: the target must report whether it
// has the machine.
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
				t.Errorf("migration phase = %s when the source is lost while %s, want success only if received", p, phase)
			}
			if p == api.MigrationFailed {
				w.give("ins-1", b, nil)
			}
			w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
			if n := b.starts("ins-1"); (n == 0) != (phase == "received") {
				t.Errorf("%d starts on b when the source is lost while %s, want none only if received", n, phase)
			}
			a.machines.Fault(nil)
			a.lease = true
			a.start()
			w.until("nothing left on a", func() bool { return a.left() == "" })
			w.pass(10 * time.Minute)
			w.meter()
			if _, by := w.used(api.MeterVCPU, "ins-1"); by[b.id] < 2*590 || by[b.id] > 2*620 {
				t.Errorf("vCPU seconds by node = %v, want about 1200 on b", by)
			}
		})
	}
}

// TestTheTargetIsLost loses the target's node while it has the machine: the machine
// is started again on the source, or waits for its disk if that was copied.
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
			t.Fatalf("migration with an unreachable target = %+v, %d starts on a; want it undecided and one start", w.migration().Status, a.starts("ins-1"))
		}
		w.node(b, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
		if local == api.PoolLocal {
			if p := w.ended(); p != api.MigrationSucceeded {
				t.Errorf("migration phase with a local disk = %s, want %s", p, api.MigrationSucceeded)
			}
			b.cut, b.lease = false, true
			b.machines.Fault(nil)
			b.start()
			w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
			w.until("nothing left on a", func() bool { return a.left() == "" })
			continue
		}
		if p := w.ended(); p != api.MigrationFailed {
			t.Errorf("migration phase with a shared disk = %s, want %s", p, api.MigrationFailed)
		}
		w.until("ins-1 runs on a again", func() bool { return w.runsOn("ins-1", a) })
		b.cut, b.lease = false, true
		b.machines.Fault(nil)
		b.start()
		w.until("nothing left on b", func() bool { return b.left() == "" })
	}
}

// TestMachineEndsOnTarget ends the arrived machine before it was resumed: it
// must be started again on the node that has its disk.
func TestMachineEndsOnTarget(t *testing.T) {
	for _, pool := range []string{api.PoolShared, api.PoolLocal} {
		t.Run(pool, func(t *testing.T) {
			w, a, b := migrating(t, pool)
			a.machines.Fault(func(op string, id api.InstanceID) error {
				if op == "MigrateResume" {
					b.machines.RemoveSilently(id)
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
				t.Errorf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, phase)
			}
			w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", on) })
			w.until("nothing left on the other node", func() bool { return off.left() == "" })
			if n := on.starts("ins-1"); n != starts {
				t.Errorf("%d starts of ins-1, want %d", n, starts)
			}
		})
	}
}

// TestFenceDuringMigration ends the lease in the middle of a migration and
// renews it: what the fence killed must be started again.
func TestFenceDuringMigration(t *testing.T) {
	w, a, b := migrating(t, api.PoolShared)
	a.machines.MigrationStep(func(_ context.Context, _ api.InstanceID, p hypervisor.MigrationProgress) error {
		if p.Phase == hypervisor.MigrationCopying {
			a.lapse()
			clear(a.fenced) // and loses its record of it
			return errors.New("killed")
		}
		return nil
	})
	w.moveTo(a, b)
	w.pass(time.Second)
	a.lease = true
	if p := w.ended(); p != api.MigrationFailed {
		t.Errorf("migration phase = %s, want %s", p, api.MigrationFailed)
	}
	w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", a) })
}
