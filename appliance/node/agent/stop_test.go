package agent_test

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// TestStoppedAndStartedUnreported stops and starts an instance while the node cannot
// report that it has stopped: the guest did not end the run, so it is started
// again.
func TestStoppedAndStartedUnreported(t *testing.T) {
	w := newTestCluster(t, 1, false)
	a := w.nodes[0]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
	a.step = func(what string) {
		if what == "applied" { // the report that it is stopping; later ones are lost
			a.cut = true
		}
	}
	w.power(api.PowerStopped)
	w.pass(5 * time.Second)
	a.step = nil
	if in, _ := w.instance("ins-1"); in.Status.Phase != api.InstanceStopping || w.runsOn("ins-1", a) {
		t.Fatalf("phase of ins-1 = %s, running: %t; want Stopping and not running", in.Status.Phase, w.runsOn("ins-1", a))
	}
	w.power(api.PowerRunning)
	a.cut = false
	w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", a) })
}
