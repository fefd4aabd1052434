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
	stepUnplug    step = "unplug"     // its network ports
	stepDropFiles step = "drop-files" // seed, logs
	stepForget    step = "forget"     // finalizer off
	stepClaim     step = "claim"      // the root volume of a domain that runs already
	stepAbortMove step = "abort-move" // a domain that stands still in a move from here runs on
	stepEndMove   step = "end-move"   // a domain that came by a move runs, or is thrown away
)

// begins reports whether the step leads to a run: one that has failed waits for
// its next try (retry.go). Steps that end something do not.
func (s step) begins() bool { return s == stepMedia || s == stepVGPU || s == stepStart }

// seen is what was found on the node.
type seen struct {
	domain   hypervisor.State
	reason   string    // why it is in that state
	volume   bool      // the root volume is there and ready
	noVolume string    // why it could not be made; it is tried again
	media    bool      // the seed disc is there
	vgpu     bool      // a backend runs
	slice    bool      // gpud knows the vGPU
	ports    bool      // network ports are plugged
	stopping time.Time // when its power button was first pressed; zero: not yet
	pressed  time.Time // … and last
	gpu      GuestGPU  // what its node has seen of the guest's use of its vGPU
	told     told      // what the guest says of itself
	tools    string    // version of the guest tools, as the guest says
	setup    setup     // unknown when it was not asked for

	node        api.NodeID // this one
	boot        string     // its present boot
	epoch       int64      // of the assignment that the domain was started under
	interrupted bool       // the run that is gone did not end by itself
	blocked     string     // why nothing may start or go on now
	leaving     bool       // the node's guests are being shut down, by a process beside this one
	unclaimed   bool       // the root volume is not known to be claimed
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
	condGPU   = api.ConditionGPUReady
	condSetUp = "SetUp" // cloud-init is over in this run; reason: setup…
)

const (
	endedByGuest = "guest"
	endedByCrash = "crash"
)

// pressEvery is how often the power button is pressed while an instance stops:
// a guest that is still booting does not hear it (nothing listens before its
// init does), and a guest that is shutting down takes no notice of it.
const pressEvery = 10 * time.Second

// lookEvery is how often a quiet instance is looked at all the same.
const lookEvery = 10 * time.Second

// A guest that boots is asked for its tools and its set-up more often: somebody waits for it.
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
//	                ▲         ▲          │ stop, restart
//	                │         └──────── Stopping ─► Stopped
//	                └──────────── killed by the fence, by the host's end,
//	                              or on another node: not the guest's doing
//	any ── released ─► Stopping ─► Stopped, released ─► another node's
//	any ── held ─► Stopping ─► Stopped, until nothing holds it any more
//	any ── the node shuts down ─► Stopping ─► Stopped, until it is up again
//	no QEMU, spec changed ─► Stopped, until the planner has seen it
//	any ── delete ─► Deleting ─► gone
//
// A domain of an older epoch is of a time when the instance was given to this
// node before: it is destroyed, whatever it is doing.
func next(in api.Instance, s seen, now time.Time, grace time.Duration) decision {
	st := inherit(in, s)
	st.ObservedGeneration = in.Meta.Generation
	st.GuestTools = s.tools
	switch {
	case s.domain.Active() && s.epoch != in.Assignment.Epoch:
		st.Phase, st.Step = api.InstanceStarting, "ending a run of an earlier assignment"
		return decision{step: stepDestroy, status: st}
	case in.Meta.DeletedAt != nil:
		return end(st, s)
	case s.domain == hypervisor.Outgoing: // and no move is under way
		return decision{step: stepAbortMove, status: st}
	case s.domain == hypervisor.Incoming:
		return decision{step: stepEndMove, status: st}
	case in.Assignment.Release:
		return release(st, s, now, grace)
	}
	held := in.Assignment.Hold
	if s.leaving {
		held = nodeLeaves
	}
	wantRunning := in.Spec.Power != api.PowerStopped && held == ""
	restart := in.Spec.Restarts > st.Restarts
	if s.domain.Active() {
		if s.leaving {
			return shutsDown(st)
		}
		if !wantRunning || restart {
			d := stop(st, s, now, grace)
			if held != "" {
				d.status.Step = held + "; " + d.status.Step
			}
			return d
		}
		return running(in, st, s, now)
	}

	// No QEMU. A run that was seen is over.
	if st.StartedAt != nil {
		st.StartedAt = nil
		rebooted := st.BootID != "" && st.BootID != s.boot
		if wantRunning && !restart && !rebooted && !s.interrupted {
			by := endedByGuest
			if s.domain == hypervisor.Crashed || s.domain == hypervisor.Missing {
				by = endedByCrash
			}
			setCondition(&st, condEnded, true, by, s.reason, now)
		}
	}
	if in.Spec.Power == api.PowerStopped || restart {
		clearCondition(&st, condEnded)
		st.Restarts = in.Spec.Restarts
	}
	clearCondition(&st, condGPU)
	clearCondition(&st, condSetUp)
	st.GuestTools = ""
	ended, hasEnded := condition(st, condEnded)
	if !wantRunning || hasEnded || behind(in) {
		st.Phase, st.Step = api.InstanceStopped, held
		if wantRunning && !hasEnded {
			st.Step = "waiting for the planner to see its new spec"
		}
		st.Retry = nil
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
		if s.ports {
			return decision{step: stepUnplug, status: st}
		}
		return decision{status: st, again: lookEvery}
	}
	return start(in, st, s)
}

// nodeLeaves is why an instance does not run on a node that shuts down.
const nodeLeaves = "its node is shutting down"

