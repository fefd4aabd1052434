package agent

import (
	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// diskStep is one idempotent thing to do for a volume that is made.
type diskStep string

const (
	diskNone     diskStep = ""
	diskWait     diskStep = "wait"      // for what others do
	diskRollback diskStep = "roll back" // to a snapshot
	diskSay      diskStep = "say"       // that an instance has it, or has it no more
	diskAttach   diskStep = "attach"    // to the running machine
	diskDetach   diskStep = "detach"    // from the machine, running or not
	diskQoS      diskStep = "bound"     // change its bounds
)

// diskSeen is what was found out about a volume.
type diskSeen struct {
	// holder is the instance in status.attached.
	holder diskHolder
	// wanted is the instance in spec.instance.
	wanted diskHolder
	open   bool // a running machine has it open
	qos    hypervisor.QoS
}

// diskHolder is an instance that has a volume, or should have it.
type diskHolder struct {
	here   bool // it is this node's
	gone   bool // the cluster knows it no more, or no node has it: it waits for room
	active bool // its machine has a QEMU
	moving bool // it is being moved: its machine is not changed
}

// diskDecision is a step, and what to say: in attached before the step, so that
// whoever has the volume open is always known, and in waits why nothing is done.
type diskDecision struct {
	step     diskStep
	attached api.InstanceID
	waits    string
}

// nextDisk decides. status.attached says who may have the volume open: it is
// written before anybody opens it, and cleared when it is certainly closed.
//
//	           say                    (start, or attach live)
//	nobody's ───────► an instance's ──────────────────────────► open
//	    ▲                   ▲ │ spec.instance is another's            │
//	    └───────────────────┴─┴──────────── detach ◄──────────────────┘
//
// A root volume belongs to its instance for good; it can be bounded, and rolled
// back while it is closed.
func nextDisk(v api.Volume, s diskSeen) diskDecision {
	st := v.Status
	d := diskDecision{attached: st.Attached}
	if !v.Spec.Root {
		switch {
		case st.Attached != "" && st.Attached != v.Spec.Instance:
			switch {
			case s.holder.moving:
				d.step, d.waits = diskWait, "its instance is being moved"
			case !s.holder.here && !s.holder.gone:
				d.step, d.waits = diskWait, "another node has it open"
			default:
				d.step = diskDetach
			}
			return d
		case st.Attached == "" && v.Spec.Instance != "" && s.wanted.here && !s.wanted.gone:
			if needsRollback(v) {
				break // first
			}
			if s.wanted.moving { // perhaps to where the volume is not
				d.step, d.waits = diskWait, "its instance is being moved"
				return d
			}
			d.step, d.attached = diskSay, v.Spec.Instance
			return d
		}
	}
	if needsRollback(v) {
		if s.open {
			d.step, d.waits = diskWait, "it is rolled back when its instance is stopped or it is detached"
			return d
		}
		d.step = diskRollback
		return d
	}
	holder := s.holder
	if v.Spec.Root {
		holder = s.wanted
	}
	switch {
	case !holder.here || !holder.active || holder.moving:
	case !s.open && !v.Spec.Root:
		d.step = diskAttach
	case s.open && s.qos != qosOf(v):
		d.step = diskQoS
	}
	return d
}

func needsRollback(v api.Volume) bool {
	return v.Spec.Rollback != nil && v.Spec.Rollback.Count > v.Status.Rollbacks
}
