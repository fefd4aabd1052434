package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// networksOf replaces the names of networks and security groups with IDs, and checks
// that the networks contain the addresses.
func (h *handlers) networksOf(ctx context.Context, m api.Meta, list []api.InstanceNetwork) ([]api.InstanceNetwork, error) {
	list = slices.Clone(list)
	var bad []error
	for i := range list {
		p, field := &list[i], fmt.Sprintf("spec.networks[%d]", i)
		bad = append(bad, h.inNetwork(ctx, m, field, p, list[:i]))
		groups, err := h.groupsOf(ctx, m, field+".securityGroups", p.SecurityGroups)
		p.SecurityGroups, bad = groups, append(bad, err)
	}
	return list, api.Join(bad...)
}

// inNetwork replaces the name of a port's network with its ID, and checks that no other
// port is in the same network and that it contains the addresses.
func (h *handlers) inNetwork(ctx context.Context, m api.Meta, field string, p *api.InstanceNetwork, before []api.InstanceNetwork) error {
	n, _, err := sibling[api.Network](ctx, h, api.KindNetwork, m, field+".network", string(p.Network))
	if err != nil {
		return err
	}
	p.Network = api.NetworkID(n.Meta.ID)
	var bad []error
	if slices.ContainsFunc(before, func(o api.InstanceNetwork) bool { return o.Network == p.Network }) {
		bad = append(bad, api.Errorf(api.CodeInvalid, "the instance already has a port in network %s", n.Meta.Name).At(field+".network"))
	}
	if p.Address4 != "" {
		bad = append(bad, api.ValidateAddress(field+".address4", p.Address4, n.Spec.Cidr4))
	}
	if p.Address6 != "" {
		bad = append(bad, api.ValidateAddress(field+".address6", p.Address6, n.Spec.Cidr6))
	}
	return api.Join(bad...)
}

