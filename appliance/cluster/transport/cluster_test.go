package transport

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

const nodeA, nodeB, nodeC = api.NodeID("node-00000000000a"), api.NodeID("node-00000000000b"), api.NodeID("node-00000000000c")

// eventually waits until ok returns true, for what the network does asynchronously.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	patience.Until(t, time.Minute, what, ok)
}

// testPath is one network path to one node, which a test can interrupt.
type testPath struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	mode  string // "" if open; "cut" resets and refuses connections; "silent" accepts everything and forwards nothing
	conns map[net.Conn]bool
	open  *sync.Cond
}

func newTestPath(t *testing.T, address, target string) *testPath {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	r := &testPath{listener: l, target: target, conns: map[net.Conn]bool{}}
	r.open = sync.NewCond(&r.mu)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.carry(c)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		r.set("cut")
	})
	return r
}

func (r *testPath) address() string { return r.listener.Addr().String() }

func (r *testPath) set(mode string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mode = mode
	if mode == "cut" {
		for c := range r.conns {
			c.Close()
		}
		clear(r.conns)
	}
	r.open.Broadcast()
}

// pass waits until the path is not silent and reports whether it is open.
func (r *testPath) pass() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.mode == "silent" {
		r.open.Wait()
	}
	return r.mode == ""
}

func (r *testPath) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mode == "cut" {
		c.Close()
		return false
	}
	r.conns[c] = true
	return true
}

func (r *testPath) carry(from net.Conn) {
	defer from.Close()
	if !r.keep(from) || !r.pass() {
		return
	}
	to, err := net.Dial("tcp", r.target)
	if err != nil || !r.keep(to) {
		return
	}
	defer to.Close()
	move := func(dst, src net.Conn) {
		b := make([]byte, 32<<10)
		for {
			n, err := src.Read(b)
			if !r.pass() {
				return
			}
			if n > 0 {
				if _, err := dst.Write(b[:n]); err != nil {
					return
				}
			}
			if err != nil {
				dst.(*net.TCPConn).CloseWrite()
				return
			}
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		move(to, from)
	}()
	move(from, to)
	<-done
}

// node is a node in a test.
type node struct {
	id           api.NodeID
	certificates *pki.CertificateStore
	book         *AddressBook
	client       *Client
	server       *Server
	paths        []*testPath // to this node, one per path
}

// members is the changeable set of members of a test's cluster.
type members struct {
	mu  sync.Mutex
	ids map[api.NodeID]bool
}

func (m *members) is(id api.NodeID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ids[id]
}

func (m *members) set(id api.NodeID, member bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids[id] = member
}

type cluster struct {
	ca      pki.CA
	members *members
	nodes   map[api.NodeID]*node
}

func newCA(t testing.TB, name string) pki.CA {
	t.Helper()
	ca, err := pki.NewCA(name, time.Now().Add(-365*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func newStore(t testing.TB, ca pki.CA, name string, id api.NodeID, signed time.Time) *pki.CertificateStore {
	t.Helper()
	key, csr, err := pki.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Sign(csr, pki.NodeIdentity{Cluster: name, Node: id, Name: string(id), IPs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}, signed, 0)
	if err != nil {
		t.Fatal(err)
	}
	k, err := pki.Create(t.TempDir(), ca.CertPEM, cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// newCluster creates nodes that know each other on the given number of paths, on
// 127.0.0.1 and following addresses. prepare is called for each node before it is
// served.
func newCluster(t *testing.T, paths int, prepare func(*node), ids ...api.NodeID) *cluster {
	t.Helper()
	c := &cluster{ca: newCA(t, "basalt"), members: &members{ids: map[api.NodeID]bool{}}, nodes: map[api.NodeID]*node{}}
	addresses := map[api.NodeID][]string{}
	for _, id := range ids {
		n := &node{id: id, certificates: newStore(t, c.ca, "basalt", id, time.Now()), book: &AddressBook{}}
		n.client = NewClient(n.certificates, n.book, nil)
		t.Cleanup(n.client.Close)
		var listen []string
		for p := range paths {
			listen = append(listen, netip.AddrFrom4([4]byte{127, 0, 0, byte(p + 1)}).String()+":0")
		}
		server, err := NewServer(Options{Certificates: n.certificates, Client: n.client, Listen: listen, Member: c.members.is})
		if err != nil {
			t.Fatal(err)
		}
		n.server = server
		for p, real := range server.Addresses() {
			n.paths = append(n.paths, newTestPath(t, listen[p], real))
			addresses[id] = append(addresses[id], n.paths[p].address())
		}
		if prepare != nil {
			prepare(n)
		}
		serve(t, server)
		c.members.set(id, true)
		c.nodes[id] = n
	}
	for _, n := range c.nodes {
		n.book.Replace(addresses)
	}
	return c
}

func serve(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-patience.After(time.Minute):
			t.Error("Serve did not return")
		}
	})
}

type greeting struct {
	Name string `json:"name"`
}

// greets makes the node answer a call with the caller and the message.
func greets(n *node) {
	n.server.Handle("POST /hello", JSON(func(_ context.Context, caller api.NodeID, in greeting) (greeting, error) {
		return greeting{string(caller) + " says " + in.Name}, nil
	}))
}

func hello(ctx context.Context, from *node, to api.NodeID) (string, error) {
	var out greeting
	err := from.client.Call(ctx, to, "POST", "/hello", greeting{"hello"}, &out)
	return out.Name, err
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}
