package agent

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// step is one idempotent step of an instance.
type step string

const (
	stepNone      step = ""
	stepWait      step = "wait"       // for the result of another object's reconcile
	stepMedia     step = "media"      // write the seed disc
	stepDrives    step = "drives"     // insert and eject media of a running machine
	stepVGPU      step = "vgpu"       // create the slice, start the backend
	stepStart     step = "start"      // define and start
	stepResume    step = "resume"     // resume a paused domain
	stepShutdown  step = "shutdown"   // press the power button
	stepDestroy   step = "destroy"    // end the domain without the guest
	stepUndefine  step = "undefine"   // remove the domain's definition
	stepStopVGPU  step = "stop-vgpu"  // end the backend; the slice stays reserved
	stepDropVGPU  step = "drop-vgpu"  // end the backend and remove the slice
	stepUnplug    step = "unplug"     // unplug its network ports
	stepDropFiles step = "drop-files" // remove seed and logs
	stepForget    step = "forget"     // remove the finalizer
	stepClaim     step = "claim"      // claim the root volume of a domain that runs already
	stepAbortMove step = "abort-move" // abort an outgoing migration: the paused domain resumes
	stepEndMove   step = "end-move"   // end an incoming migration: the domain runs, or is discarded
)

// begins reports whether the step leads to a run or changes its media. If it has failed
// it waits for its next attempt (retry.go); steps that end something do not wait.
func (s step) begins() bool {
	return s == stepMedia || s == stepVGPU || s == stepStart || s == stepDrives
}

// seen is the observed state of an instance on the node.
type seen struct {
	domain   hypervisor.State
	reason   string      // why it is in that state
	volume   bool        // the root volume exists and is ready
	noVolume api.Reason  // why the root volume could not be created; it is tried again
	media    bool        // the seed disc exists
	drives   driveState  // its CD drives
	vgpu     bool        // a backend runs
	slice    bool        // gpud has a slice for the vGPU
	ports    bool        // network ports are plugged
	stopping time.Time   // when its power button was first pressed; zero if it was not
	pressed  time.Time   // when it was last pressed
	gpu      GuestGPU    // what the node has observed of the guest's use of its vGPU
	report   guestReport // the guest's report about itself
	tools    string      // version of the guest tools, as the guest reports it
	setup    setup       // zero if it was not queried

	node        api.NodeID // this node
	boot        string     // ID of the node's current boot
	epoch       int64      // of the assignment that the domain was started under
	interrupted bool       // the last run did not end by itself
	blocked     api.Reason // why the instance must not start or resume now
	leaving     bool       // the node's guests are being shut down, by a process beside this one
	unclaimed   bool       // the root volume is not known to be claimed
}

// decision is a step, and the status to report before it.
type decision struct {
	step   step
	status api.InstanceStatus
	again  time.Duration // reconcile again after this time, even without a change
}

// Conditions of an instance.
const (
	condEnded = "Ended" // the run ended by itself; reason: guest or crash
	condGPU   = api.ConditionGPUReady
	condSetUp = "SetUp" // cloud-init has ended in this run; reason: setup…
)

const (
	endedByGuest = "guest"
	endedByCrash = "crash"
)

// pressEvery is how often the power button is pressed while an instance stops: a
// booting guest does not react to it (nothing listens before its init does), and a
// guest that is shutting down ignores it.
const pressEvery = 10 * time.Second

// reconcileInterval is how often an instance is reconciled without any change.
const reconcileInterval = 10 * time.Second

// A booting guest is queried for its tools and its set-up more often, because a
// user is waiting for it. That ends after bootTime, also for a guest without tools.
const (
	bootEvery = 2 * time.Second
	bootTime  = 5 * time.Minute
)

