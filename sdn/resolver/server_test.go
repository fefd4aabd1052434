package resolver

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/basalt-gpu/basalt/api"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// book is a Source with one network, whose guests are on the loopback
// interface.
type book struct{ zone *Zone }

func (b book) Guest(n api.NetworkID, a netip.Addr) bool {
	return n == "net-1" && a == netip.MustParseAddr("127.0.0.1")
}

func (b book) Zone(n api.NetworkID) *Zone {
	if n != "net-1" {
		return nil
	}
	return b.zone
}

// outside is a resolver that records the queries it receives.
type outside struct {
	addr netip.AddrPort

	mu    sync.Mutex
	asked []string
	seen  []*dns.Msg
	held  chan struct{} // answers to slow.example. wait for it
}

func newOutside(t testing.TB) *outside {
	t.Helper()
	o := &outside{held: make(chan struct{})}
	udp, tcp := listen(t)
	o.addr = udp.LocalAddr().(*net.UDPAddr).AddrPort()
	for _, s := range []*dns.Server{{PacketConn: udp, Handler: o}, {Listener: tcp, Handler: o}} {
		up := make(chan struct{})
		s.NotifyStartedFunc = func() { close(up) }
		go func() { _ = s.ActivateAndServe() }()
		<-up
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	return o
}

func (o *outside) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	name := q.Question[0].Name
	o.mu.Lock()
	o.asked = append(o.asked, w.RemoteAddr().Network()+" "+name)
	o.seen = append(o.seen, q)
	o.mu.Unlock()
	m := new(dns.Msg)
	m.SetReply(q)
	m.Extra = []dns.RR{option(false)}
	add := func(text string) {
		r, err := dns.NewRR(text)
		if err != nil {
			panic(err)
		}
		m.Answer = append(m.Answer, r)
	}
	switch strings.ToLower(name) {
	case "www.example.":
		add("www.example. 60 IN A 198.51.100.7")
	case "big.example.":
		for i := range 200 {
			add(fmt.Sprintf("big.example. 60 IN A 198.51.100.%d", i))
		}
		if w.RemoteAddr().Network() == "udp" {
			m.Truncate(1232)
		}
	case "slow.example.":
		<-o.held
	case "other.example.":
		m.Question[0].Name = "evil.example."
	case "broken.example.":
		m.Rcode = dns.RcodeServerFailure
	default:
		m.Rcode = dns.RcodeNameError
	}
	_ = w.WriteMsg(m)
}

func (o *outside) heard() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.asked)
}

// listen listens on one port of the loopback interface with UDP and TCP. The
// system chooses a port that is free for UDP; it may be in use for TCP.
func listen(t testing.TB) (net.PacketConn, net.Listener) {
	t.Helper()
	for try := 0; ; try++ {
		udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		tcp, err := net.Listen("tcp4", udp.LocalAddr().String())
		if err == nil {
			return udp, tcp
		}
		udp.Close()
		if !errors.Is(err, syscall.EADDRINUSE) || try == 100 {
			t.Fatal(err)
		}
	}
}

// serving serves a zone on the loopback interface and returns the address.
func serving(t testing.TB, z *Zone, servers ...netip.AddrPort) (string, *server) {
	t.Helper()
	udp, tcp := listen(t)
	f := &Forwarder{slots: make(chan struct{}, nodePending), node: func() []netip.AddrPort { return servers }}
	s := New(book{z}, f).Serve("net-1", udp, tcp)
	t.Cleanup(func() { s.Close() })
	return udp.LocalAddr().String(), s.(*server)
}

func query(name string, kind uint16) *dns.Msg {
	return &dns.Msg{MsgHdr: dns.MsgHdr{Id: dns.Id(), RecursionDesired: true}, Question: []dns.Question{{Name: name, Qtype: kind, Qclass: dns.ClassINET}}}
}

func ask(t testing.TB, network, at string, q *dns.Msg) *dns.Msg {
	t.Helper()
	c := dns.Client{Net: network, Timeout: 20 * time.Second}
	m, _, err := c.Exchange(q, at)
	if err != nil {
		t.Fatalf("query of %s over %s: %v", q.Question[0].Name, network, err)
	}
	return m
}

