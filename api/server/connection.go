package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// GetInstanceCost answers what an instance costs.
func (h *handlers) GetInstanceCost(ctx context.Context, r in[none, none]) (*api.InstanceCost, error) {
	o, err := h.find(ctx, api.KindInstance, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	in, err := api.Decode[api.Instance](o)
	if err != nil {
		return nil, err
	}
	c, err := h.opts.Billing.InstanceCost(ctx, in, h.opts.Now())
	return &c, err
}

// GetInstanceConnection returns what to type to sign in to an instance.
func (h *handlers) GetInstanceConnection(ctx context.Context, r in[none, none]) (*api.InstanceConnection, error) {
	o, err := h.find(ctx, api.KindInstance, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	in, err := api.Decode[api.Instance](o)
	if err != nil {
		return nil, err
	}
	c := api.InstanceConnection{User: h.guestUser(ctx, in), Addresses: []string{}, Apps: h.appsOf(ctx, in), WithoutKey: api.WithoutSSH(in.Spec)}
	if h.opts.Apps != nil {
		c.AppDomain = h.opts.Apps.Domain()
	}
	err = h.each(ctx, api.ListQuery{Kind: api.KindFloatingIP, Project: o.Meta.Project}, func(x api.Object) bool {
		ip, err := api.Decode[api.FloatingIP](x)
		if err == nil && string(ip.Spec.Instance) == o.Meta.ID && ip.Assignment.Address != "" {
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
	project, err := stored[api.Project](ctx, h.Server, api.KindProject, o.Meta.Project)
	if err != nil {
		return nil, err
	}
	c.Target = project.Meta.Name + "/" + in.Meta.Name
	return &c, nil
}
