package sshgateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/limit"
)

// Access is what a client may access.
type Access struct {
	Instance  api.InstanceID
	Name      string     // the instance's name
	Node      api.NodeID // the node that runs it
	Addresses []netip.Addr
	GuestUser string // default user of the image; empty if unknown
	User      api.UserID
	Login     string // the user's login
	Key       api.SSHKeyID
	Ticket    any // for the Directory's own use
}

// Directory decides who may access what.
type Directory interface {
	// Known reports whether some user has the key. Anybody can cause the call, so
	// it must be cheap.
	Known(fingerprint string) bool
	// Admit returns what the owner of a key may access. The error is shown to the
	// client.
	Admit(ctx context.Context, fingerprint string, t Target, from string) (Access, error)
	// While returns a context that ends when the right to access ends.
	While(ctx context.Context, a Access) (context.Context, context.CancelFunc, error)
	// HostKey returns an error if a guest's host key, in the format of
	// authorized_keys, is not the one that is known for the instance.
	HostKey(ctx context.Context, a Access, key string) error
	// Opened and Closed record the start and end of a connection.
	Opened(ctx context.Context, a Access, from string) error
	Closed(ctx context.Context, a Access, from string, lasted time.Duration) error
}

// Dialer connects to a TCP port of an instance in its network.
type Dialer interface {
	Dial(ctx context.Context, node api.NodeID, instance api.InstanceID, port uint16) (net.Conn, error)
}

// Options configures a gateway; all fields but Log are required.
type Options struct {
	Authority *Authority
	Directory Directory
	Dialer    Dialer
	Log       *slog.Logger
}

// Gateway serves SSH clients. It may be used concurrently.
type Gateway struct {
	o      Options
	limits limits

	connections, greeting, users, shells *limit.Counter
}

// New returns a gateway; Serve serves clients.
func New(o Options) *Gateway { return newGateway(o, usual) }

func newGateway(o Options, l limits) *Gateway {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Gateway{o: o, limits: l, connections: limit.NewCounter(l.ofAddress, l.connections), greeting: limit.NewCounter(l.handshakes, l.connections),
		users: limit.NewCounter(l.ofUser, l.connections), shells: limit.NewCounter(l.shellsOfOwner, l.shells)}
}

// ciphers are AEADs for which CPUs have instructions, and CTR for old clients: all
// bytes are decrypted and encrypted once more by the gateway.
var ciphers = []string{"aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes192-ctr", "aes256-ctr"}

// Serve serves clients of a listener until ctx ends, and closes the listener then.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	host, err := g.o.Authority.hostKey(ctx)
	if err != nil {
		return err
	}
	config := &ssh.ServerConfig{MaxAuthTries: maxAuthTries, ServerVersion: "SSH-2.0-Basalt", PublicKeyCallback: g.offered}
	config.Ciphers = ciphers
	config.AddHostKey(host)
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // for example out of descriptors, until others are closed
			g.o.Log.Warn("SSH gateway: accept failed, retrying", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		running.Go(func() { g.serve(ctx, c, config) })
	}
}

const fingerprintOf = "fingerprint"

// offered is called for each key that a client offers, before it has proved its
// possession.
func (g *Gateway) offered(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	f := ssh.FingerprintSHA256(key)
	if !g.o.Directory.Known(f) {
		return nil, errors.New("no user has this key")
	}
	return &ssh.Permissions{Extensions: map[string]string{fingerprintOf: f}}, nil
}

func addressOf(c net.Conn) string {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	return at.Addr().Unmap().WithZone("").String()
}

// serve serves one client.
func (g *Gateway) serve(ctx context.Context, raw net.Conn, config *ssh.ServerConfig) {
	defer raw.Close()
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	from := addressOf(raw)
	leave, ok := g.connections.Enter(from)
	if !ok {
		return
	}
	defer leave()
	c, channels, requests, err := g.greet(raw, from, config)
	if err != nil {
		g.o.Log.Debug("SSH gateway: handshake failed", "address", from, "error", err)
		return
	}
	defer c.Close()
	go ssh.DiscardRequests(requests)
	a, t, err := g.admit(ctx, c, from)
	if err != nil {
		g.o.Log.Info("SSH gateway: refused", "address", from, "user", fmt.Sprintf("%.100q", c.User()), "error", err)
		g.refuse(raw, channels, err)
		return
	}
	leaveUser, ok := g.users.Enter(string(a.User))
	if !ok {
		g.refuse(raw, channels, api.Errorf(api.CodeQuota, "you already have %d open connections on this node, which is the limit", g.limits.ofUser))
		return
	}
	defer leaveUser()
	g.connected(ctx, c, channels, a, t, from)
}

