package server

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// instance returns the instance with that name or ID, if the caller may see it.
func (h *handlers) instance(ctx context.Context, ref string) (api.Instance, error) {
	o, err := h.find(ctx, api.KindInstance, ref, "", "")
	if err != nil {
		return api.Instance{}, err
	}
	return api.Decode[api.Instance](o)
}

// GetInstanceCost returns what an instance costs.
func (h *handlers) GetInstanceCost(ctx context.Context, r in[none, none]) (*api.InstanceCost, error) {
	in, err := h.instance(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	c, err := h.opts.Billing.InstanceCost(ctx, in, h.opts.Now())
	if err != nil {
		return nil, fmt.Errorf("compute the cost of instance %s: %w", in.Meta.ID, err)
	}
	return &c, nil
}

// GetInstanceConnection returns how to sign in to an instance.
func (h *handlers) GetInstanceConnection(ctx context.Context, r in[none, none]) (*api.InstanceConnection, error) {
	in, err := h.instance(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	c := api.InstanceConnection{User: h.guestUser(ctx, in), Addresses: []string{}, Apps: []api.InstanceApp{}, WithoutKey: api.WithoutSSH(in.Spec)}
	if h.opts.Apps != nil {
		c.AppDomain = h.opts.Apps.Domain()
	}
	if h.opts.Apps != nil || h.opts.SSHGateway != nil {
		c.Apps = h.appsOf(ctx, in)
	}
	err = h.each(ctx, api.ListQuery{Kind: api.KindFloatingIP, Project: in.Meta.Project}, func(x api.Object) bool {
		ip, err := api.Decode[api.FloatingIP](x)
		if err == nil && string(ip.Spec.Instance) == in.Meta.ID && ip.Assignment.Address != "" {
			c.Addresses = append(c.Addresses, ip.Assignment.Address)
		}
		return true
	})
	if err != nil || h.opts.SSHGateway == nil {
		return &c, err
	}
	gateway, err := h.opts.SSHGateway(ctx)
	if err != nil {
		return nil, err
	}
	c.Gateway = &gateway
	project, err := api.Get[api.Project](ctx, h.opts.Store, api.KindProject, in.Meta.Project)
	if err != nil {
		return nil, err
	}
	c.Target = project.Meta.Name + "/" + in.Meta.Name
	return &c, nil
}
