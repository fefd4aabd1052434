package servertest

import (
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
func (r *Room) PendingReason(_ context.Context, in api.Instance) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.vgpu && in.Spec.Vgpu == nil {
		return "", nil
	}
	return r.why, nil
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