// next decides the next step. It is a pure function of what is wanted (spec,
// assignment), what was reported last (status) and what was observed (seen).
//
//	          start                         guest off, crash
//	Pending ─► Creating ─► Starting ─► Running ──────────────► Stopped, Failed (until asked to start)
//	                ▲         ▲          │ stop, restart
//	                │         └──────── Stopping ─► Stopped
//	                └──────────── killed by the fence, ended with the host,
//	                              or on another node: not ended by the guest
//	any ── released ─► Stopping ─► Stopped, released ─► another node's
//	any ── held ─► Stopping ─► Stopped, until nothing holds it any more
//	any ── the node shuts down ─► Stopping ─► Stopped, until it is up again
//	no QEMU, spec changed ─► Stopped, until the planner has seen it
//	any ── delete ─► Deleting ─► removed
//
// A domain of an older epoch was started when the instance was assigned to this
// node earlier: it is destroyed, whatever its state.
func next(in api.Instance, s seen, now time.Time, grace time.Duration) decision {
	st := inherit(in, s)
	st.ObservedGeneration = in.Meta.Generation
	st.GuestTools = s.tools
	switch {
	case s.domain.Active() && s.epoch != in.Assignment.Epoch:
		st.Phase = api.InstanceStarting
		setStep(&st, api.CauseEndingRun, "ending a run of an earlier assignment")
		return decision{step: stepDestroy, status: st}
	case in.Meta.DeletedAt != nil:
		return end(st, s)
	case s.domain == hypervisor.Outgoing: // and no migration is in progress
		return decision{step: stepAbortMove, status: st}
	case s.domain == hypervisor.Incoming:
		return decision{step: stepEndMove, status: st}
	case in.Assignment.Release:
		return release(st, s, now, grace)
	}
	held := plainly(api.CauseSuspended, in.Assignment.Hold)
	if s.leaving {
		held = nodeLeaves
	}
	wantRunning := in.Spec.Power != api.PowerStopped && held.Text == ""
	restart := in.Spec.Restarts > st.Restarts
	if s.domain.Active() {
		if s.leaving {
			return shutsDown(st)
		}
		if !wantRunning || restart {
			d := stop(st, s, now, grace)
			if held.Text != "" {
				setStep(&d.status, held.Cause.Code, held.Text+"; "+d.status.Step)
			}
			return d
		}
		return running(in, st, s, now)
	}

	// There is no QEMU, so a run that was reported has ended.
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
		st.Phase = api.InstanceStopped
		st.Step, st.StepCause = held.Parts()
		if wantRunning && !hasEnded {
			setStep(&st, api.CauseAwaitingPlan, "waiting for the planner to see its new spec")
		}
		st.Retry = nil
		if !hasEnded {
			st.LastError = ""
		}
		if hasEnded && ended.Reason == endedByCrash {
			st.Phase = api.InstanceFailed
			why := "the virtual machine ended unexpectedly"
			if ended.Message != "" {
				why += ": " + ended.Message
			}
			st.LastError, st.Cause = plainly(api.CauseCrashed, why).Parts()
		}
		if s.vgpu {
			return decision{step: stepStopVGPU, status: st}
		}
		if s.ports {
			return decision{step: stepUnplug, status: st}
		}
		return decision{status: st, again: reconcileInterval}
	}
	return start(in, st, s)
}

// setStep sets what the instance is doing.
func setStep(st *api.InstanceStatus, code api.CauseCode, text string) {
	st.Step, st.StepCause = plainly(code, text).Parts()
}

// nodeLeaves is the reason why an instance does not run on a node that shuts down.
var nodeLeaves = plainly(api.CauseNodeShutdown, "its node is shutting down")

// shutsDown reports the instance as stopping. The process that shuts the guests
// down (appliance/node/guests) presses the power button and destroys the domain.
func shutsDown(st api.InstanceStatus) decision {
	st.Phase = api.InstanceStopping
	setStep(&st, api.CauseNodeShutdown, nodeLeaves.Text+"; waiting for the guest to shut down")
	return decision{status: st, again: time.Second}
}

// behind reports whether the planner has not seen the spec yet: it resizes an
// instance only while it sees it stopped. If it cannot resize it, the assignment
// has a reason, and the instance starts with its old size.
func behind(in api.Instance) bool {
	return in.Assignment.Generation != in.Meta.Generation && in.Assignment.Reason == ""
}

// inherit returns the status to continue from. A status from another node, or from
// an earlier assignment to this one, is about a run that has ended, unless that run
// was migrated here.
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

// release stops the instance and releases its resources on this node, so that
// another node can run it. Its files are removed when the other node has it.
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
	st.Phase, st.LastError, st.GuestTools, st.StartedAt, st.BootID = api.InstanceStopped, "", "", nil, ""
	setStep(&st, api.CauseLeavingNode, "leaving the node")
	st.Retry = nil
	st.Released = true
	return decision{status: st, again: reconcileInterval}
}

