package network

import (
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/sdn"
)

// statuses returns the commands that report the objects' statuses, for those that have
// changed.
func statuses(s *state, t sdn.Topology, seen sdn.State, problems []sdn.Problem) []api.Command {
	r := reporter{problems: map[string]api.Reason{}, realized: map[string]bool{}}
	for _, p := range problems {
		r.problems[p.ID] = api.ReasonOf(p.Error, "")
	}
	for _, n := range t.Networks {
		r.realized[string(n.ID)] = true
	}
	cut := map[api.ExternalNetworkID]api.Reason{} // without a node that is connected to them
	for _, x := range t.External {
		r.realized[string(x.ID)] = true
		if len(x.Gateways) == 0 {
			cut[x.ID] = api.Reason{Text: fmt.Sprintf("no node that works has an interface for physical network %s (basaltd --external)", x.Physical), Cause: api.Cause{Code: api.CauseNodeUnavailable}}
		}
	}
	for _, f := range t.FloatingIPs {
		r.realized[string(f.ID)] = true
	}
	for _, b := range t.LoadBalancers {
		r.realized[string(b.ID)] = true
	}
	type link struct {
		project  api.ProjectID
		external api.ExternalNetworkID
	}
	out := map[link]bool{}
	for _, x := range slices.Concat(t.Routers, t.Branches) {
		out[link{x.Project, x.External}] = x.External != ""
	}
	for _, n := range objects.Sorted(s.networks) {
		phase, why := r.phase(n.Meta.ID)
		report(&r, api.KindNetwork, n.Meta, n.Status, api.NetworkStatus{ObservedGeneration: n.Meta.Generation, Phase: phase, LastError: why.Text, Cause: why.Cause})
	}
	for _, x := range objects.Sorted(s.external) {
		phase, why := r.phase(x.Meta.ID)
		if waits := cut[api.ExternalNetworkID(x.Meta.ID)]; waits.Text != "" {
			phase, why = api.NetworkPending, waits
		}
		report(&r, api.KindExternalNetwork, x.Meta, x.Status, api.ExternalNetworkStatus{ObservedGeneration: x.Meta.Generation, Phase: phase, LastError: why.Text, Cause: why.Cause})
	}
	for _, x := range objects.Sorted(s.routers) {
		project := api.ProjectID(x.Meta.Project)
		st := api.RouterStatus{Phase: api.NetworkPending, LastError: r.problems[x.Meta.ID].Text, Cause: r.problems[x.Meta.ID].Cause}
		if x.Meta.Name == api.MainRouter {
			st.Node = seen.Gateways[project]
		}
		switch {
		case st.LastError != "":
			st.Phase = api.NetworkFailed
		case cut[x.Spec.ExternalNetwork].Text != "":
			st.LastError, st.Cause = cut[x.Spec.ExternalNetwork].Text, cut[x.Spec.ExternalNetwork].Cause
		case out[link{project, x.Spec.ExternalNetwork}]:
			st.Phase = api.NetworkReady
		}
		report(&r, api.KindRouter, x.Meta, x.Status, st)
	}
	for _, f := range objects.Sorted(s.floating) {
		phase, why := r.phase(f.Meta.ID)
		if f.Spec.Instance == "" && why.Text == "" && f.Assignment.Address != "" {
			phase = api.NetworkReady // no rows needed: the address is reserved for its project
		}
		report(&r, api.KindFloatingIP, f.Meta, f.Status, api.FloatingIPStatus{Phase: phase, LastError: why.Text, Cause: why.Cause})
	}
	for _, b := range objects.Sorted(s.balancers) {
		phase, why := r.phase(b.Meta.ID)
		n := seen.Backends[api.LoadBalancerID(b.Meta.ID)]
		report(&r, api.KindLoadBalancer, b.Meta, b.Status, api.LoadBalancerStatus{
			ObservedGeneration: b.Meta.Generation, Phase: phase, BackendsUp: int64(n.Up), BackendsDown: int64(n.Down), LastError: why.Text, Cause: why.Cause})
	}
	return r.cmds
}

type reporter struct {
	problems map[string]api.Reason // by object id
	realized map[string]bool
	cmds     []api.Command
}

func (r *reporter) phase(id string) (api.NetworkPhase, api.Reason) {
	switch {
	case r.problems[id].Text != "":
		return api.NetworkFailed, r.problems[id]
	case r.realized[id]:
		return api.NetworkReady, api.Reason{}
	}
	return api.NetworkPending, api.Reason{}
}

func report[T comparable](r *reporter, kind api.Kind, m api.Meta, was, now T) {
	if was != now {
		r.cmds = append(r.cmds, api.Command{Op: api.OpReport, Kind: kind, ID: m.ID, Expect: m.Revision, Data: api.Encode(now)})
	}
}
