package servertest

import (
	"cmp"
	"context"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

// Room is a fake server.Room. It has room for everything until Fill.
type Room struct {
	mu      sync.Mutex // guards the fields below
	why     string
	vgpu    bool // only instances with a virtual GPU lack room
	waiting int64
}

// Fill makes instances lack room for that reason, all of them or only those with a
// virtual GPU; so many already wait.
func (r *Room) Fill(why string, onlyVGPU bool, waiting int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why, r.vgpu, r.waiting = why, onlyVGPU, waiting
}

// PendingReason implements server.Room.
func (r *Room) PendingReason(_ context.Context, in api.Instance) (api.Reason, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why == "" || r.vgpu && in.Spec.Vgpu == nil {
		return api.Reason{}, nil
	}
	return api.Reason{Text: r.why, Cause: api.Cause{Code: api.CauseNoRoom}}, nil
}

// ResizeReason implements server.Room: an instance with a node lacks room as a new one does.
func (r *Room) ResizeReason(ctx context.Context, in api.Instance) (api.Reason, error) {
	if in.Assignment.Node == "" {
		return api.Reason{}, nil
	}
	return r.PendingReason(ctx, in)
}

// MigrationTarget implements server.Room: the requested node, or any.
func (r *Room) MigrationTarget(_ context.Context, in api.Instance, m api.MigrationSpec) (api.NodeID, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why != "" {
		return "", api.Errorf(api.CodeNoCapacity, "cannot migrate instance %s: %s", in.Meta.Name, r.why).At("spec.target")
	}
	return cmp.Or(m.Target, "node-2"), nil
}

// VolumeMigrationTarget implements server.Room: the requested node, or any.
func (r *Room) VolumeMigrationTarget(_ context.Context, v api.Volume, m api.MigrationSpec) (api.NodeID, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why != "" {
		return "", api.Errorf(api.CodeNoCapacity, "cannot migrate volume %s: %s", v.Meta.Name, r.why).At("spec.target")
	}
	return cmp.Or(m.Target, "node-2"), nil
}

// NextPlace implements server.Room: it is behind those that wait.
func (r *Room) NextPlace(context.Context, api.Instance) (api.InstanceQueue, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return api.InstanceQueue{Position: r.waiting + 1, Length: r.waiting + 1}, nil
}

// Queue implements server.Room: all instances are behind those that wait.
func (r *Room) Queue(_ context.Context, ins []api.Instance) (map[string]api.InstanceQueue, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]api.InstanceQueue{}
	for _, in := range ins {
		out[in.Meta.ID] = api.InstanceQueue{Position: r.waiting + 1, Length: r.waiting + 1, Since: in.Assignment.QueuedAt}
	}
	return out, nil
}
