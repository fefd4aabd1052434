package sshgateway

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// limited is a gateway with some limits in front of a fake guest, and a client's
// key.
type limited struct {
	*guest
	address string
	key     ssh.Signer
}

func newLimited(t *testing.T, change func(*limits)) *limited {
	t.Helper()
	f := newGuest(t)
	f.does(sessions(program(func(c ssh.Channel) {
		_, _ = io.Copy(c, c)
		exits(c, 0)
	})))
	f.w.key = f.w.dir + "/key"
	f.w.owner = ssh.FingerprintSHA256(newKey(t, f.w.key))
	raw, err := os.ReadFile(f.w.key)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	l := usual
	change(&l)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- newGateway(f.w.gatewayOptions(), l).Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Serve: %v, want %v", err, context.Canceled)
		}
	})
	return &limited{guest: f, address: listener.Addr().String(), key: key}
}

// dial signs in to the gateway.
func (l *limited) dial(t *testing.T) (*ssh.Client, error) {
	t.Helper()
	c, err := ssh.Dial("tcp", l.address, &ssh.ClientConfig{User: "demo", Auth: []ssh.AuthMethod{ssh.PublicKeys(l.key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()}) //nolint:gosec // of this process
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func (l *limited) mustDial(t *testing.T) *ssh.Client {
	t.Helper()
	c, err := l.dial(t)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// echo starts a program in the guest that returns what it receives.
func echo(t *testing.T, c *ssh.Client) (in io.WriteCloser, out io.Reader) {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if in, err = s.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if out, err = s.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	return in, out
}

// hungUp waits until the gateway closes a connection.
func hungUp(t *testing.T, what string, c io.Reader) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, c)
		close(ended)
	}()
	select {
	case <-ended:
	case <-patience.After(30 * time.Second):
		t.Fatalf("%s: connection still open after 30 s, want it closed", what)
	}
}

func TestConnectionsOfAnAddress(t *testing.T) {
	l := newLimited(t, func(l *limits) { l.ofAddress = 2 })
	first := l.mustDial(t)
	echo(t, first)
	echo(t, l.mustDial(t))
	if _, err := l.dial(t); err == nil {
		t.Error("third connection of an address with a limit of 2 succeeded, want an error")
	}
	_ = first.Close()
	patience.Until(t, 30*time.Second, "another connection admitted after one was closed", func() bool {
		_, err := l.dial(t)
		return err == nil
	})
}

func TestConnectionsOfAUser(t *testing.T) {
	l := newLimited(t, func(l *limits) { l.ofUser = 1 })
	echo(t, l.mustDial(t)) // the gateway has counted it
	s, err := l.mustDial(t).NewSession()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	s.Stderr = &said
	if err := s.Run("true"); err == nil || !strings.Contains(said.String(), "1 open connections on this node") {
		t.Errorf("second connection of a user with a limit of 1: stderr %q, error %v; want it refused", said.String(), err)
	}
}

func TestHandshakesOfAnAddress(t *testing.T) {
	l := newLimited(t, func(l *limits) { l.handshakes, l.handshakeTime = 1, 300*time.Millisecond })
	silent, err := net.Dial("tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := io.ReadFull(silent, make([]byte, len("SSH-2.0-Basalt\r\n"))); err != nil { // the handshake has begun
		t.Fatal(err)
	}
	if _, err := l.dial(t); err == nil {
		t.Log("the first handshake had ended before the second began") // on a machine that was stalled
	}
	hungUp(t, "client that sends nothing", silent)
	patience.Until(t, 30*time.Second, "another handshake admitted after the first has timed out", func() bool {
		_, err := l.dial(t)
		return err == nil
	})
}

func TestChannelsOfAConnection(t *testing.T) {
	l := newLimited(t, func(l *limits) { l.channels = 2 })
	c := l.mustDial(t)
	in, _ := echo(t, c)
	echo(t, c)
	var refused *ssh.OpenChannelError
	if _, err := c.NewSession(); !errors.As(err, &refused) || refused.Reason != ssh.ResourceShortage {
		t.Errorf("third session with a limit of 2: error %v, want resource shortage", err)
	}
	_ = in.Close()
}

// TestIdleConnections checks that a connection without traffic is closed, and that
// one with traffic is not.
func TestIdleConnections(t *testing.T) {
	const idle = 500 * time.Millisecond
	l := newLimited(t, func(l *limits) { l.idleTime, l.askEvery = idle, 20*time.Millisecond })
	c := l.mustDial(t)
	in, out := echo(t, c)
	began := time.Now()
	b := make([]byte, 1)
	for time.Since(began) < 2*idle {
		if _, err := in.Write(b); err != nil {
			t.Fatalf("write to a used connection failed after %v: %v", time.Since(began), err)
		}
		if _, err := io.ReadFull(out, b); err != nil {
			t.Fatalf("read from a used connection failed after %v: %v", time.Since(began), err)
		}
	}
	hungUp(t, "idle connection", out)
}

// TestSilentClients checks that a client which does not answer keepalives is
// disconnected.
func TestSilentClients(t *testing.T) {
	l := newLimited(t, func(l *limits) { l.askEvery, l.askTime = 20*time.Millisecond, 100*time.Millisecond })
	raw, err := net.Dial("tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	c, channels, requests, err := ssh.NewClientConn(raw, l.address, &ssh.ClientConfig{User: "demo", Auth: []ssh.AuthMethod{ssh.PublicKeys(l.key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()}) //nolint:gosec // of this process
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range requests { // without a reply
		}
	}()
	go func() {
		for range channels {
		}
	}()
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-patience.After(30 * time.Second):
		t.Error("client that answers no keepalives still connected after 30 s, want it disconnected")
	}
}
