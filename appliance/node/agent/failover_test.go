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
	w := newTown(t, 2, true)
	a, b := w.houses[0], w.houses[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("runs on a", func() bool { return w.runsOn("ins-1", a) })
	if len(a.kept) != 0 {
		t.Errorf("the fence is told to keep %v, which could run elsewhere", a.kept)
	}
	a.die()
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.give("ins-1", b, nil)
	w.until("runs on b", func() bool { return w.runsOn("ins-1", b) })
	in, _ := w.instance("ins-1")
	if in.Status.StartedAt == nil || !in.Status.StartedAt.Equal(w.now) && in.Status.StartedAt.Before(w.now.Add(-time.Minute)) {
		t.Errorf("started at %v", in.Status.StartedAt)
	}
	if o, err := b.shared.Owner(context.Background(), "vol-ins-1"); err != nil || o != (sds.Owner{Node: b.id, Epoch: 2}) {
		t.Errorf("owner %+v, %v", o, err)
	}
}

// A node that was lost comes back: it hears of what has happened in whichever
// order, gets its lease sooner or later, and its old domain may even be there.
func TestReturnInEveryOrder(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		for order := range 6 {
			if restarted && order > 0 {
				break // it hears of everything at once
			}
			for leaseAt := range 5 {
				t.Run(fmt.Sprint(restarted, order, leaseAt), func(t *testing.T) { testReturn(t, restarted, order, leaseAt) })
			}
		}
	}
}

