// Package listen listens on the addresses of a node's links with a role, and follows
// them while they change: a lease of DHCP, another declared network, a rollback.
package listen

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
)

// ParseRole parses ROLE:PORT. It is not ok for any other address, which names a host.
func ParseRole(address string) (role hostnet.Role, port uint16, ok bool) {
	host, text, err := net.SplitHostPort(address)
	if err != nil || !slices.Contains(hostnet.Roles, hostnet.Role(host)) {
		return "", 0, false
	}
	p, err := strconv.ParseUint(text, 10, 16)
	return hostnet.Role(host), uint16(p), err == nil && p > 0
}

// Addresses returns the addresses to listen on: loopback, and those of the declared
// links with the role. Without a declaration it is the unspecified address, which
// means all, so that a node whose network is not declared remains reachable.
// present returns the present addresses of a link.
func Addresses(n *hostnet.Network, role hostnet.Role, present func(*hostnet.Link) []netip.Addr) []netip.Addr {
	if n == nil {
		return []netip.Addr{netip.IPv6Unspecified()}
	}
	all := []netip.Addr{loopback4, loopback6}
	for _, l := range n.WithRole(role) {
		for _, p := range l.Static {
			all = append(all, p.Addr())
		}
		for _, a := range present(l) {
			if a = a.Unmap(); a.IsGlobalUnicast() {
				all = append(all, a.WithZone(""))
			}
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

var (
	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopback6 = netip.IPv6Loopback()
)

// followEvery is how often the addresses are compared with those in use.
const followEvery = 3 * time.Second

// Options are the options of a Listener.
type Options struct {
	What      string // the service, for the log
	Port      uint16
	Addresses func() []netip.Addr
	Log       *slog.Logger
}

// Listener listens on several addresses. It implements net.Listener.
type Listener struct {
	o      Options
	conns  chan net.Conn
	closed chan struct{}
	done   sync.WaitGroup // the goroutines

	mu      sync.Mutex // guards what follows
	open    map[netip.Addr]net.Listener
	refused map[netip.Addr]bool // addresses whose error is logged
	ended   bool
}

// New listens on the present addresses, and follows them until Close. It returns an
// error if no address can be used.
func New(o Options) (*Listener, error) {
	l := &Listener{o: o, conns: make(chan net.Conn), closed: make(chan struct{}), open: map[netip.Addr]net.Listener{}, refused: map[netip.Addr]bool{}}
	if err := l.sync(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.done.Go(l.follow)
	return l, nil
}

func (l *Listener) follow() {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.closed:
			return
		case <-tick.C:
			_ = l.sync() // is logged, and tried again
		}
	}
}

// sync closes the listeners of addresses that are gone, and opens those of new ones.
// Established connections are not affected.
func (l *Listener) sync() error {
	want := l.o.Addresses()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return net.ErrClosed
	}
	before := slices.SortedFunc(maps.Keys(l.open), netip.Addr.Compare)
	// The unspecified address and others cannot be used at the same time, so the old ones
	// are closed first.
	for a, open := range l.open {
		if !slices.Contains(want, a) {
			_ = open.Close()
			delete(l.open, a)
		}
	}
	var errs []error
	for _, a := range want {
		if l.open[a] == nil {
			errs = append(errs, l.add(a))
		}
	}
	after := slices.SortedFunc(maps.Keys(l.open), netip.Addr.Compare)
	if !slices.Equal(before, after) {
		l.o.Log.Info("listening addresses changed", "service", l.o.What, "port", l.o.Port, "addresses", fmt.Sprint(after))
	}
	if len(after) == 0 {
		return fmt.Errorf("listen on port %d: %w", l.o.Port, errors.Join(errs...))
	}
	return nil
}

// add opens the listener of an address. An address that is declared may not be present
// yet: this is logged once.
func (l *Listener) add(a netip.Addr) error {
	at := netip.AddrPortFrom(a, l.o.Port).String()
	if a.IsUnspecified() {
		at = fmt.Sprintf(":%d", l.o.Port) // both families, if there are two
	}
	open, err := net.Listen("tcp", at)
	if err != nil {
		if !l.refused[a] && a != loopback6 { // there may be no IPv6
			l.refused[a] = true
			l.o.Log.Warn("listen failed, retrying", "service", l.o.What, "error", err)
		}
		return err
	}
	delete(l.refused, a)
	l.open[a] = open
	l.done.Go(func() { l.accept(open) })
	return nil
}

// accept passes the connections of one address on until it is closed.
func (l *Listener) accept(from net.Listener) {
	for {
		c, err := from.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no file descriptors left, or the client has already gone
			l.o.Log.Warn("accept failed, retrying", "service", l.o.What, "error", err)
			select {
			case <-l.closed:
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		select {
		case l.conns <- c:
		case <-l.closed:
			_ = c.Close()
			return
		}
	}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.mu.Lock()
	if !l.ended {
		l.ended = true
		close(l.closed)
	}
	for a, open := range l.open {
		_ = open.Close()
		delete(l.open, a)
	}
	l.mu.Unlock()
	l.done.Wait()
	return nil
}

// Addr implements net.Listener: it returns the port, at the unspecified address.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv6unspecified, Port: int(l.o.Port)} }