// greet performs the handshake.
func (g *Gateway) greet(raw net.Conn, from string, config *ssh.ServerConfig) (*ssh.ServerConn, <-chan ssh.NewChannel, <-chan *ssh.Request, error) {
	leave, ok := g.greeting.Enter(from)
	if !ok {
		return nil, nil, nil, errors.New("too many handshakes from this address")
	}
	defer leave()
	if err := raw.SetDeadline(time.Now().Add(g.limits.handshakeTime)); err != nil {
		return nil, nil, nil, err
	}
	c, channels, requests, err := ssh.NewServerConn(buffer(raw), config)
	if err != nil {
		return nil, nil, nil, err
	}
	return c, channels, requests, raw.SetDeadline(time.Time{})
}

func (g *Gateway) admit(ctx context.Context, c *ssh.ServerConn, from string) (Access, Target, error) {
	t, err := ParseTarget(c.User())
	if err != nil {
		return Access{}, t, api.Errorf(api.CodeInvalid, "%s", err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, g.limits.handshakeTime)
	defer cancel()
	a, err := g.o.Directory.Admit(ctx, c.Permissions.Extensions[fingerprintOf], t, from)
	if err != nil {
		return a, t, fmt.Errorf("admit to instance %q: %w", t.Instance, err)
	}
	return a, t, nil
}

// connected serves an admitted client until its right ends.
func (g *Gateway) connected(ctx context.Context, c *ssh.ServerConn, channels <-chan ssh.NewChannel, a Access, t Target, from string) {
	ctx, cancel, err := g.o.Directory.While(ctx, a)
	if err != nil {
		g.o.Log.Warn("SSH gateway: watch access rights failed", "instance", a.Instance, "error", err)
		return
	}
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if err := g.o.Directory.Opened(ctx, a, from); err != nil { // no access without a record
		g.o.Log.Warn("SSH gateway: record start of connection failed", "instance", a.Instance, "error", err)
		return
	}
	began := time.Now()
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := g.o.Directory.Closed(end, a, from, time.Since(began)); err != nil {
			g.o.Log.Warn("SSH gateway: record end of connection failed", "instance", a.Instance, "error", err)
		}
	}()
	n := &connection{g: g, ctx: ctx, client: c, access: a, target: t, channels: limit.NewCounter(g.limits.channels, g.limits.channels)}
	n.touch()
	go n.watch(cancel)
	n.serve(channels)
}

// refuse writes the reason to the first session's standard error.
func (g *Gateway) refuse(raw net.Conn, channels <-chan ssh.NewChannel, why error) {
	_ = raw.SetDeadline(time.Now().Add(g.limits.handshakeTime))
	for n := range channels {
		if n.ChannelType() != "session" {
			_ = n.Reject(ssh.Prohibited, message(why))
			continue
		}
		c, requests, err := n.Accept()
		if err != nil {
			return
		}
		writeReason(c, requests, why)
		return
	}
}

// writeReason writes the reason why a session is refused when it requests a program, and
// closes it.
func writeReason(c ssh.Channel, requests <-chan *ssh.Request, why error) {
	for r := range requests {
		begins := r.Type == "shell" || r.Type == "exec" || r.Type == "subsystem"
		if r.WantReply {
			_ = r.Reply(begins || r.Type == "pty-req", nil)
		}
		if begins {
			break
		}
	}
	_, _ = fmt.Fprintf(c.Stderr(), "basalt: %s\r\n", message(why))
	_, _ = c.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{255}))
	_ = c.Close()
}

// message returns the text of an error for the client, without the details of an
// internal error.
func message(err error) string {
	var e *api.Error
	if !errors.As(err, &e) || e.Code == api.CodeInternal {
		return "internal error; try again later"
	}
	if e.Hint != "" {
		return e.Message + " (" + e.Hint + ")"
	}
	return e.Message
}
