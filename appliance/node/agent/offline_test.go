package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// sendTo creates a migration of the stopped ins-1 with the assignments that the planner
// would make.
func (w *testCluster) sendTo(from, to *testNode, volumes ...api.VolumeID) {
	w.t.Helper()
	w.moves++
	id := w.moveID()
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindMigration, ID: id, Name: id, Data: api.Encode(api.MigrationSpec{Instance: "ins-1", Offline: true})})
	in, _ := w.instance("ins-1")
	a := in.Assignment
	a.MigrateTo = to.id
	w.assign(api.KindInstance, "ins-1", a)
	w.assign(api.KindMigration, id, api.MigrationAssignment{Source: from.id, Target: to.id, Phase: api.MigrationPreparing, Volumes: volumes})
}

// handOver acts as the planner when the migration has ended, in one batch. It reports
// whether it has.
func (w *testCluster) handOver() bool {
	w.t.Helper()
	m := w.migration()
	if m.Assignment.Phase.Ended() || !m.Status.Phase.Ended() {
		return m.Assignment.Phase.Ended()
	}
	in, _ := w.instance("ins-1")
	a, ma := in.Assignment, m.Assignment
	var cmds []api.Command
	set := func(kind api.Kind, id string, x any) {
		cmds = append(cmds, api.Command{Op: api.OpAssign, Kind: kind, ID: id, Expect: api.AnyRevision, Data: api.Encode(x)})
	}
	if a.MigrateTo = ""; m.Status.Phase == api.MigrationSucceeded {
		a.Node, a.Epoch = ma.Target, a.Epoch+1
		for _, id := range ma.Volumes {
			va := w.vol(string(id)).Assignment
			va.Node, va.Epoch = ma.Target, a.Epoch
			set(api.KindVolume, string(id), va)
		}
	}
	set(api.KindInstance, "ins-1", a)
	ma.Phase, ma.Reason = m.Status.Phase, m.Status.LastError
	set(api.KindMigration, w.moveID(), ma)
	w.apply(cmds...)
	return true
}

func (w *testCluster) sent() api.MigrationPhase {
	w.t.Helper()
	w.until("the migration ended", w.handOver)
	return w.migration().Assignment.Phase
}

