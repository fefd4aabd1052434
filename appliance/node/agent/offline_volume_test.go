package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// sendVolume creates a migration of a volume without an instance, with the assignment that
// the planner would make.
func (w *testCluster) sendVolume(v api.VolumeID, from, to *testNode) {
	w.t.Helper()
	w.moves++
	id := w.moveID()
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindMigration, ID: id, Name: id, Data: api.Encode(api.MigrationSpec{Volume: v, Offline: true})})
	w.assign(api.KindMigration, id, api.MigrationAssignment{Source: from.id, Target: to.id, Phase: api.MigrationPreparing, Volumes: []api.VolumeID{v}})
}

// endVolume acts as the planner: it ends the migration when the source has, or when the
// volume was attached. It reports whether the migration has ended.
func (w *testCluster) endVolume() bool {
	w.t.Helper()
	m := w.migration()
	v := w.vol(string(m.Spec.Volume))
	attached := v.Spec.Instance != "" || v.Status.Attached != ""
	if m.Assignment.Phase.Ended() || !m.Status.Phase.Ended() && !attached {
		return m.Assignment.Phase.Ended()
	}
	ma := m.Assignment
	if ma.Phase = m.Status.Phase; attached {
		ma.Phase = api.MigrationFailed
	}
	if ma.Phase == api.MigrationSucceeded {
		a := v.Assignment
		a.Node, a.Epoch = ma.Target, a.Epoch+1
		w.assign(api.KindVolume, v.Meta.ID, a)
	}
	w.assign(api.KindMigration, w.moveID(), ma)
	return true
}

func (w *testCluster) sentVolume() api.MigrationPhase {
	w.t.Helper()
	w.until("the migration ended", w.endVolume)
	return w.migration().Assignment.Phase
}

// detached returns a cluster with vol-data in its first node's own pool, which no instance
// has.
func detached(t *testing.T) (w *testCluster, a, b *testNode) {
	w = newTestCluster(t, 2, false)
	a, b = w.nodes[0], w.nodes[1]
	w.volume(a, "vol-data", api.PoolLocal, nil)
	w.until("vol-data ready", func() bool { return w.vol("vol-data").Status.Phase == api.VolumeReady })
	a.fill("vol-data", "data")
	return w, a, b
}

// stores reports whether the node's own pool has the volume.
func (h *testNode) stores(v api.VolumeID) bool {
	_, err := h.local.Volume(context.Background(), v)
	return err == nil
}

// receipts returns how many receipts are on the node.
func (h *testNode) receipts() int {
	entries, _ := os.ReadDir(filepath.Join(h.dir, "receipts"))
	return len(entries)
}

