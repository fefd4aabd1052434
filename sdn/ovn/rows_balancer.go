package ovn

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
)

// balancer adds one row with the address in the network and the external one.
// It is on the switches of the project's networks and its router: connections
// are distributed where they start. An external address on a branch is a
// separate row, which only the branch has: on another external network the
// same address may belong to another load balancer.
func (r *rower) balancer(l sdn.LoadBalancer) {
	if !r.branched(l) {
		r.balancerRow(l, string(l.ID), l.Address, l.Floating)
		return
	}
	r.balancerRow(l, string(l.ID), l.Address)
	r.balancerRow(l, outerBalancer(l), l.Floating)
}

// branched reports whether the load balancer's external address is on a
// branch.
func (r *rower) branched(l sdn.LoadBalancer) bool {
	return l.Floating.IsValid() && slices.ContainsFunc(r.branchRouters[l.Project], func(b sdn.Router) bool { return b.External == l.External })
}

func outerBalancer(l sdn.LoadBalancer) string { return string(l.ID) + "-outside" }

func (r *rower) balancerRow(l sdn.LoadBalancer, name string, addresses ...netip.Addr) {
	id := string(l.ID)
	lb := &nb.LoadBalancer{
		UUID: r.id(nb.LoadBalancerTable, name), Name: name, Protocol: ptr(string(l.Protocol)), ExternalIDs: r.ids(id),
		Vips: map[string]string{}, IPPortMappings: map[string]string{},
		// A connection without a backend is rejected instead of timing out.
		Options: map[string]string{"reject": "true"},
	}
	u := unit{root: lb}
	targets := make([]string, len(l.Backends))
	source := sdn.HealthAddress(r.nets[l.Network].CIDR4)
	for i, b := range l.Backends {
		targets[i] = netip.AddrPortFrom(b.Address, b.Target).String()
		if l.Health {
			lb.IPPortMappings[b.Address.String()] = fmt.Sprintf("%s:%s", b.Port, source)
		}
	}
	for _, a := range addresses {
		if !a.IsValid() {
			continue
		}
		vip := netip.AddrPortFrom(a, l.Port).String()
		lb.Vips[vip] = strings.Join(targets, ",")
		if l.Health {
			check := &nb.LoadBalancerHealthCheck{UUID: r.id(nb.LoadBalancerHealthCheckTable, id+"/"+vip), Vip: vip, ExternalIDs: r.ids(id),
				// Seconds, and consecutive answers.
				Options: map[string]string{"interval": "3", "timeout": "3", "success_count": "1", "failure_count": "2"}}
			lb.HealthCheck = append(lb.HealthCheck, check.UUID)
			u.children = append(u.children, check)
		}
	}
	r.balancers = append(r.balancers, u)
}
