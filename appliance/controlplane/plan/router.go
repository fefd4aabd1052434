package plan

import (
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// planRouters creates one router for each project that has a network which is not
// isolated, as long as there is an external network for it, and assigns it addresses
// there. The default external network is chosen when the router is created and stored
// in it: another default applies to routers created later, because a router that
// changes its network loses its addresses and every floating IP behind it. It changes
// only when its external network is removed.
func planRouters(p *addresses) (cmds []api.Command) {
	s := p.s
	out, hasDefault := defaultExternal(s)
	wanted := map[string]api.Network{} // by router's ID: a network of the project
	for _, n := range s.Networks {
		if n.Spec.Isolated || n.Meta.DeletedAt != nil {
			continue
		}
		if id := routerID(n.Meta.Project); wanted[id].Meta.ID == "" {
			wanted[id] = n
		}
	}
	branches := p.branches(wanted, out, hasDefault)
	for _, r := range objects.Sorted(s.Routers) {
		_, there := s.ExternalNetworks[string(r.Spec.ExternalNetwork)]
		_, branch := branches[r.Meta.ID]
		switch {
		case branch:
			cmds = append(cmds, planRouter(p, r)...)
		case wanted[r.Meta.ID].Meta.ID == "" || !there && !hasDefault:
			cmds = append(cmds, api.Command{Op: api.OpDelete, Kind: api.KindRouter, ID: r.Meta.ID, Expect: r.Meta.Revision})
		case !there:
			// It releases its addresses, which are not routed any more.
			r.Spec.ExternalNetwork = api.ExternalNetworkID(out.Meta.ID)
			cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindRouter, ID: r.Meta.ID, Expect: r.Meta.Revision,
				Labels: r.Meta.Labels, Data: api.Encode(r.Spec), Claims: []string{}},
				api.Command{Op: api.OpAssign, Kind: api.KindRouter, ID: r.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.RouterAssignment{})})
		default:
			cmds = append(cmds, planRouter(p, r)...)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(branches)) {
		if _, there := s.Routers[id]; !there {
			cmds = append(cmds, branches[id])
		}
	}
	if !hasDefault {
		return cmds
	}
	for _, n := range objects.Sorted(s.Networks) {
		id := routerID(n.Meta.Project)
		if _, there := s.Routers[id]; there || wanted[id].Meta.ID != n.Meta.ID {
			continue
		}
		cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindRouter, ID: id, Name: api.MainRouter,
			Organization: n.Meta.Organization, Project: n.Meta.Project,
			Data: api.Encode(api.RouterSpec{ExternalNetwork: api.ExternalNetworkID(out.Meta.ID)})})
	}
	return cmds
}

func planRouter(p *addresses, r api.Router) []api.Command {
	n := p.s.ExternalNetworks[string(r.Spec.ExternalNetwork)]
	a := r.Assignment
	a.Reason, a.Cause = "", api.Cause{}
	if a.Address4 == "" && len(n.Spec.Ranges4) > 0 {
		a.Address4 = p.external(n, n.Spec.Ranges4, r.Meta.ID)
	}
	if a.Address6 == "" && len(n.Spec.Ranges6) > 0 && r.Meta.Name == api.MainRouter {
		a.Address6 = p.external(n, n.Spec.Ranges6, r.Meta.ID)
	}
	if a.Address4 == "" && a.Address6 == "" {
		a.Reason, a.Cause = noAddress("external network", n.Meta.Name, "").Parts()
	}
	if a == r.Assignment {
		return nil
	}
	return p.claimed(api.KindRouter, r.Meta, a, ipClaims(n.Meta.ID, a.Address4, a.Address6))
}

// branches returns the additional routers that projects need, by ID: one for each
// external network that a floating IP in use belongs to and that the project's main
// router is not connected to. wanted are the projects' main routers.
func (p *addresses) branches(wanted map[string]api.Network, out api.ExternalNetwork, hasDefault bool) map[string]api.Command {
	balanced := map[api.FloatingIPID]bool{}
	for _, l := range p.s.LoadBalancers {
		balanced[l.Spec.FloatingIP] = true
	}
	all := map[string]api.Command{}
	for _, f := range p.s.FloatingIPs {
		x := f.Spec.ExternalNetwork
		home := wanted[routerID(f.Meta.Project)]
		_, there := p.s.ExternalNetworks[string(x)]
		used := f.Spec.Instance != "" || balanced[api.FloatingIPID(f.Meta.ID)]
		if home.Meta.ID == "" || !there || !used || f.Meta.DeletedAt != nil {
			continue
		}
		main := api.ExternalNetworkID("")
		if r, made := p.s.Routers[routerID(f.Meta.Project)]; made {
			main = r.Spec.ExternalNetwork
		} else if hasDefault {
			main = api.ExternalNetworkID(out.Meta.ID)
		}
		if x == main {
			continue
		}
		id := routerID(f.Meta.Project + " in " + string(x))
		all[id] = api.Command{Op: api.OpPutSpec, Kind: api.KindRouter, ID: id, Name: api.MainRouter + "-" + string(x),
			Organization: home.Meta.Organization, Project: home.Meta.Project, Data: api.Encode(api.RouterSpec{ExternalNetwork: x})}
	}
	return all
}

// routerID returns the ID of a project's router.
func routerID(project string) string {
	h := sha256.Sum256([]byte("router of " + project))
	return api.NewID(api.KindRouter, h[:])
}

func defaultExternal(s *State) (api.ExternalNetwork, bool) {
	for _, n := range objects.Sorted(s.ExternalNetworks) {
		if n.Spec.Default && n.Meta.DeletedAt == nil {
			return n, true
		}
	}
	return api.ExternalNetwork{}, false
}
