package agent

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

var t0 = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is a simulated node with one instance, to which steps are applied.
type world struct {
	in      api.Instance
	s       seen
	now     time.Time
	deaf    bool          // the guest ignores the power button
	hears   time.Duration // while booting, ignores the button for so long after the first press
	presses int           // number of presses of the power button
	gone    bool          // the finalizer was removed
	broken  bool
	history []string
}

func newWorld(gpu bool) *world {
	w := &world{now: t0, s: seen{domain: hypervisor.Missing, volume: true}}
	w.in = api.Instance{Meta: api.Meta{ID: "ins-1", Generation: 1}, Assignment: api.InstanceAssignment{Node: "n", Generation: 1}}
	if gpu {
		w.in.Assignment.Gpu = "gpu-1"
	}
	return w
}

// turn decides and, unless lost (a crash between decision and action), applies the
// step.
func (w *world) turn(lost bool) decision {
	d := next(w.in, w.s, w.now, time.Minute)
	if lost {
		return d
	}
	if d.status.Step != "" && d.status.StepCause.Code == "" || d.status.LastError != "" && d.status.Cause.Code == "" {
		w.history = append(w.history, "A TEXT WITHOUT A CAUSE: "+d.status.Step+d.status.LastError)
		w.broken = true
	}
	w.in.Status = d.status
	w.history = append(w.history, fmt.Sprintf("%s/%s", d.status.Phase, d.step))
	switch d.step {
	case stepMedia:
		w.s.media = true
	case stepVGPU:
		w.s.vgpu, w.s.slice = true, true
	case stepStart:
		w.s.domain, w.s.epoch, w.s.interrupted, w.s.unclaimed = hypervisor.Running, w.in.Assignment.Epoch, false, false
		if w.s.blocked.Text != "" {
			w.history = append(w.history, "STARTED WITHOUT A LEASE")
			w.broken = true
		}
	case stepResume, stepAbortMove:
		w.s.domain = hypervisor.Running
	case stepClaim:
		w.s.unclaimed = false
	case stepShutdown:
		if w.s.stopping.IsZero() {
			w.s.stopping = w.now
		}
		w.s.pressed = w.now
		w.presses++
		if !w.deaf && w.now.Sub(w.s.stopping) >= w.hears {
			w.s.domain = hypervisor.Stopped
		}
	case stepDestroy:
		w.s.domain = hypervisor.Stopped
	case stepUndefine:
		w.s.domain = hypervisor.Missing
	case stepStopVGPU:
		w.s.vgpu = false
	case stepDropVGPU:
		w.s.vgpu, w.s.slice = false, false
	case stepDropFiles:
		w.s.media = false
	case stepForget:
		w.gone = true
	}
	if !w.s.domain.Active() {
		w.s.stopping, w.s.pressed = time.Time{}, time.Time{}
	}
	w.now = w.now.Add(max(d.again, time.Millisecond))
	return d
}

// TestNoStartBeforeRun checks that a loaded QEMU whose guest was not
// resumed, for whatever reason, is not a run yet and is not charged.
func TestNoStartBeforeRun(t *testing.T) {
	w := newWorld(false)
	w.expect(t, api.InstanceRunning)
	was := *w.in.Status.StartedAt
	w.s.domain, w.s.reason = hypervisor.Paused, "" // a run that has begun continues
	if d := w.turn(false); d.step != stepResume || d.status.Phase != api.InstanceRunning || !w.in.Status.StartedAt.Equal(was) {
		t.Errorf("decision on a paused run = %+v, want %s, running, started at %v", d, stepResume, was)
	}
	w.in.Status.StartedAt = nil
	for _, blocked := range []api.Reason{{}, waitsForLease} {
		w.s.domain, w.s.blocked = hypervisor.Paused, blocked
		want := stepResume
		if blocked.Text != "" {
			want = stepWait
		}
		if d := w.turn(false); d.step != want || d.status.StartedAt != nil || d.status.Phase != api.InstanceStarting || d.again <= 0 {
			t.Errorf("decision on a loaded domain, blocked %+v, = %+v, want %s, starting, without startedAt", blocked, d, want)
		}
	}
	w.s.blocked, w.s.unclaimed = api.Reason{}, true
	if d := w.turn(false); d.step != stepClaim || d.status.StartedAt != nil {
		t.Errorf("decision on an unclaimed loaded domain = %+v, want %s without startedAt", d, stepClaim)
	}
	w.s.unclaimed, w.s.reason = false, "the disk is full" // the guest has run, and cannot resume
	if d := w.turn(false); d.status.StartedAt == nil || d.status.Phase != api.InstanceRunning {
		t.Errorf("decision on a domain paused by a full disk = %+v, want running with startedAt", d)
	}
	w.in.Status.StartedAt, w.s.reason = nil, ""
	w.s.domain = hypervisor.Running
	if d := w.turn(false); d.status.StartedAt == nil {
		t.Errorf("decision on a running domain = %+v, want startedAt", d)
	}
}

