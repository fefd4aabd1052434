package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
)

// addresses assigns addresses, MACs and network numbers. Those in use are read from the
// assignments when the first one is needed, so that a plan that assigns none costs
// nothing. Every one is claimed when it is committed: of two planners that choose the
// same at the same time, one is refused.
type addresses struct {
	s     *State
	taken map[string]bool // claims; nil if not read yet
}

func (p *addresses) has(claim string) bool {
	if p.taken == nil {
		p.read()
	}
	return p.taken[claim]
}

func (p *addresses) claim(claim string) {
	if !p.has(claim) {
		p.taken[claim] = true
	}
}

func (p *addresses) read() {
	p.taken = make(map[string]bool, 4*len(p.s.Instances))
	add := func(claims []string) {
		for _, c := range claims {
			p.taken[c] = true
		}
	}
	for _, in := range p.s.Instances {
		add(portClaims(in.Assignment.Ports))
	}
	for _, n := range p.s.Networks {
		add(networkClaims(n.Meta.ID, n.Assignment))
	}
	for _, r := range p.s.Routers {
		add(ipClaims(string(r.Spec.ExternalNetwork), r.Assignment.Address4, r.Assignment.Address6))
	}
	for _, f := range p.s.FloatingIPs {
		add(ipClaims(string(f.Spec.ExternalNetwork), f.Assignment.Address))
	}
	for _, l := range p.s.LoadBalancers {
		add(ipClaims(string(l.Spec.Network), l.Assignment.Address))
	}
}

// ipClaims returns the claims of addresses in a network; empty addresses are skipped.
func ipClaims(network string, list ...string) []string {
	claims := []string{}
	for _, a := range list {
		if a != "" {
			claims = append(claims, "ip/"+network+"/"+a)
		}
	}
	return claims
}

func portClaims(ports []api.InstancePort) []string {
	claims := []string{}
	for _, p := range ports {
		claims = append(append(claims, "mac/"+p.Mac), ipClaims(string(p.Network), p.Address4, p.Address6)...)
	}
	return claims
}

func networkClaims(id string, a api.NetworkAssignment) []string {
	claims := ipClaims(id, a.Gateway4, a.Gateway6)
	if a.Key != 0 {
		claims = append(claims, fmt.Sprintf("netkey/%d", a.Key))
	}
	return claims
}

// seed returns where the search for an address for who begins: the same for every
// planner, and different for others, so that they seldom conflict.
func seed(who ...string) uint64 {
	h := sha256.New()
	for _, s := range who {
		_, _ = h.Write([]byte(s + "\x00")) // never fails
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// in returns a free address between first and last, both included, beginning the search
// at a place that depends on the seed; it is invalid if none is free. It examines at
// most one address more than are in use.
func (p *addresses) in(network string, r api.AddressRange, seed uint64) netip.Addr {
	span := distance(r)
	at := add(r.First, seed%span)
	for i := uint64(0); i < span; i++ {
		if !p.has("ip/" + network + "/" + at.String()) {
			return at
		}
		if at == r.Last {
			at = r.First
		} else {
			at = at.Next()
		}
	}
	return netip.Addr{}
}

// distance returns the number of addresses in a range, at most 2⁶³.
func distance(r api.AddressRange) uint64 {
	first, last := r.First.As16(), r.Last.As16()
	if binary.BigEndian.Uint64(first[:8]) != binary.BigEndian.Uint64(last[:8]) {
		return 1 << 63
	}
	return min(binary.BigEndian.Uint64(last[8:])-binary.BigEndian.Uint64(first[8:]), 1<<63-1) + 1
}

// add returns the address n after a; it stays within a range of distance > n.
func add(a netip.Addr, n uint64) netip.Addr {
	raw := a.As16()
	low := binary.BigEndian.Uint64(raw[8:]) + n
	if low < n { // carried over
		binary.BigEndian.PutUint64(raw[:8], binary.BigEndian.Uint64(raw[:8])+1)
	}
	binary.BigEndian.PutUint64(raw[8:], low)
	out := netip.AddrFrom16(raw)
	if a.Is4() {
		out = out.Unmap()
	}
	return out
}

// guests returns the addresses of a network that an instance can have: not the
// network's own, its broadcast address, the one before it, which api.HealthAddr
// reserves, or the gateway's, which is the first.
func guests(p netip.Prefix) api.AddressRange {
	r := api.AddressRange{First: api.Gateway(p).Next(), Last: api.LastAddr(p)}
	if p.Addr().Is4() {
		r.Last = api.HealthAddr(p).Prev()
	}
	return r
}

// mac returns a locally administered address, 06:…, derived from its owner. Those of
// routers begin with 0a (sdn.RouterMACs).
func mac(who ...string) net.HardwareAddr {
	m := binary.BigEndian.AppendUint64(nil, seed(who...))[2:]
	m[0] = 0x06
	return net.HardwareAddr(m)
}

// eui64 returns the address that a host with this MAC assigns itself in a /64 (RFC
// 4291, appendix A).
func eui64(p netip.Prefix, m net.HardwareAddr) netip.Addr {
	raw := p.Masked().Addr().As16()
	copy(raw[8:], []byte{m[0] ^ 0x02, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
	return netip.AddrFrom16(raw)
}
