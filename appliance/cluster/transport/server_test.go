package transport

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// stranger returns a client with another identity that knows the address of nodeA.
func (c *cluster) stranger(t *testing.T, k *pki.CertificateStore) *node {
	t.Helper()
	n := &node{id: k.Node(), certificates: k, book: &AddressBook{}}
	n.client = NewClient(k, n.book, nil)
	t.Cleanup(n.client.Close)
	n.book.Set(nodeA, c.nodes[nodeA].paths[0].address())
	return n
}

func TestStrangers(t *testing.T) {
	c := newCluster(t, 1, greets, nodeA)
	now := time.Now()
	raftLayer := c.nodes[nodeA].server.Raft()
	t.Cleanup(func() { raftLayer.Close() })
	go func() {
		if got, err := raftLayer.Accept(); err == nil {
			t.Errorf("Raft got a connection from %s", got.(*conn).node)
		}
	}()
	for name, k := range map[string]*pki.CertificateStore{
		// Package pki tests which side refuses, and with which error.
		"another cluster":            newStore(t, newCA(t, "foreign"), "foreign", nodeB, now),
		"a cluster of the same name": newStore(t, newCA(t, "basalt"), "basalt", nodeB, now),
		"an expired certificate":     newStore(t, c.ca, "basalt", nodeB, now.Add(-pki.NodeLifetime-2*time.Hour)),
	} {
		c.members.set(nodeB, true)
		s := c.stranger(t, k)
		if _, err := hello(t.Context(), s, nodeA); api.CodeOf(err) != api.CodeUnavailable {
			t.Errorf("call by %s: got error %v, want code unavailable", name, err)
		}
		if conn, err := s.client.dial(t.Context(), nodeA, ProtocolRaft); err == nil {
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Errorf("%s: reading from a Raft connection succeeded", name)
			}
		}
	}
	c.members.set(nodeB, false)
	removed := c.stranger(t, newStore(t, c.ca, "basalt", nodeB, now))
	if _, err := hello(t.Context(), removed, nodeA); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("call by a removed member: got error %v, want code forbidden", err)
	}
	if _, err := removed.client.Stream(t.Context(), nodeA, "ping", nil); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("stream of a removed member: got error %v, want code forbidden", err)
	}
	conn, err := removed.client.dial(t.Context(), nodeA, ProtocolRaft)
	if err == nil {
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("Raft connection of a removed member: got error %v, want EOF", err)
		}
	}
	impostor := c.stranger(t, newStore(t, c.ca, "basalt", nodeC, now))
	impostor.book.Set(nodeB, c.nodes[nodeA].paths[0].address())
	if _, err := hello(t.Context(), impostor, nodeB); !errors.Is(err, pki.ErrNotPeer) {
		t.Errorf("call to a node at another's address: got error %v, want ErrNotPeer", err)
	}
}

// TestProtocolConfusion checks that the negotiated protocol determines what is
// required: offering several, or using another one later, does not circumvent it.
func TestProtocolConfusion(t *testing.T) {
	c := newCluster(t, 1, greets, nodeA, nodeB)
	address := c.nodes[nodeA].paths[0].address()
	dial := func(alpn ...string) (*tls.Conn, error) {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: alpn})
		if err == nil {
			patience.Limit(t, time.Minute, conn)
		}
		return conn, err
	}
	for _, alpn := range [][]string{nil, {"h2"}, {"http/1.1", "h2"}, {ProtocolRaft}, {ProtocolPeer}, {ProtocolJoin, ProtocolPeer}, {ProtocolJoin, ProtocolRaft}} {
		conn, err := dial(alpn...)
		if err == nil { // in TLS 1.3 a certificate is refused after the client's handshake
			io.WriteString(conn, "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
			_, err = conn.Read(make([]byte, 1))
			conn.Close()
		}
		var remote *net.OpError
		if !errors.As(err, &remote) || remote.Op != "remote error" {
			t.Errorf("protocols %v without a certificate: got error %v, want a remote error", alpn, err)
		}
	}
	// A joining node can use only /join, a member with the peer protocol cannot use
	// /join, and Raft serves no HTTP.
	conn, err := dial(ProtocolJoin)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	if got := readAll(t, conn); !strings.HasPrefix(got, "HTTP/1.1 404") {
		t.Errorf("call by a joining node: got %s, want status 404", got)
	}
	conn.Close()
	if err := c.nodes[nodeB].client.Call(t.Context(), nodeA, "POST", "/join", nil, nil); err == nil {
		t.Error("POST /join by a member got no error")
	}
}

