package server

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	"github.com/basalt-gpu/basalt/api"
)

// shown returns a service with its current status, derived from its objects.
func (h *handlers) shown(ctx context.Context, s api.Service) (api.Service, error) {
	if s.Spec.TerminatedAt != nil {
		if s.Status.Phase != api.ServiceTerminated {
			s.Status.Phase = api.ServiceTerminating
		}
		return s, nil
	}
	var machine *api.Instance
	if s.Spec.Type == api.ServiceIsMachine {
		o, err := h.opts.Store.Get(ctx, api.KindInstance, string(s.Spec.Instance))
		if err != nil && api.CodeOf(err) != api.CodeNotFound {
			return s, fmt.Errorf("read instance %s: %w", s.Spec.Instance, err)
		}
		if err == nil {
			in, err := api.Decode[api.Instance](o)
			if err != nil {
				return s, err
			}
			kindMarks[api.KindInstance].clear(reflect.ValueOf(&in).Elem(), readerOf(ctx))
			machine = &in
		}
	}
	s.Status = serviceStatus(s.Spec, machine)
	if machine != nil {
		if who(ctx).Role == api.RoleOperator {
			s.Status.Node = machine.Assignment.Node
		}
		ips, err := all[api.FloatingIP](ctx, h, api.ListQuery{Kind: api.KindFloatingIP, Project: string(s.Spec.Project)})
		if err != nil {
			return s, err
		}
		s.Status.Addresses = addressesOf(*machine, ips)
		if s.Status.Pending, err = h.notYet(ctx, *machine); err != nil {
			return s, err
		}
	}
	if err := h.active(ctx, string(s.Spec.Organization)); api.CodeOf(err) == api.CodeForbidden && err != nil {
		s.Status.Phase, s.Status.Reason = api.ServiceSuspended, domainError(err).Message
	} else if err != nil {
		return s, err
	}
	return s, nil
}

// serviceStatus returns the status of a service that is neither suspended nor ended.
func serviceStatus(s api.ServiceSpec, machine *api.Instance) api.ServiceStatus {
	switch {
	case s.Type == api.ServiceIsAccount:
		return api.ServiceStatus{Phase: api.ServiceActive}
	case machine == nil:
		return api.ServiceStatus{Phase: api.ServiceNoMachine, Reason: "its machine was deleted: repeat the order to create a new one"}
	case machine.Meta.DeletedAt != nil:
		return api.ServiceStatus{Phase: api.ServiceNoMachine, Reason: "its machine is being deleted"}
	}
	st := api.ServiceStatus{Phase: api.ServicePhase(cmp.Or(machine.Status.Phase, api.InstancePending)), LastError: machine.Status.Cause.Text(machine.Status.LastError)}
	if machine.Assignment.Node == "" {
		st.Reason = machine.Assignment.Cause.Text(machine.Assignment.Reason)
	}
	return st
}

// addressesOf returns a machine's addresses, external ones first.
func addressesOf(in api.Instance, ips []api.FloatingIP) []string {
	var out []string
	for _, ip := range ips {
		if string(ip.Spec.Instance) == in.Meta.ID && ip.Assignment.Address != "" {
			out = append(out, ip.Assignment.Address)
		}
	}
	for _, p := range in.Assignment.Ports {
		for _, a := range []string{p.Address4, p.Address6} {
			if a != "" {
				out = append(out, a)
			}
		}
	}
	return out
}

// notYet describes what will change in a machine when it is stopped and started.
func (h *handlers) notYet(ctx context.Context, in api.Instance) (string, error) {
	o, err := h.opts.Store.Get(ctx, api.KindFlavor, string(in.Spec.Flavor))
	if api.CodeOf(err) == api.CodeNotFound && err != nil || in.Assignment.Node == "" {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read flavor %s: %w", in.Spec.Flavor, err)
	}
	f, err := api.Decode[api.Flavor](o)
	if err != nil {
		return "", err
	}
	var vram, share int64
	var tier api.GPUTier
	if in.Spec.Vgpu != nil {
		vram, share, tier = in.Spec.Vgpu.VramBytes, in.Spec.Vgpu.SharePercent, in.Spec.Vgpu.Tier
	}
	a := in.Assignment
	if a.Vcpus == f.Spec.Vcpus && a.MemoryBytes == f.Spec.MemoryBytes && a.VgpuVramBytes == vram && a.VgpuSharePercent == share && a.VgpuTier == tier {
		return "", nil
	}
	return fmt.Sprintf("%s takes effect after the machine is stopped and started", f.Meta.Name), nil
}
