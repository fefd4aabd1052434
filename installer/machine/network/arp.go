package network

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
)

// An ARP packet for IPv4 over Ethernet has 28 bytes (RFC 826).
const arpBytes = 28

var arpHeader = []byte{0, 1, 8, 0, 6, 4, 0} // Ethernet, IPv4, their lengths, the operation's high byte

// request returns an ARP request for target. Without a valid from it is a probe (RFC
// 5227, section 2.1.1), which no machine treats as a claim of the address.
func request(mac net.HardwareAddr, from, target netip.Addr) []byte {
	p := make([]byte, arpBytes)
	copy(p, arpHeader)
	p[7] = 1
	copy(p[8:14], mac)
	if from.Is4() {
		a := from.As4()
		copy(p[14:18], a[:])
	}
	a := target.As4()
	copy(p[24:28], a[:])
	return p
}

// owner returns the owner of target according to a packet: the sender of a reply, or
// another machine that probes for or claims the same address at this moment.
func owner(packet []byte, own net.HardwareAddr, target netip.Addr) (net.HardwareAddr, bool) {
	if len(packet) < arpBytes || !bytes.Equal(packet[:7], arpHeader) {
		return nil, false
	}
	op := binary.BigEndian.Uint16(packet[6:8])
	sender := net.HardwareAddr(bytes.Clone(packet[8:14]))
	from := netip.AddrFrom4([4]byte(packet[14:18]))
	about := netip.AddrFrom4([4]byte(packet[24:28]))
	if bytes.Equal(sender, own) || op != 1 && op != 2 {
		return nil, false
	}
	return sender, from == target || op == 1 && from.IsUnspecified() && about == target
}