// fill writes to a volume of the node's own pool, and reads back.
func (h *testNode) fill(v api.VolumeID, content string) {
	h.t.Helper()
	have, err := h.local.Volume(context.Background(), v)
	if err == nil {
		err = h.local.WriteAt(have.Source, nil, []byte(content), 4096)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *testNode) wantContent(v api.VolumeID, want string) {
	h.t.Helper()
	got := make([]byte, len(want))
	have, err := h.local.Volume(context.Background(), v)
	if err == nil {
		err = h.local.ReadAt(have.Source, nil, got, 4096)
	}
	if err != nil || string(got) != want {
		h.t.Errorf("content of %s on %s = %q, %v, want %q", v, h.id, got, err, want)
	}
}

// emptied reports whether nothing is left on the node. The TPM is deleted with the
// machine, which the fake hypervisor does not do.
func (h *testNode) emptied() bool {
	if domains, _ := h.machines.List(context.Background()); len(domains) == 0 {
		_ = os.RemoveAll(filepath.Join(h.dir, "tpm"))
	}
	return h.left() == ""
}

// atRest returns a cluster with the stopped ins-1 on its first node, with a root volume
// and a data volume in that node's own pool.
func atRest(t *testing.T, change func(*api.InstanceSpec, *api.InstanceAssignment)) (w *testCluster, a, b *testNode) {
	w = newTestCluster(t, 2, false)
	a, b = w.nodes[0], w.nodes[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolLocal, change)
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	w.volume(a, "vol-data", api.PoolLocal, attachTo("ins-1"))
	w.until("vol-data attached", func() bool { return w.vol("vol-data").Status.Attached == "ins-1" })
	if change != nil {
		a.setState("first")
	}
	w.power(api.PowerStopped)
	w.until("ins-1 stopped", w.atRest)
	a.fill("vol-ins-1", "root")
	a.fill("vol-data", "data")
	return w, a, b
}

func (w *testCluster) atRest() bool {
	in, _ := w.instance("ins-1")
	return in.Status.Phase == api.InstanceStopped && in.Status.StartedAt == nil
}

// TestStoppedInstanceMigrates checks that a stopped instance arrives with the content of
// its volumes, their snapshots, its UEFI variables and its TPM, and that nothing is left.
func TestStoppedInstanceMigrates(t *testing.T) {
	w, a, b := atRest(t, withTPM)
	w.snapshot(a, "snap-1", "vol-data")
	w.until("snap-1 ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
	a.fill("vol-data", "next")
	a.step = func(string) { a.try(a.Sweep(a.ctx)) } // no sweep may remove anything in any phase
	b.step = func(string) {
		if b.Stepper != nil {
			b.try(b.Sweep(b.ctx))
		}
	}
	w.sendTo(a, b, "vol-ins-1", "vol-data")
	if p := w.sent(); p != api.MigrationSucceeded {
		t.Fatalf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
	}
	a.step, b.step = nil, nil
	w.assign(api.KindSnapshot, "snap-1", api.SnapshotAssignment{Node: b.id, Pool: api.PoolLocal})
	if st := w.migration().Status; st.TotalBytes == 0 || st.ProgressBytes != st.TotalBytes || st.StartedAt == nil || st.EndedAt == nil {
		t.Errorf("status of the migration = %+v, want start, end and all bytes done", st)
	}
	w.until("nothing left on a but its image", func() bool { return a.emptied() })
	w.pass(time.Minute)
	b.wantContent("vol-ins-1", "root")
	b.wantContent("vol-data", "next")
	if all, err := b.local.Snapshots(context.Background(), "vol-data"); err != nil || len(all) != 1 || all[0].ID != "snap-1" {
		t.Errorf("snapshots on b = %+v, %v, want snap-1", all, err)
	}
	if !w.atRest() {
		in, _ := w.instance("ins-1")
		t.Errorf("status after the migration = %+v, want stopped", in.Status)
	}
	w.power(api.PowerRunning)
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	b.wantState("after the start on b", "first", true)
	if got := fmt.Sprint(b.disks("ins-1")); got != "[root vol-data]" {
		t.Errorf("disks on b = %s, want root and vol-data", got)
	}
	// And back: what b's run has left is newer than anything on a.
	b.setState("second")
	w.power(api.PowerStopped)
	w.until("ins-1 stopped on b", w.atRest)
	b.fill("vol-ins-1", "back")
	w.sendTo(b, a, "vol-ins-1", "vol-data")
	if p := w.sent(); p != api.MigrationSucceeded {
		t.Fatalf("phase of the migration back = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
	}
	w.power(api.PowerRunning)
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	a.wantState("after the start on a", "second", true)
	a.wantContent("vol-ins-1", "back")
	w.until("nothing left on b", func() bool { return b.emptied() })
}

// TestStartWaitsForTheCopy checks that an instance which is started while it is copied
// starts on the target, and nowhere else.
func TestStartWaitsForTheCopy(t *testing.T) {
	w, a, b := atRest(t, nil)
	started := false
	b.local.Fault(func(op, id string) error {
		if op == "ImportVolume" && id == "vol-data" && !started {
			started = true
			w.edit("ins-1", func(s *api.InstanceSpec) { s.Power = api.PowerRunning })
			return api.Errorf(api.CodeUnavailable, "the connection is lost")
		}
		return nil
	})
	w.sendTo(a, b, "vol-ins-1", "vol-data")
	w.until("the step of the instance explains why it waits", func() bool {
		in, _ := w.instance("ins-1")
		return started && in.Status.Step == "moving to another node: it can be started when its disks have been copied"
	})
	if p := w.sent(); p != api.MigrationSucceeded {
		t.Fatalf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
	}
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	if n := a.starts("ins-1"); n != 1 {
		t.Errorf("%d starts on a, want the one before the migration", n)
	}
	w.until("nothing left on a", func() bool { return a.emptied() })
}

// TestCopyIsAborted checks that an aborted or failed migration leaves the instance as it
// was, and nothing on the target.
func TestCopyIsAborted(t *testing.T) {
	for name, c := range map[string]struct {
		during func(w *testCluster, a, b *testNode) error
		want   api.MigrationPhase
	}{
		"aborted": {func(w *testCluster, _, _ *testNode) error {
			m := w.migration()
			m.Spec.Abort = true
			w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindMigration, ID: w.moveID(), Expect: api.AnyRevision, Data: api.Encode(m.Spec)})
			return api.Errorf(api.CodeUnavailable, "the connection is lost")
		}, api.MigrationAborted},
		"full": {func(*testCluster, *testNode, *testNode) error {
			return api.Errorf(api.CodeDiskFull, "the volume store is full")
		}, api.MigrationFailed},
		"out of reach": {func(*testCluster, *testNode, *testNode) error {
			return api.Errorf(api.CodeUnavailable, "the connection is lost")
		}, api.MigrationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w, a, b := atRest(t, uefi)
			b.local.Fault(func(op, id string) error {
				if op == "ImportVolume" && id == "vol-data" {
					return c.during(w, a, b)
				}
				return nil
			})
			w.sendTo(a, b, "vol-ins-1", "vol-data")
			if p := w.sent(); p != c.want || c.want == api.MigrationFailed && w.migration().Status.LastError == "" {
				t.Fatalf("migration phase = %s (%q), want %s", p, w.migration().Status.LastError, c.want)
			}
			b.local.Fault(nil)
			w.until("nothing left on b", func() bool { return b.emptied() })
			a.wantContent("vol-ins-1", "root")
			a.wantContent("vol-data", "data")
			w.power(api.PowerRunning)
			w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
			a.wantState("after the start on a", "first", false)
		})
	}
}

