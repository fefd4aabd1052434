package agent

import (
	"os"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// A node that goes down: its instances go off without this process's doing, nothing
// starts meanwhile, and what ran runs again with the node, or when it stays.
func TestInstancesOfANodeThatShutsDown(t *testing.T) {
	for name, back := range map[string]func(*world){
		"the machine rebooted": func(w *world) { w.s.boot = "2" },
		"it stays": func(w *world) { // the process that shut the guests down has noted the end
			w.s.interrupted = true
		},
	} {
		for _, seen := range []bool{true, false} { // whether the agent lived to see the guest's end
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
					t.Fatalf("%s: while the guest shuts down: %+v", name, d)
				}
				w.s.domain = hypervisor.Stopped
				if seen {
					w.expect(t, api.InstanceStopped)
					if w.s.vgpu || w.in.Status.StartedAt != nil || w.in.Status.Step != nodeLeaves {
						t.Errorf("%s: off: %+v, %+v", name, w.s, w.in.Status)
					}
				}
				if w.presses > 0 {
					t.Errorf("%s: the button was pressed %d times here as well", name, w.presses)
				}
				w.s.leaving, w.s.vgpu = false, false
				back(w)
				w.expect(t, want)
			}
		}
	}
}

// What a user asks for while the node goes down is what comes of it.
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
		t.Errorf("not deleted: %v", w.history)
	}
}

// The note outlives everybody, and nothing is made for an instance that is not here.
func TestNoteStopped(t *testing.T) {
	o := Options{DataDir: t.TempDir()}
	f := instanceFiles{&o}
	if err := NoteStopped(o.DataDir, "ins-1"); err != nil || exists(f.dir("ins-1")) {
		t.Errorf("of an instance that is not here: %v, a folder: %v", err, exists(f.dir("ins-1")))
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
		t.Errorf("got %+v, %v, want the run, interrupted", r, err)
	}
}
