package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/placement"
)

// Instances that no node has room for wait in queues, one for each GPU pool and
// requested model, and one for those without a virtual GPU. Stopped instances that are to
// be resized wait in the same queues. All instances are tried in
// the order of their turns. The first of a queue that does not fit is its head: it
// reserves the node that lacks the least of what it wants, and later instances are
// placed only in what is free besides that. So small instances continue to start while
// a large one waits, but what it lacks never grows because of an instance behind it.
// An instance that no node could hold if it were empty reserves nothing.

// queueKey identifies a queue.
type queueKey struct{ pool, model string }

func queueOf(in api.Instance) queueKey {
	v := in.Spec.Vgpu
	if v == nil {
		return queueKey{}
	}
	return queueKey{cmp.Or(v.Pool, api.DefaultPool), v.Model}
}

// fallen reports whether an instance had a node and lost it.
func fallen(in api.Instance) bool { return in.Assignment.Node == "" && in.Assignment.RootVolume != "" }

// turn is when it is an instance's turn for capacity.
type turn struct {
	api.Instance
	class turnClass
	since time.Time // start of its wait, for those of one class that wait
}

type turnClass int

const (
	keepsRoom turnClass = iota // it has a node, or lost it: by priority
	waitsRoom                  // it is new, or waits to be resized: by the start of its wait
	wantsRoom                  // it is going to be resized, and has not waited yet
)

// turnOf returns the turn of an instance. That of a new one begins with its creation.
func turnOf(s *State, in api.Instance) turn {
	switch {
	case isNew(in):
		return turn{in, waitsRoom, in.Meta.CreatedAt}
	case !wantsSize(s, in):
		return turn{Instance: in}
	case queued(in.Assignment):
		return turn{in, waitsRoom, *in.Assignment.QueuedAt}
	}
	return turn{Instance: in, class: wantsRoom}
}

func compareTurns(a, b turn) int {
	priority := 0
	if a.class == keepsRoom {
		priority = cmp.Compare(b.Spec.Priority, a.Spec.Priority)
	}
	return cmp.Or(cmp.Compare(a.class, b.class), priority, a.since.Compare(b.since), strings.Compare(a.Meta.ID, b.Meta.ID))
}

// byTurn sorts instances by their turns.
func byTurn(s *State, list []api.Instance) []api.Instance {
	turns := make([]turn, len(list))
	for i, in := range list {
		turns[i] = turnOf(s, in)
	}
	slices.SortFunc(turns, compareTurns)
	for i, t := range turns {
		list[i] = t.Instance
	}
	return list
}

// isNew reports whether an instance never had a node.
func isNew(in api.Instance) bool { return in.Assignment.Node == "" && !fallen(in) }

// reservedRoom is the reason of an instance that would fit if the heads of the queues
// reserved nothing.
const reservedRoom = "no node fits: the free room is reserved for instances that have waited longer"

// queues is what the heads of the queues reserve.
type queues struct {
	empty    *placement.Room // without instances; nil if not needed yet
	heads    map[queueKey]bool
	reserved []placement.Reservation
}

// countReserved adds the reservations to what is in use, or removes them.
func (u *used) countReserved(sign int64) {
	for _, x := range u.queues.reserved {
		u.CountReserved(x, sign)
	}
}

// dropReservations removes the reservations: they hold back instances of the queues,
// and neither migrations nor drains.
func (u *used) dropReservations() {
	u.countReserved(-1)
	u.queues.reserved = nil
}

// placeBehind places an instance beside what the heads of the queues reserve. Its reason
// does not count what is reserved as in use.
func placeBehind(s *State, u *used, in api.Instance, w placement.Request, now time.Time) api.InstanceAssignment {
	everywhere := func(api.Node) bool { return true }
	next := placeOn(s, u, in, w, now, everywhere)
	if next.Node != "" || len(u.queues.reserved) == 0 {
		return next
	}
	u.countReserved(-1)
	defer u.countReserved(1)
	if next = placeOn(s, u, in, w, now, everywhere); next.Node != "" {
		return api.InstanceAssignment{Reason: reservedRoom, Cause: api.Cause{Code: api.CauseRoomReserved}}
	}
	return next
}

