package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/network"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
)

// stepper is a fake node on which every step succeeds.
type stepper struct {
	mu      sync.Mutex
	intents []deploy.Intent
	err     error
}

func (s *stepper) Step(_ context.Context, i deploy.Intent) (deploy.Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intents = append(s.intents, i)
	if s.err != nil {
		return deploy.Report{}, s.err
	}
	db := deploy.DatabaseReport{Cluster: "id-of-" + i.Node, Settled: true, Leads: true}
	return deploy.Report{Generation: i.Bootstrap.Generation, NB: db, SB: db, Chassis: true, Datapath: deploy.Netdev}, nil
}

func (s *stepper) last() deploy.Intent {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.intents) == 0 {
		return deploy.Intent{}
	}
	return s.intents[len(s.intents)-1]
}

// controller is a fake that keeps the applied topology.
type controller struct {
	mu     sync.Mutex
	t      sdn.Topology
	fail   error
	closed int
}

func (c *controller) Apply(_ context.Context, t sdn.Topology) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail == nil {
		c.t = t
	}
	return c.fail
}

func (c *controller) Observe(context.Context) (sdn.State, error) { return sdn.State{}, nil }

func (c *controller) RetryGateways(context.Context) error { return nil }

func (c *controller) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
	return nil
}

func (c *controller) set(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = err
}

// empty returns a set without objects; tests add objects to its maps.
func empty() *objects.Set { return objects.NewSet(network.Kinds...) }

type testNode struct {
	t     *testing.T
	store *memstore.Store
	step  *stepper
	ctrl  *controller
	wire  *encrypter
	node  *Node
}

// newTestNode runs one node that leads.
func newTestNode(t *testing.T) *testNode {
	h := &testNode{t: t, store: memstore.New(), step: &stepper{}, ctrl: &controller{}, wire: &encrypter{}}
	self := deploy.Member{Node: "node-1", Address: netip.MustParseAddr("127.0.0.1")}
	cache := watchcache.New(h.store, slog.New(slog.DiscardHandler), network.Kinds...)
	h.node = &Node{Cache: cache, Store: h.store, Self: self, Encap: self.Address, Datapath: deploy.Auto, Deploy: h.step, Tunnels: h.wire, Log: slog.New(slog.DiscardHandler),
		Forbidden: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")},
		Addresses: func() (all []net.Addr, err error) { // loopback, link, a card, a bridge
			for _, s := range []string{"127.0.0.1/8", "::1/128", "fe80::1/64", "169.254.7.7/16", "192.0.2.7/24", "2001:db8::7/64", "10.1.0.5/16"} {
				ip, n, err := net.ParseCIDR(s)
				if err != nil {
					return nil, err
				}
				all = append(all, &net.IPNet{IP: ip, Mask: n.Mask})
			}
			return all, nil
		}}
	leader := &network.Leader{Cache: cache, Store: h.store, Cluster: "c", Self: self, Log: slog.New(slog.DiscardHandler),
		Open: func(context.Context, []deploy.Member, deploy.Bootstrap) (sdn.Controller, error) { return h.ctrl, nil }}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{h.node.Run, leader.Run, cache.Run} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Run: %v, want %v", err, context.Canceled)
			}
		}()
	}
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		if h.ctrl.closed == 0 {
			t.Errorf("controller closed %d times, want at least once", h.ctrl.closed)
		}
	})
	h.put(api.KindNode, "node-1", api.NodeSpec{})
	return h
}

// TestForbiddenIsWhatNodesReport checks that guests cannot reach a node that is
// alone and has no peer address: all addresses of all its interfaces, and the
// ranges that its operator gives, are forbidden.
func TestForbiddenIsWhatNodesReport(t *testing.T) {
	h := newTestNode(t)
	forbidden := func() []string {
		h.ctrl.mu.Lock()
		defer h.ctrl.mu.Unlock()
		var all []string
		for _, p := range h.ctrl.t.Forbidden {
			all = append(all, p.String())
		}
		return all
	}
	want := []string{"10.1.0.5/32", "10.9.0.0/16", "192.0.2.7/32", "2001:db8::7/128"}
	patience.Until(t, 30*time.Second, "the topology forbids the node's addresses", func() bool { return slices.Equal(forbidden(), want) })

	// The report of a node that is not reachable counts too; invalid ranges in it
	// do not.
	h.apply(api.Command{Op: api.OpReport, Kind: api.KindChassis, ID: "node-2", Name: "node-2", Expect: api.AnyRevision, Data: api.Encode(deploy.Report{
		Forbidden: []netip.Prefix{netip.MustParsePrefix("192.0.2.8/32"), netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("169.254.0.0/16")}})})
	h.put(api.KindNode, "node-2", api.NodeSpec{})
	want = slices.Insert(want, 3, "192.0.2.8/32")
	patience.Until(t, 30*time.Second, "the topology forbids the other node's address", func() bool { return slices.Equal(forbidden(), want) })
}

