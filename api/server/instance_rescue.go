package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// RescueInstance sets the medium that an instance boots from and restarts it in the same
// change, so that no start comes in between.
func (h *handlers) RescueInstance(ctx context.Context, r in[none, api.InstanceRescue]) (*api.Instance, error) {
	o, err := h.own(ctx, api.KindInstance, r.ID)
	if err != nil {
		return nil, err
	}
	medium, err := h.medium(ctx, o.Meta, r.Body.Medium, "medium")
	if err != nil {
		return nil, err
	}
	in, err := h.act(ctx, r.ID, starts, func(in *api.Instance) error {
		if in.Spec.Ephemeral {
			return api.Errorf(api.CodeInvalid, "instance %s is ephemeral: its root volume has no data to rescue", in.Meta.Name).WithHint("basalt instance reinstall %s", in.Meta.Name)
		}
		in.Spec.Rescue = medium
		restart(&in.Spec)
		return nil
	})
	return &in, err
}

// UnrescueInstance removes the rescue medium and restarts an instance that is to run.
func (h *handlers) UnrescueInstance(ctx context.Context, r in[none, none]) (*api.Instance, error) {
	in, err := h.act(ctx, r.ID, ends, func(in *api.Instance) error {
		if in.Spec.Rescue == "" {
			return nil
		}
		in.Spec.Rescue = ""
		if in.Spec.Power == api.PowerRunning {
			restart(&in.Spec)
		}
		return nil
	})
	return &in, err
}