// TestDetachedVolumeMigrates checks that a volume arrives with its content and snapshots,
// that it can be used there, and that nothing is left on the source.
func TestDetachedVolumeMigrates(t *testing.T) {
	w, a, b := detached(t)
	w.snapshot(a, "snap-1", "vol-data")
	w.until("snap-1 ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
	a.fill("vol-data", "next")
	for _, h := range w.nodes { // no sweep may remove anything in any phase
		h.step = func(string) {
			if h.Stepper != nil {
				h.try(h.Sweep(h.ctx))
			}
		}
	}
	w.sendVolume("vol-data", a, b)
	if p := w.sentVolume(); p != api.MigrationSucceeded {
		t.Fatalf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
	}
	a.step, b.step = nil, nil
	w.assign(api.KindSnapshot, "snap-1", api.SnapshotAssignment{Node: b.id, Pool: api.PoolLocal})
	w.until("nothing left on a, and no receipt", func() bool { return !a.stores("vol-data") && b.receipts() == 0 })
	w.pass(2 * time.Minute)
	b.wantContent("vol-data", "next")
	w.change("vol-data", func(s *api.VolumeSpec) { s.Rollback = &api.VolumeRollback{Snapshot: "snap-1", Count: 1} })
	w.until("rolled back on b", func() bool { return w.vol("vol-data").Status.Rollbacks == 1 })
	b.wantContent("vol-data", "data")
	// And back: what is on b is newer than anything on a.
	b.fill("vol-data", "back")
	w.sendVolume("vol-data", b, a)
	if p := w.sentVolume(); p != api.MigrationSucceeded {
		t.Fatalf("phase of the migration back = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
	}
	w.until("nothing left on b", func() bool { return !b.stores("vol-data") })
	a.wantContent("vol-data", "back")
}

// TestCloneMigrates checks that a clone leaves with what it shares, after which its origin
// can leave.
func TestCloneMigrates(t *testing.T) {
	w, a, b := detached(t)
	w.snapshot(a, "snap-1", "vol-data")
	w.until("snap-1 ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
	a.fill("vol-data", "next")
	w.volume(a, "vol-clone", api.PoolLocal, func(s *api.VolumeSpec) { s.Snapshot = "snap-1" })
	w.until("vol-clone ready", func() bool { return w.vol("vol-clone").Status.Phase == api.VolumeReady })
	w.sendVolume("vol-data", a, b)
	if p, want := w.sentVolume(), "volume vol-data shares data with volume vol-clone, which is a clone of its snapshot snap-1 (migrate or delete the clone first)"; p != api.MigrationFailed || w.migration().Status.LastError != want {
		t.Fatalf("migration phase = %s (%q), want %s with %q", p, w.migration().Status.LastError, api.MigrationFailed, want)
	}
	for _, v := range []api.VolumeID{"vol-clone", "vol-data"} {
		w.sendVolume(v, a, b)
		if p := w.sentVolume(); p != api.MigrationSucceeded {
			t.Fatalf("migration phase of %s = %s (%s), want %s", v, p, w.migration().Status.LastError, api.MigrationSucceeded)
		}
		w.until("it has left a", func() bool { return !a.stores(v) })
	}
	b.wantContent("vol-clone", "data")
	b.wantContent("vol-data", "next")
}

// TestAttachedVolumeStays checks that nothing changes a volume while it is copied, and that
// an attachment ends the copy: the volume is not opened before.
func TestAttachedVolumeStays(t *testing.T) {
	w, a, b := detached(t)
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	b.cut = true // it receives nothing for now
	w.sendVolume("vol-data", a, b)
	w.until("a holds still", func() bool { return w.migration().Status.Phase == api.MigrationCopying })
	w.snapshot(a, "snap-1", "vol-data")
	w.change("vol-data", func(s *api.VolumeSpec) { s.SizeBytes *= 2 })
	w.pass(10 * time.Second)
	if st := w.vol("vol-data").Status; w.snap("snap-1").Status.Phase == api.SnapshotReady || st.SizeBytes != 2<<20 {
		t.Errorf("status of vol-data = %+v, snap-1 %s; want it unchanged", st, w.snap("snap-1").Status.Phase)
	}
	a.step = func(string) {
		if m := w.migration(); !m.Status.Phase.Ended() && (w.vol("vol-data").Status.Attached != "" || len(a.disks("ins-1")) > 1) {
			t.Errorf("migration phase = %s, and vol-data is attached, want the copy to end first", m.Status.Phase)
		}
	}
	w.change("vol-data", attachTo("ins-1"))
	w.pass(5 * time.Second)
	a.step, b.cut = nil, false
	if p := w.sentVolume(); p != api.MigrationFailed {
		t.Fatalf("migration phase = %s, want %s", p, api.MigrationFailed)
	}
	w.until("snap-1 ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
	w.until("attached on a", func() bool { return fmt.Sprint(a.disks("ins-1")) == "[root vol-data]" })
	w.until("nothing left on b", func() bool { return !b.stores("vol-data") && b.receipts() == 0 })
	a.wantContent("vol-data", "data")
}

// TestVolumeKilledAnywhere kills source or target at each of their actions: in the end one
// of them has the volume with its content, and the other nothing.
func TestVolumeKilledAnywhere(t *testing.T) {
	for _, who := range []int{0, 1} {
		step := 1
		if testing.Short() {
			step = 4
		}
		for at := 1; ; at += step {
			hit := false
			t.Run(fmt.Sprint(who, at), func(t *testing.T) { hit = testVolumeKilled(t, who, at) })
			if !hit || t.Failed() {
				if at < 6 {
					t.Errorf("the migration has %d moments to be killed at, want at least 6", at)
				}
				break
			}
		}
	}
}

func testVolumeKilled(t *testing.T, who, at int) (hit bool) {
	w, a, b := detached(t)
	victim := w.nodes[who]
	moment := func(string) {
		if at--; at == 0 {
			hit = true
			victim.kill()
		}
	}
	fault := func(op, _ string) error {
		switch op {
		case "ImportVolume", "DiscardVolume", "ExportVolume":
			moment("")
		}
		return nil
	}
	for _, h := range w.nodes {
		h.step = moment
		h.local.Fault(fault)
	}
	w.sendVolume("vol-data", a, b)
	w.pass(10 * time.Second)
	w.endVolume()
	w.pass(10 * time.Second)
	at = 0
	if victim.Stepper == nil {
		victim.start()
	}
	for _, h := range w.nodes {
		h.step = nil
		h.local.Fault(nil)
	}
	if p := w.sentVolume(); p != api.MigrationSucceeded {
		t.Fatalf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
	}
	w.until("nothing left on a, and no receipt", func() bool { return !a.stores("vol-data") && b.receipts() == 0 })
	w.pass(2 * time.Minute)
	b.wantContent("vol-data", "data")
	return hit
}

// TestOldCopyOfVolumeIsReplaced checks that what an earlier migration has left is not taken
// for the present content.
func TestOldCopyOfVolumeIsReplaced(t *testing.T) {
	w, a, b := detached(t)
	if _, err := b.local.CreateVolume(context.Background(), sds.VolumeCreate{ID: "vol-data", SizeBytes: 2 << 20}); err != nil {
		t.Fatal(err)
	}
	b.fill("vol-data", "old!")
	w.sendVolume("vol-data", a, b)
	if p := w.sentVolume(); p != api.MigrationSucceeded {
		t.Fatalf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
	}
	b.wantContent("vol-data", "data")
}
