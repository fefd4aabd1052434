package sdn

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Exit is a way by which a project's traffic leaves through its router into an
// external network, and whose use that is.
type Exit struct {
	Owner    string // id of the router, or of the floating IP
	Project  api.ProjectID
	External api.ExternalNetworkID
	// Source address that it leaves with; zero: every other of the router's.
	Source netip.Addr
}

// Egress is what one counter says.
type Egress struct {
	// Counter's name. It only grows; one that begins anew has another name, or
	// says less than before.
	Counter string
	// Owner of the Exit that is counted; empty: of none that is asked for.
	Owner string
	Bytes uint64
}

// Exits there should be, sorted: each floating IP counts what leaves with its
// address (an instance's, or a load balancer's answers), the router all else.
// An address that nothing leaves with counts nothing, so that nobody needs to
// know here what is behind it.
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
	return slices.CompactFunc(all, func(a, b Exit) bool { // one flow has one owner
		return a.Project == b.Project && a.External == b.External && a.Source == b.Source
	})
}

func (e Exit) compare(f Exit) int {
	return cmp.Or(cmp.Compare(e.External, f.External), cmp.Compare(e.Project, f.Project), e.Source.Compare(f.Source), cmp.Compare(e.Owner, f.Owner))
}
