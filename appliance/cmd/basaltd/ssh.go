package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/node/sshgateway"
)

const (
	// streamGuest carries a TCP connection to a guest of the node that is asked. It
	// begins with the length of an error's JSON, 2 bytes, big-endian, and the error: 0
	// and nothing where the guest has answered.
	streamGuest = "guest"
	guestHeader = "Basalt-Guest"

	guestDialTime = 15 * time.Second
)

// guestAddress is what the header says.
type guestAddress struct {
	Instance api.InstanceID `json:"instance"`
	Port     uint16         `json:"port"`
}

// sshDoor is the SSH gateway of this node, and what guests of other nodes are reached
// by.
type sshDoor struct {
	n         *node
	authority *sshgateway.Authority
	gateway   *sshgateway.Gateway
	listener  net.Listener
	host      string // under which users reach it; empty: the API's
	port      uint16

	mu   sync.RWMutex              // guards what follows
	keys map[string][]api.SSHKeyID // by fingerprint; a slice is never written to again
	open map[api.SSHKeyID]string   // their fingerprints
}

var sshKinds = []objects.Kind{objects.Of[api.SSHKey]()}

// openSSH opens the port, unless there is to be none.
func (n *node) openSSH(c config) (err error) {
	d := &sshDoor{n: n, authority: sshgateway.NewAuthority(n.store, n.sealed), keys: map[string][]api.SSHKeyID{}, open: map[api.SSHKeyID]string{}}
	if n.cluster != nil {
		n.cluster.server.HandleStream(streamGuest, d.serveGuest)
	}
	if c.sshListen == "" {
		return nil
	}
	if n.network == nil || n.network.guests == nil {
		return fmt.Errorf("--ssh-listen %s: the SSH gateway reaches instances in networks, and basaltd runs without --network ovn", c.sshListen)
	}
	if d.listener, err = transport.Listen(net.ListenConfig{}, c.sshListen); err != nil {
		return fmt.Errorf("--ssh-listen: %w", err)
	}
	d.port = d.listener.Addr().(*net.TCPAddr).AddrPort().Port()
	if err := d.reached(c.sshAddress); err != nil {
		return errors.Join(err, d.listener.Close())
	}
	n.closers = append(n.closers, func() error { _ = d.listener.Close(); return nil }) // Serve has closed it when it ran
	d.gateway = sshgateway.New(sshgateway.Options{Authority: d.authority, Directory: d, Dialer: d, Log: n.log})
	n.ssh = d
	return nil
}

// info is what clients are told of the gateway.
func (d *sshDoor) info(ctx context.Context) (api.SSHGateway, error) {
	line, fingerprint, err := d.authority.HostKey(ctx)
	return api.SSHGateway{Host: d.host, Port: int64(d.port), HostKey: line, Fingerprint: fingerprint}, err
}

// reached reads --ssh-address.
func (d *sshDoor) reached(address string) error {
	if address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		d.host = address // without a port
		return nil
	}
	p, err := strconv.ParseUint(port, 10, 16)
	if err != nil || p == 0 {
		return fmt.Errorf("--ssh-address %s: want HOST or HOST:PORT", address)
	}
	d.host, d.port = host, uint16(p)
	return nil
}

// run serves clients, and follows who has which key.
func (d *sshDoor) run() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"SSH keys":    func(ctx context.Context) error { return d.n.cache.Follow(ctx, sshKinds, d.follow) },
		"SSH gateway": d.serve,
	}
}

// serve as soon as there are keys of the gateway's: a majority of the cluster may have
// to come first.
func (d *sshDoor) serve(ctx context.Context) error {
	for ctx.Err() == nil {
		_, _, err := d.authority.HostKey(ctx)
		if err == nil {
			return d.gateway.Serve(ctx, d.listener)
		}
		d.n.log.Debug("SSH gateway: read keys failed, retrying", "error", err)
		sleep(ctx, time.Second)
	}
	return ctx.Err()
}

// follow keeps the index of fingerprints.
func (d *sshDoor) follow(news watchcache.News) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if news.All {
		clear(d.keys)
		clear(d.open)
	}
	for _, c := range news.Changes {
		id := api.SSHKeyID(c.ID)
		if f, ok := d.open[id]; ok {
			d.keys[f] = slices.DeleteFunc(slices.Clone(d.keys[f]), func(x api.SSHKeyID) bool { return x == id })
			if len(d.keys[f]) == 0 {
				delete(d.keys, f)
			}
			delete(d.open, id)
		}
		if k, ok := c.Now.(api.SSHKey); ok {
			f := k.Spec.Fingerprint
			d.keys[f], d.open[id] = append(slices.Clone(d.keys[f]), id), f
		}
	}
}

func (d *sshDoor) of(fingerprint string) []api.SSHKeyID {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.keys[fingerprint]
}

// Known implements sshgateway.Directory.
func (d *sshDoor) Known(fingerprint string) bool { return len(d.of(fingerprint)) > 0 }

// Admit implements sshgateway.Directory.
func (d *sshDoor) Admit(ctx context.Context, fingerprint string, t sshgateway.Target, _ string) (sshgateway.Access, error) {
	a, err := d.n.api.AdmitSSH(ctx, d.of(fingerprint), t.Project, t.Instance)
	if err != nil {
		return sshgateway.Access{}, err
	}
	return sshgateway.Access{Instance: api.InstanceID(a.Instance.Meta.ID), Name: a.Instance.Meta.Name, Node: a.Instance.Assignment.Node, Addresses: a.Addresses(),
		GuestUser: a.GuestUser, User: api.UserID(a.User.Meta.ID), Login: a.User.Meta.Name, Key: api.SSHKeyID(a.Key.Meta.ID), Ticket: a}, nil
}

