package lease

import (
	"testing"
	"time"
)

// settled returns a cluster with a leader in which every node has a lease.
func settled(t *testing.T, size int) *world {
	t.Helper()
	w := newWorld(42, size)
	w.run(20 * time.Second)
	for _, n := range w.nodes {
		if !n.running {
			t.Fatalf("%s runs no instance after 20 s\n%s", n.id, w.story())
		}
	}
	return w
}

func (w *world) leader() *node {
	for _, n := range w.nodes {
		if n.up && n.granter.Term() > 0 {
			return n
		}
	}
	return nil
}

func (w *world) follower() *node {
	for _, n := range w.nodes {
		if n != w.leader() {
			return n
		}
	}
	return nil
}

func cutOff(w *world, n, o *node, both bool, paths ...int) {
	for _, p := range paths {
		w.cut[n.i][o.i][p] = true
		if both {
			w.cut[o.i][n.i][p] = true
		}
	}
}

func TestDeathIsDeclared(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
		kill func(w *world) *node
	}{
		{"a follower of three", 3, (*world).follower},
		{"the leader of three", 3, (*world).leader},
		{"a follower of five", 5, (*world).follower},
		{"the leader of five", 5, (*world).leader},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := settled(t, c.size)
			n, begin := c.kill(w), w.now
			n.die()
			w.run(begin + time.Minute)
			at := w.lostAt[n.i] - begin
			if w.wrong != "" || w.lostAt[n.i] == 0 || at > 40*time.Second {
				t.Fatalf("declared lost after %s %s\n%s", at, w.wrong, w.story())
			}
			t.Logf("declared lost after %s", at)
			for _, o := range w.nodes {
				if o != n && (w.suspect[o.i] || !o.running) {
					t.Errorf("%s was suspected or stopped its instance, although it is alive", o.id)
				}
			}
			n.start()
			w.run(w.now + 20*time.Second)
			if w.truth.lost[n.i] || !n.running || n.vmEpoch != 1 {
				t.Errorf("%[1]s is back and runs no instance of epoch 1\n%[2]s", n.id, w.story())
			}
		})
	}
}

func TestShortSilenceIsNotSuspect(t *testing.T) {
	for _, c := range []struct {
		name  string
		size  int
		cause func(w *world)
	}{
		{"one path of everybody", 3, func(w *world) {
			for _, n := range w.nodes {
				for _, o := range w.nodes {
					cutOff(w, n, o, true, 0)
				}
			}
		}},
		{"the leader alone cannot see it", 3, func(w *world) { cutOff(w, w.leader(), w.follower(), true, 0, 1) }},
		{"it cannot send to the leader", 3, func(w *world) { cutOff(w, w.follower(), w.leader(), false, 0, 1) }},
		{"the leader cannot send to it", 5, func(w *world) { cutOff(w, w.leader(), w.follower(), false, 0, 1) }},
		{"a short stop", 3, func(w *world) { w.follower().stopped = w.now + 4*time.Second }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := settled(t, c.size)
			c.cause(w)
			w.run(w.now + 2*time.Minute)
			for _, n := range w.nodes {
				if w.suspect[n.i] || w.lostAt[n.i] > 0 || !n.running {
					t.Errorf("%s: suspected %v, lost at %s, running %v", n.id, w.suspect[n.i], w.lostAt[n.i], n.running)
				}
			}
			if t.Failed() || w.wrong != "" {
				t.Log(w.wrong + "\n" + w.story())
			}
		})
	}
}

// TestRebootHoldsNoLease checks that a lease is lost in a reboot, in which the boot
// clock starts over: it exists only in the Holder. The package does not use the
// wall clock.
func TestRebootHoldsNoLease(t *testing.T) {
	w := settled(t, 3)
	n := w.follower()
	n.die()
	n.start()
	if n.holder.Valid(n.clock(), 0) {
		t.Error("the lease is valid after a reboot")
	}
	w.run(w.now + 10*time.Second)
	if !n.running || w.suspect[n.i] {
		t.Error("after a quick reboot the node was suspected or runs no instance\n" + w.story())
	}
}
