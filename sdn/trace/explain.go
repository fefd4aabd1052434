package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
)

// Step is a step on a packet's path.
type Step struct {
	OK   bool
	What string
}

// Verdict is the result for a packet.
type Verdict struct {
	Passes bool
	// Ports are those that it may reach; several for a load balancer.
	Ports []sdn.PortID
	Steps []Step
	// Next is what to do next if the packet is dropped.
	Next string
}

// Explain follows the packet through the topology. The error is an *api.Error
// for an end that does not exist.
func Explain(t sdn.Topology, q Question) (Verdict, error) {
	w := &walk{t: t, q: q}
	if err := w.start(); err != nil {
		return Verdict{}, err
	}
	w.follow()
	w.v.Passes = !w.dead
	if w.dead {
		w.v.Ports = nil
	}
	return w.v, nil
}

type walk struct {
	t    sdn.Topology
	q    Question
	v    Verdict
	dead bool

	source *sdn.Port // nil: external
	from   netip.Addr
	to     netip.Addr // destination address of the sender
}

func (w *walk) ok(format string, args ...any) {
	w.v.Steps = append(w.v.Steps, Step{true, fmt.Sprintf(format, args...)})
}

func (w *walk) drop(next, format string, args ...any) {
	w.v.Steps = append(w.v.Steps, Step{false, fmt.Sprintf(format, args...)})
	if w.v.Next == "" {
		w.v.Next = next
	}
	w.dead = true
}

func find[T any](all []T, ok func(T) bool) *T {
	if n := slices.IndexFunc(all, ok); n >= 0 {
		return &all[n]
	}
	return nil
}

func (w *walk) port(id sdn.PortID) *sdn.Port {
	return find(w.t.Ports, func(p sdn.Port) bool { return p.ID == id })
}

func (w *walk) network(id api.NetworkID) sdn.Network {
	if n := find(w.t.Networks, func(n sdn.Network) bool { return n.ID == id }); n != nil {
		return *n
	}
	return sdn.Network{ID: id}
}

// start determines both ends and their addresses.
func (w *walk) start() error {
	var target *sdn.Port
	if id := w.q.From.Port; id != "" {
		if w.source = w.port(id); w.source == nil {
			return api.Errorf(api.CodeNotFound, "port %s does not exist in the network", id)
		}
	}
	if id := w.q.To.Port; id != "" {
		if target = w.port(id); target == nil {
			return api.Errorf(api.CodeNotFound, "port %s does not exist in the network", id)
		}
	}
	six := w.q.Protocol == api.ProtocolICMP6
	switch {
	case w.q.To.Address.IsValid():
		six = w.q.To.Address.Is6()
	case w.q.From.Address.IsValid():
		six = w.q.From.Address.Is6()
	case w.q.Protocol != api.ProtocolICMP && target != nil && (!target.Address4.IsValid() || w.source != nil && !w.source.Address4.IsValid()):
		six = true
	}
	pick := func(p *sdn.Port) netip.Addr {
		if six {
			return p.Address6
		}
		return p.Address4
	}
	w.from, w.to = w.q.From.Address, w.q.To.Address
	if w.source != nil {
		w.from = pick(w.source)
	}
	if target != nil {
		w.to = pick(target)
	}
	if !w.from.IsValid() || !w.to.IsValid() || w.from.Is4() != w.to.Is4() || w.from.Is6() && w.q.Protocol == api.ProtocolICMP || w.from.Is4() && w.q.Protocol == api.ProtocolICMP6 {
		return api.Errorf(api.CodeInvalid, "source and destination have no addresses of the same family for %s", w.q.what()).
			WithHint("use an address instead of an instance, or another protocol")
	}
	if w.source == nil && target != nil {
		return api.Errorf(api.CodeInvalid, "%s cannot be reached from outside: its address %s is private", w.q.end(w.q.To), w.to).
			WithHint("use its floating IP, or a load balancer's")
	}
	return nil
}

func (w *walk) follow() {
	if w.source == nil {
		w.outside(w.from, "")
		return
	}
	w.egress()
	if w.dead {
		return
	}
	home := w.network(w.source.Network)
	if w.service() {
		w.ok("the metadata service of the node responds")
		return
	}
	if home.CIDR4.Contains(w.to) || home.CIDR6.Contains(w.to) {
		w.local(home)
		return
	}
	if home.Isolated {
		w.drop("use a network that is not isolated", "network %s is isolated: traffic cannot leave it", w.q.name(string(home.ID)))
		return
	}
	for _, n := range w.t.Networks {
		if n.Project == home.Project && !n.Isolated && (n.CIDR4.Contains(w.to) || n.CIDR6.Contains(w.to)) {
			w.ok("the project's router forwards it to network %s", w.q.name(string(n.ID)))
			w.local(n)
			return
		}
	}
	w.leaveProject(home)
}

