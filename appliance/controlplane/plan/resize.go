package plan

import (
	"cmp"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// A resize changes the resources of an instance that has a node. It is applied while the
// instance is stopped, since neither its machine nor its vGPU change while it runs. Room
// is found beside what those reserve that have waited longer:
//
//	stopped ─┬─ its node and GPU have room ─► resized
//	         ├─ another GPU or node has it ─► release ─released─┬─► resized there
//	         │                                                  └─ the room is gone ─┐
//	         └─ no room ─► queued, with the reason ◄────────────────────────────────┘
//
// A queued instance keeps its size and may be started with it. While it runs it has no
// place in the queue: it could not take the room, and what it reserved would be kept from
// the others until its user stops it.

// planResize applies the size that a spec requests to a stopped instance. a is its
// assignment with the root volume that it is going to have.
func planResize(s *State, u *used, in api.Instance, a api.InstanceAssignment, ports []api.InstancePort, now time.Time) []api.Command {
	u.Remove(in.Assignment)
	next := u.placeResized(s, in, now)
	switch {
	case next.Node == "":
		if resized(s, in) {
			u.reserve(s, in, now)
			a = stillWaits(a, now)
		}
		u.ips.dropPorts(in, ports)
		a.Reason, a.Cause = next.Reason, next.Cause // it stays unchanged
	case relocates(a, next):
		u.add(s, in, next) // the room is counted until its node has released it
		a.Release, a.Ports, a.Reason, a.Cause = true, ports, "", api.Cause{}
	default:
		next = waited(a, next, now)
		next.Epoch, next.Generation, next.RootVolume, next.Ports = a.Epoch, in.Meta.Generation, cmp.Or(next.RootVolume, a.RootVolume), ports
		a = next
	}
	u.add(s, in, a)
	if a.Equal(in.Assignment) {
		return nil
	}
	return withResized(assignPorts(in, a), in, a)
}

// withResized adds to the assignment of an instance that it has got the size that it
// waited for, if its wait has ended with it.
func withResized(cmds []api.Command, in api.Instance, next api.InstanceAssignment) []api.Command {
	if next.Node != "" && next.PlacedAt != nil && queued(in.Assignment) {
		cmds[0].Event = queueEvent(api.EventInstanceResized, in, next.QueuedAt)
	}
	return cmds
}

// placeResized returns the assignment that an instance would have with the size that its
// spec requests. What it uses now must not be counted. Another node or GPU than its own
// must wait until its node has released it.
func (u *used) placeResized(s *State, in api.Instance, now time.Time) api.InstanceAssignment {
	next := place(s, u, in, now)
	if next.Node != "" {
		return next
	}
	if in.Assignment.Gpu != "" {
		if other := place(s, u, withoutGPU(in), now); other.Node != "" {
			return other
		}
	}
	other := place(s, u, withoutNode(in), now)
	switch {
	case mayLeave(s, u, in):
		return other
	case other.Node != "":
		next.Reason += "; node " + nodeName(s, other.Node) + " has room, but " + bound(s, in) + " is stored on node " + nodeName(s, in.Assignment.Node)
		next.Cause = api.Cause{Code: api.CauseDataElsewhere}
	}
	return next
}

// relocates reports whether an instance with the assignment a gets another node or GPU.
func relocates(a, next api.InstanceAssignment) bool {
	return next.Node != a.Node || a.Gpu != "" && next.Gpu != "" && next.Gpu != a.Gpu
}

// mayLeave reports whether a stopped instance can start on another node with its data.
func mayLeave(s *State, u *used, in api.Instance) bool {
	return api.Movable(in, root(s, in)) && !recreated(s, in) && u.pinnedBy(in) == ""
}

func withoutGPU(in api.Instance) api.Instance {
	in.Assignment.Gpu = ""
	return in
}

// resized reports whether the spec requests other resources than are assigned.
func resized(s *State, in api.Instance) bool {
	f, ok := s.Flavors[string(in.Spec.Flavor)]
	if !ok {
		return false
	}
	w, a := wants(f, in), in.Assignment
	if w.VCPUs != a.Vcpus || w.Memory != a.MemoryBytes || w.HugePages != a.HugePages || w.Dedicated != a.Dedicated() || w.VRAM != a.VgpuVramBytes || w.Share != a.VgpuSharePercent || w.Tier != a.VgpuTier {
		return true
	}
	g, has := s.GPUs[string(a.Gpu)]
	return has && (w.Pool != cmp.Or(g.Spec.Pool, api.DefaultPool) || w.Model != "" && w.Model != g.Status.Model)
}

// ResizeReason returns why an instance with a changed spec would keep its size if it were
// stopped now, or nothing if it would get the size that the spec requests. One without a
// node waits for room as before.
func ResizeReason(s *State, in api.Instance, now time.Time) api.Reason {
	if in.Assignment.Node == "" || lost(s, in.Assignment.Node) || !resized(s, in) {
		return api.Reason{}
	}
	u := usage(s)
	u.reserveHeads(s, in.Meta.ID, now)
	u.Remove(in.Assignment)
	return reasonOf(u.placeResized(s, in, now))
}

// stillWaits returns an assignment whose instance is in the queue for another size.
func stillWaits(a api.InstanceAssignment, now time.Time) api.InstanceAssignment {
	at := waited(a, api.InstanceAssignment{}, now)
	a.QueuedAt, a.PlacedAt, a.QueuedFor = at.QueuedAt, at.PlacedAt, api.QueuedForResize
	return a
}

// queued reports whether an instance waits in the queue, or would if it were stopped.
func queued(a api.InstanceAssignment) bool { return a.QueuedAt != nil && a.PlacedAt == nil }

// wantsSize reports whether an instance is stopped and its spec requests another size
// than it has.
func wantsSize(s *State, in api.Instance) bool {
	a := in.Assignment
	return a.Node != "" && a.Generation != in.Meta.Generation && in.Status.Phase == api.InstanceStopped && in.Meta.DeletedAt == nil &&
		!a.Release && a.MigrateTo == "" && !lost(s, a.Node) && resized(s, in)
}
