package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

func TestAnotherNodeTakesOver(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	if len(a.kept) != 0 {
		t.Errorf("instances that the fence keeps = %v, want none: all can run elsewhere", a.kept)
	}
	a.die()
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.give("ins-1", b, nil)
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	in, _ := w.instance("ins-1")
	if in.Status.StartedAt == nil || !in.Status.StartedAt.Equal(w.now) && in.Status.StartedAt.Before(w.now.Add(-time.Minute)) {
		t.Errorf("startedAt on b = %v, want within a minute of %v", in.Status.StartedAt, w.now)
	}
	if o, err := b.shared.Owner(context.Background(), "vol-ins-1"); err != nil || o != (sds.Owner{Node: b.id, Epoch: 2}) {
		t.Errorf("owner of vol-ins-1 = %+v, error %v; want b with epoch 2", o, err)
	}
}

// TestReturnInEveryOrder has a lost node return: it receives the changes in any
// order, gets its lease sooner or later, and its old domain may still exist.
func TestReturnInEveryOrder(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		for order := range 6 {
			if restarted && order > 0 {
				break // it receives everything at once
			}
			for leaseAt := range 5 {
				t.Run(fmt.Sprint(restarted, order, leaseAt), func(t *testing.T) { testReturn(t, restarted, order, leaseAt) })
			}
		}
	}
}

func testReturn(t *testing.T, restarted bool, order, leaseAt int) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	w.upload(b, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	a.cut = true
	a.lapse()
	if restarted {
		a.kill()
	}
	w.pass(25 * time.Second)
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.give("ins-1", b, nil)
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })

	a.cut = false
	w.frozen = true
	if restarted {
		a.start() // receives everything at once
	}
	events := a.news()
	if !restarted && len(events) < 3 {
		t.Fatalf("%d changes after the loss of a, want at least 3", len(events))
	}
	for i := range events { // the order'th permutation of the first three
		if i < 2 && !restarted {
			j := i + (order>>i)%(3-i)
			events[i], events[j] = events[j], events[i]
		}
	}
	a.step = func(what string) { // the node must report the epoch only when the domain is gone
		n, _ := read[api.Node](w, api.KindNode, string(a.id))
		s, err := a.machines.Status(context.Background(), "ins-1")
		if what == "applied" && n.Status.ObservedEpoch == 1 && (err != nil || s.State != hypervisor.Missing) {
			t.Errorf("a reports observedEpoch 1 while its domain is %s, want it missing", s.State)
		}
	}
	for i, e := range events {
		if i == leaseAt {
			a.lease = true
		}
		a.deliver(e)
		a.work()
		w.pass(time.Second)
	}
	a.lease, w.frozen = true, false
	w.until("observedEpoch 1 of a", func() bool {
		n, _ := read[api.Node](w, api.KindNode, string(a.id))
		return n.Status.ObservedEpoch == 1
	})
	w.pass(time.Minute)
	if left := a.left(); left != "" {
		t.Errorf("left on a: %s, want nothing", left)
	}
	if n := a.starts("ins-1"); n != 1 {
		t.Errorf("a started ins-1 %d times, want once", n)
	}
	if !w.runsOn("ins-1", b) {
		in, _ := w.instance("ins-1")
		t.Errorf("ins-1 does not run on b: status %+v", in.Status)
	}
}