func TestParseForbidden(t *testing.T) {
	got, err := ParseForbidden([]string{"10.9.1.2/16", "192.0.2.1", "2001:db8::/32"})
	if err != nil || fmt.Sprint(got) != "[10.9.0.0/16 192.0.2.1/32 2001:db8::/32]" {
		t.Errorf("ParseForbidden = %v, error %v; want three masked ranges", got, err)
	}
	for _, bad := range []string{"", "x", "0.0.0.0/0", "::/0", "169.254.0.0/16", "169.254.169.254", "10.0.0.0/33", "::ffff:10.0.0.1"} {
		if got, err := ParseForbidden([]string{bad}); err == nil {
			t.Errorf("ParseForbidden(%q) = %v, want an error", bad, got)
		}
	}
}

func (h *testNode) put(kind api.Kind, id string, spec any) {
	h.t.Helper()
	h.apply(api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Organization: "org-1", Project: "prj-1", Expect: api.AnyRevision, Data: api.Encode(spec)})
}

func (h *testNode) apply(c api.Command) {
	h.t.Helper()
	if _, err := h.store.Apply(context.Background(), api.Batch{At: time.Now().UTC(), Commands: []api.Command{c}}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *testNode) network() (n api.Network) {
	h.t.Helper()
	o, err := h.store.Get(context.Background(), api.KindNetwork, "net-1")
	if err != nil {
		h.t.Fatal(err)
	}
	if n, err = api.Decode[api.Network](o); err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *testNode) until(what string, ok func() bool) {
	h.t.Helper()
	patience.Until(h.t, 30*time.Second, what, ok)
}

// TestFromNothingToANetwork checks the path from nothing to a network: the leader
// decides, the node founds the databases, and the network is created and reported;
// a network with an invalid gateway reports the reason.
func TestFromNothingToANetwork(t *testing.T) {
	h := newTestNode(t)
	h.put(api.KindNetwork, "net-1", api.NetworkSpec{Cidr4: "10.0.0.0/24"})
	h.until("the IDs of the bootstrap decision in the node's intent", func() bool {
		f := h.step.last().Bootstrap
		return f.Generation == 1 && f.NB == "id-of-node-1" && f.SB == "id-of-node-1" && !f.Clustered
	})
	if works, why := h.node.Works(); !works {
		t.Fatalf("Works = false (%s), want true", why)
	}
	h.until("the network pending without a gateway", func() bool { return h.network().Status.Phase == api.NetworkPending })
	h.apply(api.Command{Op: api.OpAssign, Kind: api.KindNetwork, ID: "net-1", Expect: api.AnyRevision, Data: api.Encode(api.NetworkAssignment{Key: 1, Gateway4: "10.0.0.1"})})
	h.until("the network is ready", func() bool { return h.network().Status.Phase == api.NetworkReady })
	h.ctrl.mu.Lock()
	if n := h.ctrl.t.Networks; len(n) != 1 || n[0].Gateway4 != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("networks of the topology = %+v, want one with gateway 10.0.0.1", n)
	}
	h.ctrl.mu.Unlock()
	h.apply(api.Command{Op: api.OpAssign, Kind: api.KindNetwork, ID: "net-1", Expect: api.AnyRevision, Data: api.Encode(api.NetworkAssignment{Key: 1, Gateway4: "nonsense"})})
	h.until("the network failed with a reason", func() bool {
		s := h.network().Status
		return s.Phase == api.NetworkFailed && s.LastError != ""
	})
}

// TestRefusedIsTriedAgain checks that what the database rejects is retried, and is
// not reported as ready meanwhile.
func TestRefusedIsTriedAgain(t *testing.T) {
	h := newTestNode(t)
	h.ctrl.set(errors.New("no quorum"))
	h.put(api.KindNetwork, "net-1", api.NetworkSpec{Cidr4: "10.0.0.0/24"})
	h.apply(api.Command{Op: api.OpAssign, Kind: api.KindNetwork, ID: "net-1", Expect: api.AnyRevision, Data: api.Encode(api.NetworkAssignment{Key: 1, Gateway4: "10.0.0.1"})})
	h.until("the bootstrap is decided", func() bool { return h.step.last().Bootstrap.NB != "" })
	time.Sleep(100 * time.Millisecond)
	if p := h.network().Status.Phase; p == api.NetworkReady {
		t.Fatalf("phase of a network that the database rejected = %s, want it not ready", p)
	}
	h.ctrl.set(nil)
	h.until("the network is ready", func() bool { return h.network().Status.Phase == api.NetworkReady })
}