// placeInQueue places an instance that has no node. One that does not fit waits in its
// queue.
func (u *used) placeInQueue(s *State, in api.Instance, now time.Time) api.InstanceAssignment {
	was, next := in.Assignment, place(s, u, in, now)
	if _, why := ready(s, in); why.Text != "" {
		next.QueuedAt, next.PlacedAt, next.QueuedFor = was.QueuedAt, was.PlacedAt, was.QueuedFor
		return next
	}
	if next.Node == "" {
		u.reserve(s, in, now)
	}
	return waited(was, next, now)
}

// reserve makes an instance that does not fit the head of its queue, if the queue has no
// head yet and a node could hold the instance. What the instance uses itself must not be
// counted. An instance that would be held is none: its organization is suspended.
func (u *used) reserve(s *State, in api.Instance, now time.Time) {
	key, f := queueOf(in), s.Flavors[string(in.Spec.Flavor)]
	if u.queues.heads[key] || hold(s, in) != "" {
		return
	}
	if u.queues.empty == nil {
		u.queues.empty = placement.NewRoom(s.GPUs, s.Pools, s.Health)
	}
	w, root, has := wants(f, in), rootOf(s, in), in.Assignment
	stays := has.Node != "" && !mayLeave(s, u, in)
	var best api.Node
	var onGPU api.GPUID
	least := int64(-1)
	for _, n := range objects.Sorted(s.Nodes) {
		if stays && has.Node != api.NodeID(n.Meta.ID) {
			continue
		}
		w.There = has.Node == api.NodeID(n.Meta.ID)
		w.Disk, w.DiskPool = diskOn(s, in, root, w.Root, n)
		if u.queues.empty.OnNode(n, w, "", now).Why != "" || cmp.Or(canRun(in, n), reachable(s, in, n), u.unreachableVolume(in, n)) != "" {
			continue
		}
		if lacks, gpu, ok := u.Missing(u.queues.empty, n, w); ok && (least < 0 || lacks < least) {
			best, onGPU, least = n, gpu, lacks
		}
	}
	if least < 0 {
		return
	}
	w.Disk, w.DiskPool = diskOn(s, in, root, w.Root, best)
	u.queues.heads[key] = true
	u.queues.reserved = append(u.queues.reserved, u.Reserve(best, onGPU, w, has))
}

// waited sets since when an instance without a node waits, or when its wait ended.
func waited(was, next api.InstanceAssignment, now time.Time) api.InstanceAssignment {
	next.QueuedAt, next.PlacedAt, next.QueuedFor = was.QueuedAt, was.PlacedAt, was.QueuedFor
	at := now.UTC().Round(time.Millisecond)
	switch {
	case next.Node == "" && (was.QueuedAt == nil || was.PlacedAt != nil):
		next.QueuedAt, next.PlacedAt, next.QueuedFor = &at, nil, ""
	case next.Node != "" && was.QueuedAt != nil && was.PlacedAt == nil:
		next.PlacedAt = &at
	}
	return next
}

// reserveHeads reserves for the heads of the queues, as the planner does before it
// considers an instance that is created or changed now; except is that instance.
func (u *used) reserveHeads(s *State, except string, now time.Time) {
	for _, in := range waiting(s) {
		if _, why := ready(s, in); why.Text != "" || u.queues.heads[queueOf(in)] || in.Meta.ID == except {
			continue
		}
		u.Remove(in.Assignment)
		next := api.InstanceAssignment{}
		if in.Assignment.Node == "" {
			next = place(s, u, in, now)
		} else {
			next = u.placeResized(s, in, now)
		}
		if next.Node == "" {
			u.reserve(s, in, now)
		}
		u.Add(in.Assignment)
	}
}

// waiting returns the instances in all queues, in order.
func waiting(s *State) (list []api.Instance) {
	for _, in := range s.Instances {
		if queued(in.Assignment) && in.Meta.DeletedAt == nil && (in.Assignment.Node == "" || wantsSize(s, in)) {
			list = append(list, in)
		}
	}
	return byTurn(s, list)
}
