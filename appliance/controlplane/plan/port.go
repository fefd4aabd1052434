package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// ports returns the ports that the instance's spec requests: existing ones, and new
// ones. why names what is missing.
func (p *addresses) ports(in api.Instance) (ports []api.InstancePort, why api.Reason) {
	for _, want := range in.Spec.Networks {
		n, ok := p.s.Networks[string(want.Network)]
		if !ok || n.Assignment.Key == 0 {
			return nil, networkNotReady(p.s, want.Network)
		}
		if i := slices.IndexFunc(in.Assignment.Ports, func(has api.InstancePort) bool { return serves(has, want) }); i >= 0 {
			ports = append(ports, in.Assignment.Ports[i])
			continue
		}
		port, why := p.port(in, n, want)
		if why.Text != "" {
			return nil, why
		}
		ports = append(ports, port)
	}
	for _, c := range portClaims(ports) {
		p.claim(c)
	}
	return ports, why
}

// dropPorts releases the addresses of ports for an instance that gets no node, so that
// others can get them.
func (p *addresses) dropPorts(in api.Instance, ports []api.InstancePort) {
	for _, c := range portClaims(ports) {
		if !slices.Contains(portClaims(in.Assignment.Ports), c) {
			delete(p.taken, c)
		}
	}
}

// samePorts reports whether the instance has the ports that its spec requests.
func samePorts(in api.Instance) bool {
	return slices.EqualFunc(in.Assignment.Ports, in.Spec.Networks, serves)
}

func serves(has api.InstancePort, want api.InstanceNetwork) bool {
	return has.Network == want.Network && (want.Address4 == "" || want.Address4 == has.Address4) &&
		(want.Address6 == "" || want.Address6 == has.Address6)
}

// macTries is how many MACs are tried: each is one of 2⁴⁰.
const macTries = 16

func (p *addresses) port(in api.Instance, n api.Network, want api.InstanceNetwork) (port api.InstancePort, none api.Reason) {
	id, name := n.Meta.ID, n.Meta.Name
	port = api.InstancePort{Network: want.Network, Address4: want.Address4, Address6: want.Address6}
	mine := map[string]bool{}
	for _, c := range portClaims(in.Assignment.Ports) {
		mine[c] = true
	}
	for _, a := range []string{want.Address4, want.Address6} {
		if c := "ip/" + id + "/" + a; a != "" && p.has(c) && !mine[c] {
			return port, api.PlainReason(fmt.Sprintf("address %s of network %s is already in use", a, name), api.CauseAddressInUse, a)
		}
	}
	if cidr, err := netip.ParsePrefix(n.Spec.Cidr4); err == nil && port.Address4 == "" {
		a := p.in(id, guests(cidr), seed(in.Meta.ID, id))
		if !a.IsValid() {
			return port, noAddress("network", name, " in "+cidr.String())
		}
		port.Address4 = a.String()
	}
	cidr6, err6 := netip.ParsePrefix(n.Spec.Cidr6)
	for try := range macTries {
		m := mac(in.Meta.ID, id, fmt.Sprint(try))
		if p.has("mac/" + m.String()) {
			continue
		}
		port.Mac = m.String()
		if err6 != nil || want.Address6 != "" {
			return port, none
		}
		port.Address6 = eui64(cidr6, m).String()
		if !p.has("ip/" + id + "/" + port.Address6) {
			return port, none
		}
	}
	return port, api.PlainReason("network "+name+" has no free MAC address", api.CauseNoAddress, name)
}

// noAddress is the reason of an object that needs an address of a network of a kind.
func noAddress(kind, name, in string) api.Reason {
	return api.PlainReason(kind+" "+name+" has no free address"+in, api.CauseNoAddress, name)
}

// networkNotReady is the reason of an object that needs a network without a key.
func networkNotReady(s *State, id api.NetworkID) api.Reason {
	name := networkName(s, id)
	return api.PlainReason("network "+name+" is not ready", api.CauseNetworkNotReady, name)
}

func networkName(s *State, id api.NetworkID) string {
	if n, ok := s.Networks[string(id)]; ok {
		return n.Meta.Name
	}
	return string(id) + " (removed)"
}

// assignPorts is like assign, for an instance, and claims the addresses of its ports.
func assignPorts(in api.Instance, next api.InstanceAssignment) []api.Command {
	cmds := assign(api.KindInstance, in.Meta, next)
	if len(next.Ports)+len(in.Assignment.Ports) > 0 {
		cmds[0].Claims = portClaims(next.Ports)
	}
	return cmds
}