func TestParseExternal(t *testing.T) {
	got, err := ParseExternal([]string{"eno3", "campus=eno4"})
	if err != nil || got["external"] != "eno3" || got["campus"] != "eno4" {
		t.Errorf("ParseExternal = %v, error %v; want external=eno3 and campus=eno4", got, err)
	}
	for _, bad := range [][]string{{"eno3", "external=eno4"}, {"a b"}, {"=x"}, {"x="}, {""}} {
		if _, err := ParseExternal(bad); err == nil {
			t.Errorf("ParseExternal(%q) returned nil, want an error", bad)
		}
	}
}

func TestMemberOf(t *testing.T) {
	if m, err := MemberOf("node-1", "192.0.2.7"); err != nil || m.Address.String() != "192.0.2.7" {
		t.Errorf("MemberOf(node-1, 192.0.2.7) = %+v, error %v", m, err)
	}
	for _, bad := range []string{"", "0.0.0.0", "host", "192.0.2.7:80"} {
		if _, err := MemberOf("node-1", bad); err == nil {
			t.Errorf("MemberOf(node-1, %q) returned nil, want an error", bad)
		}
	}
}

// TestGuests checks that a guest is identified by its network and address together,
// that one being migrated to the node is served already, and that one on another
// node is not. A network without IPv4 is served in its IPv6 range.
func TestGuests(t *testing.T) {
	st := empty()
	put := func(id, node, network, address string) {
		in := api.Instance{Meta: api.Meta{ID: id, Name: id, Project: "prj-1"}, Spec: api.InstanceSpec{UserData: "#!" + id}}
		in.Assignment.Node = api.NodeID(node)
		in.Assignment.Ports = []api.InstancePort{{Network: api.NetworkID(network), Mac: "0a:00:00:00:00:01", Address4: address}}
		objects.Map[api.Instance](st)[id] = in
	}
	for _, id := range []string{"net-1", "net-2", "net-3"} {
		objects.Map[api.Network](st)[id] = api.Network{Meta: api.Meta{ID: id}, Spec: api.NetworkSpec{Cidr4: "10.0.0.0/24", Cidr6: "fd00:5::/64"}}
	}
	put("ins-1", "node-1", "net-1", "10.0.0.2")
	put("ins-2", "node-1", "net-2", "10.0.0.2")
	put("ins-3", "node-2", "net-3", "10.0.0.2")
	put("ins-4", "node-2", "net-1", "10.0.0.4")
	objects.Map[api.Network](st)["net-6"] = api.Network{Meta: api.Meta{ID: "net-6"}, Spec: api.NetworkSpec{Cidr6: "fd00:6::/64"}}
	objects.Map[api.Instance](st)["ins-6"] = api.Instance{Meta: api.Meta{ID: "ins-6", Project: "prj-1"}, Assignment: api.InstanceAssignment{Node: "node-1",
		Ports: []api.InstancePort{{Network: "net-6", Mac: "0a:00:00:00:00:06", Address6: "fd00:6::6"}}}}
	objects.Map[api.Migration](st)["mig-1"] = api.Migration{Spec: api.MigrationSpec{Instance: "ins-4"}, Assignment: api.MigrationAssignment{Target: "node-1"}}
	m := &Metadata{Node: "node-1"}
	networks, book := m.guests(st, "")
	m.book.Store(&book)
	if len(networks) != 3 || networks[0].ID != "net-1" || networks[1].ID != "net-2" || networks[2].ID != "net-6" || networks[0].MAC == "" {
		t.Errorf("networks = %+v, want net-1, net-2 and net-6 with MACs", networks)
	}
	for i, want := range []string{"10.0.0.0/24", "10.0.0.0/24", "fd00:6::/64"} { // net-1 has IPv6 as well
		if got := networks[i].CIDR.String(); got != want {
			t.Errorf("range of network %s = %s, want %s", networks[i].ID, got, want)
		}
	}
	for _, c := range []struct{ network, address, want string }{
		{"net-1", "10.0.0.2", "ins-1"}, {"net-2", "10.0.0.2", "ins-2"}, {"net-1", "10.0.0.4", "ins-4"},
		{"net-3", "10.0.0.2", ""}, {"net-1", "10.0.0.3", ""}, {"net-2", "10.0.0.4", ""},
	} {
		in, ok := m.Lookup(api.NetworkID(c.network), netip.MustParseAddr(c.address))
		if ok != (c.want != "") || string(in.ID) != c.want || ok && string(in.UserData) != "#!"+c.want {
			t.Errorf("Lookup of %s in %s = %+v, want %q", c.address, c.network, in, c.want)
		}
	}
}
