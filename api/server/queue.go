package server

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// GetInstance returns an instance, with its place in the queue if it waits for room.
func (h *handlers) GetInstance(ctx context.Context, r in[inProject, none]) (*api.Instance, error) {
	organization, project := r.Params.scope()
	in, err := get[api.Instance](ctx, h, api.KindInstance, r.ID, organization, project)
	if err != nil {
		return nil, err
	}
	one := []api.Instance{in}
	err = h.withQueue(ctx, one)
	return &one[0], err
}

// inTime checks that the deadline of the queue is in the future.
func (h *handlers) inTime(s api.InstanceSpec) error {
	if now := h.opts.Now(); s.QueueUntil != nil && !now.Before(*s.QueueUntil) {
		return api.Errorf(api.CodeInvalid, "%s is in the past", s.QueueUntil.UTC().Format("2006-01-02T15:04:05Z")).At("spec.queueUntil").WithHint("choose a later time, or leave it out")
	}
	return nil
}

// refused returns an error if no node has room for an instance that is not to wait.
func (h *handlers) refused(ctx context.Context, m api.Meta, s api.InstanceSpec) error {
	if s.WhenFull != api.WhenFullRefuse || h.opts.Room == nil {
		return nil
	}
	return noRoom(ctx, api.Instance{Kind: api.KindInstance, Meta: m, Spec: s}, h.opts.Room.PendingReason, "wait")
}

// resizeRefused returns an error if there is no room for the new size of an instance that
// is not to wait for it.
func (h *handlers) resizeRefused(ctx context.Context, in api.Instance, s api.InstanceSpec) error {
	if s.WhenFull == api.WhenFullQueue || h.opts.Room == nil || s.SameSize(in.Spec) {
		return nil
	}
	in.Spec = s
	return noRoom(ctx, in, h.opts.Room.ResizeReason, "keep its size")
}

// noRoom returns an error if there is a reason why an instance does not fit. Its field is
// the part of the spec that does not fit; would is what the instance would do.
func noRoom(ctx context.Context, in api.Instance, reason func(context.Context, api.Instance) (api.Reason, error), would string) error {
	why, err := reason(ctx, in)
	if err != nil {
		return fmt.Errorf("find room for instance %s: %w", in.Meta.Name, err)
	}
	if why == (api.Reason{}) {
		return nil
	}
	field, hint := "spec.flavor", "choose a smaller flavor"
	if in.Spec.Vgpu != nil {
		in.Spec.Vgpu = nil
		without, err := reason(ctx, in)
		if err != nil {
			return fmt.Errorf("find room for instance %s without its vGPU: %w", in.Meta.Name, err)
		}
		if without == (api.Reason{}) {
			field, hint = "spec.vgpu", "choose another offer"
		}
	}
	return api.Errorf(api.CodeNoCapacity, "the instance would %s: %s", would, why.Cause.Text(why.Text)).Because(why.Cause, why.Detail()).At(field).WithHint("%s, or let it wait in the queue", hint)
}

// wouldWait adds a warning in a dry run if the instance would stay pending, and the
// place that it would have in the queue. A real instance reports that in its assignment,
// after it was planned.
func (h *handlers) wouldWait(ctx context.Context, in *api.Instance) error {
	if !dryRun(ctx) || h.opts.Room == nil {
		return nil
	}
	why, err := h.opts.Room.PendingReason(ctx, *in)
	if err != nil {
		return fmt.Errorf("find room for instance %s: %w", in.Meta.Name, err)
	}
	if why == (api.Reason{}) {
		return nil
	}
	in.Warnings = append(in.Warnings, api.NoRoom(why))
	return h.nextPlace(ctx, in)
}

// resizeWaits adds a warning to the response to a resize if there is no room for the new
// size, and the place in the queue that the instance has when it is stopped.
func (h *handlers) resizeWaits(ctx context.Context, old, in *api.Instance) error {
	if h.opts.Room == nil || old == nil || in.Spec.SameSize(old.Spec) {
		return nil
	}
	why, err := h.opts.Room.ResizeReason(ctx, *in)
	if err != nil {
		return fmt.Errorf("find room for instance %s: %w", in.Meta.Name, err)
	}
	if why == (api.Reason{}) {
		return nil
	}
	in.Warnings = append(in.Warnings, api.NoRoomToResize(why))
	return h.nextPlace(ctx, in)
}

// nextPlace sets the place that an instance of a response would have in the queue.
func (h *handlers) nextPlace(ctx context.Context, in *api.Instance) error {
	q, err := h.opts.Room.NextPlace(ctx, *in)
	if err != nil {
		return fmt.Errorf("read the place of instance %s in the queue: %w", in.Meta.Name, err)
	}
	in.Queue = &q
	return nil
}

// withQueue sets the places of those instances of a response that wait for room. A node
// that has not received the cluster's objects yet shows none.
func (h *handlers) withQueue(ctx context.Context, ins []api.Instance) error {
	var waiting []api.Instance
	for _, in := range ins {
		if in.Waits() {
			waiting = append(waiting, in)
		}
	}
	if len(waiting) == 0 || h.opts.Room == nil {
		return nil
	}
	places, err := h.opts.Room.Queue(ctx, waiting)
	if err != nil && api.CodeOf(err) != api.CodeUnavailable {
		return fmt.Errorf("read the places of instances in the queue: %w", err)
	}
	for i := range ins {
		if q, ok := places[ins[i].Meta.ID]; ok {
			ins[i].Queue = &q
		}
	}
	return nil
}
