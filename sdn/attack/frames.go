package main

import (
	"net/netip"

	"github.com/basalt-gpu/basalt/sdn/frame"
)

// attack is frames that no other guest may receive. good are the most similar
// frames that the guest may send: the neighbor must receive those, because
// otherwise the absence of the attack proves nothing.
type attack struct {
	name      string
	bad, good func(mark string) [][]byte
}

const everybody = "ff:ff:ff:ff:ff:ff"

// frames returns the attacks of a guest on its neighbor, which accepts
// everything, and on guests of other projects.
func frames(c Config) []attack {
	a, b, gw := c.Self, c.Neighbour, c.Gateway
	stranger := End{MAC: "52:54:00:00:01:99", Four: b.Four.Next(), Six: b.Six.Next()}
	one := func(f func(m string) []byte) func(string) [][]byte {
		return func(m string) [][]byte { return [][]byte{f(m)} }
	}
	say := func(dstMAC, srcMAC string, src, dst netip.Addr, s, d uint16) func(string) [][]byte {
		return one(func(m string) []byte {
			return frame.Packet(dstMAC, srcMAC, src, dst, frame.UDP(src, dst, s, d, []byte(m)))
		})
	}
	honest, honest6 := say(b.MAC, a.MAC, a.Four, b.Four, 4000, 4001), say(b.MAC, a.MAC, a.Six, b.Six, 4000, 4001)
	neighbour := func(target netip.Addr, at string) func(string) [][]byte {
		return one(func(m string) []byte {
			return frame.Packet(b.MAC, a.MAC, a.Six, b.Six, frame.ICMP6(a.Six, b.Six, 136, frame.Advertisement(target, at, m)))
		})
	}
	reply := one(func(m string) []byte { return frame.ARP(b.MAC, a.MAC, 2, a.MAC, a.Four, b.MAC, b.Four, m) })
	all := []attack{
		{"another's MAC", say(b.MAC, stranger.MAC, a.Four, b.Four, 4000, 4001), honest},
		{"another's IPv4", say(b.MAC, a.MAC, stranger.Four, b.Four, 4000, 4001), honest},
		{"another's IPv6", say(b.MAC, a.MAC, stranger.Six, b.Six, 4000, 4001), honest6},
		{"another's link-local address", say(b.MAC, a.MAC, frame.LinkLocal(stranger.MAC), b.Six, 4000, 4001), honest6},
		{"the gateway's IPv4", say(b.MAC, a.MAC, gw.Four, b.Four, 4000, 4001), honest},
		{"the gateway's MAC and IPv4", say(b.MAC, gw.MAC, gw.Four, b.Four, 4000, 4001), honest},
		{"metadata's IPv4", say(b.MAC, a.MAC, frame.IP("169.254.169.254"), b.Four, 80, 4001), honest},
		{"metadata's IPv6", say(b.MAC, a.MAC, frame.IP("fe80::a9fe:a9fe"), b.Six, 80, 4001), honest6},
		{"ARP: I am the gateway", one(func(m string) []byte { return frame.ARP(b.MAC, a.MAC, 2, a.MAC, gw.Four, b.MAC, b.Four, m) }), reply},
		{"gratuitous ARP for the gateway", one(func(m string) []byte { return frame.ARP(everybody, a.MAC, 1, a.MAC, gw.Four, everybody, gw.Four, m) }), reply},
		{"gratuitous ARP for a neighbour", one(func(m string) []byte {
			return frame.ARP(everybody, a.MAC, 2, a.MAC, stranger.Four, everybody, stranger.Four, m)
		}), reply},
		{"ARP with another's MAC inside", one(func(m string) []byte { return frame.ARP(b.MAC, a.MAC, 2, stranger.MAC, a.Four, b.MAC, b.Four, m) }), reply},
		{"ND: I am the gateway", neighbour(gw.Six, a.MAC), neighbour(a.Six, a.MAC)},
		{"ND: I am a neighbour", neighbour(stranger.Six, a.MAC), neighbour(a.Six, a.MAC)},
		{"ND with another's MAC inside", neighbour(a.Six, stranger.MAC), neighbour(a.Six, a.MAC)},
		{"DHCP server", say(b.MAC, a.MAC, a.Four, b.Four, 67, 68), say(b.MAC, a.MAC, a.Four, b.Four, 1067, 1068)},
		{"DHCP server to everybody", say(everybody, a.MAC, a.Four, frame.IP("255.255.255.255"), 67, 68), honest},
		{"DHCP server behind a VLAN tag", one(func(m string) []byte {
			return frame.Tagged(frame.Packet(b.MAC, a.MAC, a.Four, b.Four, frame.UDP(a.Four, b.Four, 67, 68, []byte(m))), 0x8100, 0)
		}), honest},
		{"DHCPv6 server", say(b.MAC, a.MAC, a.Six, b.Six, 547, 546), say(b.MAC, a.MAC, a.Six, b.Six, 1547, 1546)},
		{"redirect", one(func(m string) []byte {
			return frame.Packet(b.MAC, a.MAC, a.Four, b.Four, frame.ICMP4(5, 1, append(a.Four.AsSlice(), m...)))
		}), one(func(m string) []byte {
			return frame.Packet(b.MAC, a.MAC, a.Four, b.Four, frame.Ping(a.Four, b.Four, m))
		})},
		{"another protocol", one(func(m string) []byte { return frame.Ethernet(b.MAC, a.MAC, 0x88b5, []byte(m)) }), honest},
	}
	for _, t := range []struct {
		name        string
		kind, outer uint16
	}{{"VLAN tag", 0x8100, 0}, {"two VLAN tags", 0x8100, 0x8100}, {"two tags of a provider", 0x8100, 0x88a8}} {
		all = append(all, attack{t.name, func(m string) (fs [][]byte) {
			for vlan := range uint16(8) { // a possible network number
				f := frame.Tagged(honest(m)[0], t.kind, vlan)
				if t.outer != 0 {
					f = frame.Tagged(f, t.outer, vlan)
				}
				fs = append(fs, f)
			}
			return fs
		}, honest})
	}
	// The filter of the neighbor's tap drops frames that its host still sees, so
	// these are checked at the foreign guests alone; see Elsewhere.
	return append(all, elsewhere(c)...)
}

