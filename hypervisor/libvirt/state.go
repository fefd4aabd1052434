package libvirt

import (
	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/hypervisor"
)

const movedAway = "it was migrated to another node"

// state converts libvirt's state and reason.
func state(s lv.DomainState, reason int) (hypervisor.State, string) {
	switch s {
	case lv.DOMAIN_RUNNING, lv.DOMAIN_BLOCKED:
		return hypervisor.Running, ""
	case lv.DOMAIN_SHUTDOWN:
		return hypervisor.Running, "shutting down" // QEMU still runs
	case lv.DOMAIN_PAUSED:
		switch lv.DomainPausedReason(reason) {
		case lv.DOMAIN_PAUSED_STARTING_UP:
			return hypervisor.Running, "starting"
		case lv.DOMAIN_PAUSED_SHUTTING_DOWN:
			return hypervisor.Running, "shutting down"
		case lv.DOMAIN_PAUSED_IOERROR:
			return hypervisor.Paused, "its disk is not writable: the disk of the node is full or has failed"
		case lv.DOMAIN_PAUSED_CRASHED:
			return hypervisor.Crashed, "the guest panicked"
		}
		return hypervisor.Paused, ""
	case lv.DOMAIN_PMSUSPENDED:
		return hypervisor.Paused, "the guest is suspended"
	case lv.DOMAIN_CRASHED:
		return hypervisor.Crashed, "the guest panicked"
	}
	switch lv.DomainShutoffReason(reason) {
	case lv.DOMAIN_SHUTOFF_SHUTDOWN:
		return hypervisor.Stopped, "the guest shut down"
	case lv.DOMAIN_SHUTOFF_DESTROYED:
		return hypervisor.Stopped, "it was powered off"
	case lv.DOMAIN_SHUTOFF_CRASHED:
		return hypervisor.Crashed, "QEMU exited unexpectedly or the guest panicked"
	case lv.DOMAIN_SHUTOFF_FAILED:
		return hypervisor.Stopped, "it could not be started"
	case lv.DOMAIN_SHUTOFF_MIGRATED:
		return hypervisor.Stopped, movedAway
	}
	return hypervisor.Stopped, ""
}

// lifecycle converts an event of libvirt; Type is empty for one without
// significance.
func lifecycle(t lv.DomainEventType, detail int) hypervisor.Event {
	switch t {
	case lv.DOMAIN_EVENT_DEFINED:
		return hypervisor.Event{Type: hypervisor.EventDefined}
	case lv.DOMAIN_EVENT_UNDEFINED:
		return hypervisor.Event{Type: hypervisor.EventUndefined}
	case lv.DOMAIN_EVENT_STARTED:
		return hypervisor.Event{Type: hypervisor.EventStarted}
	case lv.DOMAIN_EVENT_RESUMED:
		return hypervisor.Event{Type: hypervisor.EventResumed}
	case lv.DOMAIN_EVENT_SUSPENDED, lv.DOMAIN_EVENT_PMSUSPENDED:
		return hypervisor.Event{Type: hypervisor.EventPaused}
	case lv.DOMAIN_EVENT_CRASHED:
		return hypervisor.Event{Type: hypervisor.EventCrashed, Reason: "the guest panicked"}
	case lv.DOMAIN_EVENT_STOPPED:
		switch lv.DomainEventStoppedDetailType(detail) {
		case lv.DOMAIN_EVENT_STOPPED_CRASHED:
			return hypervisor.Event{Type: hypervisor.EventCrashed, Reason: "the guest panicked"}
		case lv.DOMAIN_EVENT_STOPPED_FAILED:
			return hypervisor.Event{Type: hypervisor.EventCrashed, Reason: "QEMU exited unexpectedly"}
		case lv.DOMAIN_EVENT_STOPPED_DESTROYED:
			return hypervisor.Event{Type: hypervisor.EventStopped, Reason: "it was powered off"}
		case lv.DOMAIN_EVENT_STOPPED_MIGRATED:
			return hypervisor.Event{Type: hypervisor.EventStopped, Reason: movedAway}
		}
		return hypervisor.Event{Type: hypervisor.EventStopped, Reason: "the guest shut down"}
	}
	return hypervisor.Event{}
}
