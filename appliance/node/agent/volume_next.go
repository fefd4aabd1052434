package agent

import (
	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// diskStep is one idempotent step of an existing volume.
type diskStep string

const (
	diskNone     diskStep = ""
	diskWait     diskStep = "wait"      // wait for others
	diskRollback diskStep = "roll back" // roll back to a snapshot
	diskReport   diskStep = "say"       // write the changed status.attached
	diskAttach   diskStep = "attach"    // attach to the running machine
	diskDetach   diskStep = "detach"    // detach from the machine, running or not
	diskQoS      diskStep = "bound"     // change its limits
)

// diskSeen is what was observed about a volume.
type diskSeen struct {
	// holder is the instance in status.attached.
	holder diskHolder
	// wanted is the instance in spec.instance.
	wanted diskHolder
	moving bool // the volume itself is being moved to another node
	open   bool // a running machine has it open
	qos    hypervisor.QoS
}

// diskHolder is an instance that has a volume, or should have it.
type diskHolder struct {
	here   bool // the instance is this node's
	gone   bool // it does not exist any more, or is pending without a node
	active bool // its machine has a QEMU process
	moving bool // it is being migrated: its machine is not changed
}

// diskDecision is a step, and the status to write: attached is written before the
// step, so that it is always known who may have the volume open, and waits is the
// reason why nothing is done.
type diskDecision struct {
	step     diskStep
	attached api.InstanceID
	waits    api.Reason
}

// nextDisk decides the next step. status.attached is the instance that may have the
// volume open: it is written before any machine opens it, and cleared when it is
// certainly closed.
//
//	          write                  (start, or attach live)
//	detached ───────► an instance's ──────────────────────────► open
//	    ▲                   ▲ │ spec.instance is another's            │
//	    └───────────────────┴─┴──────────── detach ◄──────────────────┘
//
// A root volume belongs to its instance for good; it can be limited, and rolled
// back while it is closed.
func nextDisk(v api.Volume, s diskSeen) diskDecision {
	st := v.Status
	d := diskDecision{attached: st.Attached}
	if s.moving { // until the migration ends, which it does when the volume is to be attached
		if st.Attached != v.Spec.Instance || needsRollback(v) {
			d.step, d.waits = diskWait, plainly(api.CauseVolumeMoving, "it is being moved to another node")
		}
		return d
	}
	if !v.Spec.Root {
		switch {
		case st.Attached != "" && st.Attached != v.Spec.Instance:
			switch {
			case s.holder.moving:
				d.step, d.waits = diskWait, instanceMoving
			case !s.holder.here && !s.holder.gone:
				d.step, d.waits = diskWait, plainly(api.CauseOpenElsewhere, "another node has it open")
			default:
				d.step = diskDetach
			}
			return d
		case st.Attached == "" && v.Spec.Instance != "" && s.wanted.here && !s.wanted.gone:
			if needsRollback(v) {
				break // first
			}
			if s.wanted.moving { // perhaps to a node that cannot access the volume
				d.step, d.waits = diskWait, instanceMoving
				return d
			}
			d.step, d.attached = diskReport, v.Spec.Instance
			return d
		}
	}
	if needsRollback(v) {
		if s.holder.moving || v.Spec.Root && s.wanted.moving {
			d.step, d.waits = diskWait, instanceMoving
			return d
		}
		if s.open {
			d.step, d.waits = diskWait, plainly(api.CauseRollbackLater, "it is rolled back when its instance is stopped or it is detached")
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