// service reports whether the destination is a service of every node for its
// guests: metadata or DNS.
func (w *walk) service() bool {
	tcp, udp := w.q.Protocol == api.ProtocolTCP, w.q.Protocol == api.ProtocolUDP
	return w.to == sdn.MetadataAddress && (tcp && w.q.Port == 80 || (tcp || udp) && w.q.Port == 53)
}

// egress checks the forbidden addresses and the egress rules of the sender.
func (w *walk) egress() {
	for _, p := range w.t.Forbidden {
		if p.Contains(w.to) {
			w.drop("use another destination: instances cannot reach addresses of the cluster", "%s is an address of the cluster's hosts (%s)", w.to, p)
			return
		}
	}
	if w.service() {
		return // always allowed
	}
	w.rules(api.Egress, w.source, w.to, "leaves "+w.q.port(w.source.ID))
}

// local delivers in a network: to a port, a load balancer, or nothing.
func (w *walk) local(n sdn.Network) {
	if n.Gateway4 == w.to || n.Gateway6 == w.to {
		if w.q.Protocol == api.ProtocolICMP || w.q.Protocol == api.ProtocolICMP6 {
			w.ok("the project's router responds")
			return
		}
		w.drop("use the address of an instance", "%s is the router, which does not serve %s", w.to, w.q.what())
		return
	}
	if l := find(w.t.LoadBalancers, func(l sdn.LoadBalancer) bool { return l.Network == n.ID && l.Address == w.to }); l != nil {
		w.balancer(*l, w.from)
		return
	}
	p := find(w.t.Ports, func(p sdn.Port) bool { return p.Network == n.ID && (p.Address4 == w.to || p.Address6 == w.to) })
	if p == nil {
		w.drop("check the address of the instance", "address %s is not in use in network %s", w.to, w.q.name(string(n.ID)))
		return
	}
	w.arrive(p, w.from)
}

// leaveProject routes out of the project.
func (w *walk) leaveProject(home sdn.Network) {
	r := find(w.t.Routers, func(r sdn.Router) bool { return r.Project == home.Project })
	f := find(w.t.FloatingIPs, func(f sdn.FloatingIP) bool { return f.Port == w.source.ID && f.Target == w.from })
	if r == nil || r.External == "" && f == nil {
		w.drop("connect the project to an external network", "the project's router has no route to %s", w.to)
		return
	}
	own := r.Address4
	if w.to.Is6() {
		own = r.Address6
	}
	external := r.External
	if f != nil {
		own, external = f.Address, f.External
	}
	if !own.IsValid() {
		w.drop("add a range of this address family to the external network", "the project's router has no external address of this family")
		return
	}
	if x := find(w.t.External, func(x sdn.ExternalNetwork) bool { return x.ID == external }); x == nil || len(x.Gateways) == 0 {
		w.drop("connect a node to the external network", "no node is connected to the external network")
		return
	}
	w.ok("the project's router sends it out as %s", own)
	w.outside(own, external)
}

// outside follows the packet on the external network, from an address there.
// on is empty if the question does not determine the network: ranges may
// overlap.
func (w *walk) outside(from netip.Addr, on api.ExternalNetworkID) {
	here := func(a netip.Addr, x api.ExternalNetworkID) bool { return a == w.to && (on == "" || x == on) }
	if f := find(w.t.FloatingIPs, func(f sdn.FloatingIP) bool { return here(f.Address, f.External) }); f != nil {
		if p := w.port(f.Port); p != nil {
			w.ok("floating IP %s belongs to %s", w.to, w.q.port(p.ID))
			w.arrive(p, from)
			return
		}
	}
	vip := false
	for _, l := range w.t.LoadBalancers {
		if here(l.Floating, l.External) {
			vip = true
			if l.Protocol == w.q.Protocol && l.Port == w.q.Port {
				w.balancer(l, from)
				return
			}
		}
	}
	switch {
	case w.q.To.Port != "":
		w.drop("add a floating IP, or a port in a common network", "%s is in another network that cannot be reached from here: its address is private", w.q.end(w.q.To))
	case vip:
		w.drop("add a load balancer for it", "%s has load balancers, but none for %s", w.to, w.q.what())
	case w.source != nil:
		w.ok("it is forwarded to %s, which is outside of this cluster", w.to)
	default:
		w.drop("associate this floating IP with an instance", "address %s is not in use", w.to)
	}
}