func testReturn(t *testing.T, restarted bool, order, leaseAt int) {
	w := newTown(t, 2, true)
	a, b := w.houses[0], w.houses[1]
	w.upload(b, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("runs on a", func() bool { return w.runsOn("ins-1", a) })
	a.cut = true
	a.lapse()
	if restarted {
		a.kill()
	}
	w.pass(25 * time.Second)
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.give("ins-1", b, nil)
	w.until("runs on b", func() bool { return w.runsOn("ins-1", b) })

	a.cut = false
	w.frozen = true
	if restarted {
		a.start() // hears of everything at once
	}
	events := a.news()
	if !restarted && len(events) < 3 {
		t.Fatalf("only %d news", len(events))
	}
	for i := range events { // the order'th permutation of the first three
		if i < 2 && !restarted {
			j := i + (order>>i)%(3-i)
			events[i], events[j] = events[j], events[i]
		}
	}
	a.step = func(what string) { // it says so only when it is so
		n, _ := read[api.Node](w, api.KindNode, string(a.id))
		s, err := a.machines.Status(context.Background(), "ins-1")
		if what == "applied" && n.Status.ObservedEpoch == 1 && (err != nil || s.State != hypervisor.Missing) {
			t.Errorf("it says that it has given up, and has %s", s.State)
		}
	}
	for i, e := range events {
		if i == leaseAt {
			a.lease = true
		}
		a.tell(e)
		a.work()
		w.pass(time.Second)
	}
	a.lease, w.frozen = true, false
	w.until("a has given up", func() bool {
		n, _ := read[api.Node](w, api.KindNode, string(a.id))
		return n.Status.ObservedEpoch == 1
	})
	w.pass(time.Minute)
	if left := a.left(); left != "" {
		t.Errorf("left on a: %s", left)
	}
	if n := a.starts("ins-1"); n != 1 {
		t.Errorf("a started it %d times", n)
	}
	if !w.runsOn("ins-1", b) {
		in, _ := w.instance("ins-1")
		t.Errorf("b's instance is %+v", in.Status)
	}
}

// Nothing of another's is started until the node has given up, and a start
// that was decided on old news is refused by the store.
func TestAStartOnOldNewsIsRefused(t *testing.T) {
	w := newTown(t, 2, true)
	a, b := w.houses[0], w.houses[1]
	w.upload(b, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("runs on a", func() bool { return w.runsOn("ins-1", a) })
	a.lapse()
	a.work()
	w.pass(5 * time.Second)
	if in, _ := w.instance("ins-1"); in.Status.Phase == api.InstanceRunning || in.Status.Phase == api.InstanceFailed {
		t.Fatalf("without a lease it is %+v", in.Status)
	}
	w.frozen = true // the watch lags behind
	w.give("ins-1", b, nil)
	a.lease = true
	w.pass(10 * time.Second)
	if n := a.starts("ins-1"); n != 1 {
		t.Errorf("a started it %d times", n)
	}
	w.frozen = false
	w.until("runs on b", func() bool { return w.runsOn("ins-1", b) })
}

// What an old owner thinks is never written over what the new one says, and
// what it would do it does not.
func TestAnOldOwnerDoesNotCount(t *testing.T) {
	w := newTown(t, 2, true)
	a, b := w.houses[0], w.houses[1]
	w.upload(b, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("runs on a", func() bool { return w.runsOn("ins-1", a) })
	a.deaf = true
	a.lapse()
	w.give("ins-1", b, nil)
	w.until("runs on b", func() bool { return w.runsOn("ins-1", b) })
	b.kill() // nobody corrects it
	a.lease = true
	before, _ := w.instance("ins-1")
	w.pass(30 * time.Second)
	after, _ := w.instance("ins-1")
	if after.Meta.Revision != before.Meta.Revision {
		t.Errorf("status %+v", after.Status)
	}
	if n := a.starts("ins-1"); n != 1 {
		t.Errorf("a started it %d times", n)
	}
}

// Given away and back while the node did not listen: the run of the first time
// is not the one that is asked for.
func TestARunOfAnEarlierAssignmentEnds(t *testing.T) {
	w := newTown(t, 2, true)
	a, b := w.houses[0], w.houses[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	w.until("runs on a", func() bool { return w.runsOn("ins-1", a) })
	first, _ := w.instance("ins-1")
	a.deaf = true
	b.kill()
	w.give("ins-1", b, nil)
	w.give("ins-1", a, nil)
	w.pass(time.Minute)
	a.deaf = false
	w.until("runs on a again", func() bool { return w.runsOn("ins-1", a) })
	if in, _ := w.instance("ins-1"); a.starts("ins-1") != 2 || !in.Status.StartedAt.After(*first.Status.StartedAt) {
		t.Errorf("%d starts, %+v", a.starts("ins-1"), in.Status)
	}
}

func TestNothingStartsBeforeTheClaim(t *testing.T) {
	w := newTown(t, 1, true)
	a := w.houses[0]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, func(s *api.InstanceSpec, _ *api.InstanceAssignment) { s.Power = api.PowerStopped })
	w.until("volume", func() bool {
		v, _ := read[api.Volume](w, api.KindVolume, "vol-ins-1")
		return v.Status.Phase == api.VolumeReady
	})
	if err := a.shared.ClaimVolume(context.Background(), "vol-ins-1", sds.Owner{Node: "node-9", Epoch: 9}); err != nil {
		t.Fatal(err)
	}
	w.power(api.PowerRunning)
	w.pass(time.Minute)
	if in, _ := w.instance("ins-1"); a.starts("ins-1") != 0 || in.Status.LastError == "" {
		t.Errorf("%d starts, %+v", a.starts("ins-1"), in.Status)
	}
}

// A volume is claimed before its machine has it open, and once more before the
// guest runs: then the pool can see whom it would have to shut out.
func TestAClaimIsSaidAgainWhenTheDiskIsOpen(t *testing.T) {
	w := newTown(t, 1, true)
	a := w.houses[0]
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
	w.until("runs", func() bool { return w.runsOn("ins-1", a) })
	if want := []string{"ClaimVolume", "Load", "ClaimVolume", "Resume"}; !slices.Equal(order, want) {
		t.Errorf("a start is %v, want %v", order, want)
	}

	// A second claim that fails is no start.
	a.machines.Fault(nil)
	w.power(api.PowerStopped)
	w.until("stopped", func() bool { return !w.runsOn("ins-1", a) })
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
		t.Errorf("it runs after %d claims, of which every second one failed, and %d starts", claims, a.starts("ins-1")-before)
	}
	a.shared.Fault(nil)
	w.until("runs again", func() bool { return w.runsOn("ins-1", a) })
}

// A returned node that cannot look at its domains takes no work.
func TestNoWorkBeforeItHasGivenUp(t *testing.T) {
	w := newTown(t, 2, false)
	a := w.houses[0]
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
		t.Errorf("observed %d, %d starts", n.Status.ObservedEpoch, a.starts("ins-1"))
	}
	a.machines.Fault(nil)
	w.until("runs", func() bool { return w.runsOn("ins-1", a) })
}

func TestTheFenceDidItSoItRunsAgain(t *testing.T) {
	for _, seen := range []bool{true, false} {
		w := newTown(t, 1, true)
		a := w.houses[0]
		w.upload(a, "img-1")
		w.create(a, "ins-1", api.PoolShared, nil)
		w.until("runs", func() bool { return w.runsOn("ins-1", a) })
		w.pass(time.Second)
		if !seen { // the agent is dead meanwhile: the fence says it afterwards
			a.kill()
		}
		a.lapse()
		if seen {
			w.pass(3 * time.Second)
			if a.starts("ins-1") != 1 {
				t.Error("started without a lease")
			}
		}
		a.lease = true
		if !seen { // and only when it is there again itself
			a.fenceErr = errors.New("basalt-fence does not answer")
			a.start()
			w.pass(3 * time.Second)
			if in, _ := w.instance("ins-1"); in.Status.Phase == api.InstanceFailed || a.starts("ins-1") != 1 {
				t.Errorf("decided without the fence: %+v", in.Status)
			}
			a.fenceErr = nil
		}
		w.until("runs again", func() bool { return w.runsOn("ins-1", a) })
		// A crash is still a crash.
		w.pass(time.Second)
		a.machines.Crash("ins-1", "bug")
		w.until("failed", func() bool { in, _ := w.instance("ins-1"); return in.Status.Phase == api.InstanceFailed })
		a.kill()
	}
}

func TestAfterARebootItRunsAgain(t *testing.T) {
	w := newTown(t, 1, false)
	a := w.houses[0]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.create(a, "ins-2", api.PoolLocal, nil)
	w.until("both run", func() bool { return w.runsOn("ins-1", a) && w.runsOn("ins-2", a) })
	a.machines.PowerOff("ins-2")
	w.until("2 stopped", func() bool { in, _ := w.instance("ins-2"); return in.Status.Phase == api.InstanceStopped })
	a.kill()
	a.machines.PowerOff("ins-1") // the host goes down
	a.boot = "boot-2"
	a.start()
	w.until("runs again", func() bool { return w.runsOn("ins-1", a) })
	in, _ := w.instance("ins-2")
	if in.Status.Phase != api.InstanceStopped {
		t.Errorf("the one that had shut itself down is %s", in.Status.Phase)
	}
}

func TestALocalInstanceWaitsForItsNode(t *testing.T) {
	w := newTown(t, 2, false)
	a := w.houses[0]
	w.upload(a, "img-1")
	a.keepErr = errCut
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.pass(30 * time.Second)
	if n := a.starts("ins-1"); n != 0 {
		t.Fatal("started before the fence knew that it is to be kept")
	}
	a.keepErr = nil
	w.until("runs", func() bool { return w.runsOn("ins-1", a) })
	if !slices.Contains(a.kept, "ins-1") {
		t.Fatalf("kept: %v", a.kept)
	}
	a.cut = true
	a.lapse() // leaves it alone
	w.pass(25 * time.Second)
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	in, _ := w.instance("ins-1")
	lost := in.Assignment
	lost.NodeLost, lost.Reason = true, "its disk is stored on node-1"
	w.assign(api.KindInstance, "ins-1", lost)
	w.pass(time.Minute)
	a.cut, a.lease = false, true
	w.until("returned", func() bool { n, _ := read[api.Node](w, api.KindNode, "node-1"); return n.Status.ObservedEpoch == 1 })
	w.pass(time.Minute)
	if n := a.starts("ins-1"); n != 1 || !w.runsOn("ins-1", a) {
		t.Errorf("%d starts, %+v", n, in.Status)
	}
	// It becomes movable: from then on the fence kills it.
	w.edit("ins-1", func(s *api.InstanceSpec) { s.Ephemeral = true })
	w.turn()
	if slices.Contains(a.kept, "ins-1") {
		t.Error("the fence still keeps what may run elsewhere")
	}
}

func TestAnEphemeralInstanceIsMadeAnew(t *testing.T) {
	w := newTown(t, 2, false)
	a, b := w.houses[0], w.houses[1]
	w.node(b, api.NodeAssignment{State: api.NodeReady, Voter: true})
	w.upload(a, "img-1")
	w.pass(10 * time.Second) // b votes: it has a copy
	ephemeral := func(s *api.InstanceSpec, _ *api.InstanceAssignment) { s.Ephemeral = true }
	w.create(a, "ins-1", api.PoolLocal, ephemeral)
	w.until("runs", func() bool { return w.runsOn("ins-1", a) })
	a.die()
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	recreate := func(_ *api.InstanceAssignment, v *api.VolumeAssignment) { v.Recreate++ }
	w.give("ins-1", b, recreate)
	w.until("runs on b", func() bool { return w.runsOn("ins-1", b) })
	if v, err := b.local.Volume(context.Background(), "vol-ins-1"); err != nil || v.Epoch != 1 {
		t.Errorf("volume %+v, %v", v, err)
	}
	// Back to a, which still has its old one and was never swept.
	b.die()
	w.give("ins-1", a, recreate)
	w.node(b, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	a.lease = true
	a.start()
	w.until("runs on a", func() bool { return w.runsOn("ins-1", a) })
	if v, err := a.local.Volume(context.Background(), "vol-ins-1"); err != nil || v.Epoch != 2 {
		t.Errorf("volume %+v, %v", v, err)
	}
	b.lease = true
	b.start()
	w.until("b is clean", func() bool { return b.left() == "" })
}

func TestReleaseThenRunElsewhere(t *testing.T) {
	w := newTown(t, 2, true)
	a, b := w.houses[0], w.houses[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, func(s *api.InstanceSpec, as *api.InstanceAssignment) {
		s.Vgpu, as.Gpu, as.VgpuVramBytes = &api.VGPUSpec{VramBytes: 1 << 30}, "gpu-node-1-soft0", 1<<30
	})
	w.until("runs", func() bool { return w.runsOn("ins-1", a) })
	in, _ := w.instance("ins-1")
	as := in.Assignment
	as.Release = true
	w.assign(api.KindInstance, "ins-1", as)
	w.until("released", func() bool { in, _ = w.instance("ins-1"); return in.Status.Released })
	if len(a.vgpus.slices) != 0 || in.Status.StartedAt != nil {
		t.Errorf("released, and still %v, %+v", a.vgpus.slices, in.Status)
	}
	w.give("ins-1", b, func(as *api.InstanceAssignment, _ *api.VolumeAssignment) { as.Gpu = "gpu-node-2-soft0" })
	w.until("runs on b", func() bool { return w.runsOn("ins-1", b) })
	if in, _ := w.instance("ins-1"); in.Status.Released {
		t.Error("still released")
	}
	w.until("a is clean", func() bool { return a.left() == "" })
}
