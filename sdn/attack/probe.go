package main

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"github.com/basalt-gpu/basalt/sdn/frame"
)

// probe is a request that no host may answer, or (allowed) one that must be
// answered, which shows that answers are detected.
type probe struct {
	name    string
	allowed bool
	ask     [][]byte
	answers func(frame []byte) bool // reports whether a received frame is an answer
}

// echoed returns a function that detects a ping reply with the mark.
func echoed(mark string) func([]byte) bool {
	return func(f []byte) bool {
		answer := len(f) > 34 && f[12] == 0x08 && f[23] == 1 && f[34] == 0 || len(f) > 54 && f[12] == 0x86 && f[20] == 58 && f[54] == 129
		return answer && bytes.Contains(f, []byte(mark))
	}
}

// acknowledged returns a function that detects an answer to the SYN with that
// number, even a RST.
func acknowledged(number uint32) func([]byte) bool {
	return func(f []byte) bool {
		return len(f) >= 54 && f[12] == 0x08 && f[23] == 6 && binary.BigEndian.Uint32(f[42:]) == number+1
	}
}

// resolved returns a function that detects an ARP reply for the address.
func resolved(a netip.Addr) func([]byte) bool {
	return func(f []byte) bool {
		return len(f) >= 42 && f[12] == 0x08 && f[13] == 0x06 && f[21] == 2 && bytes.Equal(f[28:32], a.AsSlice())
	}
}

// probes returns probes of hosts, of foreign guests, and of metadata with a
// spoofed source.
func probes(c Config) []probe {
	a, gw := c.Self, c.Gateway
	metadata := frame.IP("169.254.169.254")
	number := uint32(0x42534c54)
	var all []probe
	pinged := func(name string, allowed bool, dstMAC string, src, dst netip.Addr) {
		mark := "ask:" + name + "."
		all = append(all, probe{name, allowed, [][]byte{frame.Packet(dstMAC, a.MAC, src, dst, frame.Ping(src, dst, mark))}, echoed(mark)})
	}
	connected := func(name string, allowed bool, dstMAC string, src, dst netip.Addr, port uint16) {
		number += 1000
		all = append(all, probe{name, allowed, [][]byte{frame.Packet(dstMAC, a.MAC, src, dst, frame.SYN(src, dst, 40000+uint16(number>>3&0xfff), port, number))}, acknowledged(number)})
	}
	asked := func(name string, allowed bool, dst netip.Addr) {
		all = append(all, probe{name, allowed, [][]byte{frame.ARP(everybody, a.MAC, 1, a.MAC, a.Four, "00:00:00:00:00:00", dst, "")}, resolved(dst)})
	}
	pinged("ping the gateway", true, gw.MAC, a.Four, gw.Four)
	asked("ARP for the gateway", true, gw.Four)
	connected("SYN to metadata", !c.Unserved, c.Metadata, a.Four, metadata, 80)
	connected("SYN to metadata as a neighbour", false, c.Metadata, c.Neighbour.Four, metadata, 80)
	pinged("ping every node of the link", false, "33:33:00:00:00:01", frame.LinkLocal(a.MAC), frame.IP("ff02::1"))
	pinged("ping every router of the link", false, "33:33:00:00:00:02", frame.LinkLocal(a.MAC), frame.IP("ff02::2"))
	pinged("ping the broadcast address", false, everybody, a.Four, frame.IP("255.255.255.255"))
	for _, f := range c.Foreign {
		asked("ARP for "+f.Four.String(), false, f.Four)
		pinged("ping "+f.Four.String()+" by its MAC", false, f.MAC, a.Four, f.Four)
		pinged("ping "+f.Four.String()+" by the gateway", false, gw.MAC, a.Four, f.Four)
		pinged("ping "+f.Six.String()+" by the gateway", false, gw.MAC, a.Six, f.Six)
		connected("SYN to "+f.Four.String(), false, gw.MAC, a.Four, f.Four, 80)
	}
	for _, h := range c.Hosts {
		src := a.as(h)
		if !src.IsValid() {
			continue
		}
		for _, w := range []struct{ how, mac string }{{"the gateway", gw.MAC}, {"everybody", everybody}, {"metadata", c.Metadata}} {
			pinged("ping host "+h.String()+" by "+w.how, false, w.mac, src, h)
		}
		if h.Is4() {
			asked("ARP for host "+h.String(), false, h)
			for _, port := range c.Ports {
				connected("SYN to host "+h.String(), false, gw.MAC, src, h, port)
				connected("SYN to host "+h.String()+" by metadata", false, c.Metadata, src, h, port)
			}
		}
	}
	return all
}