// TestCopyIsRefused checks what a source does not send.
func TestCopyIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		before  func(w *testCluster, a *testNode)
		volumes []api.VolumeID
		want    string
	}{
		"another volume was attached": {nil, []api.VolumeID{"vol-ins-1"}, "volume vol-data was attached meanwhile (migrate the instance again)"},
		"a clone": {func(w *testCluster, a *testNode) {
			w.snapshot(a, "snap-1", "vol-data")
			w.until("snap-1 ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
			w.volume(a, "vol-clone", api.PoolLocal, func(s *api.VolumeSpec) { s.Snapshot = "snap-1" })
			w.until("vol-clone ready", func() bool { return w.vol("vol-clone").Status.Phase == api.VolumeReady })
		}, []api.VolumeID{"vol-ins-1", "vol-data"}, "volume vol-data shares data with volume vol-clone, which is a clone of its snapshot snap-1 (migrate or delete the clone first)"},
	} {
		t.Run(name, func(t *testing.T) {
			w, a, b := atRest(t, nil)
			if c.before != nil {
				c.before(w, a)
			}
			w.sendTo(a, b, c.volumes...)
			if p := w.sent(); p != api.MigrationFailed || w.migration().Status.LastError != c.want {
				t.Errorf("migration phase = %s (%q), want %s with %q", p, w.migration().Status.LastError, api.MigrationFailed, c.want)
			}
			if left := b.left(); left != "" {
				t.Errorf("left on the target: %s, want nothing", left)
			}
			w.power(api.PowerRunning)
			w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
		})
	}
}

// TestOldCopyIsReplaced checks that what an earlier stay or attempt has left on the
// target is not taken for the present content.
func TestOldCopyIsReplaced(t *testing.T) {
	w, a, b := atRest(t, nil)
	if _, err := b.local.CreateVolume(context.Background(), sds.VolumeCreate{ID: "vol-ins-1", Image: "img-1", SizeBytes: 2 << 20, Standalone: true}); err != nil {
		t.Fatal(err)
	}
	b.fill("vol-ins-1", "old!")
	w.sendTo(a, b, "vol-ins-1", "vol-data")
	if p := w.sent(); p != api.MigrationSucceeded {
		t.Fatalf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
	}
	b.wantContent("vol-ins-1", "root")
}