// settle turns until there is no step left.
func (w *world) settle(t *testing.T) {
	t.Helper()
	for range 100 {
		d := w.turn(false)
		if w.gone || d.step == stepNone && d.status.Phase != api.InstanceStopping {
			return
		}
	}
	t.Fatalf("steps left after 100 turns: %v", w.history)
}

func (w *world) wants(change func(*api.InstanceSpec)) {
	change(&w.in.Spec)
	w.in.Meta.Generation++
	w.in.Assignment.Generation = w.in.Meta.Generation // the planner has seen it
}

func (w *world) expect(t *testing.T, phase api.InstancePhase) {
	t.Helper()
	w.settle(t)
	if w.in.Status.Phase != phase {
		t.Fatalf("phase = %s, want %s; history %v", w.in.Status.Phase, phase, w.history)
	}
}

func TestLifeOfAnInstance(t *testing.T) {
	w := newWorld(true)
	w.expect(t, api.InstanceRunning)
	if got, want := strings.Join(w.history, " "), "Creating/media Creating/vgpu Starting/start Running/"; got != want {
		t.Errorf("history of the start = %s, want %s", got, want)
	}
	if w.in.Status.StartedAt == nil {
		t.Errorf("status of the running instance = %+v, want startedAt", w.in.Status)
	}
	w.wants(func(s *api.InstanceSpec) { s.Power = api.PowerStopped })
	w.expect(t, api.InstanceStopped)
	if w.s.vgpu || !w.s.slice || w.in.Status.StartedAt != nil {
		t.Errorf("stopped instance: %+v, startedAt %v; want no backend, the slice and no startedAt", w.s, w.in.Status.StartedAt)
	}
	w.wants(func(s *api.InstanceSpec) { s.Power = api.PowerRunning })
	w.expect(t, api.InstanceRunning)
	deleted := w.now
	w.in.Meta.DeletedAt = &deleted
	w.settle(t)
	if !w.gone || w.s.domain != hypervisor.Missing || w.s.vgpu || w.s.slice || w.s.media {
		t.Errorf("left of the deleted instance: %+v, want nothing; history %v", w.s, w.history)
	}
}

func TestGuestIgnoresShutdown(t *testing.T) {
	w := newWorld(false)
	w.deaf = true
	w.expect(t, api.InstanceRunning)
	asked := w.now
	w.wants(func(s *api.InstanceSpec) { s.Power = api.PowerStopped })
	w.expect(t, api.InstanceStopped)
	if took := w.now.Sub(asked); took < time.Minute || took > 3*time.Minute {
		t.Errorf("stop of a deaf guest took %s, want 1 to 3 minutes", took)
	}
	if want := int(time.Minute / pressEvery); w.presses != want {
		t.Errorf("power button pressed %d times, want %d; history %v", w.presses, want, w.history)
	}
}

// TestBootingGuestIsShutDown checks that a machine stopped seconds after its
// start is shut down in an orderly way, too: the button that a booting guest
// ignored is pressed again.
func TestBootingGuestIsShutDown(t *testing.T) {
	for _, hears := range []time.Duration{0, 1, 25 * time.Second, 59*time.Second - pressEvery} {
		w := newWorld(false)
		w.hears = hears
		w.expect(t, api.InstanceRunning)
		asked := w.now
		w.wants(func(s *api.InstanceSpec) { s.Power = api.PowerStopped })
		w.expect(t, api.InstanceStopped)
		// It is reconciled every 5 s, and the end is seen by the next reconcile.
		if took := w.now.Sub(asked); took > hears+pressEvery+5*time.Second+reconcileInterval || strings.Contains(strings.Join(w.history, " "), "/"+string(stepDestroy)) {
			t.Errorf("guest that reacts to the button after %v stopped after %v, want within %v and without a destroy; history %v", hears, took, hears+pressEvery+5*time.Second+reconcileInterval, w.history)
		}
	}
}

func TestRestartHappensOnce(t *testing.T) {
	w := newWorld(false)
	w.expect(t, api.InstanceRunning)
	first := *w.in.Status.StartedAt
	w.wants(func(s *api.InstanceSpec) { s.Restarts++ })
	w.expect(t, api.InstanceRunning)
	if !w.in.Status.StartedAt.After(first) || w.in.Status.Restarts != 1 {
		t.Errorf("status after the restart = %+v, want one restart and startedAt after %v", w.in.Status, first)
	}
	if n := strings.Count(strings.Join(w.history, " "), "/start"); n != 2 {
		t.Errorf("%d starts, want 2; history %v", n, w.history)
	}
}

