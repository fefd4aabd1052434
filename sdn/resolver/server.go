package resolver

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/miekg/dns"
)

// Limits of a packet and a connection.
const (
	maxQuestion = 2048 // bytes; ordinary ones have some hundred
	idleTime    = 10 * time.Second
	writeTime   = 5 * time.Second
)

// Resolver serves the guests of a node.
type Resolver struct {
	source  Source
	forward *Forwarder
}

// New returns a Resolver without networks.
func New(source Source, forward *Forwarder) *Resolver {
	return &Resolver{source: source, forward: forward}
}

// Serve serves the guests of a network at these sockets until the returned
// Closer is closed, which closes the sockets too.
func (r *Resolver) Serve(network api.NetworkID, udp net.PacketConn, tcp net.Listener) io.Closer {
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{Resolver: r, network: network, limits: newLimiter(time.Now), udp: udp, tcp: tcp, ctx: ctx, cancel: cancel}
	s.running.Go(s.packets)
	s.running.Go(s.connections)
	return s
}

// server serves one network.
type server struct {
	*Resolver
	network api.NetworkID
	limits  *limiter
	udp     net.PacketConn
	tcp     net.Listener
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Close ends pending queries and closes the sockets.
func (s *server) Close() error {
	s.cancel()
	err := errors.Join(s.udp.Close(), s.tcp.Close())
	s.running.Wait()
	return err
}

// guest returns the source of a packet, and whether it is a guest's address.
func (s *server) guest(a net.Addr) (netip.Addr, bool) {
	p, err := netip.ParseAddrPort(a.String())
	addr := p.Addr().Unmap().WithZone("")
	return addr, err == nil && s.source.Guest(s.network, addr)
}

func (s *server) packets() {
	buf := make([]byte, maxQuestion+1)
	for {
		n, from, err := s.udp.ReadFrom(buf)
		if err != nil {
			if s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // such as an ICMP error for an earlier packet
			continue
		}
		guest, ok := s.guest(from)
		if !ok || n > maxQuestion || !s.limits.ask(guest) {
			continue
		}
		s.handle(buf[:n], guest, true, func(reply []byte) {
			_, _ = s.udp.WriteTo(reply, from) // an error means that the guest has ended
		})
	}
}

func (s *server) connections() {
	for {
		c, err := s.tcp.Accept()
		if err != nil {
			if s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // such as too many open files
			continue
		}
		guest, ok := s.guest(c.RemoteAddr())
		var done func()
		if ok {
			done = s.limits.connect(guest)
		}
		if done == nil {
			_ = c.Close()
			continue
		}
		s.running.Go(func() {
			defer done()
			s.connection(c, guest)
		})
	}
}

// connection answers queries one after the other (RFC 7766).
func (s *server) connection(c net.Conn, guest netip.Addr) {
	stop := context.AfterFunc(s.ctx, func() { _ = c.Close() })
	defer stop()
	defer c.Close()
	for {
		_ = c.SetReadDeadline(time.Now().Add(idleTime))
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		packet := make([]byte, binary.BigEndian.Uint16(length[:]))
		if len(packet) > maxQuestion {
			return
		}
		if _, err := io.ReadFull(c, packet); err != nil || !s.limits.ask(guest) {
			return
		}
		sent := make(chan []byte, 1)
		if !s.handle(packet, guest, false, func(reply []byte) { sent <- reply }) {
			return
		}
		reply := <-sent
		_ = c.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// handle handles a packet. It returns true if send is called once, now or
// later, and false if never.
func (s *server) handle(packet []byte, guest netip.Addr, udp bool, send func([]byte)) bool {
	q, no := read(packet)
	if q == nil && no == nil {
		return false
	}
	if no != nil {
		b, err := no.Pack()
		if err != nil {
			return false
		}
		send(b)
		return true
	}
	say := func(m *dns.Msg) {
		size := dns.MaxMsgSize
		if udp {
			size = q.size
		}
		b, err := q.pack(m, size)
		if err != nil { // records of another resolver that cannot be encoded
			b, _ = q.pack(q.reply(dns.RcodeServerFailure), size) // a query that was decoded can be encoded
		}
		send(b)
	}
	z := s.source.Zone(s.network)
	if z == nil {
		say(q.reply(dns.RcodeServerFailure))
		return true
	}
	if a, known := z.answer(q.q); known {
		say(q.local(a))
		return true
	}
	servers := s.forward.servers(z)
	if len(servers) == 0 || !q.recurse { // a query without recursion asks for cached names of others
		say(q.reply(dns.RcodeRefused))
		return true
	}
	done := s.limits.begin(guest)
	if done == nil {
		say(q.reply(dns.RcodeServerFailure))
		return true
	}
	s.running.Go(func() {
		defer done()
		m, err := s.forward.ask(s.ctx, q, servers)
		if err != nil {
			say(q.reply(dns.RcodeServerFailure))
			return
		}
		say(q.relayed(m))
	})
	return true
}
