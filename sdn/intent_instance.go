package sdn

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

func (b *builder) ports() {
	for _, x := range b.objects.Instances {
		id := api.InstanceID(x.Meta.ID)
		var ports []Port
		for i, a := range x.Assignment.Ports {
			var p parser
			port := Port{
				ID: PortOf(id, i), Network: a.Network, MAC: strings.ToLower(a.Mac),
				Address4: p.addr("assignment.ports", a.Address4), Address6: p.addr("assignment.ports", a.Address6),
				SecurityGroups: b.groupsOf(x, i, a.Network), Hostname: strings.ToLower(x.Meta.Name), Nodes: b.nodesOf(x),
			}
			if p.err != nil {
				b.problem(api.KindInstance, x.Meta.ID, p.err)
				continue
			}
			ports = append(ports, port)
		}
		b.ofHost[id] = ports
		b.t.Ports = append(b.t.Ports, ports...)
	}
}

// groupsOf returns the security groups of the i-th card: the requested ones,
// or the project's default.
func (b *builder) groupsOf(x api.Instance, i int, network api.NetworkID) []api.SecurityGroupID {
	if i < len(x.Spec.Networks) && x.Spec.Networks[i].Network == network && len(x.Spec.Networks[i].SecurityGroups) > 0 {
		return slices.Clone(x.Spec.Networks[i].SecurityGroups)
	}
	if g, ok := b.defaults[api.ProjectID(x.Meta.Project)]; ok {
		return []api.SecurityGroupID{g}
	}
	return nil
}

func (b *builder) nodesOf(x api.Instance) []api.NodeID {
	if x.Assignment.Node == "" {
		return nil
	}
	nodes := []api.NodeID{x.Assignment.Node}
	if to, ok := b.moves[api.InstanceID(x.Meta.ID)]; ok && to != x.Assignment.Node {
		nodes = append(nodes, to)
	}
	return nodes
}

// in returns the instance's card in the network, or its first card if network
// is empty.
func (b *builder) in(id api.InstanceID, network api.NetworkID) (Port, bool) {
	for _, p := range b.ofHost[id] {
		if network == "" || p.Network == network {
			return p, true
		}
	}
	return Port{}, false
}