// OpenShell implements server.Shells.
func (d *sshDoor) OpenShell(ctx context.Context, a server.SSHAccess, user string) (server.Shell, error) {
	access := sshgateway.Access{Instance: api.InstanceID(a.Instance.Meta.ID), Name: a.Instance.Meta.Name, Node: a.Instance.Assignment.Node, GuestUser: a.GuestUser,
		User: a.Caller.User, Login: a.Caller.Name, Ticket: a}
	s, err := d.gateway.OpenShell(ctx, access, sshgateway.ShellOptions{Owner: cmp.Or(string(a.Caller.User), a.Caller.ID), User: user})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func ticket(a sshgateway.Access) server.SSHAccess { return a.Ticket.(server.SSHAccess) }

// While implements sshgateway.Directory.
func (d *sshDoor) While(ctx context.Context, a sshgateway.Access) (context.Context, context.CancelFunc, error) {
	return d.n.api.WhileSSH(ctx, ticket(a))
}

// HostKey implements sshgateway.Directory.
func (d *sshDoor) HostKey(ctx context.Context, a sshgateway.Access, key string) error {
	return d.n.api.CheckSSHHostKey(ctx, ticket(a), key)
}

// Opened implements sshgateway.Directory.
func (d *sshDoor) Opened(ctx context.Context, a sshgateway.Access, from string) error {
	return d.n.api.NoteSSH(ctx, ticket(a), from, 0)
}

// Closed implements sshgateway.Directory.
func (d *sshDoor) Closed(ctx context.Context, a sshgateway.Access, from string, lasted time.Duration) error {
	return d.n.api.NoteSSH(ctx, ticket(a), from, max(lasted, 1))
}

// Dial implements sshgateway.Dialer.
func (d *sshDoor) Dial(ctx context.Context, node api.NodeID, instance api.InstanceID, port uint16) (net.Conn, error) {
	if d.n.cluster == nil || node == d.n.cluster.self.Node {
		return d.dialHere(ctx, instance, port)
	}
	raw, err := json.Marshal(guestAddress{instance, port})
	if err != nil {
		return nil, err
	}
	c, err := d.n.cluster.client.Stream(ctx, node, streamGuest, http.Header{guestHeader: {string(raw)}})
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	err = readGuestAnswer(c)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func readGuestAnswer(c io.Reader) error {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return fmt.Errorf("ask the node of the instance: %w", err)
	}
	n := binary.BigEndian.Uint16(size[:])
	if n == 0 {
		return nil
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(c, raw); err != nil {
		return fmt.Errorf("ask the node of the instance: %w", err)
	}
	e := new(api.Error)
	if err := json.Unmarshal(raw, e); err != nil {
		return fmt.Errorf("ask the node of the instance: %w", err)
	}
	return e
}

func writeGuestAnswer(c io.Writer, err error) error {
	var raw []byte
	if err != nil {
		if raw, err = json.Marshal(transport.Domain(err)); err != nil {
			return err
		}
	}
	if len(raw) > 1<<16-1 {
		raw = nil
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(raw))), raw...))
	return err
}

// dialHere reaches a port of a guest that this node runs.
func (d *sshDoor) dialHere(ctx context.Context, id api.InstanceID, port uint16) (net.Conn, error) {
	f := d.n.network
	if f == nil || f.service == nil {
		return nil, api.Errorf(api.CodeUnavailable, "networks are not available on this node")
	}
	o, err := d.n.store.Get(store.Stale(ctx), api.KindInstance, string(id))
	if err != nil {
		return nil, err
	}
	in, err := api.Decode[api.Instance](o)
	if err != nil {
		return nil, err
	}
	for _, p := range in.Assignment.Ports {
		if at, err := netip.ParseAddr(p.Address4); err == nil {
			return f.service.Dial(ctx, p.Network, netip.AddrPortFrom(at, port))
		}
	}
	return nil, api.Errorf(api.CodeState, "instance %s has no IPv4 address", in.Meta.Name).WithHint("the SSH gateway reaches instances over IPv4")
}

// serveGuest connects another node's gateway to a guest of this one.
func (d *sshDoor) serveGuest(ctx context.Context, node api.NodeID, header http.Header, c net.Conn) {
	var to guestAddress
	if err := json.Unmarshal([]byte(header.Get(guestHeader)), &to); err != nil {
		d.n.log.Warn("read stream to guest failed", "node", node, "error", err)
		return
	}
	dialed, cancel := context.WithTimeout(ctx, guestDialTime)
	guest, err := d.dialHere(dialed, to.Instance, to.Port)
	cancel()
	if err != nil {
		d.n.log.Debug("connect to guest for another node failed", "node", node, "instance", to.Instance, "port", to.Port, "error", err)
		_ = writeGuestAnswer(c, api.Errorf(api.CodeUnavailable, "the instance is not reachable on port %d", to.Port).WithHint("it may still be booting"))
		return
	}
	defer guest.Close()
	stop := context.AfterFunc(ctx, func() { _ = guest.Close() })
	defer stop()
	if err := writeGuestAnswer(c, nil); err != nil {
		return
	}
	var both sync.WaitGroup
	half := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		if h, ok := to.(transport.HalfCloser); ok && err == nil {
			_ = h.CloseWrite()
			return
		}
		_, _ = to.Close(), from.Close()
	}
	both.Go(func() { half(guest, c) })
	both.Go(func() { half(c, guest) })
	both.Wait()
}
