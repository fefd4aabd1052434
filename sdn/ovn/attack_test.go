package ovn_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/frame"
)

// attack is what a guest (a) tries against another (b) of its own network that
// accepts everything, so that only the network protects it. good is the most
// similar frame that a may send: it must arrive.
type attack struct {
	name      string
	bad, good func(mark string) []byte
}

const everybody = "ff:ff:ff:ff:ff:ff"

func attacks(a, b, gateway end) []attack {
	say := func(dstMAC, srcMAC string, src, dst end, mark string) []byte {
		return frame.Packet(dstMAC, srcMAC, src.four, dst.four, frame.UDP(src.four, dst.four, 4000, 4001, []byte(mark)))
	}
	say6 := func(srcMAC string, src end, mark string) []byte {
		return frame.Packet(b.mac, srcMAC, src.six, b.six, frame.UDP(src.six, b.six, 4000, 4001, []byte(mark)))
	}
	honest := func(mark string) []byte { return say(b.mac, a.mac, a, b, mark) }
	honest6 := func(mark string) []byte { return say6(a.mac, a, mark) }
	stranger := end{mac: "52:54:00:00:01:99", four: frame.IP("10.1.0.99"), six: frame.IP("fd00:a1::99")}
	ports := func(s, d uint16) func(string) []byte {
		return func(mark string) []byte {
			return frame.Packet(b.mac, a.mac, a.four, b.four, frame.UDP(a.four, b.four, s, d, []byte(mark)))
		}
	}
	ports6 := func(s, d uint16) func(string) []byte {
		return func(mark string) []byte {
			return frame.Packet(b.mac, a.mac, a.six, b.six, frame.UDP(a.six, b.six, s, d, []byte(mark)))
		}
	}
	neighbour := func(target end, at string) func(string) []byte {
		return func(mark string) []byte {
			return frame.Packet(b.mac, a.mac, a.six, b.six, frame.ICMP6(a.six, b.six, 136, frame.Advertisement(target.six, at, mark)))
		}
	}
	return []attack{
		{"another's MAC", func(m string) []byte { return say(b.mac, stranger.mac, a, b, m) }, honest},
		{"another's IP", func(m string) []byte { return say(b.mac, a.mac, stranger, b, m) }, honest},
		{"the gateway's IP", func(m string) []byte { return say(b.mac, a.mac, gateway, b, m) }, honest},
		{"the gateway's MAC and IP", func(m string) []byte { return say(b.mac, gateway.mac, gateway, b, m) }, honest},
		{"another's IPv6", func(m string) []byte { return say6(a.mac, stranger, m) }, honest6},
		{"the node's IPv6", func(m string) []byte { return say6(a.mac, end{six: sdn.MetadataAddress6}, m) }, honest6},
		{"ARP: I am the gateway", func(m string) []byte { return frame.ARP(b.mac, a.mac, 2, a.mac, gateway.four, b.mac, b.four, m) },
			func(m string) []byte { return frame.ARP(b.mac, a.mac, 2, a.mac, a.four, b.mac, b.four, m) }},
		{"gratuitous ARP for the gateway", func(m string) []byte {
			return frame.ARP(everybody, a.mac, 1, a.mac, gateway.four, everybody, gateway.four, m)
		},
			func(m string) []byte { return frame.ARP(everybody, a.mac, 1, a.mac, a.four, everybody, a.four, m) }},
		{"ARP with another's MAC inside", func(m string) []byte { return frame.ARP(b.mac, a.mac, 2, stranger.mac, a.four, b.mac, b.four, m) },
			func(m string) []byte { return frame.ARP(b.mac, a.mac, 2, a.mac, a.four, b.mac, b.four, m) }},
		{"ND: I am the gateway", neighbour(gateway, a.mac), neighbour(a, a.mac)},
		{"ND with another's MAC inside", neighbour(a, stranger.mac), neighbour(a, a.mac)},
		{"router advertisement", func(m string) []byte {
			// RFC 4861, section 4.2: hop limit, flags, lifetime, two timers.
			body := append([]byte{64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}, frame.Option(m)...)
			src, dst := frame.LinkLocal(a.mac), frame.IP("ff02::1")
			return frame.Packet("33:33:00:00:00:01", a.mac, src, dst, frame.ICMP6(src, dst, 134, body))
		}, neighbour(a, a.mac)},
		{"router advertisement to one", func(m string) []byte {
			body := append([]byte{64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}, frame.Option(m)...)
			src := frame.LinkLocal(a.mac)
			return frame.Packet(b.mac, a.mac, src, b.six, frame.ICMP6(src, b.six, 134, body))
		}, neighbour(a, a.mac)},
		{"router advertisement behind another header", func(m string) []byte {
			src := frame.LinkLocal(a.mac)
			inner := frame.ICMP6(src, b.six, 134, append([]byte{64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}, frame.Option(m)...))
			// RFC 8200, section 4.6: destination options, one of padding.
			return frame.Packet(b.mac, a.mac, src, b.six, frame.Payload{Protocol: 60, Raw: append([]byte{58, 0, 1, 4, 0, 0, 0, 0}, inner.Raw...)})
		}, neighbour(a, a.mac)},
		{"redirect6", func(m string) []byte {
			// Section 4.5: reserved, target, destination.
			body := append(append(append(make([]byte, 4), a.six.AsSlice()...), frame.IP("2001:db8::1").AsSlice()...), frame.Option(m)...)
			src := frame.LinkLocal(a.mac)
			return frame.Packet(b.mac, a.mac, src, b.six, frame.ICMP6(src, b.six, 137, body))
		}, neighbour(a, a.mac)},
		{"redirect4", func(m string) []byte {
			return frame.Packet(b.mac, a.mac, a.four, b.four, frame.ICMP4(5, 1, append(a.four.AsSlice(), m...)))
		}, func(m string) []byte {
			return frame.Packet(b.mac, a.mac, a.four, b.four, frame.ICMP4(8, 0, append([]byte{1, 2, 0, 1}, m...)))
		}},
		{"DHCP server", ports(67, 68), ports(1067, 1068)},
		{"DHCP server to everybody", func(m string) []byte {
			return frame.Packet(everybody, a.mac, a.four, frame.IP("255.255.255.255"), frame.UDP(a.four, frame.IP("255.255.255.255"), 67, 68, []byte(m)))
		}, honest},
		{"DHCPv6 server", ports6(547, 546), ports6(1547, 1546)},
		{"VLAN tag", func(m string) []byte { f := honest(m); return frame.Tagged(f, 0x8100, 7) }, honest},
		{"another protocol", func(m string) []byte { return frame.Ethernet(b.mac, a.mac, 0x88b5, []byte(m)) }, honest},
		{"DHCP server behind a VLAN tag", func(m string) []byte { return frame.Tagged(ports(67, 68)(m), 0x8100, 0) }, honest},
	}
}