// Elsewhere is the prefix of the names of attacks that guests of the same
// network may see, and no others.
const Elsewhere = "elsewhere: "

// elsewhere returns attacks with frames that must not leave the network, and
// that must not enter another.
func elsewhere(c Config) []attack {
	a, b, gw := c.Self, c.Neighbour, c.Gateway
	honest := func(m string) [][]byte {
		return [][]byte{frame.Packet(b.MAC, a.MAC, a.Four, b.Four, frame.UDP(a.Four, b.Four, 4000, 4001, []byte(m)))}
	}
	flood := func(dstMAC string, src, dst netip.Addr) func(string) [][]byte {
		return func(m string) (fs [][]byte) {
			for range 20 {
				fs = append(fs, frame.Packet(dstMAC, a.MAC, src, dst, frame.UDP(src, dst, 4000, 4001, []byte(m))))
			}
			return fs
		}
	}
	local := frame.LinkLocal(a.MAC)
	all := []attack{
		{"router advertisement", func(m string) [][]byte {
			// RFC 4861, section 4.2: hop limit, flags, lifetime, two timers.
			body := append([]byte{64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}, frame.Option(m)...)
			dst := frame.IP("ff02::1")
			return [][]byte{frame.Packet("33:33:00:00:00:01", a.MAC, local, dst, frame.ICMP6(local, dst, 134, body))}
		}, honest},
		{"broadcast flood", flood(everybody, a.Four, frame.IP("255.255.255.255")), honest},
		{"multicast flood", flood("01:00:5e:00:00:fb", a.Four, frame.IP("224.0.0.251")), honest},
		{"multicast flood of IPv6", flood("33:33:00:00:00:01", local, frame.IP("ff02::1")), honest},
		{"Geneve to the hosts", func(m string) (fs [][]byte) {
			for _, host := range c.Hosts {
				for _, f := range c.Foreign {
					inner := frame.Packet(f.MAC, gw.MAC, a.Four, f.Four, frame.UDP(a.Four, f.Four, 4000, 4001, []byte(m)))
					for vni := range uint32(8) {
						if src := a.as(host); src.IsValid() {
							fs = append(fs, frame.Packet(gw.MAC, a.MAC, src, host, frame.UDP(src, host, 4000, 6081, frame.Geneve(vni, inner))))
						}
					}
				}
			}
			return fs
		}, honest},
	}
	for _, f := range c.Foreign {
		for _, w := range []struct{ how, mac string }{{"its own MAC", f.MAC}, {"the gateway", gw.MAC}, {"everybody", everybody}} {
			all = append(all, attack{"to " + f.Four.String() + " by " + w.how, func(m string) [][]byte {
				return [][]byte{
					frame.Packet(w.mac, a.MAC, a.Four, f.Four, frame.UDP(a.Four, f.Four, 4000, 4001, []byte(m))),
					frame.Packet(w.mac, a.MAC, a.Four, f.Four, frame.Ping(a.Four, f.Four, m)),
					frame.Packet(w.mac, gw.MAC, f.Four.Prev(), f.Four, frame.UDP(f.Four.Prev(), f.Four, 4000, 4001, []byte(m))),
					frame.Packet(w.mac, a.MAC, a.Six, f.Six, frame.UDP(a.Six, f.Six, 4000, 4001, []byte(m))),
					frame.Packet(w.mac, a.MAC, a.Six, f.Six, frame.Ping(a.Six, f.Six, m)),
				}
			}, honest})
		}
	}
	for i := range all {
		all[i].name = Elsewhere + all[i].name
	}
	return all
}