// TestNothingChangesWhileItIsCopied checks that volumes are neither detached, rolled
// back nor given snapshots while they are copied.
func TestNothingChangesWhileItIsCopied(t *testing.T) {
	w, a, b := atRest(t, nil)
	w.snapshot(a, "snap-1", "vol-data")
	w.until("snap-1 ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
	b.cut = true // it receives nothing for now
	w.sendTo(a, b, "vol-ins-1", "vol-data")
	w.until("a holds still", func() bool { return w.migration().Status.Phase != "" })
	w.change("vol-data", func(s *api.VolumeSpec) {
		s.Instance, s.Rollback = "", &api.VolumeRollback{Snapshot: "snap-1", Count: 1}
	})
	w.snapshot(a, "snap-2", "vol-ins-1")
	w.pass(30 * time.Second)
	if st := w.vol("vol-data").Status; st.Attached != "ins-1" || st.Rollbacks != 0 || w.snap("snap-2").Status.Phase == api.SnapshotReady {
		t.Errorf("status of vol-data = %+v, snap-2 %s; want it attached, not rolled back, and no snapshot", st, w.snap("snap-2").Status.Phase)
	}
	b.cut = false
	if p := w.sent(); p != api.MigrationSucceeded {
		t.Fatalf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
	}
	for _, id := range []string{"snap-1", "snap-2"} {
		w.assign(api.KindSnapshot, id, api.SnapshotAssignment{Node: b.id, Pool: api.PoolLocal})
	}
	w.until("all of it is done on b", func() bool {
		st := w.vol("vol-data").Status
		return st.Attached == "" && st.Rollbacks == 1 && w.snap("snap-2").Status.Phase == api.SnapshotReady
	})
}

// TestKilledAnywhereInACopy kills source or target at each of their actions: in the end
// one of them has the instance with all of its content, and the other nothing.
func TestKilledAnywhereInACopy(t *testing.T) {
	for _, who := range []int{0, 1} {
		step := 1
		if testing.Short() {
			step = 6
		}
		for at := 1; ; at += step {
			hit := false
			t.Run(fmt.Sprint(who, at), func(t *testing.T) { hit = testKilledInCopy(t, who, at) })
			if !hit || t.Failed() {
				if at < 10 {
					t.Errorf("the migration has %d moments to be killed at, want at least 10", at)
				}
				break
			}
		}
	}
}

func testKilledInCopy(t *testing.T, who, at int) (hit bool) {
	w, a, b := atRest(t, uefi)
	victim := w.nodes[who]
	moment := func(string) {
		if at--; at == 0 {
			hit = true
			victim.kill()
		}
	}
	for _, h := range w.nodes {
		h.step = moment
	}
	fault := func(op, _ string) error {
		switch op {
		case "ImportVolume", "DiscardVolume", "ExportVolume", "KeepState":
			moment("")
		}
		return nil
	}
	a.local.Fault(fault)
	b.local.Fault(fault)
	w.sendTo(a, b, "vol-ins-1", "vol-data")
	w.pass(10 * time.Second)
	handed := w.handOver()
	w.pass(10 * time.Second)
	at = 0
	if victim.Stepper == nil {
		victim.start()
	}
	for _, h := range w.nodes {
		h.step = nil
		h.local.Fault(nil)
	}
	p := w.sent()
	on, off := a, b
	if p == api.MigrationSucceeded {
		on, off = b, a
	} else {
		t.Errorf("migration phase = %s (%s), want %s (it had ended before: %t)", p, w.migration().Status.LastError, api.MigrationSucceeded, handed)
	}
	w.until("nothing left on the other node", func() bool { return off.emptied() })
	on.wantContent("vol-ins-1", "root")
	on.wantContent("vol-data", "data")
	w.power(api.PowerRunning)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", on) })
	on.wantState("after the start", "first", false)
	w.pass(time.Minute)
	if !off.emptied() {
		t.Errorf("left on the other node: %s, want nothing", off.left())
	}
	return hit
}

// TestCopyWithoutASource checks that the target gives up what it has when the planner
// ends the migration, because the source is lost: the instance is the source's.
func TestCopyWithoutASource(t *testing.T) {
	w, a, b := atRest(t, nil)
	b.local.Fault(func(op, id string) error {
		if op == "ImportVolume" && id == "vol-data" {
			a.kill()
			return api.Errorf(api.CodeUnavailable, "the connection is lost")
		}
		return nil
	})
	w.sendTo(a, b, "vol-ins-1", "vol-data")
	w.pass(30 * time.Second)
	if b.emptied() {
		t.Fatal("nothing on b, want a part of the instance")
	}
	m := w.migration()
	m.Assignment.Phase = api.MigrationFailed
	w.assign(api.KindMigration, w.moveID(), m.Assignment)
	w.until("nothing left on b", func() bool { return b.emptied() })
	in, _ := w.instance("ins-1")
	in.Assignment.MigrateTo = ""
	w.assign(api.KindInstance, "ins-1", in.Assignment)
	b.local.Fault(nil)
	a.start()
	w.power(api.PowerRunning)
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	a.wantContent("vol-data", "data")
}

// TestOnlyTheTargetReadsVolumes checks which nodes a source sends a volume to.
func TestOnlyTheTargetReadsVolumes(t *testing.T) {
	w, a, b := atRest(t, nil)
	b.cut = true
	w.volume(a, "vol-other", api.PoolLocal, nil)
	w.sendTo(a, b, "vol-ins-1", "vol-data")
	w.until("a has begun to copy", func() bool { return w.migration().Status.Phase == api.MigrationCopying })
	id := api.MigrationID(w.moveID())
	for name, c := range map[string]struct {
		from      api.NodeID
		migration api.MigrationID
		volume    api.VolumeID
		want      api.Code
	}{
		"the target":         {b.id, id, "vol-data", ""},
		"another node":       {"node-3", id, "vol-data", api.CodeForbidden},
		"another volume":     {b.id, id, "vol-other", api.CodeForbidden},
		"no migration":       {b.id, "mig-9", "vol-data", api.CodeNotFound},
		"a path as a volume": {b.id, id, "../vol-data", api.CodeForbidden},
	} {
		var content bytes.Buffer
		err := a.Agent().ExportVolume(a.ctx, c.from, askFor(c.migration, c.volume), &content, func(sds.Volume) {})
		if err != nil && api.CodeOf(err) != c.want || (content.Len() > 0) != (c.want == "") {
			t.Errorf("%s: error %v and %d bytes, want code %q", name, err, content.Len(), c.want)
		}
	}
	if s, _ := a.machines.Status(context.Background(), "ins-1"); s.State == hypervisor.Running {
		t.Error("ins-1 runs, want it stopped")
	}
}

func askFor(m api.MigrationID, v api.VolumeID) agent.VolumeRequest {
	return agent.VolumeRequest{Migration: m, Volume: v}
}
