package plan

import (
	"fmt"
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
)

const maxNetworkKey = 1<<24 - 1 // a Geneve VNI has 24 bits

// planNetwork assigns a network its number and its gateways.
func planNetwork(p *addresses, n api.Network) []api.Command {
	if n.Meta.DeletedAt != nil || n.Assignment.Key != 0 {
		return nil
	}
	var a api.NetworkAssignment
	first := seed(n.Meta.ID) % maxNetworkKey
	for i := range uint64(maxNetworkKey) {
		key := int64((first+i)%maxNetworkKey) + 1
		if !p.has(fmt.Sprintf("netkey/%d", key)) {
			a.Key = key
			break
		}
	}
	if a.Key == 0 {
		return nil
	}
	if c, err := netip.ParsePrefix(n.Spec.Cidr4); err == nil {
		a.Gateway4 = api.Gateway(c).String()
	}
	if c, err := netip.ParsePrefix(n.Spec.Cidr6); err == nil {
		a.Gateway6 = api.Gateway(c).String()
	}
	return p.claimed(api.KindNetwork, n.Meta, a, networkClaims(n.Meta.ID, a))
}

// claimed is like assign, with claims.
func (p *addresses) claimed(kind api.Kind, m api.Meta, a any, claims []string) []api.Command {
	for _, c := range claims {
		p.claim(c)
	}
	cmds := assign(kind, m, a)
	cmds[0].Claims = claims
	return cmds
}

// external returns a free address in an external network's ranges, or an empty string.
func (p *addresses) external(n api.ExternalNetwork, ranges []string, who string) string {
	for i, text := range ranges {
		r, err := api.ParseRange(text)
		if err != nil {
			continue
		}
		// Each range has a starting place of its own, so that the first one is not filled
		// first if there are many.
		if a := p.in(n.Meta.ID, r, seed(who, n.Meta.ID, fmt.Sprint(i))); a.IsValid() {
			return a.String()
		}
	}
	return ""
}

// planFloatingIP assigns a floating IP its address.
func planFloatingIP(p *addresses, f api.FloatingIP) []api.Command {
	if f.Meta.DeletedAt != nil || f.Assignment.Address != "" {
		return nil
	}
	var a api.FloatingIPAssignment
	n, ok := p.s.ExternalNetworks[string(f.Spec.ExternalNetwork)]
	if a.Address = p.external(n, n.Spec.Ranges4, f.Meta.ID); a.Address == "" {
		a.Reason, a.Cause = noAddress("external network", n.Meta.Name, "").Parts()
		if !ok {
			a.Reason, a.Cause = api.PlainReason("its external network does not exist any more", api.CauseNetworkGone, "").Parts()
		}
		if a == f.Assignment {
			return nil
		}
	}
	return p.claimed(api.KindFloatingIP, f.Meta, a, ipClaims(n.Meta.ID, a.Address))
}

// planLoadBalancer assigns a load balancer its address in the network.
func planLoadBalancer(p *addresses, l api.LoadBalancer) []api.Command {
	if l.Meta.DeletedAt != nil || l.Assignment.Address != "" {
		return nil
	}
	var a api.LoadBalancerAssignment
	n, ok := p.s.Networks[string(l.Spec.Network)]
	cidr, err := netip.ParsePrefix(n.Spec.Cidr4)
	switch {
	case !ok || n.Assignment.Key == 0 || err != nil:
		a.Reason, a.Cause = networkNotReady(p.s, l.Spec.Network).Parts()
	default:
		ip := p.in(n.Meta.ID, guests(cidr), seed(l.Meta.ID, n.Meta.ID))
		if ip.IsValid() {
			a.Address = ip.String()
		} else {
			a.Reason, a.Cause = noAddress("network", n.Meta.Name, " in "+cidr.String()).Parts()
		}
	}
	if a == l.Assignment {
		return nil
	}
	return p.claimed(api.KindLoadBalancer, l.Meta, a, ipClaims(n.Meta.ID, a.Address))
}
