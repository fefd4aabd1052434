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

// refused returns an error if no node has room for an instance that is not to wait. Its
// field is the part of the spec that does not fit.
func (h *handlers) refused(ctx context.Context, m api.Meta, s api.InstanceSpec) error {
	if s.WhenFull != api.WhenFullRefuse || h.opts.Room == nil {
		return nil
	}
	in := api.Instance{Kind: api.KindInstance, Meta: m, Spec: s}
	why, err := h.opts.Room.PendingReason(ctx, in)
	if err != nil {
		return fmt.Errorf("find room for instance %s: %w", m.Name, err)
	}
	if why == "" {
		return nil
	}
	field, hint := "spec.flavor", "choose a smaller flavor"
	if s.Vgpu != nil {
		in.Spec.Vgpu = nil
		without, err := h.opts.Room.PendingReason(ctx, in)
		if err != nil {
			return fmt.Errorf("find room for instance %s without its vGPU: %w", m.Name, err)
		}
		if without == "" {
			field, hint = "spec.vgpu", "choose another offer"
		}
	}
	return api.Errorf(api.CodeNoCapacity, "the instance would wait: %s", why).At(field).WithHint("%s, or let it wait in the queue (whenFull %s)", hint, api.WhenFullQueue)
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
	if why == "" {
		return nil
	}
	in.Warnings = append(in.Warnings, api.NoRoom(why))
	places, err := h.opts.Room.Queue(ctx, []api.Instance{*in})
	if q, ok := places[in.Meta.ID]; ok {
		in.Queue = &q
	}
	if err != nil {
		return fmt.Errorf("read the place of instance %s in the queue: %w", in.Meta.Name, err)
	}
	return nil
}

// withQueue sets the places of those instances of a response that wait for room. A node
// that has not received the cluster's objects yet shows none.
func (h *handlers) withQueue(ctx context.Context, ins []api.Instance) error {
	var waiting []api.Instance
	for _, in := range ins {
		if a := in.Assignment; a.Node == "" && a.QueuedAt != nil && in.Meta.DeletedAt == nil {
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
