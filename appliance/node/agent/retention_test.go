package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
)

// sweeps runs the sweeps for d, often enough to count as uninterrupted observation.
func (w *testCluster) sweeps(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(30 * time.Minute) {
		for _, h := range w.nodes {
			if h.Stepper != nil {
				h.try(h.Sweep(h.ctx))
			}
		}
	}
}

// deletedWithoutItsNode creates and deletes a volume in the store, and delivers
// that to all agents.
func (w *testCluster) deletedWithoutItsNode(id string) {
	w.t.Helper()
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: id, Organization: "org-1", Project: "prj-1",
		Data: api.Encode(api.VolumeSpec{SizeBytes: 1 << 20})})
	w.turn()
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: id, Expect: api.AnyRevision})
	w.turn()
}

// restored simulates `basalt cluster restore`: the store has nothing that is newer
// than the backup, and the agents are restarted.
func (w *testCluster) restored() {
	w.t.Helper()
	for _, h := range w.nodes {
		h.kill()
	}
	w.store = memstore.New()
	for _, h := range w.nodes {
		h.start()
	}
	w.turn()
	w.node(w.nodes[0], api.NodeAssignment{State: api.NodeReady, Voter: true})
	w.report()
}

// TestARestoredStoreDestroysNoVolumes checks that volumes newer than the backup
// that the cluster was restored from are kept and listed for a week, in the local
// and in the shared pool, whatever happens to the agents.
func TestARestoredStoreDestroysNoVolumes(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	ctx := context.Background()
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.create(b, "ins-2", api.PoolShared, nil)
	w.until("both instances run", func() bool { return w.runsOn("ins-1", a) && w.runsOn("ins-2", b) })
	w.restored()
	there := func() bool {
		_, own := a.local.Volume(ctx, "vol-ins-1")
		_, shared := a.shared.Volume(ctx, "vol-ins-2")
		_, image := a.shared.Image(ctx, "img-1")
		return own == nil && shared == nil && image == nil
	}
	w.pass(20 * time.Minute)
	w.sweeps(3 * 24 * time.Hour)
	leaks, err := a.Agent().Leaks(ctx, a.id)
	if err != nil || len(leaks) != 4 || !there() {
		t.Fatalf("data kept: %t, leaks %v, error %v; want it kept and 4 leaks", there(), leaks, err)
	}
	for _, l := range leaks {
		if !strings.Contains(l.What, "kept until 2026-11-28T") {
			t.Errorf("leak = %+v, want one that is kept until 2026-11-28", l)
		}
	}
	if domains, err := a.machines.List(ctx); err != nil || len(domains) != 0 {
		t.Errorf("domains = %v, error %v; want none", domains, err)
	}

	// A restart of the agent does not reset the week; a day without it does.
	a.kill()
	a.start()
	w.sweeps(3 * 24 * time.Hour)
	if !there() {
		t.Fatal("data deleted before the end of the week, want it kept")
	}
	a.kill()
	w.now = w.now.Add(24 * time.Hour)
	a.start()
	w.report()
	w.sweeps(6 * 24 * time.Hour)
	if !there() {
		t.Fatal("data deleted six days after the agent was down for a day, want it kept")
	}
	w.sweeps(2 * 24 * time.Hour)
	if _, err := a.local.Volume(ctx, "vol-ins-1"); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("local volume after eight days: error %v, want code %s", err, api.CodeNotFound)
	}
	if _, err := a.shared.Volume(ctx, "vol-ins-2"); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("shared volume after eight days: error %v, want code %s", err, api.CodeNotFound)
	}
	w.sweeps(time.Hour) // the image is deleted when no volume is based on it
	if leaks, err := a.Agent().Leaks(ctx, a.id); err != nil || len(leaks) != 0 {
		t.Errorf("leaks at the end = %v, error %v; want none", leaks, err)
	}
}

// TestRestoredObjectIsNotOrphan restores a newer backup that has the objects again:
// their data must be used as before.
func TestRestoredObjectIsNotOrphan(t *testing.T) {
	w := newTestCluster(t, 1, false)
	a := w.nodes[0]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
	newer := w.store
	w.restored()
	w.sweeps(5 * 24 * time.Hour)
	a.kill()
	w.store = newer
	a.start()
	w.pass(time.Minute)
	if _, err := a.local.Volume(context.Background(), "vol-ins-1"); err != nil {
		t.Errorf("Volume(vol-ins-1) after the newer backup: %v", err)
	}
	if leaks, err := a.Agent().Leaks(context.Background(), a.id); err != nil || len(leaks) != 0 {
		t.Errorf("leaks after the newer backup = %v, error %v; want none", leaks, err)
	}
}

// TestTheOnlyCopyStays checks that a volume assigned to another node is deleted
// here at once, but not if that node was removed, because this copy may then be the
// only one.
func TestTheOnlyCopyStays(t *testing.T) {
	w := newTestCluster(t, 2, false)
	a, b := w.nodes[0], w.nodes[1]
	ctx := context.Background()
	w.volume(a, "vol-1", api.PoolLocal, nil)
	w.volume(a, "vol-2", api.PoolLocal, nil)
	w.until("both volumes created", func() bool {
		_, one := a.local.Volume(ctx, "vol-1")
		_, two := a.local.Volume(ctx, "vol-2")
		return one == nil && two == nil
	})
	w.frozen = true
	w.assign(api.KindVolume, "vol-1", api.VolumeAssignment{Node: b.id, Pool: api.PoolLocal, Epoch: 9})
	w.assign(api.KindVolume, "vol-2", api.VolumeAssignment{Node: "node-gone", Pool: api.PoolLocal, Epoch: 9})
	w.frozen = false
	w.turn()
	w.sweeps(time.Hour)
	if _, err := a.local.Volume(ctx, "vol-1"); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("volume assigned to another node: error %v, want code %s", err, api.CodeNotFound)
	}
	if _, err := a.local.Volume(ctx, "vol-2"); err != nil {
		t.Errorf("volume assigned to a removed node: %v, want it kept", err)
	}
}