// groupsOf returns the IDs of security groups, by default that of the project's default
// group.
func (h *handlers) groupsOf(ctx context.Context, m api.Meta, field string, refs []api.SecurityGroupID) ([]api.SecurityGroupID, error) {
	var ids []api.SecurityGroupID
	var bad []error
	for i, ref := range refs {
		_, o, err := sibling[api.SecurityGroup](ctx, h, api.KindSecurityGroup, m, fmt.Sprintf("%s[%d]", field, i), string(ref))
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if id := api.SecurityGroupID(o.Meta.ID); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(refs) > 0 {
		return ids, api.Join(bad...)
	}
	// Without the default group, no traffic is allowed in either direction.
	err := h.each(ctx, api.ListQuery{Kind: api.KindSecurityGroup, Project: m.Project, Name: api.DefaultName}, func(o api.Object) bool {
		ids = append(ids, api.SecurityGroupID(o.Meta.ID))
		return false
	})
	return ids, err
}

// firstNetwork returns the networks of an instance that requests none: the project's
// default network, if it exists.
func (h *handlers) firstNetwork(ctx context.Context, m api.Meta) ([]api.InstanceNetwork, error) {
	if !h.opts.Networking {
		return nil, nil
	}
	var first []api.InstanceNetwork
	err := h.each(ctx, api.ListQuery{Kind: api.KindNetwork, Project: m.Project, Name: api.DefaultName}, func(o api.Object) bool {
		first = []api.InstanceNetwork{{Network: api.NetworkID(o.Meta.ID)}}
		return false
	})
	if err != nil {
		return nil, err
	}
	return h.networksOf(ctx, m, first)
}

// freeAddresses refuses an address that another instance has requested or been
// assigned. Concurrent requests are resolved by the planner's claims.
func (h *handlers) freeAddresses(ctx context.Context, m api.Meta, list []api.InstanceNetwork) error {
	if !slices.ContainsFunc(list, func(p api.InstanceNetwork) bool { return p.Address4 != "" || p.Address6 != "" }) {
		return nil
	}
	type place struct {
		network api.NetworkID
		address string
	}
	taken := map[place]string{}
	others, err := all[api.Instance](ctx, h, api.ListQuery{Kind: api.KindInstance, Project: m.Project})
	if err != nil {
		return err
	}
	for _, o := range others {
		if o.Meta.ID == m.ID {
			continue
		}
		for _, p := range o.Spec.Networks {
			taken[place{p.Network, p.Address4}], taken[place{p.Network, p.Address6}] = o.Meta.Name, o.Meta.Name
		}
		for _, p := range o.Assignment.Ports {
			taken[place{p.Network, p.Address4}], taken[place{p.Network, p.Address6}] = o.Meta.Name, o.Meta.Name
		}
	}
	balancers, err := all[api.LoadBalancer](ctx, h, api.ListQuery{Kind: api.KindLoadBalancer, Project: m.Project})
	for _, o := range balancers {
		taken[place{o.Spec.Network, o.Assignment.Address}] = o.Meta.Name
	}
	for i, p := range list {
		for field, address := range map[string]string{"address4": p.Address4, "address6": p.Address6} {
			if by := taken[place{p.Network, address}]; by != "" && address != "" {
				return api.Errorf(api.CodeInUse, "address %s is already used by %s", address, by).At(fmt.Sprintf("spec.networks[%d].%s", i, field)).
					WithHint("choose another, or leave it out")
			}
		}
	}
	return err
}

// changedNetworks checks a change of ports: they can be added and removed while the
// instance is stopped. Security groups can change at any time.
func (h *handlers) changedNetworks(ctx context.Context, old api.Instance, list []api.InstanceNetwork) error {
	if api.EqualNetworks(old.Spec.Networks, list) {
		return nil
	}
	if old.Assignment.Node != "" && old.Status.Phase != api.InstanceStopped {
		return api.Errorf(api.CodeState, "cannot change the networks of instance %s: it is not stopped", old.Meta.Name).At("spec.networks").
			WithHint("basalt instance stop %s", old.Meta.Name)
	}
	return h.freeAddresses(ctx, old.Meta, list)
}

// unplug returns the commands that detach the floating IPs of a deleted instance and
// remove it from load balancers.
func (h *handlers) unplug(ctx context.Context, m api.Meta) ([]api.Command, error) {
	var cmds []api.Command
	change := func(kind api.Kind, m api.Meta, spec any) {
		cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: kind, ID: m.ID, Expect: m.Revision, Labels: m.Labels, Data: api.Encode(spec)})
	}
	ips, err := all[api.FloatingIP](ctx, h, api.ListQuery{Kind: api.KindFloatingIP, Project: m.Project})
	if err != nil {
		return nil, err
	}
	for _, o := range ips {
		if string(o.Spec.Instance) == m.ID {
			o.Spec.Instance, o.Spec.Network = "", ""
			change(api.KindFloatingIP, o.Meta, o.Spec)
		}
	}
	balancers, err := all[api.LoadBalancer](ctx, h, api.ListQuery{Kind: api.KindLoadBalancer, Project: m.Project})
	for _, o := range balancers {
		was := len(o.Spec.Backends)
		o.Spec.Backends = slices.DeleteFunc(o.Spec.Backends, func(b api.LoadBalancerBackend) bool { return string(b.Instance) == m.ID })
		if len(o.Spec.Backends) != was {
			change(api.KindLoadBalancer, o.Meta, o.Spec)
		}
	}
	return cmds, err
}

// noSnapshots refuses to delete or reinstall an instance whose root volume has
// snapshots, which would be lost with it.
func (h *handlers) noSnapshots(ctx context.Context, verb string, in, root api.Meta) error {
	list, err := all[api.Snapshot](ctx, h, api.ListQuery{Kind: api.KindSnapshot, Project: in.Project})
	for _, s := range list {
		if root.ID != "" && string(s.Spec.Volume) == root.ID {
			return api.Errorf(api.CodeInUse, "cannot %s instance %s: its root volume has snapshot %s", verb, in.Name, s.Meta.Name).
				WithHint("delete it first: basalt snapshot delete %s", s.Meta.Name)
		}
	}
	return err
}
