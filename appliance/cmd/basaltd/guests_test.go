package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
)

// twoNodes are the dialers of nodes a and b. A stream of a to b is a TCP connection that b serves.
func twoNodes(t *testing.T, here func(context.Context, api.InstanceID, uint16) (net.Conn, error)) (a *guestDialer) {
	t.Helper()
	b := newGuestDialer(slog.New(slog.DiscardHandler))
	b.here = here
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	a = newGuestDialer(slog.New(slog.DiscardHandler))
	a.self = "node-a"
	a.here = func(context.Context, api.InstanceID, uint16) (net.Conn, error) {
		return nil, errors.New("a runs no instance")
	}
	a.stream = func(ctx context.Context, node api.NodeID, name string, header http.Header) (net.Conn, error) {
		if node != "node-b" || name != streamGuest {
			t.Errorf("stream %s to %s, want %s to node-b", name, node, streamGuest)
		}
		c, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		far, err := l.Accept()
		if err != nil {
			return nil, err
		}
		serving.Go(func() {
			defer far.Close()
			b.serve(context.WithoutCancel(ctx), "node-a", header, far)
		})
		return c, nil
	}
	return a
}

// TestGuestOfAnotherNode verifies that a gateway connects to a guest of another node, that each
// direction can be closed, and that the other node's error is returned.
func TestGuestOfAnotherNode(t *testing.T) {
	guest, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close()
	a := twoNodes(t, func(ctx context.Context, id api.InstanceID, port uint16) (net.Conn, error) {
		if id != "ins-1" || port != 8888 {
			return nil, errors.New("connection refused")
		}
		return new(net.Dialer).DialContext(ctx, "tcp", guest.Addr().String())
	})
	c, err := a.Dial(t.Context(), "node-b", "ins-1", 8888)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in, err := guest.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := io.WriteString(c, "question"); err != nil {
		t.Fatal(err)
	}
	if err := c.(transport.HalfCloser).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(in); err != nil || string(text) != "question" {
		t.Fatalf("the guest received %q, error %v; want the question and its end", text, err)
	}
	if _, err := io.WriteString(in, "answer"); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	if text, err := io.ReadAll(c); err != nil || string(text) != "answer" {
		t.Errorf("the gateway received %q, error %v; want the answer", text, err)
	}
	if _, err := a.Dial(t.Context(), "node-b", "ins-1", 80); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("dial of a port that is closed: error %v, want %s", err, api.CodeUnavailable)
	}
}

// TestGuestStreamsAreLimited verifies that connections to guests cannot use up the connections
// that a node accepts of another one, which are also those of the cluster itself.
func TestGuestStreamsAreLimited(t *testing.T) {
	a := twoNodes(t, func(context.Context, api.InstanceID, uint16) (net.Conn, error) {
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		return near, nil
	})
	var open []net.Conn
	dial := func(id api.InstanceID) error {
		c, err := a.Dial(t.Context(), "node-b", id, 8888)
		if err == nil {
			open = append(open, c)
		}
		return err
	}
	for _, id := range []api.InstanceID{"ins-1", "ins-2", "ins-3", "ins-4"} {
		for range maxStreamsOfGuest {
			if err := dial(id); err != nil {
				t.Fatalf("connection %d: %v", len(open)+1, err)
			}
		}
		if err := dial(id); api.CodeOf(err) != api.CodeQuota {
			t.Fatalf("connection %d to %s: error %v, want %s", maxStreamsOfGuest+1, id, err, api.CodeQuota)
		}
	}
	if err := dial("ins-5"); api.CodeOf(err) != api.CodeQuota {
		t.Errorf("connection %d to node b: error %v, want %s", len(open)+1, err, api.CodeQuota)
	}
	_ = open[0].Close()
	_ = open[0].Close() // counted once
	if err := dial("ins-5"); err != nil {
		t.Errorf("connection after one was closed: %v", err)
	}
	if err := dial("ins-5"); api.CodeOf(err) != api.CodeQuota {
		t.Errorf("the next connection: error %v, want %s", err, api.CodeQuota)
	}
	for _, c := range open {
		_ = c.Close()
	}
}
