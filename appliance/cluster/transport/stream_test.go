package transport

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
)

// TestStream checks that a stream carries bytes in both directions at the same
// time, and that each direction can be closed separately.
func TestStream(t *testing.T) {
	sizes := make(chan int64, 1)
	c := newCluster(t, 1, func(n *node) {
		n.server.HandleStream("digest", func(ctx context.Context, from api.NodeID, header http.Header, conn net.Conn) {
			// Reading to the end before answering requires a half-close.
			h := sha256.New()
			size, err := io.Copy(h, conn)
			if err != nil || ctx.Err() != nil || from != nodeA || header.Get("Basalt-Volume") != "vol-1" {
				t.Errorf("stream: got error %v, context error %v, caller %s, header %v", err, ctx.Err(), from, header)
			}
			sizes <- size
			conn.Write(h.Sum(nil))
		})
		n.server.HandleStream("talk", func(_ context.Context, _ api.NodeID, _ http.Header, conn net.Conn) {
			conn.Write([]byte("first word"))
			if err := conn.(HalfCloser).CloseWrite(); err != nil {
				t.Error(err)
			}
			io.Copy(io.Discard, conn)
		})
	}, nodeA, nodeB)
	a := c.nodes[nodeA]
	s, err := a.client.Stream(t.Context(), nodeB, "digest", http.Header{"Basalt-Volume": {"vol-1"}})
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 5<<20)
	rand.Read(data)
	if _, err := io.Copy(s, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if err := s.(HalfCloser).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	want := sha256.Sum256(data)
	if got := readAll(t, s); got != string(want[:]) || <-sizes != int64(len(data)) {
		t.Error("the received bytes differ from those that were sent")
	}
	s.Close()

	// Bytes that arrive together with the header of the answer are not lost.
	s, err = a.client.Stream(t.Context(), nodeB, "talk", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, s); got != "first word" {
		t.Errorf("got %q, want \"first word\"", got)
	}
	if _, err := s.Write(make([]byte, 1<<20)); err != nil {
		t.Errorf("write after the other side closed its direction: %v", err)
	}
	s.Close()
	for _, n := range c.nodes {
		eventually(t, "all connections closed", func() bool { return len(n.server.in.all())+len(n.client.out.all()) == 0 })
	}
}

// TestAllowPauses checks that the kernel does not close a stream that allows pauses as soon as
// other connections, on either side.
func TestAllowPauses(t *testing.T) {
	timeout := func(c net.Conn) time.Duration {
		raw, err := c.(*streamConn).NetConn().(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		ms := 0
		if e := raw.Control(func(fd uintptr) { ms, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); e != nil || err != nil {
			t.Fatal(e, err)
		}
		return time.Duration(ms) * time.Millisecond
	}
	far := make(chan time.Duration, 2)
	c := newCluster(t, 1, func(n *node) {
		n.server.HandleStream("paused", func(_ context.Context, _ api.NodeID, _ http.Header, conn net.Conn) {
			far <- timeout(conn)
			if err := AllowPauses(conn); err != nil {
				t.Error(err)
			}
			far <- timeout(conn)
		})
	}, nodeA, nodeB)
	s, err := c.nodes[nodeA].client.Stream(t.Context(), nodeB, "paused", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before := timeout(s)
	if err := AllowPauses(s); err != nil {
		t.Fatal(err)
	}
	if got, want := [4]time.Duration{before, <-far, timeout(s), <-far}, [4]time.Duration{unanswered, unanswered, longestPause, longestPause}; got != want {
		t.Errorf("time limits of unacknowledged bytes, before on both sides and after: %v, want %v", got, want)
	}
}

func TestStreamRefused(t *testing.T) {
	c := newCluster(t, 1, nil, nodeA, nodeB)
	a := c.nodes[nodeA]
	if _, err := a.client.Stream(t.Context(), nodeB, "nothing", nil); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("stream without a handler: got error %v, want code not found", err)
	}
	if _, err := a.client.Stream(t.Context(), nodeC, "ping", nil); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("stream to an unknown node: got error %v, want code unavailable", err)
	}
	if err := a.client.Call(t.Context(), nodeB, "GET", "/stream/ping", nil, nil); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("call of a stream's path: got error %v, want code not found", err)
	}
	c.nodes[nodeB].paths[0].set("silent")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := a.client.Stream(ctx, nodeB, "ping", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stream to a silent node: got error %v, want context.DeadlineExceeded", err)
	}
	a.client.pool.CloseIdleConnections()
	eventually(t, "all connections closed", func() bool { return len(a.client.out.all()) == 0 })
}
