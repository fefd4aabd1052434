package trace

import (
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
)

// Own returns the topology that is visible to a project: objects of others are
// external to it.
func Own(t sdn.Topology, project api.ProjectID) sdn.Topology {
	networks := map[api.NetworkID]bool{}
	for _, n := range t.Networks {
		networks[n.ID] = n.Project == project
	}
	t.Networks = only(t.Networks, func(n sdn.Network) bool { return n.Project == project })
	t.Routers = only(t.Routers, func(r sdn.Router) bool { return r.Project == project })
	t.Ports = only(t.Ports, func(p sdn.Port) bool { return networks[p.Network] })
	t.SecurityGroups = only(t.SecurityGroups, func(g sdn.SecurityGroup) bool { return g.Project == project })
	t.FloatingIPs = only(t.FloatingIPs, func(f sdn.FloatingIP) bool { return f.Project == project })
	t.LoadBalancers = only(t.LoadBalancers, func(l sdn.LoadBalancer) bool { return l.Project == project })
	return t
}

func only[T any](all []T, ok func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(t T) bool { return !ok(t) })
}
