package ovn_test

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// Frames made by hand. Only what the tests need: no options, no fragments.

type payload struct {
	protocol byte // IP's
	raw      []byte
}

func mac(s string) []byte { m, _ := net.ParseMAC(s); return m }

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

func ethernet(dst, src string, kind uint16, body []byte) []byte {
	f := append(append(mac(dst), mac(src)...), byte(kind>>8), byte(kind))
	return append(f, body...)
}

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

// pseudo header's sum (RFC 793, RFC 8200 section 8.1).
func pseudo(src, dst netip.Addr, protocol byte, length int) uint32 {
	b := append(src.AsSlice(), dst.AsSlice()...)
	return uint32(^sum(b, 0)) + uint32(protocol) + uint32(length)
}

func udp(src, dst netip.Addr, sport, dport uint16, data string) payload {
	b := make([]byte, 8+len(data))
	binary.BigEndian.PutUint16(b, sport)
	binary.BigEndian.PutUint16(b[2:], dport)
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
	copy(b[8:], data)
	binary.BigEndian.PutUint16(b[6:], sum(b, pseudo(src, dst, 17, len(b))))
	return payload{17, b}
}

// packet of IPv4 or IPv6 in a frame.
func packet(dstMAC, srcMAC string, src, dst netip.Addr, p payload) []byte {
	if src.Is6() {
		h := make([]byte, 40)
		h[0], h[6], h[7] = 0x60, p.protocol, 255
		binary.BigEndian.PutUint16(h[4:], uint16(len(p.raw)))
		copy(h[8:], src.AsSlice())
		copy(h[24:], dst.AsSlice())
		return ethernet(dstMAC, srcMAC, 0x86dd, append(h, p.raw...))
	}
	h := make([]byte, 20)
	h[0], h[8], h[9] = 0x45, 64, p.protocol
	binary.BigEndian.PutUint16(h[2:], uint16(20+len(p.raw)))
	copy(h[12:], src.AsSlice())
	copy(h[16:], dst.AsSlice())
	binary.BigEndian.PutUint16(h[10:], sum(h, 0))
	return ethernet(dstMAC, srcMAC, 0x0800, append(h, p.raw...))
}

// arp (RFC 826): operation 1 asks, 2 answers. The mark follows it, where the
// padding is.
func arp(dst, src string, operation byte, senderMAC string, sender netip.Addr, targetMAC string, target netip.Addr, mark string) []byte {
	b := []byte{0, 1, 8, 0, 6, 4, 0, operation}
	b = append(append(b, mac(senderMAC)...), sender.AsSlice()...)
	b = append(append(b, mac(targetMAC)...), target.AsSlice()...)
	return ethernet(dst, src, 0x0806, append(b, mark...))
}

// icmp6 (RFC 4443): kind, code and what follows the checksum.
func icmp6(src, dst netip.Addr, kind, code byte, body []byte) payload {
	b := append([]byte{kind, code, 0, 0}, body...)
	binary.BigEndian.PutUint16(b[2:], sum(b, pseudo(src, dst, 58, len(b))))
	return payload{58, b}
}

func icmp4(kind, code byte, body []byte) payload {
	b := append([]byte{kind, code, 0, 0}, body...)
	binary.BigEndian.PutUint16(b[2:], sum(b, 0))
	return payload{1, b}
}

// advertisement of a neighbour (RFC 4861, section 4.4) with its MAC; the mark
// follows in an option that nobody knows.
func advertisement(target netip.Addr, at, mark string) []byte {
	b := append([]byte{0x60, 0, 0, 0}, target.AsSlice()...)
	b = append(append(b, 2, 1), mac(at)...)
	return append(b, option(mark)...)
}

// option 253 (RFC 4727), in units of 8 bytes.
func option(mark string) []byte {
	b := append([]byte{253, byte((2 + len(mark) + 7) / 8)}, mark...)
	return append(b, make([]byte, (8-len(b)%8)%8)...)
}

// linkLocal address of a card (RFC 4291, appendix A).
func linkLocal(m string) netip.Addr {
	b := mac(m)
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: b[0] ^ 2, 9: b[1], 10: b[2], 11: 0xff, 12: 0xfe, 13: b[3], 14: b[4], 15: b[5]})
}
