package server

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// StartInstance sets spec.power. If the last run ended by itself (the guest shut down,
// QEMU died), spec.power is unchanged, so a new run is requested with spec.restarts;
// only once, however often the operation is called.
func (h *handlers) StartInstance(ctx context.Context, r in[none, none]) (*api.Instance, error) {
	in, err := h.act(ctx, r.ID, starts, func(in *api.Instance) error {
		over := in.Status.Phase == api.InstanceFailed || in.Status.Phase == api.InstanceStopped
		if over && in.Spec.Power == api.PowerRunning && in.Status.ObservedGeneration >= in.Meta.Generation {
			in.Spec.Restarts++
		}
		in.Spec.Power = api.PowerRunning
		return nil
	})
	return &in, err
}

// StopInstance sets spec.power.
func (h *handlers) StopInstance(ctx context.Context, r in[none, none]) (*api.Instance, error) {
	in, err := h.act(ctx, r.ID, ends, func(in *api.Instance) error {
		in.Spec.Power = api.PowerStopped
		return nil
	})
	return &in, err
}

// RestartInstance increments spec.restarts; a stopped instance is started.
func (h *handlers) RestartInstance(ctx context.Context, r in[none, none]) (*api.Instance, error) {
	in, err := h.act(ctx, r.ID, starts, func(in *api.Instance) error {
		restart(&in.Spec)
		return nil
	})
	return &in, err
}

// restart requests another run of an instance, or its start if it is stopped.
func restart(s *api.InstanceSpec) {
	if s.Power != api.PowerRunning {
		s.Power = api.PowerRunning
		return
	}
	s.Restarts++
}

// starts and ends are the effects of an action: a suspended organization cannot start
// anything.
const (
	starts = true
	ends   = false
)

// act changes an instance's spec at its current revision, and retries if there was a
// concurrent change (such as a report by its agent).
func (h *handlers) act(ctx context.Context, ref string, starting bool, change func(*api.Instance) error) (api.Instance, error) {
	const tries = 10
	for i := 1; ; i++ {
		o, err := h.own(ctx, api.KindInstance, ref)
		if err != nil {
			return api.Instance{}, err
		}
		if starting {
			if err := h.active(ctx, o.Meta.Organization); err != nil {
				return api.Instance{}, err
			}
		}
		old, err := api.Decode[api.Instance](o)
		if err != nil {
			return old, err
		}
		if err := change(&old); err != nil {
			return old, err
		}
		in, err := put[api.Instance](ctx, h, o, o.Meta, old.Spec, nil)
		if err == nil || i == tries || api.CodeOf(err) != api.CodeConflict {
			return in, err
		}
	}
}

// reach returns an instance that the caller may enter, the runtime to call, and the
// consent by which the caller enters.
func (h *handlers) reach(ctx context.Context, ref string, change bool) (api.InstanceID, Runtime, consent, error) {
	var by consent
	o, err := h.find(ctx, api.KindInstance, ref, "", "")
	if err == nil && change {
		o, err = h.own(ctx, api.KindInstance, ref)
	}
	if err != nil {
		return "", nil, by, err
	}
	if h.opts.Runtime == nil {
		return "", nil, by, api.Errorf(api.CodeUnavailable, "instances cannot be reached from this server")
	}
	if by, err = h.consentFor(ctx, who(ctx), o.Meta); err == nil && change && by.grant != "" {
		err = h.noteSupport(ctx, o)
	}
	return api.InstanceID(o.Meta.ID), h.opts.Runtime, by, err
}

// GetInstanceConsoleLog returns the last part of the serial console's log.
func (h *handlers) GetInstanceConsoleLog(ctx context.Context, r in[api.GetInstanceConsoleLogParams, none]) (*file, error) {
	tail := r.Params.Tail
	if tail == 0 {
		tail = 64 << 10
	}
	if tail < 1 || tail > 1<<20 {
		return nil, api.Errorf(api.CodeInvalid, "must be between 1 and %d bytes", 1<<20).At("tail")
	}
	id, runtime, _, err := h.reach(ctx, r.ID, false)
	if err != nil {
		return nil, err
	}
	log, err := runtime.ConsoleLog(ctx, id, tail)
	if err != nil {
		return nil, fmt.Errorf("read the console log of instance %s: %w", id, err)
	}
	return &file{"text/plain", log}, nil
}

// ExecInInstance runs a command in the instance.
func (h *handlers) ExecInInstance(ctx context.Context, r in[none, api.ExecRequest]) (*api.ExecResult, error) {
	req := *r.Body
	if req.TimeoutSeconds == 0 {
		req.TimeoutSeconds = 30
	}
	switch {
	case len(req.Argv) == 0 || len(req.Argv) > 256 || req.Argv[0] == "":
		return nil, api.Errorf(api.CodeInvalid, "must be a program and at most 255 arguments").At("argv")
	case req.TimeoutSeconds < 1 || req.TimeoutSeconds > 600:
		return nil, api.Errorf(api.CodeInvalid, "must be between 1 and 600 seconds").At("timeoutSeconds")
	}
	since := h.opts.Store.Revision()
	id, runtime, by, err := h.reach(ctx, r.ID, true)
	if err != nil {
		return nil, err
	}
	ctx, cancel, err := h.whileConsented(ctx, by, since)
	if err != nil {
		return nil, err
	}
	defer cancel()
	result, err := runtime.Exec(ctx, id, req)
	if result.Stdout == nil {
		result.Stdout = []byte{}
	}
	if result.Stderr == nil {
		result.Stderr = []byte{}
	}
	if err != nil {
		return nil, fmt.Errorf("run a program in instance %s: %w", id, err)
	}
	return &result, nil
}