func TestGuestPowersOff(t *testing.T) {
	for _, c := range []struct {
		state hypervisor.State
		phase api.InstancePhase
	}{{hypervisor.Stopped, api.InstanceStopped}, {hypervisor.Crashed, api.InstanceFailed}, {hypervisor.Missing, api.InstanceFailed}} {
		w := newWorld(true)
		w.expect(t, api.InstanceRunning)
		w.s.domain = c.state
		w.expect(t, c.phase)
		w.expect(t, c.phase)
		if w.s.vgpu {
			t.Errorf("domain %s: the vGPU's backend still runs, want it stopped", c.state)
		}
		if (c.phase == api.InstanceFailed) != (w.in.Status.LastError != "") {
			t.Errorf("domain %s: lastError = %q, want one only if the run failed", c.state, w.in.Status.LastError)
		}
		w.wants(func(s *api.InstanceSpec) { s.Restarts++ })
		w.expect(t, api.InstanceRunning)
		if w.in.Status.LastError != "" {
			t.Errorf("domain %s: lastError after the restart = %q, want none", c.state, w.in.Status.LastError)
		}
	}
}

// TestHeldInstanceStopsAndComesBack checks that a held instance stops, reports why,
// and runs again when nothing holds it; one whose guest had shut down stays
// stopped.
func TestHeldInstanceStopsAndComesBack(t *testing.T) {
	for _, off := range []bool{false, true} {
		w := newWorld(true)
		w.expect(t, api.InstanceRunning)
		if off {
			w.s.domain = hypervisor.Stopped
			w.expect(t, api.InstanceStopped)
		}
		w.in.Assignment.Hold = "organization acme is suspended: invoice 7 is open"
		w.expect(t, api.InstanceStopped)
		if w.s.domain.Active() || w.s.vgpu || w.in.Status.Step != w.in.Assignment.Hold {
			t.Errorf("held instance: %+v, status %+v; want no domain, no backend, and the reason as step", w.s, w.in.Status)
		}
		w.in.Assignment.Hold = ""
		want := api.InstanceRunning
		if off {
			want = api.InstanceStopped
		}
		w.expect(t, want)
		if w.in.Status.Step != "" {
			t.Errorf("step after the hold = %q, want none", w.in.Status.Step)
		}
	}
}

func TestDeadBackendIsReported(t *testing.T) {
	w := newWorld(true)
	w.expect(t, api.InstanceRunning)
	w.s.vgpu = false
	w.expect(t, api.InstanceRunning)
	if c, _ := condition(w.in.Status, condGPU); c.Status || c.Reason != string(api.GPUBackendEnded) || !strings.Contains(w.in.Status.LastError, "restart the instance") {
		t.Errorf("status with an exited backend = %+v, want GPUReady false with GPUBackendEnded and a hint to restart", w.in.Status)
	}
}

func TestWaitsForItsVolume(t *testing.T) {
	w := newWorld(false)
	w.s.volume = false
	if d := w.turn(false); d.step != stepWait || d.again == 0 {
		t.Errorf("decision without the root volume = %+v, want %s and another reconcile", d, stepWait)
	}
}

// TestEveryPathEndsRight checks that, whatever happens to guest, host and agent on
// the way, enough turns end in what the spec asks for.
func TestEveryPathEndsRight(t *testing.T) {
	for seed := range 500 {
		rng := rand.New(rand.NewSource(int64(seed)))
		w := newWorld(rng.Intn(2) == 0)
		for range 60 {
			switch rng.Intn(20) {
			case 12: // the host reboots
				w.s.boot += "+"
				w.s.vgpu = false
				if w.s.domain != hypervisor.Missing {
					w.s.domain = hypervisor.Stopped
				}
			case 13: // the lease ends; the fence kills
				w.s.blocked = waitsForLease
				if w.s.domain.Active() {
					w.s.domain, w.s.interrupted = hypervisor.Crashed, true
				}
			case 14, 15:
				w.s.blocked = api.Reason{}
			case 16: // assigned to another node and back, unseen
				w.in.Assignment.Epoch += 2
				w.s.unclaimed = true
			case 17:
				w.in.Assignment.Release = !w.in.Assignment.Release
			case 18:
				if w.s.domain == hypervisor.Running {
					w.s.domain = hypervisor.Outgoing
				}
			case 19: // the node starts or cancels a shutdown
				w.s.leaving = !w.s.leaving
				if w.s.leaving && w.s.domain.Active() && rng.Intn(2) == 0 {
					w.s.domain, w.s.interrupted = hypervisor.Stopped, true
				}
			case 0:
				w.wants(func(s *api.InstanceSpec) { s.Power = api.PowerStopped })
			case 1:
				w.wants(func(s *api.InstanceSpec) { s.Power = api.PowerRunning; s.Restarts++ })
			case 2:
				if w.s.domain.Active() {
					w.s.domain = []hypervisor.State{hypervisor.Crashed, hypervisor.Stopped, hypervisor.Paused}[rng.Intn(3)]
				}
			case 3:
				w.s.vgpu = false
			case 4:
				w.deaf = !w.deaf
			case 5:
				w.s.stopping, w.s.pressed = time.Time{}, time.Time{} // the agent was restarted
			default:
				w.turn(rng.Intn(4) == 0)
			}
		}
		w.s.blocked, w.s.leaving, w.in.Assignment.Release = api.Reason{}, false, false
		w.wants(func(s *api.InstanceSpec) { s.Power = api.PowerRunning; s.Restarts++ })
		w.settle(t)
		if w.broken || w.s.epoch != w.in.Assignment.Epoch || w.in.Status.Epoch != w.in.Assignment.Epoch || w.in.Status.Released || w.s.unclaimed {
			t.Fatalf("seed %d: observed %+v, want one claimed run of assignment %+v, never without a lease; history %v", seed, w.s, w.in.Assignment, w.history)
		}
		if w.in.Status.Phase != api.InstanceRunning || w.s.domain != hypervisor.Running || w.in.Status.Restarts != w.in.Spec.Restarts {
			t.Fatalf("seed %d: status %+v, observed %+v, want running with all restarts done; history %v", seed, w.in.Status, w.s, w.history)
		}
		deleted := w.now
		w.in.Meta.DeletedAt = &deleted
		w.settle(t)
		if !w.gone || w.s.domain != hypervisor.Missing || w.s.slice || w.s.media {
			t.Fatalf("seed %d: left of the deleted instance: %+v, want nothing; history %v", seed, w.s, w.history)
		}
	}
}