func TestServe(t *testing.T) {
	o := newOutside(t)
	at, _ := serving(t, NewZone(facts()), o.addr)
	for _, network := range []string{"udp", "tcp"} {
		m := ask(t, network, at, query("Web.shop.internal.", dns.TypeA))
		if len(m.Answer) != 1 || m.Answer[0].(*dns.A).A.String() != "10.64.0.5" || m.Answer[0].Header().Name != "Web.shop.internal." ||
			!m.Authoritative || !m.RecursionAvailable || m.IsEdns0() != nil {
			t.Errorf("answer for web over %s = %v, want 10.64.0.5 with the queried spelling, authoritative, without EDNS", network, m)
		}
		q := query("web.shop.internal.", dns.TypeA)
		q.SetEdns0(4096, true)
		if m := ask(t, network, at, q); len(m.Answer) != 1 || m.IsEdns0() == nil || m.IsEdns0().UDPSize() != udpSize || !m.IsEdns0().Do() {
			t.Errorf("answer over %s with EDNS = %v, want one record, DO and a size of %d", network, m, udpSize)
		}
		if m := ask(t, network, at, query("nobody.shop.internal.", dns.TypeA)); m.Rcode != dns.RcodeNameError || len(m.Ns) != 1 {
			t.Errorf("answer for an unknown name over %s = %v, want NXDOMAIN with a SOA", network, m)
		}
		if m := ask(t, network, at, query("www.example.", dns.TypeA)); len(m.Answer) != 1 || m.Authoritative || m.IsEdns0() != nil {
			t.Errorf("answer for an external name over %s = %v, want one record, not authoritative, without EDNS", network, m)
		}
		if m := ask(t, network, at, query("none.example.", dns.TypeA)); m.Rcode != dns.RcodeNameError {
			t.Errorf("answer for an unknown external name over %s = %v, want NXDOMAIN", network, m)
		}
		if m := ask(t, network, at, query("broken.example.", dns.TypeA)); m.Rcode != dns.RcodeServerFailure {
			t.Errorf("answer for a name with a failing server over %s = %v, want SERVFAIL", network, m)
		}
		if m := ask(t, network, at, query("other.example.", dns.TypeA)); m.Rcode != dns.RcodeServerFailure {
			t.Errorf("answer over %s if the server answers another query = %v, want SERVFAIL", network, m)
		}
	}
	// A long answer: truncated over UDP, complete over TCP.
	m := ask(t, "udp", at, query("big.example.", dns.TypeA))
	if m.Compress = true; !m.Truncated || m.Len() > 512 {
		t.Errorf("answer of %d bytes over UDP with header %v, want at most 512, truncated", m.Len(), m.MsgHdr)
	}
	if m := ask(t, "tcp", at, query("big.example.", dns.TypeA)); m.Truncated || len(m.Answer) != 200 {
		t.Errorf("long answer over TCP has %d records, truncated %v, want 200", len(m.Answer), m.Truncated)
	}
	for _, a := range o.heard() {
		if strings.Contains(a, "internal") {
			t.Errorf("query of %s was forwarded, want no internal names", a)
		}
	}
	if !slices.Contains(o.heard(), "tcp big.example.") {
		t.Errorf("forwarded queries = %v, want big.example. over TCP", o.heard())
	}
	// The forwarded query contains nothing of the guest's packet but its name,
	// type and flags.
	q := query("www.example.", dns.TypeA)
	q.CheckingDisabled = true
	q.SetEdns0(4096, true)
	q.Extra[0].(*dns.OPT).Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: dns.EDNS0LOCALSTART, Data: []byte("secret")}}
	ask(t, "udp", at, q)
	o.mu.Lock()
	defer o.mu.Unlock()
	last := o.seen[len(o.seen)-1]
	if e := last.IsEdns0(); e == nil || len(e.Option) != 0 || e.UDPSize() != udpSize || !e.Do() || !last.CheckingDisabled || last.Id == q.Id {
		t.Errorf("forwarded query = %v, want another ID, EDNS without options, DO and CD", last)
	}
}

// TestServers checks the cases without a server, with a dead one first, and
// queries without recursion.
func TestServers(t *testing.T) {
	o := newOutside(t)
	closed := facts()
	closed.Node = false
	at, _ := serving(t, NewZone(closed), o.addr)
	if m := ask(t, "udp", at, query("www.example.", dns.TypeA)); m.Rcode != dns.RcodeRefused {
		t.Errorf("answer in an isolated network = %v, want REFUSED", m)
	}
	own := closed
	own.Servers = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1"), o.addr}
	at, _ = serving(t, NewZone(own))
	if m := ask(t, "udp", at, query("www.example.", dns.TypeA)); len(m.Answer) != 1 {
		t.Errorf("answer of the second server = %v, want one record", m)
	}
	own.Servers = own.Servers[:1]
	at, _ = serving(t, NewZone(own), o.addr)
	if m := ask(t, "udp", at, query("www.example.", dns.TypeA)); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("answer with a dead server = %v, want SERVFAIL", m)
	}
	q := query("www.example.", dns.TypeA)
	q.RecursionDesired = false
	if m := ask(t, "udp", at, q); m.Rcode != dns.RcodeRefused {
		t.Errorf("answer without recursion = %v, want REFUSED", m)
	}
	at, _ = serving(t, nil)
	if m := ask(t, "udp", at, query("www.example.", dns.TypeA)); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("answer without a zone = %v, want SERVFAIL", m)
	}
}

