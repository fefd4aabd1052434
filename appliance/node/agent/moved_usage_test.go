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

// used returns the sum of a meter's records for the resource, in total and by node.
func (w *testCluster) used(m api.Meter, resource string) (sum int64, by map[api.NodeID]int64) {
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

func (w *testCluster) meter() {
	for _, h := range w.nodes {
		if h.Stepper != nil {
			h.try(h.Meter(h.ctx))
		}
	}
}

// TestUsageOfMigratedInstance migrates an instance repeatedly and kills its
// agents: each second must be counted once, on the node where it ran.
func TestUsageOfMigratedInstance(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
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
			t.Fatalf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
		}
		w.until("ins-1 migrated", func() bool { return w.runsOn("ins-1", off) })
		ran[on.id] += w.now.Sub(from)
		on, off = off, on
		w.pass(time.Minute)
		ran[on.id] += time.Minute
	}
	w.meter()
	sum, by := w.used(api.MeterVCPU, "ins-1")
	total := int64(2 * w.now.Sub(began) / time.Second)
	if sum > total || sum < total-2*8*3 { // never more than it ran; the switch-over of each migration may not be counted
		t.Errorf("vCPU seconds recorded = %d, want at most %d and at least %d", sum, total, total-2*8*3)
	}
	for id, d := range ran {
		if want := int64(2 * d / time.Second); by[id] > want+48 || by[id] < want-48 {
			t.Errorf("vCPU seconds recorded on %s = %d, want %d ± 48", id, by[id], want)
		}
	}
	size, _ := w.used(api.MeterVolume, "vol-ins-1")
	if want := int64(2<<20) * int64(w.now.Sub(began)/time.Second); size > want+(2<<20) || size < want-30*(2<<20) {
		t.Errorf("byte seconds recorded for the volume = %d, want about %d", size, want)
	}
}

// TestUsageOfLostNode checks that what a lost node had metered and not
// recorded is recorded when it returns, and that what it did not observe is not
// counted.
func TestUsageOfLostNode(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
	w.pass(10 * time.Minute)
	a.cut = true
	if err := a.Meter(a.ctx); err == nil {
		t.Fatal("Meter of a disconnected node returned nil, want an error")
	}
	a.die()
	w.pass(time.Minute)
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.give("ins-1", b, nil)
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	w.pass(10 * time.Minute)
	a.cut, a.lease = false, true
	a.start()
	w.until("nothing left on a", func() bool { return a.left() == "" })
	w.meter()
	_, by := w.used(api.MeterVCPU, "ins-1")
	if by[a.id] < 2*600 || by[a.id] > 2*602 || by[b.id] < 2*600 {
		t.Errorf("vCPU seconds by node = %v, want about 1200 on a and at least 1200 on b", by)
	}
}

// TestRunEndsWithoutStore checks that a run which ends while the store
// is unreachable is charged up to its end, and the next one from its start.
func TestRunEndsWithoutStore(t *testing.T) {
	w := newTestCluster(t, 1, true)
	a := w.nodes[0]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
	w.pass(100 * time.Second)
	w.meter()
	w.pass(100 * time.Second)
	a.cut = true
	w.meter() // it has usage that it cannot record
	a.lapse()
	w.pass(10 * time.Minute)
	a.cut, a.lease = false, true
	w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", a) })
	w.pass(100 * time.Second)
	w.meter()
	if sum, _ := w.used(api.MeterVCPU, "ins-1"); sum < 2*270 || sum > 2*301 {
		t.Errorf("vCPU seconds recorded = %d, want 540 to 602 (600 were used)", sum)
	}
}

// TestRunWhoseEndWasNotReported loses the response to the report of a run's
// end; the instance is started again, and deleted before that was reported: the
// time in between must not be charged.
func TestRunWhoseEndWasNotReported(t *testing.T) {
	w := newTestCluster(t, 1, true)
	a := w.nodes[0]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
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
			a.receive()
		}
	}
	w.until("the end of the run reported and the response lost", func() bool { return lost })
	a.cut = false
	w.pass(time.Minute)
	a.lease = true
	w.until("ins-1 removed", func() bool { _, there := w.instance("ins-1"); return !there })
	if !deleted {
		t.Fatal("ins-1 was not deleted while it ran again, which the test needs")
	}
	if sum, _ := w.used(api.MeterVCPU, "ins-1"); sum < 2*90 || sum > 2*103 {
		t.Errorf("vCPU seconds recorded = %d, want 180 to 206 (200 were used)", sum)
	}
}
