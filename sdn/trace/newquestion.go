package trace

import (
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
)

const maxCards = 8 // network cards of an instance

// NewQuestion converts a question of the API to ports and addresses of the topology:
// of instances with several cards it uses those in a common network, of an
// address its port. The error is an *api.Error.
func NewQuestion(t sdn.Topology, asked api.TraceQuestion) (q Question, err error) {
	if q.Protocol, q.Port, err = ParseWhat(asked.Packet); err != nil {
		return q, err
	}
	from, err := senders(t, asked.From)
	if err != nil {
		return q, err
	}
	q.From.Address, q.To.Address = asked.From.Address, asked.To.Address
	to := cards(t, asked.To.Instance)
	if asked.To.Instance != "" && len(to) == 0 {
		return q, unconnected(asked.To.Instance)
	}
	if len(to) > 0 {
		q.To.Port = to[0].ID
	}
	if len(from) == 0 {
		return q, nil
	}
	if slices.ContainsFunc(from, func(f sdn.Port) bool {
		return len(to) > 0 && f.ID == to[0].ID || q.To.Address.IsValid() && (f.Address4 == q.To.Address || f.Address6 == q.To.Address)
	}) {
		return q, api.Errorf(api.CodeInvalid, "source and destination are the same instance").At("to").WithHint("choose another instance, or an address")
	}
	q.From = End{Port: from[0].ID}
	w := walk{t: t}
	for _, f := range from {
		for _, p := range to {
			if f.Network == p.Network {
				q.From.Port, q.To.Port = f.ID, p.ID
				return q, nil
			}
		}
		if n := w.network(f.Network); q.To.Address.IsValid() && (n.CIDR4.Contains(q.To.Address) || n.CIDR6.Contains(q.To.Address)) {
			q.From.Port = f.ID
			return q, nil
		}
	}
	return q, nil
}

// senders returns the ports that an end may be; none if it is external.
func senders(t sdn.Topology, e api.TraceEnd) ([]sdn.Port, error) {
	if e.Instance != "" {
		if all := cards(t, e.Instance); len(all) > 0 {
			return all, nil
		}
		return nil, unconnected(e.Instance)
	}
	all := only(t.Ports, func(p sdn.Port) bool { return p.Address4 == e.Address || p.Address6 == e.Address })
	if len(all) > 1 {
		return nil, api.Errorf(api.CodeInvalid, "address %s belongs to several instances", e.Address).At("from").WithHint("give the name of the instance")
	}
	if len(all) == 0 && inside(t, e.Address) {
		return nil, api.Errorf(api.CodeNotFound, "address %s belongs to no instance", e.Address).At("from").WithHint("see basalt instance list")
	}
	return all, nil
}

// inside reports whether the address is in a network of the topology.
func inside(t sdn.Topology, a netip.Addr) bool {
	return find(t.Networks, func(n sdn.Network) bool { return n.CIDR4.Contains(a) || n.CIDR6.Contains(a) }) != nil
}

func cards(t sdn.Topology, i api.InstanceID) (all []sdn.Port) {
	if i == "" {
		return nil
	}
	for n := range maxCards {
		if p := find(t.Ports, func(p sdn.Port) bool { return p.ID == sdn.PortOf(i, n) }); p != nil {
			all = append(all, *p)
		}
	}
	return all
}

func unconnected(i api.InstanceID) *api.Error {
	return api.Errorf(api.CodeState, "instance %s has no network interface", i).WithHint("see basalt instance get: an instance has addresses when it has been placed")
}