// end is one end of a conversation.
type end struct {
	mac       string
	four, six netip.Addr
}

// attackAll sends every attack and then the allowed frame: once that has
// arrived, the attack would have arrived too.
func attackAll(t *testing.T, a, b, other *guest, gateway end) {
	ends := func(g *guest) end { return end{g.port.MAC, g.port.Address4, g.port.Address6} }
	for _, at := range attacks(ends(a), ends(b), gateway) {
		t.Run(at.name, func(t *testing.T) {
			bad, good := "bad:"+at.name, "good:"+at.name
			arrived := false
			for try := 0; try < 20 && !arrived; try++ {
				a.send(t, at.bad(bad))
				a.send(t, at.good(good))
				arrived = b.sees([]byte(good), 3*time.Second)
			}
			if !arrived {
				t.Fatal("the allowed frame did not arrive, so this test proves nothing")
			}
			// Repeat: the first frame of a kind takes a slower path.
			a.send(t, at.bad(bad))
			a.send(t, at.good(good+" again"))
			b.sees([]byte(good+" again"), 3*time.Second)
			if b.saw([]byte(bad)) {
				t.Error("the attack arrived at the neighbor, want it dropped")
			}
			if other.saw([]byte(bad)) || other.saw([]byte(good)) {
				t.Error("a guest of another organization received a frame, want none")
			}
		})
	}
}
