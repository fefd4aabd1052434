package placement

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// NodeTimeout is how long after its last report a node still accepts new work, where
// nobody watches the nodes.
const NodeTimeout = 45 * time.Second

// Health of a node, as leases and witnesses have it.
type Health struct {
	Suspect bool   // not responding, as several witnesses see it
	Fenced  bool   // certainly runs nothing any more that could run elsewhere
	Why     string // in words
}

// Why nodes accept nothing new.
const (
	withoutStore      = "has lost its copy of the cluster's state"
	shuttingDown      = "is shutting down"
	withoutHypervisor = "has no working hypervisor"
	WithoutKVM        = "has no KVM"
)

// Alive returns why a node accepts no new work, or nothing. Health is nil where nobody
// watches the nodes.
func Alive(n api.Node, health map[string]Health, now time.Time) string {
	switch {
	case health != nil:
		return takesWork(n, health[n.Meta.ID])
	case n.WithoutStore():
		return withoutStore
	case n.Meta.DeletedAt != nil:
		return "is being removed"
	case n.Spec.Unschedulable:
		return "is marked unschedulable"
	case n.Status.ShuttingDown:
		return shuttingDown
	case now.Sub(n.Status.SeenAt) > NodeTimeout:
		return "was last seen " + n.Status.SeenAt.UTC().Format(time.RFC3339)
	}
	return ""
}

// takesWork is Alive where nodes are watched: their own clocks do not count.
func takesWork(n api.Node, h Health) string {
	state := n.Assignment.State
	switch {
	case n.Meta.DeletedAt != nil:
		return "is being removed"
	case n.Spec.Unschedulable:
		return "is marked unschedulable"
	case n.Spec.Drain:
		return "is being drained"
	case state == api.NodeLost || h.Fenced:
		return "is lost"
	case state == api.NodeSuspect || h.Suspect:
		return "is not responding"
	case n.Status.ShuttingDown:
		return shuttingDown
	case n.Status.SeenAt.IsZero():
		return "has not reported yet"
	case n.WithoutStore():
		return withoutStore
	}
	return ""
}