// shutsDown: who shuts the guests down (appliance/node/guests) presses the power button
// and pulls the plug.
func shutsDown(st api.InstanceStatus) decision {
	st.Phase, st.Step = api.InstanceStopping, nodeLeaves+"; waiting for the guest to shut down"
	return decision{status: st, again: time.Second}
}

// behind reports whether the planner has not seen the spec yet: it gives an instance
// another size only while it sees it stopped. If it cannot, it says why, and
// the instance starts as it was.
func behind(in api.Instance) bool {
	return in.Assignment.Generation != in.Meta.Generation && in.Assignment.Reason == ""
}

// inherit is the status to go on from. What another node said last, or this
// one when the instance was given to it before, is about a run that is over,
// unless that very run has moved here.
func inherit(in api.Instance, s seen) api.InstanceStatus {
	st := in.Status
	if st.Epoch != in.Assignment.Epoch || st.Node != "" && st.Node != s.node {
		moved := s.domain.Active() && s.epoch == in.Assignment.Epoch
		if !moved {
			st.StartedAt, st.BootID = nil, ""
		}
		clearCondition(&st, condGPU)
	}
	st.Node, st.Epoch, st.Released = s.node, in.Assignment.Epoch, false
	return st
}

// release stops the instance and gives back what it has here, so that another
// node can have it. Its files go once it has it.
func release(st api.InstanceStatus, s seen, now time.Time, grace time.Duration) decision {
	clearCondition(&st, condGPU)
	clearCondition(&st, condSetUp)
	switch {
	case s.domain.Active():
		return stop(st, s, now, grace)
	case s.domain != hypervisor.Missing:
		return decision{step: stepUndefine, status: st}
	case s.ports:
		return decision{step: stepUnplug, status: st}
	case s.vgpu || s.slice:
		return decision{step: stepDropVGPU, status: st}
	}
	st.Phase, st.Step, st.LastError, st.GuestTools, st.StartedAt, st.BootID = api.InstanceStopped, "leaving the node", "", "", nil, ""
	st.Retry = nil
	st.Released = true
	return decision{status: st, again: lookEvery}
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
	case s.blocked != "":
		st.Phase, st.Step = api.InstanceStarting, s.blocked
		return decision{step: stepWait, status: st, again: time.Second}
	}
	st.Phase, st.Step = api.InstanceStarting, "starting the virtual machine"
	return decision{step: stepStart, status: st}
}

func running(in api.Instance, st api.InstanceStatus, s seen, now time.Time) decision {
	if st.StartedAt == nil && s.domain == hypervisor.Paused && s.reason == "" {
		return loaded(st, s)
	}
	st.Phase, st.Step, st.LastError, st.Retry = api.InstanceRunning, "", "", nil
	clearCondition(&st, condEnded)
	if st.StartedAt == nil {
		t := now.UTC()
		st.StartedAt = &t
	}
	st.BootID = s.boot
	if in.Assignment.Gpu != "" {
		had, known := condition(st, condGPU)
		ready := gpuReady(s, had, known, now)
		setCondition(&st, condGPU, ready.reason == api.GPUReady, string(ready.reason), ready.message, now)
		if !s.vgpu {
			st.LastError = ready.message
		}
	}
	if s.setup.reason != "" {
		setCondition(&st, condSetUp, s.setup.reason == setupDone, s.setup.reason, s.setup.errors, now)
	}
	if s.unclaimed {
		return decision{step: stepClaim, status: st}
	}
	if s.domain == hypervisor.Paused {
		st.Step = "paused"
		st.LastError = "the virtual machine is paused"
		if s.reason != "" {
			st.LastError += ": " + s.reason
		}
		if s.blocked != "" {
			st.Step = s.blocked
			return decision{step: stepWait, status: st, again: time.Second}
		}
		return decision{step: stepResume, status: st, again: lookEvery}
	}
	if (s.tools == "" || s.setup.reason == setupRuns || gpuStarts(st)) && now.Sub(*st.StartedAt) < bootTime {
		return decision{status: st, again: bootEvery}
	}
	return decision{status: st, again: lookEvery}
}

// loaded: its QEMU waits, and its guest has not been seen to run (begin). That
// costs nobody anything, however long it takes to let it begin.
func loaded(st api.InstanceStatus, s seen) decision {
	st.Phase, st.Step = api.InstanceStarting, "starting the virtual machine"
	clearCondition(&st, condEnded)
	switch {
	case s.unclaimed:
		return decision{step: stepClaim, status: st}
	case s.blocked != "":
		st.Step = s.blocked
		return decision{step: stepWait, status: st, again: time.Second}
	}
	return decision{step: stepResume, status: st, again: time.Second}
}

func stop(st api.InstanceStatus, s seen, now time.Time, grace time.Duration) decision {
	st.Phase, st.Step = api.InstanceStopping, "waiting for the guest to shut down"
	switch {
	case s.stopping.IsZero():
		return decision{step: stepShutdown, status: st, again: time.Second}
	case now.Sub(s.stopping) >= grace:
		st.Step = "pulling the plug"
		return decision{step: stepDestroy, status: st}
	case now.Sub(s.pressed) >= pressEvery:
		return decision{step: stepShutdown, status: st, again: time.Second}
	}
	return decision{status: st, again: min(grace-now.Sub(s.stopping), 5*time.Second) + time.Millisecond}
}

func end(st api.InstanceStatus, s seen) decision {
	st.Phase, st.StartedAt, st.GuestTools, st.BootID = api.InstanceDeleting, nil, "", ""
	switch {
	case s.domain.Active():
		st.Step = "stopping the virtual machine"
		return decision{step: stepDestroy, status: st}
	case s.domain != hypervisor.Missing:
		st.Step = "removing the virtual machine"
		return decision{step: stepUndefine, status: st}
	case s.ports:
		st.Step = "leaving its networks"
		return decision{step: stepUnplug, status: st}
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
