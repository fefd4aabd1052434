package sshgateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/basalt-gpu/basalt/api"
)

const sshPort = 22

// dial connects to a port of the instance in its network.
func (n *connection) dial(port uint16) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(n.ctx, n.g.limits.dialTime)
	defer cancel()
	c, err := n.g.o.Dialer.Dial(ctx, n.access.Node, n.access.Instance, port)
	var e *api.Error
	switch {
	case errors.As(err, &e):
		return nil, fmt.Errorf("connect to port %d of instance %s: %w", port, n.access.Instance, err)
	case err != nil:
		n.g.o.Log.Debug("SSH gateway: instance cannot be reached", "instance", n.access.Instance, "port", port, "error", err)
		return nil, api.Errorf(api.CodeUnavailable, "instance %s is not reachable on port %d", n.access.Name, port).WithHint("it may still be booting")
	}
	return c, nil
}

// signIn returns the connection to the guest's sshd, which is opened when first
// needed, and again when it has ended.
func (n *connection) signIn() (*ssh.Client, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.guest != nil {
		return n.guest, nil
	}
	user := n.target.User
	if user == "" {
		user = n.access.GuestUser
	}
	if user == "" {
		return nil, api.Errorf(api.CodeInvalid, "the image of instance %s does not specify a user to sign in as", n.access.Name).WithHint("name the user: ssh user%%project/instance@…")
	}
	raw, err := n.dial(sshPort)
	if err != nil {
		return nil, err
	}
	guest, err := n.handshake(raw, user)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	n.guest = guest
	go func() {
		_ = guest.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.guest == guest {
			n.guest = nil
		}
	}()
	return guest, nil
}

func (n *connection) handshake(raw net.Conn, user string) (*ssh.Client, error) {
	signer, err := n.g.o.Authority.certificate(n.ctx, n.access)
	if err != nil {
		return nil, err
	}
	var keyErr error
	config := &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, ClientVersion: "SSH-2.0-Basalt",
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if err := n.g.o.Directory.HostKey(n.ctx, n.access, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))); err != nil {
				keyErr = fmt.Errorf("check the host key of instance %s: %w", n.access.Instance, err)
			}
			return keyErr
		},
		BannerCallback: func(string) error { return nil }}
	config.Ciphers = ciphers
	stop := context.AfterFunc(n.ctx, func() { _ = raw.Close() })
	defer stop()
	_ = raw.SetDeadline(time.Now().Add(n.g.limits.guestTime)) // a closed connection fails below
	c, channels, requests, err := ssh.NewClientConn(buffer(raw), string(n.access.Instance), config)
	switch {
	case keyErr != nil:
		return nil, keyErr
	case err != nil && strings.Contains(err.Error(), "unable to authenticate"):
		return nil, api.Errorf(api.CodeForbidden, "instance %s does not accept the gateway as user %s", n.access.Name, user).
			WithHint("instances from before the gateway, and users other than the image's own, need its line in authorized_keys; ssh -J works without it")
	case err != nil:
		n.g.o.Log.Debug("SSH gateway: handshake with a guest failed", "instance", n.access.Instance, "error", err)
		return nil, api.Errorf(api.CodeUnavailable, "instance %s does not respond as an SSH server", n.access.Name).WithHint("it may still be booting")
	}
	if err := raw.SetDeadline(time.Time{}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	// A guest may open no channels to the gateway, and send it no requests:
	// NewClient refuses both.
	return ssh.NewClient(c, channels, requests), nil
}

func (n *connection) closeGuest() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.guest != nil {
		_ = n.guest.Close()
	}
}