// TestPending checks that a guest's pending queries are limited with an error,
// and that names of the zone are answered meanwhile.
func TestPending(t *testing.T) {
	o := newOutside(t)
	at, s := serving(t, NewZone(facts()), o.addr)
	var failed atomic.Int32
	var all sync.WaitGroup
	for range guestPending + 10 {
		all.Go(func() {
			if m := ask(t, "udp", at, query("slow.example.", dns.TypeA)); m.Rcode == dns.RcodeServerFailure {
				failed.Add(1)
			}
		})
	}
	for w := patience.Start(); failed.Load() < 10 && !w.Over(20*time.Second); time.Sleep(time.Millisecond) {
	}
	if n := failed.Load(); n != 10 {
		t.Errorf("%d of %d queries failed, want 10", n, guestPending+10)
	}
	if m := ask(t, "udp", at, query("web.shop.internal.", dns.TypeA)); len(m.Answer) != 1 {
		t.Errorf("answer for a local name meanwhile = %v, want one record", m)
	}
	close(o.held)
	all.Wait()
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	for w := patience.Start(); s.limits.pending > 0 && !w.Over(20*time.Second); {
		s.limits.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.limits.mu.Lock()
	}
	if s.limits.pending != 0 {
		t.Errorf("%d queries are still pending at the end, want none", s.limits.pending)
	}
}

func TestLimiter(t *testing.T) {
	now := time.Unix(1000, 0)
	l := newLimiter(func() time.Time { return now })
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	count := func(g netip.Addr) (n int) {
		for l.ask(g) {
			n++
		}
		return n
	}
	if n := count(a); n != burst {
		t.Errorf("%d queries allowed at once, want %d", n, burst)
	}
	if n := count(b); n != burst {
		t.Errorf("%d queries of another guest allowed, want %d", n, burst)
	}
	now = now.Add(time.Second)
	if n := count(a); n != questionsPerSecond {
		t.Errorf("%d queries allowed after a second, want %d", n, questionsPerSecond)
	}
	var done []func()
	for _, g := range []netip.Addr{a, b, netip.MustParseAddr("10.0.0.3")} {
		n := 0
		for d := l.begin(g); d != nil; d = l.begin(g) {
			n++
			done = append(done, d)
		}
		if want := map[bool]int{true: guestPending, false: 0}[g != netip.MustParseAddr("10.0.0.3")]; n != want {
			t.Errorf("%d pending queries of %s, want %d", n, g, want)
		}
	}
	for _, d := range done {
		d()
	}
	if d := l.begin(a); d == nil || l.pending != 1 {
		t.Errorf("%d pending queries after all have ended and one has started, want 1", l.pending)
	}
	for i := range 2 * maxGuests {
		l.ask(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
	}
	if len(l.guests) > maxGuests+1 || l.guests[a] == nil {
		t.Errorf("%d guests are stored, want at most %d, including %s", len(l.guests), maxGuests+1, a)
	}
}

// TestStrangers checks that unknown addresses get no answer, and that
// connections are limited.
func TestStrangers(t *testing.T) {
	at, s := serving(t, NewZone(facts()))
	from := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	c := dns.Client{Timeout: 300 * time.Millisecond, Dialer: &from}
	if m, _, err := c.Exchange(query("web.shop.internal.", dns.TypeA), at); err == nil {
		t.Errorf("answer for an unknown address = %v, want none", m)
	}
	if s.guestKnown("127.0.0.2:1") || !s.guestKnown("127.0.0.1:1") {
		t.Errorf("guestKnown of 127.0.0.2 = %v and of 127.0.0.1 = %v, want false and true", s.guestKnown("127.0.0.2:1"), s.guestKnown("127.0.0.1:1"))
	}
	var conns []net.Conn
	for range guestConns + 1 {
		c, err := net.Dial("tcp4", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	_ = conns[guestConns].SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := conns[guestConns].Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("read of a connection beyond the limit = %v, want it closed", err)
	}
	if err := s.Close(); err != nil { // does not wait for idle connections
		t.Errorf("Close: %v", err)
	}
}

func (s *server) guestKnown(at string) bool {
	_, ok := s.guest(net.UDPAddrFromAddrPort(netip.MustParseAddrPort(at)))
	return ok
}
