package resolver

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestRead(t *testing.T) {
	packet := func(change func(*dns.Msg)) []byte {
		m := query("www.example.", dns.TypeA)
		change(m)
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, c := range map[string]struct {
		packet []byte
		want   string // code of the refusal; "": a query; "nothing": no reply
	}{
		"plain":             {packet(func(*dns.Msg) {}), ""},
		"EDNS":              {packet(func(m *dns.Msg) { m.SetEdns0(4096, true) }), ""},
		"an answer":         {packet(func(m *dns.Msg) { m.Response = true }), "nothing"},
		"nothing":           {nil, "nothing"},
		"short":             {[]byte{1, 2, 3}, "nothing"},
		"header only":       {packet(func(m *dns.Msg) { m.Question = nil }), "FORMERR"},
		"two questions":     {packet(func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }), "FORMERR"},
		"an answer in it":   {packet(func(m *dns.Msg) { m.Answer = []dns.RR{soa("x.")} }), "FORMERR"},
		"two options":       {packet(func(m *dns.Msg) { m.Extra = []dns.RR{option(true), option(true)} }), "FORMERR"},
		"signed":            {packet(func(m *dns.Msg) { m.SetTsig("k.", dns.HmacSHA256, 300, 1) }), "FORMERR"},
		"EDNS of later":     {packet(func(m *dns.Msg) { m.SetEdns0(512, false); m.IsEdns0().SetVersion(1) }), "BADVERS"},
		"an update":         {packet(func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }), "NOTIMP"},
		"a notification":    {packet(func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify }), "NOTIMP"},
		"cut in the middle": {packet(func(*dns.Msg) {})[:20], "FORMERR"},
	} {
		q, no := read(c.packet)
		got := "nothing"
		switch {
		case q != nil && no == nil:
			got = ""
		case no != nil:
			got = dns.RcodeToString[no.Rcode]
			if b, err := no.Pack(); err != nil || len(b) > dns.MinMsgSize {
				t.Errorf("%s: the refusal has %d bytes, %v, want at most %d", name, len(b), err, dns.MinMsgSize)
			}
		}
		if got = strings.Replace(got, "BADSIG", "BADVERS", 1); got != c.want { // one number, two names
			t.Errorf("%s: read = %q, want %q", name, got, c.want)
		}
	}
	for size, want := range map[uint16]int{0: 512, 100: 512, 900: 900, 65535: udpSize} {
		if q, _ := read(packet(func(m *dns.Msg) { m.SetEdns0(size, false) })); q == nil || q.size != want {
			t.Errorf("read of EDNS with %d bytes = %+v, want a reply size of %d", size, q, want)
		}
	}
}

// FuzzPacket checks that for any packet a guest gets at most one reply, which
// is valid, not too long, and matches the packet.
func FuzzPacket(f *testing.F) {
	for _, m := range []*dns.Msg{query("web.shop.internal.", dns.TypeA), query("5.0.64.10.in-addr.arpa.", dns.TypePTR), query("www.example.", dns.TypeANY), query(".", dns.TypeNS)} {
		m.SetEdns0(1400, true)
		b, _ := m.Pack()
		f.Add(b)
	}
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"))
	z := NewZone(facts())
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // so that nothing is forwarded
	forward := &Forwarder{slots: make(chan struct{}, nodePending), node: func() []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")} }}
	s := &server{Resolver: New(book{z}, forward), network: "net-1", limits: newLimiter(time.Now), ctx: ctx}
	guest := netip.MustParseAddr("127.0.0.1")
	f.Fuzz(func(t *testing.T, packet []byte) {
		for _, udp := range []bool{true, false} {
			var replies [][]byte
			said := s.handle(packet, guest, udp, func(b []byte) { replies = append(replies, b) })
			s.running.Wait()
			if said != (len(replies) == 1) || len(replies) > 1 {
				t.Fatalf("handle = %v with %d replies, want at most one, and true if there is one", said, len(replies))
			}
			if !said {
				continue
			}
			limit := dns.MaxMsgSize
			if udp {
				limit = udpSize
			}
			var m dns.Msg
			if err := m.Unpack(replies[0]); err != nil || len(replies[0]) > limit || len(replies[0]) < 12 {
				t.Fatalf("reply of %d bytes: %v, want a message of 12 to %d bytes", len(replies[0]), err, limit)
			}
			if !m.Response || replies[0][0] != packet[0] || replies[0][1] != packet[1] {
				t.Fatalf("reply header = %v, want a response with the ID of the packet", m.MsgHdr)
			}
		}
	})
}