// TestKilledInstanceRunsAgain checks that a run which the guest did not end
// is started again without a request, and that an instance whose guest had ended
// before is not.
func TestKilledInstanceRunsAgain(t *testing.T) {
	for name, end := range map[string]func(*world){
		"the host rebooted":     func(w *world) { w.s.boot = "2"; w.s.domain = hypervisor.Stopped },
		"the fence":             func(w *world) { w.s.domain, w.s.interrupted = hypervisor.Crashed, true },
		"another node had it":   func(w *world) { w.in.Assignment.Epoch++; w.s.domain = hypervisor.Missing },
		"an earlier assignment": func(w *world) { w.in.Assignment.Epoch++ },
		"released and kept": func(w *world) {
			w.in.Assignment.Release = true
			w.expect(t, api.InstanceStopped)
			if !w.in.Status.Released || w.s.slice || w.s.domain != hypervisor.Missing {
				t.Errorf("released instance: status %+v, observed %+v; want released without slice and domain", w.in.Status, w.s)
			}
			w.in.Assignment.Release = false
		},
	} {
		for _, off := range []bool{false, true} {
			w := newWorld(true)
			w.s.boot = "1"
			w.expect(t, api.InstanceRunning)
			want := api.InstanceRunning
			if off {
				w.s.domain, want = hypervisor.Stopped, api.InstanceStopped
				w.expect(t, want)
			}
			end(w)
			w.expect(t, want)
			if want == api.InstanceRunning && w.s.epoch != w.in.Assignment.Epoch {
				t.Errorf("%s: runs in epoch %d, want %d", name, w.s.epoch, w.in.Assignment.Epoch)
			}
		}
	}
}

// TestWaitsForItsNewSize stops and starts an instance at once after it was resized,
// or restarts it: the planner assigns the new size while it sees the instance
// stopped.
func TestWaitsForItsNewSize(t *testing.T) {
	for name, change := range map[string]func(*api.InstanceSpec){
		"restarted": func(s *api.InstanceSpec) { s.Restarts++ },
		"resized":   func(s *api.InstanceSpec) { s.Flavor = "larger" },
	} {
		w := newWorld(true)
		w.expect(t, api.InstanceRunning)
		change(&w.in.Spec)
		w.in.Meta.Generation++
		if name == "resized" {
			w.expect(t, api.InstanceRunning) // with its old size
			w.s.domain, w.s.interrupted = hypervisor.Stopped, true
		}
		w.expect(t, api.InstanceStopped)
		if w.s.vgpu || w.s.domain.Active() || w.in.Status.ObservedGeneration != w.in.Meta.Generation {
			t.Errorf("%s: waiting instance: %+v, status %+v; want no backend, no domain and the generation observed", name, w.s, w.in.Status)
		}
		w.in.Assignment.Reason = "no room for more"
		w.expect(t, api.InstanceRunning) // with its old size
		w.in.Assignment.Reason = ""
		w.expect(t, api.InstanceRunning)
		w.s.domain, w.s.interrupted = hypervisor.Stopped, true
		w.expect(t, api.InstanceStopped)
		w.in.Assignment.Generation = w.in.Meta.Generation
		w.expect(t, api.InstanceRunning)
	}
}
