package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
)

// sweeps for d, as often as it takes to be seen all the time.
func (w *town) sweeps(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(30 * time.Minute) {
		for _, h := range w.houses {
			if h.Stepper != nil {
				h.try(h.Sweep(h.ctx))
			}
		}
	}
}

// deletedWithoutItsNode is a volume that the store had, and that everybody
// hears is deleted.
func (w *town) deletedWithoutItsNode(id string) {
	w.t.Helper()
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: id, Organization: "org-1", Project: "prj-1",
		Data: api.Encode(api.VolumeSpec{SizeBytes: 1 << 20})})
	w.turn()
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: id, Expect: api.AnyRevision})
	w.turn()
}

// restored is what `basalt cluster restore` leaves: a store that does not know
// what was made after its backup, and agents that begin anew.
func (w *town) restored() {
	w.t.Helper()
	for _, h := range w.houses {
		h.kill()
	}
	w.store = memstore.New()
	for _, h := range w.houses {
		h.start()
	}
	w.turn()
	w.node(w.houses[0], api.NodeAssignment{State: api.NodeReady, Voter: true})
	w.report()
}

// A volume that is newer than the backup that the cluster was restored from is
// somebody's: it stays for a week in which it is listed, in the node's own pool
// as in the shared one, whatever happens to the agents.
func TestARestoredStoreDestroysNoVolumes(t *testing.T) {
	w := newTown(t, 2, true)
	a, b := w.houses[0], w.houses[1]
	ctx := context.Background()
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.create(b, "ins-2", api.PoolShared, nil)
	w.until("both run", func() bool { return w.runsOn("ins-1", a) && w.runsOn("ins-2", b) })
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
		t.Fatalf("there: %t; %v %v", there(), leaks, err)
	}
	for _, l := range leaks {
		if !strings.Contains(l.What, "kept until 2026-11-28T") {
			t.Errorf("%+v", l)
		}
	}
	if domains, err := a.machines.List(ctx); err != nil || len(domains) != 0 {
		t.Errorf("nobody asked for %v: %v", domains, err)
	}

	// Its agent dies; the week goes on. It is off for a day: it begins anew.
	a.kill()
	a.start()
	w.sweeps(3 * 24 * time.Hour)
	if !there() {
		t.Fatal("gone before the week was over")
	}
	a.kill()
	w.now = w.now.Add(24 * time.Hour)
	a.start()
	w.report()
	w.sweeps(6 * 24 * time.Hour)
	if !there() {
		t.Fatal("what nobody could read of was deleted")
	}
	w.sweeps(2 * 24 * time.Hour)
	if _, err := a.local.Volume(ctx, "vol-ins-1"); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("it stays for ever: %v", err)
	}
	if _, err := a.shared.Volume(ctx, "vol-ins-2"); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("the shared one stays for ever: %v", err)
	}
	w.sweeps(time.Hour) // the image goes when no volume is made of it
	if leaks, err := a.Agent().Leaks(ctx, a.id); err != nil || len(leaks) != 0 {
		t.Errorf("left: %v %v", leaks, err)
	}
}

// A newer backup brings it back, as if nothing had been.
func TestWhatIsKnownAgainIsNoStray(t *testing.T) {
	w := newTown(t, 1, false)
	a := w.houses[0]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.until("runs", func() bool { return w.runsOn("ins-1", a) })
	newer := w.store
	w.restored()
	w.sweeps(5 * 24 * time.Hour)
	a.kill()
	w.store = newer
	a.start()
	w.pass(time.Minute)
	if _, err := a.local.Volume(context.Background(), "vol-ins-1"); err != nil {
		t.Error(err)
	}
	if leaks, err := a.Agent().Leaks(context.Background(), a.id); err != nil || len(leaks) != 0 {
		t.Errorf("%v %v", leaks, err)
	}
}

// What another node has is deleted here at once; but not when that node is
// removed, for then this copy may be the only one.
func TestTheOnlyCopyStays(t *testing.T) {
	w := newTown(t, 2, false)
	a, b := w.houses[0], w.houses[1]
	ctx := context.Background()
	w.volume(a, "vol-1", api.PoolLocal, nil)
	w.volume(a, "vol-2", api.PoolLocal, nil)
	w.until("made", func() bool {
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
		t.Errorf("another node has it: %v", err)
	}
	if _, err := a.local.Volume(ctx, "vol-2"); err != nil {
		t.Errorf("nobody has it: %v", err)
	}
}
