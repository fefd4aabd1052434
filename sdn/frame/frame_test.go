package frame

import (
	"bytes"
	"testing"
)

// TestSums checks that the sum over data that contains its own checksum is 0
// (RFC 1071, section 1).
func TestSums(t *testing.T) {
	for _, c := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}} {
		src, dst := IP(c[0]), IP(c[1])
		for name, p := range map[string]Payload{
			"UDP": UDP(src, dst, 1, 2, []byte("odd")), "SYN": SYN(src, dst, 1, 2, 3), "ping": Ping(src, dst, "mark"),
		} {
			start := pseudo(src, dst, p.Protocol, len(p.Raw))
			if p.Protocol == 1 {
				start = 0 // ICMP has no pseudo header
			}
			if s := sum(p.Raw, start); s != 0 {
				t.Errorf("checksum over %s from %v = %#x, want 0", name, src, s)
			}
			f := Packet("52:54:00:00:00:02", "52:54:00:00:00:01", src, dst, p)
			if !bytes.HasSuffix(f, p.Raw) || src.Is4() && sum(f[14:34], 0) != 0 {
				t.Errorf("packet of %s from %v = %x, want its payload at the end and a valid IPv4 checksum", name, src, f)
			}
			if tagged := Tagged(f, 0x8100, 7); !bytes.Equal(append(tagged[:12:12], tagged[16:]...), f) {
				t.Errorf("tagged %s from %v = %x, want %x with 4 bytes inserted", name, src, tagged, f)
			}
		}
	}
}