// TestRubbishAndSilence checks that connections that send nothing, an incomplete
// message or garbage are closed and do not block other nodes.
func TestRubbishAndSilence(t *testing.T) {
	c := newCluster(t, 1, func(n *node) {
		greets(n)
		n.server.handshake = time.Second
	}, nodeA, nodeB)
	address := c.nodes[nodeA].server.Addresses()[0]
	garbage := make([]byte, 4<<10)
	rand.Read(garbage)
	var open []net.Conn
	for i := range 3 * maxPendingHost {
		// All come from one unknown address; members come from another.
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 99)}}
		conn, err := from.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		patience.Limit(t, time.Minute, conn)
		switch i % 3 {
		case 0:
			conn.Write(garbage)
		case 1:
			conn.Write([]byte{22, 3, 1, 2, 0, 1}) // the beginning of a ClientHello
		}
		open = append(open, conn)
	}
	if _, err := hello(t.Context(), c.nodes[nodeB], nodeA); err != nil {
		t.Errorf("call by a member: %v", err)
	}
	for i, conn := range open {
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
			t.Fatalf("connection %d is still open", i)
		}
	}
	g := &c.nodes[nodeA].server.pending
	eventually(t, "no handshake counted as pending", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.total == 0 && len(g.hosts) == 0
	})
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestGate(t *testing.T) {
	var g gate
	for i := range maxPendingHost + 1 {
		if g.enter("one") != (i < maxPendingHost) {
			t.Fatalf("handshake %d of one address: wrong result of enter", i)
		}
	}
	n := maxPendingHost
	for i := 0; ; i++ {
		if !g.enter(string(rune('a' + i/maxPendingHost))) {
			break
		}
		n++
	}
	if n != maxPending {
		t.Errorf("got %d handshakes at once, want %d", n, maxPending)
	}
	g.leave("one")
	if !g.enter("two") {
		t.Error("enter failed after a handshake had left")
	}
}

func TestBucket(t *testing.T) {
	b := bucket{burst: 3, perSecond: 2}
	now := time.Now()
	took := func(at time.Duration) (n int) {
		for b.take(now.Add(at)) {
			n++
		}
		return n
	}
	for i, c := range []struct {
		at   time.Duration
		want int
	}{{0, 3}, {0, 0}, {500 * time.Millisecond, 1}, {1500 * time.Millisecond, 2}, {time.Hour, 3}} {
		if got := took(c.at); got != c.want {
			t.Errorf("step %d: took %d, want %d", i, got, c.want)
		}
	}
}

func TestConnectionLimit(t *testing.T) {
	c := newCluster(t, 1, func(n *node) {
		greets(n)
		n.server.in.limit = 3
	}, nodeA, nodeB, nodeC)
	b := c.nodes[nodeB]
	var streams []net.Conn
	for range 3 {
		s, err := b.client.Stream(t.Context(), nodeA, "ping", nil)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	if _, err := b.client.Stream(t.Context(), nodeA, "ping", nil); err == nil {
		t.Error("the connection over the limit got no error")
	}
	if _, err := hello(t.Context(), c.nodes[nodeC], nodeA); err != nil {
		t.Errorf("call by another node: %v", err)
	}
	streams[0].Close()
	eventually(t, "a connection of the node is accepted again", func() bool {
		_, err := hello(t.Context(), b, nodeA)
		return err == nil
	})
}

// TestRemovedNodeIsCutOff checks that Disconnect and Recheck close the connections of a
// removed node.
func TestRemovedNodeIsCutOff(t *testing.T) {
	for name, cut := range map[string]func(*Server){
		"Disconnect": func(s *Server) { s.Disconnect(nodeB) },
		"Recheck":    (*Server).Recheck,
	} {
		ended := make(chan struct{})
		c := newCluster(t, 1, func(n *node) {
			greets(n)
			n.server.HandleStream("wait", func(ctx context.Context, _ api.NodeID, _ http.Header, _ net.Conn) {
				<-ctx.Done()
				close(ended)
			})
		}, nodeA, nodeB, nodeC)
		a, b := c.nodes[nodeA], c.nodes[nodeB]
		stream, err := b.client.Stream(t.Context(), nodeA, "wait", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := hello(t.Context(), c.nodes[nodeC], nodeA); err != nil {
			t.Fatal(err)
		}
		raft, err := b.server.Raft().Dial(raftAddress(nodeA), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := a.server.Raft().Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer accepted.Close()
		if _, err := hello(t.Context(), a, nodeB); err != nil {
			t.Fatal(err)
		}
		c.members.set(nodeB, false)
		cut(a.server)
		for what, conn := range map[string]net.Conn{"stream": stream, "raft": raft} {
			conn.SetDeadline(time.Now().Add(time.Minute))
			if _, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
				t.Errorf("%s: the %s connection is still open: %v", name, what, err)
			}
		}
		<-ended
		for _, x := range append(a.server.in.all(), a.client.out.all()...) {
			if x.node == nodeB {
				t.Errorf("%s: a connection of the removed node remains", name)
			}
		}
		if _, err := hello(t.Context(), c.nodes[nodeC], nodeA); err != nil {
			t.Errorf("%s: call by another member: %v", name, err)
		}
	}
}

func TestNewServerSaysWhatIsMissing(t *testing.T) {
	if _, err := NewServer(Options{}); err == nil {
		t.Error("NewServer without options got no error")
	}
	c := newCluster(t, 1, nil, nodeA)
	a := c.nodes[nodeA]
	taken := a.server.Addresses()[0]
	_, err := NewServer(Options{Certificates: a.certificates, Client: a.client, Member: c.members.is, Listen: []string{"127.0.0.2:0", taken}})
	if err == nil || !strings.Contains(err.Error(), taken) {
		t.Errorf("address in use: got error %v, want one that names it", err)
	}
}
