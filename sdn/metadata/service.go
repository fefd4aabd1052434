package metadata

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ethtool"
)

// Network is a network whose guests are served on this node.
type Network struct {
	ID      api.NetworkID
	Project api.ProjectID
	// MAC of the network's metadata port, as in OVN's database.
	MAC string
	// CIDR is the range in which the node reaches the guests: the network's IPv4
	// range, or its IPv6 range if it has no other. Guests without IPv4 have no
	// metadata and DNS here: the node only connects to them.
	CIDR netip.Prefix
	MTU  int // bytes; 0: sdn.DefaultMTU
}

// Limits.
const (
	MaxNetworks    = 512 // per node; share chooses those beyond it to leave out
	maxConnections = 64  // per network
	toolTime       = 20 * time.Second
)

// prefix is the prefix of the devices; a name has at most 15 bytes.
const prefix = "bmd"

// Device returns the name of a network's metadata port on the switch's side.
func Device(network api.NetworkID) string {
	sum := sha256.Sum256([]byte(network))
	return prefix + hex.EncodeToString(sum[:6])
}

// Config is the configuration of a Service.
type Config struct {
	Source Source
	// Switch is the address of Open vSwitch's database (unix:…/db.sock), Bridge
	// OVN's integration bridge (empty: br-int).
	Switch, Bridge string
	// Names serves port 53 at the same address, until the returned Closer is
	// closed; nil: no DNS.
	Names interface {
		Serve(network api.NetworkID, udp net.PacketConn, tcp net.Listener) io.Closer
	}
	Log *slog.Logger
}

// Service serves the guests of a node.
type Service struct {
	config Config
	// begin and end are start and stop, except in tests.
	begin func(context.Context, Network) (*running, error)
	end   func(context.Context, *running) error

	mu      sync.Mutex // held by Apply and Close
	running map[api.NetworkID]*running
	swept   bool

	entrances sync.Map // api.NetworkID to *running, of the networks in running that have a namespace, for Dial
}

type running struct {
	network   Network
	namespace *namespace
	server    *http.Server  // nil: no metadata
	ended     chan struct{} // closed when server has ended
	names     io.Closer     // nil: no DNS
}

// NewService returns a service without networks.
func NewService(c Config) *Service {
	if c.Bridge == "" {
		c.Bridge = "br-int"
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	s := &Service{config: c, running: map[api.NetworkID]*running{}}
	s.begin, s.end = s.start, s.stop
	return s
}

// Apply makes the service serve exactly these networks: those of the ports on
// this node, and of more than MaxNetworks those that share chooses. An error
// of one network does not affect the others.
func (s *Service) Apply(ctx context.Context, networks []Network) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	answered, left := share(networks, func(id api.NetworkID) bool { return s.running[id] != nil }, MaxNetworks)
	want := map[api.NetworkID]Network{}
	for _, n := range answered {
		want[n.ID] = n
	}
	all := s.sweep(ctx, want)
	if len(left) > 0 {
		all = errors.Join(all, fmt.Errorf("%d of %d networks on this node have no metadata and name service, e.g. one of project %s: a node serves at most %d", len(left), len(networks), left[0].Project, MaxNetworks))
	}
	for id, r := range s.running {
		if n, ok := want[id]; !ok || n != r.network || r.dead() {
			s.entrances.Delete(id)
			all = errors.Join(all, s.end(ctx, r))
			delete(s.running, id)
		}
	}
	for _, n := range answered {
		id := n.ID
		if s.running[id] != nil {
			continue
		}
		r, err := s.begin(ctx, n)
		if err != nil {
			all = errors.Join(all, fmt.Errorf("serve metadata of network %s: %w", id, err))
			continue
		}
		s.running[id] = r
		if r.namespace != nil {
			s.entrances.Store(id, r)
		}
	}
	return all
}

// sweep removes what an earlier process left: its ports from the switch, and
// its links. A link is removed with its namespace, but that may take minutes:
// the kernel keeps the namespace while it still has to notify a guest of a
// closed connection.
func (s *Service) sweep(ctx context.Context, want map[api.NetworkID]Network) error {
	if s.swept {
		return nil
	}
	ports, err := s.vsctl(ctx, "list-ports", s.config.Bridge)
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for id := range want {
		keep[Device(id)] = true
	}
	for _, p := range strings.Fields(ports) {
		if strings.HasPrefix(p, prefix) && !keep[p] {
			if _, err := s.vsctl(ctx, "--if-exists", "del-port", s.config.Bridge, p); err != nil {
				return err
			}
		}
	}
	links, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("list leftover links: %w", err)
	}
	for _, l := range links {
		if strings.HasPrefix(l.Name, prefix) && !keep[l.Name] {
			if err := unlink(ctx, l.Name); err != nil {
				return err
			}
		}
	}
	s.swept = true
	return nil
}

func (r *running) dead() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

