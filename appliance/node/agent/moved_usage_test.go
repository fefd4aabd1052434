package agent_test

import (
	"context"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

func volumeOf(id api.VolumeID) sds.VolumeCreate { return sds.VolumeCreate{ID: id, SizeBytes: 1 << 20} }

// used is the sum of a meter's records, and by node.
func (w *town) used(m api.Meter, resource string) (sum int64, by map[api.NodeID]int64) {
	by = map[api.NodeID]int64{}
	for q := (api.RecordQuery{Meter: m, Resource: resource, Limit: api.MaxRecords}); ; {
		page, err := w.store.Records(context.Background(), q)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range page.Items {
			sum += r.Spec.Quantity
			by[r.Spec.Node] += r.Spec.Quantity
		}
		if q.After = page.Next; !page.More {
			return sum, by
		}
	}
}

func (w *town) meter() {
	for _, h := range w.houses {
		if h.Stepper != nil {
			h.try(h.Meter(h.ctx))
		}
	}
}

// An instance is moved again and again, its agents are killed, and each second
// of it is counted once, where it ran.
func TestUsageOfAMovedInstanceIsExact(t *testing.T) {
	w := newTown(t, 2, true)
	a, b := w.houses[0], w.houses[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("runs", func() bool { return w.runsOn("ins-1", a) })
	began := w.now
	ran := map[api.NodeID]time.Duration{}
	on, off := a, b
	for i := range 8 {
		from := w.now
		w.pass(time.Duration(20+7*i) * time.Minute)
		w.meter()
		if i%3 == 1 {
			on.kill()
			w.pass(time.Second)
			on.start()
		}
		w.moveTo(on, off)
		if p := w.ended(); p != api.MigrationSucceeded {
			t.Fatalf("%s: %s", p, w.migration().Status.LastError)
		}
		w.until("moved", func() bool { return w.runsOn("ins-1", off) })
		ran[on.id] += w.now.Sub(from)
		on, off = off, on
		w.pass(time.Minute)
		ran[on.id] += time.Minute
	}
	w.meter()
	sum, by := w.used(api.MeterVCPU, "ins-1")
	total := int64(2 * w.now.Sub(began) / time.Second)
	if sum > total || sum < total-2*8*3 { // never more than it ran; the switch of each move may not be counted
		t.Errorf("%d vCPU seconds counted, of %d", sum, total)
	}
	for id, d := range ran {
		if want := int64(2 * d / time.Second); by[id] > want+48 || by[id] < want-48 {
			t.Errorf("on %s %d counted, of %d", id, by[id], want)
		}
	}
	size, _ := w.used(api.MeterVolume, "vol-ins-1")
	if want := int64(2<<20) * int64(w.now.Sub(began)/time.Second); size > want+(2<<20) || size < want-30*(2<<20) {
		t.Errorf("%d byte seconds of the volume, of %d", size, want)
	}
}

// What a lost node had counted and not told is told when it returns; what
// nobody saw is not counted.
func TestALostNodesUsageIsNotLost(t *testing.T) {
	w := newTown(t, 2, true)
	a, b := w.houses[0], w.houses[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("runs", func() bool { return w.runsOn("ins-1", a) })
	w.pass(10 * time.Minute)
	a.cut = true
	if err := a.Meter(a.ctx); err == nil {
		t.Fatal("a node that is cut off committed records")
	}
	a.die()
	w.pass(time.Minute)
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.give("ins-1", b, nil)
	w.until("runs on b", func() bool { return w.runsOn("ins-1", b) })
	w.pass(10 * time.Minute)
	a.cut, a.lease = false, true
	a.start()
	w.until("a is clean", func() bool { return a.left() == "" })
	w.meter()
	_, by := w.used(api.MeterVCPU, "ins-1")
	if by[a.id] < 2*600 || by[a.id] > 2*602 || by[b.id] < 2*600 {
		t.Errorf("counted %v", by)
	}
}

// A run that ends while the store is away is charged to its end, and the next
// one from its start.
func TestARunThatEndsWhileTheStoreIsAway(t *testing.T) {
	w := newTown(t, 1, true)
	a := w.houses[0]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("runs", func() bool { return w.runsOn("ins-1", a) })
	w.pass(100 * time.Second)
	w.meter()
	w.pass(100 * time.Second)
	a.cut = true
	w.meter() // has something that it cannot tell
	a.lapse()
	w.pass(10 * time.Minute)
	a.cut, a.lease = false, true
	w.until("runs again", func() bool { return w.runsOn("ins-1", a) })
	w.pass(100 * time.Second)
	w.meter()
	if sum, _ := w.used(api.MeterVCPU, "ins-1"); sum < 2*270 || sum > 2*301 {
		t.Errorf("%d vCPU seconds counted, of 600", sum)
	}
}

// The answer to "its run is over" is lost, it is started again, and deleted
// before that has been said: the time between is nobody's.
func TestARunWhoseEndWasNotHeardToBeSaid(t *testing.T) {
	w := newTown(t, 1, true)
	a := w.houses[0]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("runs", func() bool { return w.runsOn("ins-1", a) })
	w.pass(100 * time.Second)
	w.meter()
	a.cut = true
	a.lapse()
	w.pass(10 * time.Minute)
	a.cut = false
	lost, deleted := false, false
	a.step = func(what string) {
		in, _ := w.instance("ins-1")
		s, _ := a.machines.Status(context.Background(), "ins-1")
		switch {
		case !lost && what == "applied" && in.Status.StartedAt == nil:
			a.cut, lost = true, true
		case !deleted && lost && s.State == hypervisor.Running:
			deleted = true
			w.apply(api.Command{Op: api.OpDelete, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision})
			a.hear()
		}
	}
	w.until("said", func() bool { return lost })
	a.cut = false
	w.pass(time.Minute)
	a.lease = true
	w.until("is gone", func() bool { _, there := w.instance("ins-1"); return !there })
	if !deleted {
		t.Fatal("it was not deleted while it ran again")
	}
	if sum, _ := w.used(api.MeterVCPU, "ins-1"); sum < 2*90 || sum > 2*103 {
		t.Errorf("%d vCPU seconds counted, of 200", sum)
	}
}
