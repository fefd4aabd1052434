package agent

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// step is one idempotent thing to do for an instance.
type step string

const (
	stepNone      step = ""
	stepWait      step = "wait"       // for what another object's reconcile makes
	stepMedia     step = "media"      // write the seed disc
	stepVGPU      step = "vgpu"       // slice and backend
	stepStart     step = "start"      // define and start
	stepResume    step = "resume"     // a paused domain
	stepShutdown  step = "shutdown"   // the power button
	stepDestroy   step = "destroy"    // the plug
	stepUndefine  step = "undefine"   // …
	stepStopVGPU  step = "stop-vgpu"  // end the backend; the slice stays reserved
	stepDropVGPU  step = "drop-vgpu"  // … and give the slice back
	stepDropFiles step = "drop-files" // seed, logs
	stepForget    step = "forget"     // finalizer off
)

// seen is what was found on the node.
type seen struct {
	domain   hypervisor.State
	reason   string // why it is in that state
	volume   bool   // the root volume is there and ready
	noVolume string // why it could not be made; it is tried again
	media    bool   // the seed disc is there
	vgpu     bool   // a backend runs
	slice    bool   // gpud knows the vGPU
	stopping time.Time
	tools    string // version that the guest tools answered with
}

// decision is a step, and what to tell the world meanwhile.
type decision struct {
	step   step
	status api.InstanceStatus
	again  time.Duration // look again even if nothing is heard
}

// Conditions of an instance.
const (
	condEnded = "Ended" // the run ended by itself; reason: guest or crash
	condVGPU  = "VGPU"  // the vGPU backend of a running instance is alive
)

const (
	endedByGuest = "guest"
	endedByCrash = "crash"
)

// lookEvery is how often a quiet instance is looked at all the same.
const lookEvery = 10 * time.Second

// A guest that boots is asked for its tools more often: somebody waits for it.
// One without tools is not asked so for ever.
const (
	bootEvery = 2 * time.Second
	bootTime  = 5 * time.Minute
)

// next decides. It is a pure function of what is wanted (spec, assignment),
// what was said last (status) and what was found (seen).
//
//	          start                         guest off, crash
//	Pending ─► Creating ─► Starting ─► Running ──────────────► Stopped, Failed (until asked to start)
//	                          ▲          │ stop, restart
//	                          └──────── Stopping ─► Stopped
//	any ── delete ─► Deleting ─► gone
func next(in api.Instance, s seen, now time.Time, grace time.Duration) decision {
	st := in.Status
	st.ObservedGeneration = in.Meta.Generation
	st.GuestTools = s.tools
	if in.Meta.DeletedAt != nil {
		return end(st, s)
	}
	wantRunning := in.Spec.Power != api.PowerStopped
	restart := in.Spec.Restarts > st.Restarts
	if s.domain.Active() {
		if !wantRunning || restart {
			return stop(st, s, now, grace)
		}
		return running(in, st, s, now)
	}

	// No QEMU. A run that was seen is over.
	if st.StartedAt != nil {
		st.StartedAt = nil
		if wantRunning && !restart {
			by := endedByGuest
			if s.domain == hypervisor.Crashed || s.domain == hypervisor.Missing {
				by = endedByCrash
			}
			setCondition(&st, condEnded, true, by, s.reason, now)
		}
	}
	if !wantRunning || restart {
		clearCondition(&st, condEnded)
		st.Restarts = in.Spec.Restarts
	}
	clearCondition(&st, condVGPU)
	st.GuestTools = ""
	ended, hasEnded := condition(st, condEnded)
	if !wantRunning || hasEnded {
		st.Phase, st.Step = api.InstanceStopped, ""
		if !hasEnded {
			st.LastError = ""
		}
		if hasEnded && ended.Reason == endedByCrash {
			st.Phase = api.InstanceFailed
			st.LastError = "the virtual machine ended unexpectedly"
			if ended.Message != "" {
				st.LastError += ": " + ended.Message
			}
		}
		if s.vgpu {
			return decision{step: stepStopVGPU, status: st}
		}
		return decision{status: st, again: lookEvery}
	}
	return start(in, st, s)
}