// TestStartOnStaleStateIsRefused checks that a node whose cache is outdated does not
// start an instance that has been assigned to another node.
func TestStartOnStaleStateIsRefused(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	w.upload(b, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	a.lapse()
	a.work()
	w.pass(5 * time.Second)
	if in, _ := w.instance("ins-1"); in.Status.Phase == api.InstanceRunning || in.Status.Phase == api.InstanceFailed {
		t.Fatalf("status without a lease = %+v, want neither running nor failed", in.Status)
	}
	w.frozen = true // the watch delivers nothing
	w.give("ins-1", b, nil)
	a.lease = true
	w.pass(10 * time.Second)
	if n := a.starts("ins-1"); n != 1 {
		t.Errorf("a started ins-1 %d times, want once", n)
	}
	w.frozen = false
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
}

// TestAnOldOwnerDoesNotCount checks that an old owner overwrites no status of the
// new one, and does not start the instance again.
func TestAnOldOwnerDoesNotCount(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	w.upload(b, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	a.deaf = true
	a.lapse()
	w.give("ins-1", b, nil)
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	b.kill() // so that b cannot overwrite what a writes
	a.lease = true
	before, _ := w.instance("ins-1")
	w.pass(30 * time.Second)
	after, _ := w.instance("ins-1")
	if after.Meta.Revision != before.Meta.Revision {
		t.Errorf("a wrote revision %d with status %+v, want revision %d unchanged", after.Meta.Revision, after.Status, before.Meta.Revision)
	}
	if n := a.starts("ins-1"); n != 1 {
		t.Errorf("a started ins-1 %d times, want once", n)
	}
}

// TestRunOfEarlierAssignment assigns the instance to another node and back
// while the first receives nothing: the run of the first assignment must be
// replaced.
func TestRunOfEarlierAssignment(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	first, _ := w.instance("ins-1")
	a.deaf = true
	b.kill()
	w.give("ins-1", b, nil)
	w.give("ins-1", a, nil)
	w.pass(time.Minute)
	a.deaf = false
	w.until("ins-1 runs on a again", func() bool { return w.runsOn("ins-1", a) })
	if in, _ := w.instance("ins-1"); a.starts("ins-1") != 2 || !in.Status.StartedAt.After(*first.Status.StartedAt) {
		t.Errorf("%d starts with status %+v, want a second start later than %v", a.starts("ins-1"), in.Status, first.Status.StartedAt)
	}
}

func TestNothingStartsBeforeTheClaim(t *testing.T) {
	w := newTestCluster(t, 1, true)
	a := w.nodes[0]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, func(s *api.InstanceSpec, _ *api.InstanceAssignment) { s.Power = api.PowerStopped })
	w.until("the root volume ready", func() bool {
		v, _ := read[api.Volume](w, api.KindVolume, "vol-ins-1")
		return v.Status.Phase == api.VolumeReady
	})
	if err := a.shared.ClaimVolume(context.Background(), "vol-ins-1", sds.Owner{Node: "node-9", Epoch: 9}); err != nil {
		t.Fatal(err)
	}
	w.power(api.PowerRunning)
	w.pass(time.Minute)
	if in, _ := w.instance("ins-1"); a.starts("ins-1") != 0 || in.Status.LastError == "" {
		t.Errorf("%d starts with status %+v, want none and an error about the claim", a.starts("ins-1"), in.Status)
	}
}

// TestClaimIsRepeatedWhenDiskIsOpen checks that a volume is claimed before its
// machine opens it, and once more before the guest runs: then the pool knows which
// client it would have to exclude.
func TestClaimIsRepeatedWhenDiskIsOpen(t *testing.T) {
	w := newTestCluster(t, 1, true)
	a := w.nodes[0]
	w.upload(a, "img-1")
	var order []string
	note := func(op string) {
		if len(order) == 0 || order[len(order)-1] != op {
			order = append(order, op)
		}
	}
	a.shared.Fault(func(op, _ string) error {
		if op == "ClaimVolume" {
			note(op)
		}
		return nil
	})
	a.machines.Fault(func(op string, _ api.InstanceID) error {
		if op == "Load" || op == "Resume" {
			note(op)
		}
		return nil
	})
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
	if want := []string{"ClaimVolume", "Load", "ClaimVolume", "Resume"}; !slices.Equal(order, want) {
		t.Errorf("calls of a start = %v, want %v", order, want)
	}

	// A failed second claim ends the start.
	a.machines.Fault(nil)
	w.power(api.PowerStopped)
	w.until("ins-1 stopped", func() bool { return !w.runsOn("ins-1", a) })
	before, claims := a.starts("ins-1"), 0
	a.shared.Fault(func(op, _ string) error {
		if op == "ClaimVolume" {
			if claims++; claims%2 == 0 {
				return errCut
			}
		}
		return nil
	})
	w.power(api.PowerRunning)
	w.pass(time.Minute)
	if w.runsOn("ins-1", a) || claims < 2 {
		t.Errorf("ins-1 runs, or too few claims: %d claims, of which every second one failed, and %d starts; want at least 2 claims and no run", claims, a.starts("ins-1")-before)
	}
	a.shared.Fault(nil)
	w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", a) })
}

// TestNoWorkBeforeRelease checks that a returned node which cannot list its
// domains starts nothing.
func TestNoWorkBeforeRelease(t *testing.T) {
	w := newTestCluster(t, 2, false)
	a := w.nodes[0]
	w.upload(a, "img-1")
	a.machines.Fault(func(op string, _ api.InstanceID) error {
		if op == "List" {
			return errCut
		}
		return nil
	})
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.pass(time.Minute)
	n, _ := read[api.Node](w, api.KindNode, string(a.id))
	if n.Status.ObservedEpoch != 0 || a.starts("ins-1") != 0 {
		t.Errorf("observedEpoch = %d with %d starts, want 0 and none", n.Status.ObservedEpoch, a.starts("ins-1"))
	}
	a.machines.Fault(nil)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
}

func TestFencedInstanceRunsAgain(t *testing.T) {
	for _, seen := range []bool{true, false} {
		w := newTestCluster(t, 1, true)
		a := w.nodes[0]
		w.upload(a, "img-1")
		w.create(a, "ins-1", api.PoolShared, nil)
		w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
		w.pass(time.Second)
		if !seen { // the agent is down meanwhile and asks the fence afterwards
			a.kill()
		}
		a.lapse()
		if seen {
			w.pass(3 * time.Second)
			if a.starts("ins-1") != 1 {
				t.Errorf("ins-1 started %d times without a lease, want the first start only", a.starts("ins-1"))
			}
		}
		a.lease = true
		if !seen { // and the fence answers only later
			a.fenceErr = errors.New("basalt-fence does not answer")
			a.start()
			w.pass(3 * time.Second)
			if in, _ := w.instance("ins-1"); in.Status.Phase == api.InstanceFailed || a.starts("ins-1") != 1 {
				t.Errorf("status %+v with %d starts while the fence does not answer, want no decision", in.Status, a.starts("ins-1"))
			}
			a.fenceErr = nil
		}
		w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", a) })
		// A crash is still a crash.
		w.pass(time.Second)
		a.machines.Crash("ins-1", "bug")
		w.until("ins-1 failed", func() bool { in, _ := w.instance("ins-1"); return in.Status.Phase == api.InstanceFailed })
		a.kill()
	}
}

func TestAfterARebootItRunsAgain(t *testing.T) {
	w := newTestCluster(t, 1, false)
	a := w.nodes[0]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.create(a, "ins-2", api.PoolLocal, nil)
	w.until("both instances run", func() bool { return w.runsOn("ins-1", a) && w.runsOn("ins-2", a) })
	a.machines.PowerOff("ins-2")
	w.until("ins-2 stopped", func() bool { in, _ := w.instance("ins-2"); return in.Status.Phase == api.InstanceStopped })
	a.kill()
	a.machines.PowerOff("ins-1") // the host goes down
	a.boot = "boot-2"
	a.start()
	w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", a) })
	in, _ := w.instance("ins-2")
	if in.Status.Phase != api.InstanceStopped {
		t.Errorf("phase of ins-2, whose guest had shut down, = %s, want %s", in.Status.Phase, api.InstanceStopped)
	}
}

func TestLocalInstanceWaitsForNode(t *testing.T) {
	w := newTestCluster(t, 2, false)
	a := w.nodes[0]
	w.upload(a, "img-1")
	a.keepErr = errCut
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.pass(30 * time.Second)
	if n := a.starts("ins-1"); n != 0 {
		t.Fatalf("ins-1 started %d times before the fence had it in its list, want never", n)
	}
	a.keepErr = nil
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
	if !slices.Contains(a.kept, "ins-1") {
		t.Fatalf("instances that the fence keeps = %v, want ins-1 among them", a.kept)
	}
	a.cut = true
	a.lapse() // does not kill it
	w.pass(25 * time.Second)
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	in, _ := w.instance("ins-1")
	lost := in.Assignment
	lost.NodeLost, lost.Reason = true, "its disk is stored on node-1"
	w.assign(api.KindInstance, "ins-1", lost)
	w.pass(time.Minute)
	a.cut, a.lease = false, true
	w.until("node-1 returned", func() bool { n, _ := read[api.Node](w, api.KindNode, "node-1"); return n.Status.ObservedEpoch == 1 })
	w.pass(time.Minute)
	if n := a.starts("ins-1"); n != 1 || !w.runsOn("ins-1", a) {
		t.Errorf("%d starts, last status %+v; want one start and the instance running on a", n, in.Status)
	}
	// When the instance becomes movable the fence must kill it from then on.
	w.edit("ins-1", func(s *api.InstanceSpec) { s.Ephemeral = true })
	w.turn()
	if slices.Contains(a.kept, "ins-1") {
		t.Errorf("instances that the fence keeps = %v, want ins-1 removed: it can run elsewhere", a.kept)
	}
}

func TestEphemeralInstanceIsRecreated(t *testing.T) {
	w := newTestCluster(t, 2, false)
	a, b := w.nodes[0], w.nodes[1]
	w.node(b, api.NodeAssignment{State: api.NodeReady, Voter: true})
	w.upload(a, "img-1")
	w.pass(10 * time.Second) // b is a voter: it gets a copy
	ephemeral := func(s *api.InstanceSpec, _ *api.InstanceAssignment) { s.Ephemeral = true }
	w.create(a, "ins-1", api.PoolLocal, ephemeral)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
	a.die()
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	recreate := func(_ *api.InstanceAssignment, v *api.VolumeAssignment) { v.Recreate++ }
	w.give("ins-1", b, recreate)
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	if v, err := b.local.Volume(context.Background(), "vol-ins-1"); err != nil || v.Epoch != 1 {
		t.Errorf("root volume on b = %+v, error %v; want epoch 1", v, err)
	}
	// The instance is assigned to a again, which still has its old volume and was
	// never swept.
	b.die()
	w.give("ins-1", a, recreate)
	w.node(b, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	a.lease = true
	a.start()
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	if v, err := a.local.Volume(context.Background(), "vol-ins-1"); err != nil || v.Epoch != 2 {
		t.Errorf("root volume on a = %+v, error %v; want epoch 2", v, err)
	}
	b.lease = true
	b.start()
	w.until("nothing left on b", func() bool { return b.left() == "" })
}

func TestReleaseThenRunElsewhere(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, func(s *api.InstanceSpec, as *api.InstanceAssignment) {
		s.Vgpu, as.Gpu, as.VgpuVramBytes = &api.VGPUSpec{VramBytes: 1 << 30}, "gpu-node-1-soft0", 1<<30
	})
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
	in, _ := w.instance("ins-1")
	as := in.Assignment
	as.Release = true
	w.assign(api.KindInstance, "ins-1", as)
	w.until("ins-1 released", func() bool { in, _ = w.instance("ins-1"); return in.Status.Released })
	if len(a.vgpus.slices) != 0 || in.Status.StartedAt != nil {
		t.Errorf("released with vGPU slices %v and status %+v, want no slice and no startedAt", a.vgpus.slices, in.Status)
	}
	w.give("ins-1", b, func(as *api.InstanceAssignment, _ *api.VolumeAssignment) { as.Gpu = "gpu-node-2-soft0" })
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	if in, _ := w.instance("ins-1"); in.Status.Released {
		t.Error("status.released of ins-1 on b = true, want false")
	}
	w.until("nothing left on a", func() bool { return a.left() == "" })
}