func start(in api.Instance, st api.InstanceStatus, s seen) decision {
	st.Phase = api.InstanceCreating
	switch {
	case !s.volume:
		setStep(&st, api.CauseCreatingVolume, "creating the root volume")
		if s.noVolume.Text != "" {
			st.LastError, st.Cause = "root volume: "+s.noVolume.Text, s.noVolume.Cause
		}
		return decision{step: stepWait, status: st, again: time.Second}
	case s.drives.waits.Text != "":
		st.Step, st.StepCause = s.drives.waits.Parts()
		return decision{step: stepWait, status: st, again: time.Second}
	case !s.media:
		setStep(&st, api.CauseWritingSeed, "writing the seed disc")
		return decision{step: stepMedia, status: st}
	case in.Assignment.Gpu != "" && !s.vgpu:
		setStep(&st, api.CauseCreatingGPU, "creating the vGPU")
		return decision{step: stepVGPU, status: st}
	case s.blocked.Text != "":
		st.Phase = api.InstanceStarting
		st.Step, st.StepCause = s.blocked.Parts()
		return decision{step: stepWait, status: st, again: time.Second}
	}
	st.Phase = api.InstanceStarting
	setStep(&st, api.CauseStarting, "starting the virtual machine")
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
			st.LastError, st.Cause = plainly(api.CauseGPUEnded, ready.message).Parts()
		}
	}
	switch s.setup.reason {
	case "":
	case setupNone:
		clearCondition(&st, condSetUp)
	default:
		setCondition(&st, condSetUp, s.setup.reason == setupDone, s.setup.reason, s.setup.errors, now)
	}
	if s.unclaimed {
		return decision{step: stepClaim, status: st}
	}
	if s.domain == hypervisor.Paused {
		why := "the virtual machine is paused"
		if s.reason != "" {
			why += ": " + s.reason
		}
		setStep(&st, api.CausePaused, "paused")
		st.LastError, st.Cause = plainly(api.CausePaused, why).Parts()
		if s.blocked.Text != "" {
			st.Step, st.StepCause = s.blocked.Parts()
			return decision{step: stepWait, status: st, again: time.Second}
		}
		return decision{step: stepResume, status: st, again: reconcileInterval}
	}
	if s.drives.change {
		setStep(&st, api.CauseChangingMedia, "changing the media in its CD drives")
		return decision{step: stepDrives, status: st, again: time.Second}
	}
	if s.drives.missing {
		setStep(&st, api.CauseMediaLater, "its media take effect with its next start: it was started without CD drives")
	}
	if s.drives.waits.Text != "" {
		st.Step, st.StepCause = s.drives.waits.Parts()
		return decision{status: st, again: bootEvery}
	}
	if (s.tools == "" || s.setup.reason == setupRuns || gpuStarts(st)) && now.Sub(*st.StartedAt) < bootTime {
		return decision{status: st, again: bootEvery}
	}
	return decision{status: st, again: reconcileInterval}
}

// loaded decides on a domain that is loaded but whose guest has not been seen
// running (begin). Nobody is charged for it, however long it waits to be resumed.
func loaded(st api.InstanceStatus, s seen) decision {
	st.Phase = api.InstanceStarting
	setStep(&st, api.CauseStarting, "starting the virtual machine")
	clearCondition(&st, condEnded)
	switch {
	case s.unclaimed:
		return decision{step: stepClaim, status: st}
	case s.blocked.Text != "":
		st.Step, st.StepCause = s.blocked.Parts()
		return decision{step: stepWait, status: st, again: time.Second}
	}
	return decision{step: stepResume, status: st, again: time.Second}
}

func stop(st api.InstanceStatus, s seen, now time.Time, grace time.Duration) decision {
	st.Phase = api.InstanceStopping
	setStep(&st, api.CauseShuttingDown, "waiting for the guest to shut down")
	switch {
	case s.stopping.IsZero():
		return decision{step: stepShutdown, status: st, again: time.Second}
	case now.Sub(s.stopping) >= grace:
		setStep(&st, api.CausePoweringOff, "powering off")
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
		setStep(&st, api.CauseRemoving, "stopping the virtual machine")
		return decision{step: stepDestroy, status: st}
	case s.domain != hypervisor.Missing:
		setStep(&st, api.CauseRemoving, "removing the virtual machine")
		return decision{step: stepUndefine, status: st}
	case s.ports:
		setStep(&st, api.CauseRemoving, "leaving its networks")
		return decision{step: stepUnplug, status: st}
	case s.vgpu || s.slice:
		setStep(&st, api.CauseRemoving, "removing the vGPU")
		return decision{step: stepDropVGPU, status: st}
	case s.media:
		setStep(&st, api.CauseRemoving, "removing its files")
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

// setCondition sets a condition in a copy of the list: the status came from the
// cache, which is read-only.
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