func start(in api.Instance, st api.InstanceStatus, s seen) decision {
	st.Phase = api.InstanceCreating
	switch {
	case !s.volume:
		st.Step = "making the root volume"
		if s.noVolume != "" {
			st.LastError = "root volume: " + s.noVolume
		}
		return decision{step: stepWait, status: st, again: time.Second}
	case !s.media:
		st.Step = "writing the seed disc"
		return decision{step: stepMedia, status: st}
	case in.Assignment.Gpu != "" && !s.vgpu:
		st.Step = "making the vGPU"
		return decision{step: stepVGPU, status: st}
	}
	st.Phase, st.Step = api.InstanceStarting, "starting the virtual machine"
	return decision{step: stepStart, status: st}
}

func running(in api.Instance, st api.InstanceStatus, s seen, now time.Time) decision {
	st.Phase, st.Step, st.LastError = api.InstanceRunning, "", ""
	clearCondition(&st, condEnded)
	if st.StartedAt == nil {
		t := now.UTC()
		st.StartedAt = &t
	}
	if in.Assignment.Gpu != "" {
		if s.vgpu {
			setCondition(&st, condVGPU, true, "", "", now)
		} else {
			setCondition(&st, condVGPU, false, "backend-ended", "the vGPU's backend has ended; restart the instance to get the vGPU back", now)
			st.LastError = "the vGPU's backend has ended: restart the instance to get the vGPU back"
		}
	}
	if s.domain == hypervisor.Paused {
		st.Step = "paused"
		st.LastError = "the virtual machine is paused"
		if s.reason != "" {
			st.LastError += ": " + s.reason
		}
		return decision{step: stepResume, status: st, again: lookEvery}
	}
	if s.tools == "" && now.Sub(*st.StartedAt) < bootTime {
		return decision{status: st, again: bootEvery}
	}
	return decision{status: st, again: lookEvery}
}

func stop(st api.InstanceStatus, s seen, now time.Time, grace time.Duration) decision {
	st.Phase, st.Step = api.InstanceStopping, "waiting for the guest to shut down"
	switch {
	case s.stopping.IsZero():
		return decision{step: stepShutdown, status: st, again: time.Second}
	case now.Sub(s.stopping) >= grace:
		st.Step = "pulling the plug"
		return decision{step: stepDestroy, status: st}
	}
	return decision{status: st, again: min(grace-now.Sub(s.stopping), 5*time.Second) + time.Millisecond}
}

func end(st api.InstanceStatus, s seen) decision {
	st.Phase, st.StartedAt, st.GuestTools = api.InstanceDeleting, nil, ""
	switch {
	case s.domain.Active():
		st.Step = "stopping the virtual machine"
		return decision{step: stepDestroy, status: st}
	case s.domain != hypervisor.Missing:
		st.Step = "removing the virtual machine"
		return decision{step: stepUndefine, status: st}
	case s.vgpu || s.slice:
		st.Step = "removing the vGPU"
		return decision{step: stepDropVGPU, status: st}
	case s.media:
		st.Step = "removing its files"
		return decision{step: stepDropFiles, status: st}
	}
	return decision{step: stepForget, status: st}
}

func condition(st api.InstanceStatus, typ string) (api.Condition, bool) {
	for _, c := range st.Conditions {
		if c.Type == typ {
			return c, true
		}
	}
	return api.Condition{}, false
}

// setCondition copies the list: the status came from the cache, which is read-only.
func setCondition(st *api.InstanceStatus, typ string, status bool, reason, message string, now time.Time) {
	n := api.Condition{Type: typ, Status: status, Reason: reason, Message: message, Since: now.UTC()}
	if old, ok := condition(*st, typ); ok && old.Status == status && old.Reason == reason && old.Message == message {
		return
	}
	clearCondition(st, typ)
	st.Conditions = append(st.Conditions, n)
}

func clearCondition(st *api.InstanceStatus, typ string) {
	var kept []api.Condition
	for _, c := range st.Conditions {
		if c.Type != typ {
			kept = append(kept, c)
		}
	}
	st.Conditions = kept
}
