package ovn

import (
	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
	"github.com/ovn-kubernetes/libovsdb/model"
)

// unit is a row of roots, and the rows that exist only as long as it refers to
// them. A unit is always written in one transaction.
type unit struct {
	root     model.Model
	children []model.Model
}

// uuidsOf returns the UUIDs of all rows of the units.
func uuidsOf(units []unit) map[string]bool {
	all := map[string]bool{}
	for _, u := range units {
		all[uuidOf(u.root)] = true
		for _, m := range u.children {
			all[uuidOf(m)] = true
		}
	}
	return all
}

// rows returns the rows that OVN_Northbound should contain, in an order in
// which they can be written: referenced rows come first.
func rows(t sdn.Topology) []unit {
	r := newRower(t)
	r.forbidden()
	r.securityGroups()
	for _, n := range t.Networks {
		r.network(n)
	}
	for _, x := range t.External {
		r.external(x)
	}
	for _, p := range t.Routers {
		r.router(p)
		r.branches(p)
	}
	for _, l := range t.LoadBalancers {
		r.balancer(l)
	}
	var all []unit
	for _, us := range [][]unit{r.sets, r.gateways, r.options, r.balancers, r.groups, r.switches, r.routers} {
		all = append(all, us...)
	}
	return all
}

// rower builds rows. Its maps collect the parts of the Topology by what they
// belong to.
type rower struct {
	t             sdn.Topology
	nets          map[api.NetworkID]sdn.Network
	ports         map[api.NetworkID][]sdn.Port
	joined        map[api.ProjectID][]sdn.Network // networks on its router
	branchRouters map[api.ProjectID][]sdn.Router  // branches
	out           map[api.ExternalNetworkID][]sdn.Router
	ext           map[api.ExternalNetworkID]sdn.ExternalNetwork
	floats        map[api.ProjectID][]sdn.FloatingIP
	lbs           map[api.ProjectID][]sdn.LoadBalancer
	made          map[string]bool // gateway groups that were added

	sets, gateways, options, balancers, groups, switches, routers []unit
}

func newRower(t sdn.Topology) *rower {
	r := &rower{t: t, nets: map[api.NetworkID]sdn.Network{}, ports: map[api.NetworkID][]sdn.Port{}, joined: map[api.ProjectID][]sdn.Network{}, branchRouters: map[api.ProjectID][]sdn.Router{},
		out: map[api.ExternalNetworkID][]sdn.Router{}, ext: map[api.ExternalNetworkID]sdn.ExternalNetwork{},
		floats: map[api.ProjectID][]sdn.FloatingIP{}, lbs: map[api.ProjectID][]sdn.LoadBalancer{}, made: map[string]bool{}}
	for _, n := range t.Networks {
		r.nets[n.ID] = n
		if !n.Isolated {
			r.joined[n.Project] = append(r.joined[n.Project], n)
		}
	}
	for _, p := range t.Ports {
		r.ports[p.Network] = append(r.ports[p.Network], p)
	}
	for _, x := range t.External {
		r.ext[x.ID] = x
	}
	for _, p := range t.Routers {
		if p.External != "" {
			r.out[p.External] = append(r.out[p.External], p)
		}
	}
	for _, b := range t.Branches {
		r.branchRouters[b.Project] = append(r.branchRouters[b.Project], b)
	}
	for _, f := range t.FloatingIPs {
		r.floats[f.Project] = append(r.floats[f.Project], f)
	}
	for _, l := range t.LoadBalancers {
		r.lbs[l.Project] = append(r.lbs[l.Project], l)
	}
	return r
}

func (r *rower) id(table, name string) string { return rowID(r.t.Cluster, table, name) }

// ids returns the external_ids of a row: its cluster, and the object it
// belongs to.
func (r *rower) ids(of string) map[string]string {
	m := map[string]string{Owner: r.t.Cluster}
	if of != "" {
		m[Of] = of
	}
	return m
}

func (r *rower) portID(p sdn.PortID) string { return r.id(nb.LogicalSwitchPortTable, string(p)) }

func ptr[T any](v T) *T { return &v }
