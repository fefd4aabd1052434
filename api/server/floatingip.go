package server

import (
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

func (h *handlers) floatingIPSpec(ctx context.Context, m api.Meta, old *api.FloatingIP, s api.FloatingIPSpec) (api.FloatingIPSpec, error) {
	if old != nil && s.ExternalNetwork == "" { // the default network may have changed since
		s.ExternalNetwork = old.Spec.ExternalNetwork
	}
	s, err := h.floats(ctx, m, s)
	if err != nil || old == nil {
		return s, err
	}
	return s, api.ChangeFloatingIP(old.Spec, s)
}

// floats replaces names with IDs and validates: the instance must have a port in the
// network, without another floating IP.
func (h *handlers) floats(ctx context.Context, m api.Meta, s api.FloatingIPSpec) (api.FloatingIPSpec, error) {
	out, outErr := h.externalOf(ctx, s.ExternalNetwork)
	s.ExternalNetwork = out
	bad := []error{outErr, api.ValidateFloatingIP(s)}
	var in api.Instance
	if s.Instance != "" {
		var err error
		if in, _, err = sibling[api.Instance](ctx, h, api.KindInstance, m, "spec.instance", string(s.Instance)); err == nil {
			s.Network, err = h.portOf(ctx, m, in, "spec.network", s.Network)
		}
		bad = append(bad, err)
	}
	if err := api.Join(bad...); err != nil || s.Instance == "" {
		return s, err
	}
	s.Instance = api.InstanceID(in.Meta.ID)
	others, err := all[api.FloatingIP](ctx, h, api.ListQuery{Kind: api.KindFloatingIP, Project: m.Project})
	for _, o := range others {
		if o.Spec.Instance == s.Instance && o.Spec.Network == s.Network && o.Meta.ID != m.ID {
			return s, api.Errorf(api.CodeInUse, "instance %s already has floating IP %s", in.Meta.Name, o.Meta.Name).At("spec.instance").
				WithHint("release it first: basalt floating-ip set %s --free", o.Meta.Name)
		}
	}
	if err != nil {
		return s, err
	}
	return s, h.notBalanced(ctx, m)
}

// externalOf returns the ID of an external network given by name or ID, or of the
// default one.
func (h *handlers) externalOf(ctx context.Context, ref api.ExternalNetworkID) (api.ExternalNetworkID, error) {
	if ref != "" {
		_, o, err := clusterwide[api.ExternalNetwork](ctx, h, api.KindExternalNetwork, "spec.externalNetwork", string(ref))
		return api.ExternalNetworkID(o.Meta.ID), err
	}
	out, err := h.defaultExternal(ctx)
	if err == nil && out == nil {
		err = api.Errorf(api.CodeInvalid, "the cluster has no default external network").At("spec.externalNetwork").
			WithHint("name one; an operator creates them: basalt external-network create")
	}
	if err != nil {
		return "", err
	}
	return api.ExternalNetworkID(out.Meta.ID), nil
}

// notBalanced refuses a floating IP that belongs to a load balancer, since an address
// can lead to only one of them.
func (h *handlers) notBalanced(ctx context.Context, m api.Meta) error {
	balancers, err := all[api.LoadBalancer](ctx, h, api.ListQuery{Kind: api.KindLoadBalancer, Project: m.Project})
	for _, l := range balancers {
		if m.ID != "" && string(l.Spec.FloatingIP) == m.ID && l.Meta.DeletedAt == nil {
			return api.Errorf(api.CodeInUse, "floating IP %s is used by load balancer %s", m.Name, l.Meta.Name).At("spec.instance").
				WithHint("remove it from the load balancer first, or use another floating IP")
		}
	}
	return err
}

// portOf returns the ID of the network, given by name or ID, in which the instance has
// a port that can be reached from outside; by default the first one.
func (h *handlers) portOf(ctx context.Context, m api.Meta, in api.Instance, field string, ref api.NetworkID) (api.NetworkID, error) {
	if len(in.Spec.Networks) == 0 {
		return "", api.Errorf(api.CodeInvalid, "instance %s is not in any network", in.Meta.Name).At(field)
	}
	if ref == "" {
		ref = in.Spec.Networks[0].Network
	}
	n, _, err := sibling[api.Network](ctx, h, api.KindNetwork, m, field, string(ref))
	if err != nil {
		return "", err
	}
	id := api.NetworkID(n.Meta.ID)
	switch {
	case !slices.ContainsFunc(in.Spec.Networks, func(p api.InstanceNetwork) bool { return p.Network == id }):
		return "", api.Errorf(api.CodeInvalid, "instance %s is not in network %s", in.Meta.Name, n.Meta.Name).At(field)
	case n.Spec.Isolated || n.Spec.Cidr4 == "":
		return "", api.Errorf(api.CodeInvalid, "network %s cannot be reached from outside", n.Meta.Name).At(field).
			WithHint("it is isolated, or has no IPv4 addresses")
	}
	return id, nil
}
