package planner

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// Room reports on any node whether there is room for an instance, with the functions
// that the leader plans with and the objects in this node's cache. It ignores instances
// that are planned first, and changes that have not reached the cache yet.
type Room struct {
	cache     *watchcache.Cache
	monitored bool // nodes are monitored by leases, and the objects have their states
}

// NewRoom returns a Room over the cache, which must have plan.Kinds.
func NewRoom(c *watchcache.Cache, monitored bool) Room { return Room{c, monitored} }

// PendingReason returns why an instance that does not exist yet would be pending, or nothing.
func (r Room) PendingReason(ctx context.Context, in api.Instance) (api.Reason, error) {
	s, err := r.state(ctx)
	if err != nil {
		return api.Reason{}, err
	}
	return plan.PendingReason(s, in, time.Now()), nil
}

// ResizeReason returns why an instance with a changed spec would keep its size if it were
// stopped now, or nothing if it would get the size that the spec requests.
func (r Room) ResizeReason(ctx context.Context, in api.Instance) (api.Reason, error) {
	s, err := r.state(ctx)
	if err != nil {
		return api.Reason{}, err
	}
	return plan.ResizeReason(s, in, time.Now()), nil
}

// MigrationTarget returns the node that a migration of an instance would choose that is
// created now, or why it would fail.
func (r Room) MigrationTarget(ctx context.Context, in api.Instance, m api.MigrationSpec) (api.NodeID, error) {
	s, err := r.state(ctx)
	if err != nil {
		return "", err
	}
	return plan.MigrationTarget(s, in, m, time.Now()) //nolint:wrapcheck // the error names the instance
}

// VolumeMigrationTarget returns the node that the migration of a volume would choose that
// is created now, or why it would fail.
func (r Room) VolumeMigrationTarget(ctx context.Context, v api.Volume, m api.MigrationSpec) (api.NodeID, error) {
	s, err := r.state(ctx)
	if err != nil {
		return "", err
	}
	return plan.VolumeMigrationTarget(s, v, m, time.Now()) //nolint:wrapcheck // the error names the volume
}

// NextPlace returns the place in the queue that an instance would have if it began to
// wait now.
func (r Room) NextPlace(ctx context.Context, in api.Instance) (api.InstanceQueue, error) {
	s, err := r.state(ctx)
	if err != nil {
		return api.InstanceQueue{}, err
	}
	return plan.NextPlace(s, in, time.Now()), nil
}

// Queue returns the places of those of the instances that wait for room, by ID.
func (r Room) Queue(ctx context.Context, ins []api.Instance) (map[string]api.InstanceQueue, error) {
	s, err := r.state(ctx)
	if err != nil {
		return nil, err
	}
	return plan.QueuePlaces(s, ins, time.Now()), nil
}

// state returns the planner's input according to this node's cache.
func (r Room) state(ctx context.Context) (*plan.State, error) {
	objects := r.cache.Subscribe(plan.Kinds)
	defer objects.Close()
	select {
	case <-objects.Ready():
	case <-ctx.Done():
		return nil, api.Errorf(api.CodeUnavailable, "this node has not received the cluster's objects yet").WithHint("try again in a moment")
	}
	s := plan.StateOf(objects.View())
	if r.monitored {
		s.Health = map[string]plan.Health{}
	}
	return s, nil
}
