package agent

import (
	"os"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// TestInstancesOfANodeThatShutsDown checks that while a node shuts down its guests
// end without this process, nothing starts, and what ran runs again after the boot,
// or when the shutdown is cancelled.
func TestInstancesOfANodeThatShutsDown(t *testing.T) {
	for name, back := range map[string]func(*world){
		"the machine rebooted": func(w *world) { w.s.boot = "2" },
		"it stays": func(w *world) { // the process that shut the guests down has recorded the end
			w.s.interrupted = true
		},
	} {
		for _, seen := range []bool{true, false} { // whether the agent observed the guest's end
			for _, off := range []bool{true, false} { // the guest had ended its run before
				w := newWorld(true)
				w.s.boot = "1"
				w.expect(t, api.InstanceRunning)
				want := api.InstanceRunning
				if off {
					w.s.domain, want = hypervisor.Stopped, api.InstanceStopped
					w.expect(t, want)
				}
				w.s.leaving = true
				if d := w.turn(false); !off && (d.step != stepNone || d.status.Phase != api.InstanceStopping || d.again <= 0) {
					t.Fatalf("%s: decision while the guest shuts down = %+v, want no step, stopping, and another reconcile", name, d)
				}
				w.s.domain = hypervisor.Stopped
				if seen {
					w.expect(t, api.InstanceStopped)
					if w.s.vgpu || w.in.Status.StartedAt != nil || w.in.Status.Step != nodeLeaves.Text {
						t.Errorf("%s: after the guest's end: %+v, status %+v; want no backend, no startedAt and the node's shutdown as step", name, w.s, w.in.Status)
					}
				}
				if w.presses > 0 {
					t.Errorf("%s: power button pressed %d times by the agent, want never", name, w.presses)
				}
				w.s.leaving, w.s.vgpu = false, false
				back(w)
				w.expect(t, want)
			}
		}
	}
}

// TestAskedWhileTheNodeShutsDown checks that what a user requests while the node
// shuts down is carried out after it.
func TestAskedWhileTheNodeShutsDown(t *testing.T) {
	w := newWorld(false)
	w.expect(t, api.InstanceRunning)
	w.s.leaving = true
	w.wants(func(s *api.InstanceSpec) { s.Restarts++ })
	w.turn(false)
	w.s.domain = hypervisor.Stopped
	w.expect(t, api.InstanceStopped)
	w.wants(func(s *api.InstanceSpec) { s.Power = api.PowerStopped })
	w.s.leaving = false
	w.expect(t, api.InstanceStopped)
	w.wants(func(s *api.InstanceSpec) { s.Power = api.PowerRunning })
	w.s.leaving = true
	w.expect(t, api.InstanceStopped)
	w.in.Meta.DeletedAt = &time.Time{}
	w.settle(t)
	if !w.gone {
		t.Errorf("instance not deleted, want it removed; history %v", w.history)
	}
}

// TestNoteStopped checks that the record is stored in the run's file, and that
// nothing is created for an instance that this node does not have.
func TestNoteStopped(t *testing.T) {
	o := Options{DataDir: t.TempDir()}
	f := instanceFiles{&o}
	if err := NoteStopped(o.DataDir, "ins-1"); err != nil || exists(f.dir("ins-1")) {
		t.Errorf("NoteStopped of an unknown instance: error %v, directory created: %v; want neither", err, exists(f.dir("ins-1")))
	}
	if err := os.MkdirAll(o.DataDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.writeRun("ins-1", runFile{Epoch: 3, Boot: "b"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := NoteStopped(o.DataDir, "ins-1"); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := f.readRun("ins-1"); err != nil || !r.Interrupted || r.Epoch != 3 || r.Boot != "b" {
		t.Errorf("run file = %+v, error %v; want epoch 3, boot b and interrupted", r, err)
	}
}