func (s *Service) start(ctx context.Context, n Network) (_ *running, err error) {
	ns, err := newNamespace()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ns.file.Close())
		}
	}()
	device, mtu := Device(n.ID), strconv.Itoa(cmp.Or(n.MTU, sdn.DefaultMTU))
	// A link left by a killed process disappears with its namespace, sooner or
	// later. The switch must release it first: it would not look for a new one
	// under the same name.
	if _, err := command(ctx, "ovs-vsctl", "--db="+s.config.Switch, "--timeout=15", "--", "--if-exists", "del-port", s.config.Bridge, device); err != nil {
		return nil, err
	}
	if err := unlink(ctx, device); err != nil {
		return nil, err
	}
	if _, err := command(ctx, "ip", "link", "add", "dev", device, "mtu", mtu, "type", "veth",
		"peer", "name", "eth0", "address", n.MAC, "mtu", mtu, "netns", ns.path()); err != nil {
		return nil, err
	}
	var at sockets
	err = ns.inside(func() error {
		if err := configure(ctx, n.CIDR); err != nil || n.CIDR.Addr().Is6() {
			return err
		}
		return at.open(s.config.Names != nil)
	})
	if err == nil {
		err = ethtool.SetOffload(device, false)
	}
	if err == nil {
		_, err = command(ctx, "ip", "link", "set", "dev", device, "up")
	}
	if err == nil {
		_, err = s.vsctl(ctx, "--may-exist", "add-port", s.config.Bridge, device, "--",
			"set", "Interface", device, "external_ids:iface-id="+string(sdn.MetadataPort(n.ID)))
	}
	if err != nil {
		return nil, errors.Join(err, at.close())
	}
	r := &running{network: n, namespace: ns}
	if at.web != nil {
		s.serve(r, at)
	}
	return r, nil
}

// serve starts the services for guests at the sockets.
func (s *Service) serve(r *running, at sockets) {
	id := r.network.ID
	r.ended = make(chan struct{})
	r.server = &http.Server{
		Handler: NewServer(id, s.config.Source), MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug), // caused by guests
	}
	go func() {
		defer close(r.ended)
		if err := r.server.Serve(limit(at.web, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
			s.config.Log.Error("metadata service ended", "network", id, "error", err)
		}
	}()
	if s.config.Names != nil {
		r.names = s.config.Names.Serve(id, at.udp, at.tcp)
	}
}

// sockets are the sockets of a network, for metadata and for DNS.
type sockets struct {
	web net.Listener
	udp net.PacketConn
	tcp net.Listener
}

// open opens the sockets in the namespace of the calling thread.
func (s *sockets) open(names bool) (err error) {
	at := func(port uint16) string { return netip.AddrPortFrom(sdn.MetadataAddress, port).String() }
	if s.web, err = net.Listen("tcp4", at(80)); err != nil || !names {
		return err
	}
	if s.udp, err = net.ListenPacket("udp4", at(53)); err != nil {
		return err
	}
	s.tcp, err = net.Listen("tcp4", at(53))
	return err
}

func (s *sockets) close() (all error) {
	for _, c := range []io.Closer{s.web, s.udp, s.tcp} {
		if c != nil {
			all = errors.Join(all, c.Close())
		}
	}
	return all
}

func (s *Service) stop(ctx context.Context, r *running) error {
	var err error
	if r.server != nil {
		err = r.server.Close()
		<-r.ended
	}
	if r.names != nil {
		err = errors.Join(err, r.names.Close())
	}
	device := Device(r.network.ID)
	_, portErr := s.vsctl(ctx, "--if-exists", "del-port", s.config.Bridge, device)
	return errors.Join(err, portErr, unlink(ctx, device), r.namespace.file.Close())
}

// unlink removes a device. The device may disappear meanwhile, with its
// namespace.
func unlink(ctx context.Context, device string) error {
	if !exists(device) {
		return nil
	}
	if _, err := command(ctx, "ip", "link", "del", "dev", device); err != nil && exists(device) {
		return err
	}
	return nil
}

func exists(device string) bool {
	_, err := net.InterfaceByName(device)
	return err == nil
}

// Close stops serving and removes the service's ports.
func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), toolTime)
	defer cancel()
	var all error
	for id, r := range s.running {
		s.entrances.Delete(id)
		all = errors.Join(all, s.end(ctx, r))
		delete(s.running, id)
	}
	return all
}

func (s *Service) vsctl(ctx context.Context, args ...string) (string, error) {
	// Do not wait for ovs-vswitchd: it may not run, and applies the change later.
	return command(ctx, "ovs-vsctl", append([]string{"--db=" + s.config.Switch, "--timeout=10", "--no-wait", "--"}, args...)...)
}

func command(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := cmd.Run(); err != nil {
		words := strings.TrimSpace(bad.String())
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args[:min(3, len(args))], " "), err, words[:min(300, len(words))])
	}
	return out.String(), nil
}

// limit limits the number of open connections; more wait in the kernel's
// queue, which is limited too.
func limit(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type slotConn struct {
	net.Conn
	free func()
}

func (c *slotConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
