package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/node/sshgateway"
)

// sshService is the SSH gateway of this node.
type sshService struct {
	n         *node
	authority *sshgateway.Authority
	gateway   *sshgateway.Gateway
	listener  net.Listener
	host      string // at which users reach it; empty: the API's
	port      uint16

	mu   sync.RWMutex              // guards what follows
	keys map[string][]api.SSHKeyID // by fingerprint; slices are never modified
	open map[api.SSHKeyID]string   // fingerprints by ID
}

var sshKinds = []objects.Kind{objects.Of[api.SSHKey]()}

// openSSH opens the SSH gateway's port if --ssh-listen is set.
func (n *node) openSSH(c config) (err error) {
	d := &sshService{n: n, authority: sshgateway.NewAuthority(n.store, n.sealed), keys: map[string][]api.SSHKeyID{}, open: map[api.SSHKeyID]string{}}
	if c.sshListen == "" {
		return nil
	}
	if n.network == nil || n.network.guests == nil {
		return fmt.Errorf("--ssh-listen %s: the SSH gateway reaches instances in networks, and basaltd runs without --network ovn", c.sshListen)
	}
	if d.listener, err = listenAt(c, "SSH gateway", c.sshListen, n.log); err != nil {
		return fmt.Errorf("--ssh-listen: %w", err)
	}
	d.port = d.listener.Addr().(*net.TCPAddr).AddrPort().Port()
	if err := d.reached(c.sshAddress); err != nil {
		return errors.Join(err, d.listener.Close())
	}
	n.closers = append(n.closers, func() error { _ = d.listener.Close(); return nil }) // closed already if Serve has run
	d.gateway = sshgateway.New(sshgateway.Options{Authority: d.authority, Directory: d, Dialer: n.guests, Log: n.log})
	n.ssh = d
	return nil
}

// info returns the description of the gateway for clients.
func (d *sshService) info(ctx context.Context) (api.SSHGateway, error) {
	line, fingerprint, err := d.authority.HostKey(ctx)
	return api.SSHGateway{Host: d.host, Port: int64(d.port), HostKey: line, Fingerprint: fingerprint}, err
}

// reached parses --ssh-address.
func (d *sshService) reached(address string) error {
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

// run returns the tasks that serve clients and keep the index of SSH keys up to date.
func (d *sshService) run() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"SSH keys":    func(ctx context.Context) error { return d.n.cache.Follow(ctx, sshKinds, d.follow) },
		"SSH gateway": d.serve,
	}
}

// serve serves clients once the gateway's keys can be read, which may need a majority of the
// cluster.
func (d *sshService) serve(ctx context.Context) error {
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

// follow updates the index of fingerprints.
func (d *sshService) follow(update watchcache.Update) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if update.All {
		clear(d.keys)
		clear(d.open)
	}
	for _, c := range update.Changes {
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

func (d *sshService) of(fingerprint string) []api.SSHKeyID {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.keys[fingerprint]
}

// Known implements sshgateway.Directory.
func (d *sshService) Known(fingerprint string) bool { return len(d.of(fingerprint)) > 0 }

// Admit implements sshgateway.Directory.
func (d *sshService) Admit(ctx context.Context, fingerprint string, t sshgateway.Target, _ string) (sshgateway.Access, error) {
	a, err := d.n.api.AdmitSSH(ctx, d.of(fingerprint), t.Project, t.Instance)
	if err != nil {
		return sshgateway.Access{}, err
	}
	return sshgateway.Access{Instance: api.InstanceID(a.Instance.Meta.ID), Name: a.Instance.Meta.Name, Node: a.Instance.Assignment.Node, Addresses: a.Addresses(),
		GuestUser: a.GuestUser, User: api.UserID(a.User.Meta.ID), Login: a.User.Meta.Name, Key: api.SSHKeyID(a.Key.Meta.ID), Ticket: a}, nil
}

// OpenShell implements server.Shells.
func (d *sshService) OpenShell(ctx context.Context, a server.SSHAccess, user string) (server.Shell, error) {
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
func (d *sshService) While(ctx context.Context, a sshgateway.Access) (context.Context, context.CancelFunc, error) {
	return d.n.api.WhileSSH(ctx, ticket(a))
}

// HostKey implements sshgateway.Directory.
func (d *sshService) HostKey(ctx context.Context, a sshgateway.Access, key string) error {
	return d.n.api.CheckSSHHostKey(ctx, ticket(a), key)
}

// Opened implements sshgateway.Directory.
func (d *sshService) Opened(ctx context.Context, a sshgateway.Access, from string) error {
	return d.n.api.RecordSSH(ctx, ticket(a), from, 0)
}

// Closed implements sshgateway.Directory.
func (d *sshService) Closed(ctx context.Context, a sshgateway.Access, from string, lasted time.Duration) error {
	return d.n.api.RecordSSH(ctx, ticket(a), from, max(lasted, 1))
}
