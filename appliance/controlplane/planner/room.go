package planner

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// Room answers on any node whether there is room for an instance, by the functions that
// the leader plans with and what this node's cache has. Who else is planned first, and
// what has not come to the cache yet, it does not know.
type Room struct {
	cache   *watchcache.Cache
	watched bool // leases tell which nodes are alive, and the objects say so
}

// NewRoom returns a Room of what the cache has, which must have plan.Kinds.
func NewRoom(c *watchcache.Cache, watched bool) Room { return Room{c, watched} }

// Lacks returns why an instance that does not exist yet would wait, or nothing.
func (r Room) Lacks(ctx context.Context, in api.Instance) (string, error) {
	objects := r.cache.Subscribe(plan.Kinds)
	defer objects.Close()
	select {
	case <-objects.Ready():
	case <-ctx.Done():
		return "", api.Errorf(api.CodeUnavailable, "this node has not received the cluster's objects yet").WithHint("try again in a moment")
	}
	s := plan.StateOf(objects.View())
	if r.watched {
		s.Health = map[string]plan.Health{}
	}
	return plan.Lacks(s, in, time.Now()), nil
}
