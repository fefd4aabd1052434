package agent_test

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Stopped and started again while the node cannot say that it has stopped: the
// guest did not end it.
func TestStoppedAndStartedUnsaid(t *testing.T) {
	w := newTown(t, 1, false)
	a := w.houses[0]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.until("runs", func() bool { return w.runsOn("ins-1", a) })
	a.step = func(what string) {
		if what == "applied" { // that it is stopping; what follows is not heard
			a.cut = true
		}
	}
	w.power(api.PowerStopped)
	w.pass(5 * time.Second)
	a.step = nil
	if in, _ := w.instance("ins-1"); in.Status.Phase != api.InstanceStopping || w.runsOn("ins-1", a) {
		t.Fatalf("it is %s, and runs: %t", in.Status.Phase, w.runsOn("ins-1", a))
	}
	w.power(api.PowerRunning)
	a.cut = false
	w.until("runs again", func() bool { return w.runsOn("ins-1", a) })
}
