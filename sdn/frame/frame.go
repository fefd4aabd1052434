// Package frame builds Ethernet frames for tests of a switch's filters: frames
// that an ordinary kernel never sends.
package frame

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// Payload is the payload of an IP packet.
type Payload struct {
	Protocol byte
	Raw      []byte
}

// MAC returns the MAC address in bytes, or nil if s is not valid.
func MAC(s string) []byte { m, _ := net.ParseMAC(s); return m }

// IP parses a valid address.
func IP(s string) netip.Addr { return netip.MustParseAddr(s) }

// Ethernet returns a frame with an EtherType.
func Ethernet(dst, src string, kind uint16, body []byte) []byte {
	f := append(append(MAC(dst), MAC(src)...), byte(kind>>8), byte(kind))
	return append(f, body...)
}

// sum returns the Internet checksum (RFC 1071).
func sum(b []byte, start uint32) uint16 {
	for ; len(b) > 1; b = b[2:] {
		start += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		start += uint32(b[0]) << 8
	}
	for start > 0xffff {
		start = start>>16 + start&0xffff
	}
	return ^uint16(start)
}

// pseudo returns the sum of the pseudo header (RFC 9293, RFC 8200 section
// 8.1).
func pseudo(src, dst netip.Addr, protocol byte, length int) uint32 {
	b := append(src.AsSlice(), dst.AsSlice()...)
	return uint32(^sum(b, 0)) + uint32(protocol) + uint32(length)
}

// UDP returns a datagram (RFC 768).
func UDP(src, dst netip.Addr, sport, dport uint16, data []byte) Payload {
	b := make([]byte, 8, 8+len(data))
	binary.BigEndian.PutUint16(b, sport)
	binary.BigEndian.PutUint16(b[2:], dport)
	b = append(b, data...)
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[6:], sum(b, pseudo(src, dst, 17, len(b))))
	return Payload{17, b}
}

// SYN returns a TCP SYN (RFC 9293, section 3.1). The answer acknowledges
// number.
func SYN(src, dst netip.Addr, sport, dport uint16, number uint32) Payload {
	b := make([]byte, 20)
	binary.BigEndian.PutUint16(b, sport)
	binary.BigEndian.PutUint16(b[2:], dport)
	binary.BigEndian.PutUint32(b[4:], number)
	b[12], b[13] = 5<<4, 2
	binary.BigEndian.PutUint16(b[14:], 65535)
	binary.BigEndian.PutUint16(b[16:], sum(b, pseudo(src, dst, 6, len(b))))
	return Payload{6, b}
}

// Packet returns a frame with an IPv4 or IPv6 packet.
func Packet(dstMAC, srcMAC string, src, dst netip.Addr, p Payload) []byte {
	if src.Is6() {
		h := make([]byte, 40)
		h[0], h[6], h[7] = 0x60, p.Protocol, 255
		binary.BigEndian.PutUint16(h[4:], uint16(len(p.Raw)))
		copy(h[8:], src.AsSlice())
		copy(h[24:], dst.AsSlice())
		return Ethernet(dstMAC, srcMAC, 0x86dd, append(h, p.Raw...))
	}
	h := make([]byte, 20)
	h[0], h[8], h[9] = 0x45, 64, p.Protocol
	binary.BigEndian.PutUint16(h[2:], uint16(20+len(p.Raw)))
	copy(h[12:], src.AsSlice())
	copy(h[16:], dst.AsSlice())
	binary.BigEndian.PutUint16(h[10:], sum(h, 0))
	return Ethernet(dstMAC, srcMAC, 0x0800, append(h, p.Raw...))
}

// ARP returns an ARP frame (RFC 826): operation 1 is a request, 2 a reply. The
// mark follows it, in place of the padding.
func ARP(dst, src string, operation byte, senderMAC string, sender netip.Addr, targetMAC string, target netip.Addr, mark string) []byte {
	b := []byte{0, 1, 8, 0, 6, 4, 0, operation}
	b = append(append(b, MAC(senderMAC)...), sender.AsSlice()...)
	b = append(append(b, MAC(targetMAC)...), target.AsSlice()...)
	return Ethernet(dst, src, 0x0806, append(b, mark...))
}

// ICMP6 returns an ICMPv6 message (RFC 4443): type, code and what follows the
// checksum.
func ICMP6(src, dst netip.Addr, kind byte, body []byte) Payload {
	b := append([]byte{kind, 0, 0, 0}, body...)
	binary.BigEndian.PutUint16(b[2:], sum(b, pseudo(src, dst, 58, len(b))))
	return Payload{58, b}
}

// ICMP4 returns an ICMP message (RFC 792): type, code and what follows the
// checksum.
func ICMP4(kind, code byte, body []byte) Payload {
	b := append([]byte{kind, code, 0, 0}, body...)
	binary.BigEndian.PutUint16(b[2:], sum(b, 0))
	return Payload{1, b}
}

// Ping returns an echo request of either family; the reply contains the mark.
func Ping(src, dst netip.Addr, mark string) Payload {
	body := append([]byte{0x42, 0x41, 0, 1}, mark...)
	if src.Is6() {
		return ICMP6(src, dst, 128, body)
	}
	return ICMP4(8, 0, body)
}

// Advertisement returns the body of a neighbor advertisement (RFC 4861,
// section 4.4) with its MAC; the mark follows in an unknown option.
func Advertisement(target netip.Addr, at, mark string) []byte {
	b := append([]byte{0x60, 0, 0, 0}, target.AsSlice()...)
	b = append(append(b, 2, 1), MAC(at)...)
	return append(b, Option(mark)...)
}

// Option returns option 253 (RFC 4727) with the mark, padded to units of 8
// bytes.
func Option(mark string) []byte {
	b := append([]byte{253, byte((2 + len(mark) + 7) / 8)}, mark...)
	return append(b, make([]byte, (8-len(b)%8)%8)...)
}

// LinkLocal returns the link-local address of a card (RFC 4291, appendix A).
func LinkLocal(m string) netip.Addr {
	b := MAC(m)
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: b[0] ^ 2, 9: b[1], 10: b[2], 11: 0xff, 12: 0xfe, 13: b[3], 14: b[4], 15: b[5]})
}

// Tagged returns the frame with a VLAN tag, of IEEE 802.1Q or (kind 0x88a8)
// 802.1ad.
func Tagged(f []byte, kind, vlan uint16) []byte {
	t := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, kind), vlan)
	return append(append(append([]byte{}, f[:12]...), t...), f[12:]...)
}

// Geneve returns the frame after a Geneve header (RFC 8926, section 3.4).
func Geneve(vni uint32, f []byte) []byte {
	return append([]byte{0, 0, 0x65, 0x58, byte(vni >> 16), byte(vni >> 8), byte(vni), 0}, f...)
}
