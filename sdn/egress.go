package sdn

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Exit is a path of a project's traffic through its router into an external
// network, with the owner of that usage.
type Exit struct {
	Owner    string // ID of the router, or of the floating IP
	Project  api.ProjectID
	External api.ExternalNetworkID
	// Source is the source address of the traffic; zero: every other address of
	// the router.
	Source netip.Addr
}

// Egress is the value of one counter.
type Egress struct {
	// Counter is the counter's name. A counter only grows; one that starts from
	// zero has another name, or a smaller value than before.
	Counter string
	// Owner of the Exit that is counted; empty: the exit is not requested any
	// more.
	Owner string
	Bytes uint64
}

// Exits returns all exits, sorted: the exit of a floating IP counts what
// leaves with its address (an instance's traffic, or a load balancer's
// replies), that of a router everything else. An address without traffic
// counts nothing, so what is behind it does not matter here.
func Exits(routers []api.Router, floating []api.FloatingIP) []Exit {
	var all []Exit
	type way struct {
		project  string
		external api.ExternalNetworkID
	}
	out := map[way]bool{}
	for _, r := range routers {
		if r.Spec.ExternalNetwork == "" || r.Assignment.Address4 == "" && r.Assignment.Address6 == "" {
			continue
		}
		out[way{r.Meta.Project, r.Spec.ExternalNetwork}] = true
		all = append(all, Exit{Owner: r.Meta.ID, Project: api.ProjectID(r.Meta.Project), External: r.Spec.ExternalNetwork})
	}
	for _, f := range floating {
		x := f.Spec.ExternalNetwork
		a, err := netip.ParseAddr(f.Assignment.Address)
		if !out[way{f.Meta.Project, x}] || err != nil || a.Zone() != "" || a.Is4In6() {
			continue
		}
		all = append(all, Exit{Owner: f.Meta.ID, Project: api.ProjectID(f.Meta.Project), External: x, Source: a})
	}
	slices.SortFunc(all, Exit.compare)
	return slices.CompactFunc(all, func(a, b Exit) bool { // a flow has one owner
		return a.Project == b.Project && a.External == b.External && a.Source == b.Source
	})
}

func (e Exit) compare(f Exit) int {
	return cmp.Or(cmp.Compare(e.External, f.External), cmp.Compare(e.Project, f.Project), e.Source.Compare(f.Source), cmp.Compare(e.Owner, f.Owner))
}
