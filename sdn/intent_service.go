package sdn

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

func (b *builder) groups() {
	for _, x := range b.objects.SecurityGroups {
		if x.Meta.DeletedAt != nil {
			continue
		}
		g := SecurityGroup{ID: api.SecurityGroupID(x.Meta.ID), Project: api.ProjectID(x.Meta.Project)}
		var p parser
		for _, r := range x.Spec.Rules {
			rule := Rule{Direction: r.Direction, Protocol: r.Protocol, Peer: p.prefix("spec.rules.cidr", r.Cidr), Group: r.Group}
			rule.FirstPort, rule.LastPort = p.ports("spec.rules.ports", r.Ports)
			g.Rules = append(g.Rules, rule)
		}
		if p.err != nil {
			// Its rules are ignored, but its default drop is not: its ports stay
			// closed.
			b.problem(api.KindSecurityGroup, x.Meta.ID, p.err)
			g.Rules = nil
		}
		b.t.SecurityGroups = append(b.t.SecurityGroups, g)
	}
}

// ports parses the ports of a rule: "80", "8000-8080"; empty: all.
func (p *parser) ports(field, s string) (first, last uint16) {
	if s == "" {
		return 0, 0
	}
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		to = from
	}
	a, err1 := strconv.ParseUint(from, 10, 16)
	z, err2 := strconv.ParseUint(to, 10, 16)
	if err1 != nil || err2 != nil || a == 0 || a > z {
		p.fail(field, s, "port or port range")
		return 0, 0
	}
	return uint16(a), uint16(z)
}

func (b *builder) floating() {
	for _, x := range b.objects.FloatingIPs {
		if x.Meta.DeletedAt != nil || x.Spec.Instance == "" || x.Assignment.Address == "" {
			continue
		}
		if l, ok := b.balanced[api.FloatingIPID(x.Meta.ID)]; ok {
			// The API rejects this, but two concurrent requests may both pass.
			b.problem(api.KindFloatingIP, x.Meta.ID, api.Errorf(api.CodeInUse, "floating IP %s is used by load balancer %s and cannot be associated with instance %s as well", x.Meta.Name, l, x.Spec.Instance).
				WithHint("detach it from the instance, or use another one for the load balancer"))
			continue
		}
		port, ok := b.in(x.Spec.Instance, x.Spec.Network)
		if !ok {
			continue // the planner has not assigned a card yet
		}
		var p parser
		f := FloatingIP{ID: api.FloatingIPID(x.Meta.ID), Project: api.ProjectID(x.Meta.Project), External: x.Spec.ExternalNetwork,
			Address: p.addr("assignment.address", x.Assignment.Address), Port: port.ID, Target: port.Address4}
		if f.Address.Is6() {
			f.Target = port.Address6
		}
		if p.err != nil {
			b.problem(api.KindFloatingIP, x.Meta.ID, p.err)
			continue
		}
		b.t.FloatingIPs = append(b.t.FloatingIPs, f)
	}
}

func (b *builder) balancers() {
	for _, x := range b.objects.LoadBalancers {
		if x.Meta.DeletedAt != nil || x.Assignment.Address == "" {
			continue
		}
		var p parser
		l := LoadBalancer{
			ID: api.LoadBalancerID(x.Meta.ID), Project: api.ProjectID(x.Meta.Project), Network: x.Spec.Network,
			Address: p.addr("assignment.address", x.Assignment.Address), Protocol: x.Spec.Protocol, Port: p.port("spec.port", x.Spec.Port),
			Health: x.Spec.Health,
		}
		for _, k := range x.Spec.Backends {
			if port, ok := b.in(k.Instance, x.Spec.Network); ok && port.Address4.IsValid() {
				l.Backends = append(l.Backends, Backend{Port: port.ID, Address: port.Address4, Target: p.port("spec.backends.port", k.Port)})
			}
		}
		if f, ok := b.floats[x.Spec.FloatingIP]; ok && f.Meta.DeletedAt == nil {
			l.Floating, l.External = p.addr("floatingIP", f.Assignment.Address), f.Spec.ExternalNetwork
		}
		if p.err != nil {
			b.problem(api.KindLoadBalancer, x.Meta.ID, p.err)
			continue
		}
		b.t.LoadBalancers = append(b.t.LoadBalancers, l)
	}
}

func (p *parser) port(field string, n int64) uint16 {
	if n < 1 || n > 65535 {
		p.fail(field, strconv.FormatInt(n, 10), "port")
		return 0
	}
	return uint16(n)
}

// sort sorts t, so that the Topology does not depend on the order of the
// objects.
func (t *Topology) sort() {
	slices.SortFunc(t.Networks, func(a, b Network) int { return strings.Compare(string(a.ID), string(b.ID)) })
	slices.SortFunc(t.Routers, func(a, b Router) int { return strings.Compare(string(a.Project), string(b.Project)) })
	slices.SortFunc(t.Branches, func(a, b Router) int {
		return cmp.Or(strings.Compare(string(a.Project), string(b.Project)), strings.Compare(string(a.External), string(b.External)))
	})
	slices.SortFunc(t.Ports, func(a, b Port) int { return strings.Compare(string(a.ID), string(b.ID)) })
	slices.SortFunc(t.SecurityGroups, func(a, b SecurityGroup) int { return strings.Compare(string(a.ID), string(b.ID)) })
	slices.SortFunc(t.FloatingIPs, func(a, b FloatingIP) int { return strings.Compare(string(a.ID), string(b.ID)) })
	slices.SortFunc(t.LoadBalancers, func(a, b LoadBalancer) int { return strings.Compare(string(a.ID), string(b.ID)) })
	slices.SortFunc(t.External, func(a, b ExternalNetwork) int { return strings.Compare(string(a.ID), string(b.ID)) })
	slices.SortFunc(t.Forbidden, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits()
	})
	t.Forbidden = slices.Compact(t.Forbidden)
}
