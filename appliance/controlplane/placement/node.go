package placement

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// NodeTimeout is how long after its last report a node still accepts new work, if nodes
// are not monitored.
const NodeTimeout = 45 * time.Second

// Health is the state of a node according to leases and witnesses.
type Health struct {
	Suspect bool   // not responding, according to several witnesses
	Fenced  bool   // certainly runs nothing any more that could run elsewhere
	Why     string // reason, as text
}

// Reasons why nodes accept nothing new.
const (
	withoutStore      = "has lost its copy of the cluster's state"
	shuttingDown      = "is shutting down"
	withoutHypervisor = "has no working hypervisor"
	WithoutKVM        = "has no KVM"
)

// Alive returns why a node accepts no new work, or nothing. health is nil if nodes are
// not monitored.
func Alive(n api.Node, health map[string]Health, now time.Time) string {
	switch {
	case health != nil:
		return monitoredAlive(n, health[n.Meta.ID])
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

// monitoredAlive is Alive for monitored nodes: their own clocks are not used.
func monitoredAlive(n api.Node, h Health) string {
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