func (w *walk) balancer(l sdn.LoadBalancer, from netip.Addr) {
	if l.Protocol != w.q.Protocol || l.Port != w.q.Port {
		w.drop("use the port that it serves", "load balancer %s serves %s/%d, not %s", w.q.name(string(l.ID)), l.Protocol, l.Port, w.q.what())
		return
	}
	if len(l.Backends) == 0 {
		w.drop("add backends to it", "load balancer %s has no backends", w.q.name(string(l.ID)))
		return
	}
	w.ok("load balancer %s chooses one of %d backends", w.q.name(string(l.ID)), len(l.Backends))
	reached := 0
	for _, b := range l.Backends {
		p := w.port(b.Port)
		if p == nil {
			continue
		}
		in := *w
		in.q.Port, in.dead, in.v = b.Target, false, Verdict{}
		in.arrive(p, from)
		for _, s := range in.v.Steps {
			if !s.OK {
				s.What = "backend: " + s.What
			}
			w.v.Steps = append(w.v.Steps, s)
		}
		if in.dead {
			w.v.Next = in.v.Next
			continue
		}
		reached++
		w.v.Ports = append(w.v.Ports, in.v.Ports...)
	}
	w.dead = reached == 0
	if reached > 0 && reached < len(l.Backends) {
		w.v.Next = "for all backends: " + w.v.Next
	}
}

// arrive delivers to a port, if its groups allow it.
func (w *walk) arrive(p *sdn.Port, from netip.Addr) {
	w.rules(api.Ingress, p, from, "reaches "+w.q.port(p.ID))
	if !w.dead {
		w.v.Ports = append(w.v.Ports, p.ID)
	}
}

// rules evaluates the rules of a port's groups for one direction. peer is the
// other address as the rules see it.
func (w *walk) rules(d api.Direction, p *sdn.Port, peer netip.Addr, goes string) {
	var no []string
	if len(p.SecurityGroups) == 0 {
		no = append(no, "it has no security group, so nothing is allowed")
	}
	for _, id := range p.SecurityGroups {
		g := find(w.t.SecurityGroups, func(g sdn.SecurityGroup) bool { return g.ID == id })
		if g == nil {
			continue
		}
		any := false
		for i, r := range g.Rules {
			if r.Direction != d {
				continue
			}
			any = true
			rule := fmt.Sprintf("rule %d of security group %s", i+1, w.q.name(string(id)))
			why := w.differs(r, peer)
			if why == "" {
				w.ok("%s: %s allows it", goes, rule)
				return
			}
			no = append(no, rule+": "+why)
		}
		if !any {
			no = append(no, fmt.Sprintf("security group %s has no %s rule", w.q.name(string(id)), d))
		}
	}
	side, way := "from", "in"
	if d == api.Egress {
		side, way = "to", "out"
	}
	who := peer.String()
	if o := find(w.t.Ports, func(o sdn.Port) bool {
		return w.network(o.Network).Project == w.network(p.Network).Project && (o.Address4 == peer || o.Address6 == peer)
	}); o != nil {
		who = fmt.Sprintf("%s (%s)", w.q.port(o.ID), peer)
	}
	w.drop(fmt.Sprintf("allow %s %s %s %s in a security group of %s", w.q.what(), way, side, who, w.q.port(p.ID)),
		"no rule of %s allows it %s: %s", w.q.port(p.ID), way, strings.Join(no, "; "))
}

// differs returns why a rule does not apply to this packet; empty if it
// applies.
func (w *walk) differs(r sdn.Rule, peer netip.Addr) string {
	switch {
	case r.Protocol != api.ProtocolAny && r.Protocol != w.q.Protocol:
		return "only " + string(r.Protocol)
	case r.FirstPort != 0 && (w.q.Port < r.FirstPort || w.q.Port > r.LastPort):
		if r.FirstPort == r.LastPort {
			return fmt.Sprintf("only port %d", r.FirstPort)
		}
		return fmt.Sprintf("only ports %d to %d", r.FirstPort, r.LastPort)
	case r.Peer.IsValid() && !r.Peer.Contains(peer):
		return "only " + r.Peer.String()
	case r.Group != "":
		if !slices.ContainsFunc(w.t.Ports, func(p sdn.Port) bool {
			return (p.Address4 == peer || p.Address6 == peer) && slices.Contains(p.SecurityGroups, r.Group)
		}) {
			return "only members of " + w.q.name(string(r.Group))
		}
	}
	return ""
}
