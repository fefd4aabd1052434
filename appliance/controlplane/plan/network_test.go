package plan

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

var netNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// networkFixture is a store with planners over it, each with its own, possibly outdated,
// state.
type networkFixture struct {
	t     *testing.T
	store *memstore.Store
}

func newNetworkFixture(t *testing.T) *networkFixture {
	w := &networkFixture{t, memstore.New()}
	w.put(api.KindFlavor, "flv-1", "", api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30})
	w.put(api.KindImage, "img-1", "", api.ImageSpec{Format: "raw"})
	w.report(api.KindImage, "img-1", api.ImageStatus{Phase: api.ImageReady})
	w.node("node-1", true)
	return w
}

func (w *networkFixture) apply(cmds ...api.Command) error {
	_, err := w.store.Apply(w.t.Context(), api.Batch{At: netNow, Commands: cmds})
	return err
}

func (w *networkFixture) must(c api.Command) {
	w.t.Helper()
	if err := w.apply(c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *networkFixture) put(kind api.Kind, id, project string, spec any) {
	w.t.Helper()
	w.must(api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: strings.ReplaceAll(id, "-", ""), Project: project, Expect: api.AnyRevision, Data: api.Encode(spec)})
}

func (w *networkFixture) report(kind api.Kind, id string, status any) {
	w.t.Helper()
	w.must(api.Command{Op: api.OpReport, Kind: kind, ID: id, Name: id, Expect: api.AnyRevision, Data: api.Encode(status)})
}

func (w *networkFixture) node(id string, chassis bool) {
	w.report(api.KindNode, id, api.NodeStatus{Vcpus: 10000, MemoryBytes: 1 << 50, StorageFreeBytes: 1 << 50, SeenAt: netNow, Chassis: chassis})
}

func (w *networkFixture) instance(id string, nets ...api.InstanceNetwork) {
	w.put(api.KindInstance, id, "prj-1", api.InstanceSpec{Flavor: "flv-1", Image: "img-1", Networks: nets})
}

func (w *networkFixture) remove(kind api.Kind, id string) {
	w.must(api.Command{Op: api.OpDelete, Kind: kind, ID: id, Expect: api.AnyRevision, Cascade: true}) // also what is in use
}

// state returns the current state, as a planner that has read everything has it.
func (w *networkFixture) state() *State {
	all, err := objects.Read(w.t.Context(), w.store, Kinds...)
	if err != nil {
		w.t.Fatal(err)
	}
	return StateOf(all)
}

// plan applies a plan as the leader does: refused commands are planned again.
func (w *networkFixture) plan(s *State) (refused int) {
	for _, c := range next(w.t, s, netNow) {
		if err := w.apply(c); err != nil {
			if code := api.CodeOf(err); code != api.CodeConflict && code != api.CodeNotFound && code != api.CodeExists {
				w.t.Fatalf("apply op %d of %s %s: %v", c.Op, c.Kind, c.ID, err)
			}
			refused++
		}
	}
	return refused
}

func (w *networkFixture) settle() *State {
	w.t.Helper()
	for range 10 {
		s := w.state()
		if len(Next(s, netNow)) == 0 {
			return s
		}
		w.plan(s)
	}
	w.t.Fatalf("the plan does not settle within 10 rounds: %+v", Next(w.state(), netNow))
	return nil
}

func TestPortsAreGivenOut(t *testing.T) {
	w := newNetworkFixture(t)
	w.put(api.KindNetwork, "net-1", "prj-1", api.NetworkSpec{Cidr4: "10.1.0.0/29", Cidr6: "fd00::/64"})
	w.instance("ins-1", api.InstanceNetwork{Network: "net-1", Address4: "10.1.0.4"})
	w.instance("ins-2", api.InstanceNetwork{Network: "net-1"})
	s := w.settle()
	n := s.Networks["net-1"].Assignment
	if n.Key < 1 || n.Key > maxNetworkKey || n.Gateway4 != "10.1.0.1" || n.Gateway6 != "fd00::1" {
		t.Errorf("assignment of net-1 = %+v, want a key up to %d and gateways 10.1.0.1 and fd00::1", n, maxNetworkKey)
	}
	for _, id := range []string{"ins-1", "ins-2"} {
		a := s.Instances[id].Assignment
		if len(a.Ports) != 1 || a.Node != "node-1" {
			t.Fatalf("assignment of %s = %+v, want node-1 and one port", id, a)
		}
		p := a.Ports[0]
		m := strings.Split(p.Mac, ":")
		if len(m) != 6 || m[0] != "06" || !guests(netip.MustParsePrefix("10.1.0.0/29")).Contains(netip.MustParseAddr(p.Address4)) ||
			!netip.MustParsePrefix("fd00::/64").Contains(netip.MustParseAddr(p.Address6)) || !strings.HasSuffix(p.Address6, m[4]+m[5]) {
			t.Errorf("port of %s = %+v, want addresses of the network and a MAC 06:…", id, p)
		}
	}
	if got := s.Instances["ins-1"].Assignment.Ports[0].Address4; got != "10.1.0.4" {
		t.Errorf("requested address of ins-1 = %s, want 10.1.0.4", got)
	}

	// Four guests fit into a /29; the fifth is pending with the reason.
	for i := 3; i <= 5; i++ {
		w.instance(fmt.Sprint("ins-", i), api.InstanceNetwork{Network: "net-1"})
	}
	s = w.settle()
	if a := s.Instances["ins-5"].Assignment; a.Node != "" || a.Reason != "network net1 has no free address in 10.1.0.0/29" {
		t.Errorf("assignment of ins-5 = %+v, want none for lack of an address", a)
	}
	freed := s.Instances["ins-3"].Assignment.Ports[0].Address4
	w.remove(api.KindInstance, "ins-3")
	s = w.settle()
	if a := s.Instances["ins-5"].Assignment; a.Node == "" || a.Ports[0].Address4 != freed {
		t.Errorf("assignment of ins-5 after another was removed = %+v, want address %s", a, freed)
	}
	w.instance("ins-7", api.InstanceNetwork{Network: "net-1", Address4: "10.1.0.4"})
	if a := w.settle().Instances["ins-7"].Assignment; a.Node != "" || a.Reason != "address 10.1.0.4 of network net1 is already in use" {
		t.Errorf("assignment of ins-7 with an address in use = %+v, want none with the reason", a)
	}
	w.instance("ins-8", api.InstanceNetwork{Network: "net-none"})
	if a := w.settle().Instances["ins-8"].Assignment; a.Reason != "network net-none (removed) is not ready" {
		t.Errorf("assignment of ins-8 in a network that does not exist = %+v, want the reason", a)
	}
}

// A node without working networks only gets instances that need none.
func TestNodesWithoutNetworks(t *testing.T) {
	w := newNetworkFixture(t)
	w.node("node-1", false)
	w.put(api.KindNetwork, "net-1", "prj-1", api.NetworkSpec{Cidr4: "10.1.0.0/24"})
	w.instance("ins-1", api.InstanceNetwork{Network: "net-1"})
	w.instance("ins-2")
	s := w.settle()
	if a := s.Instances["ins-1"].Assignment; a.Node != "" || !strings.Contains(a.Reason, "has no working networks") || len(a.Ports) != 0 {
		t.Errorf("assignment of ins-1 = %+v, want none for lack of networks", a)
	}
	if a := s.Instances["ins-2"].Assignment; a.Node != "node-1" {
		t.Errorf("assignment of ins-2 = %+v, want node-1", a)
	}
	w.node("node-2", true)
	if a := w.settle().Instances["ins-1"].Assignment; a.Node != "node-2" || len(a.Ports) != 1 {
		t.Errorf("assignment of ins-1 = %+v, want node-2 and one port", a)
	}
}

func TestRoutersAndAddressesOutside(t *testing.T) {
	w := newNetworkFixture(t)
	w.put(api.KindNetwork, "net-1", "prj-1", api.NetworkSpec{Cidr4: "10.1.0.0/24"})
	w.put(api.KindNetwork, "net-2", "prj-2", api.NetworkSpec{Cidr4: "10.2.0.0/24", Isolated: true})
	if s := w.settle(); len(s.Routers) != 0 {
		t.Errorf("routers without an external network = %v, want none", s.Routers)
	}
	w.put(api.KindExternalNetwork, "ext-1", "", api.ExternalNetworkSpec{Cidr4: "203.0.113.0/24", Ranges4: []string{"203.0.113.9", "203.0.113.10-203.0.113.11"}, Default: true})
	w.settle() // the router comes first
	for i := range 3 {
		w.put(api.KindFloatingIP, fmt.Sprint("fip-", i), "prj-1", api.FloatingIPSpec{ExternalNetwork: "ext-1"})
	}
	w.put(api.KindLoadBalancer, "lb-1", "prj-1", api.LoadBalancerSpec{Network: "net-1", Protocol: api.ProtocolTCP, Port: 80})
	s := w.settle()
	r, ok := s.Routers[routerID("prj-1")]
	if len(s.Routers) != 1 || !ok || r.Meta.Project != "prj-1" || r.Assignment.Address4 == "" {
		t.Fatalf("routers = %+v, want one of prj-1 with an address", s.Routers)
	}
	given := []string{r.Assignment.Address4}
	var why []string
	for _, f := range s.FloatingIPs {
		if f.Assignment.Address != "" {
			given = append(given, f.Assignment.Address)
		} else {
			why = append(why, f.Assignment.Reason)
		}
	}
	slices.Sort(given)
	if fmt.Sprint(given, why) != "[203.0.113.10 203.0.113.11 203.0.113.9] [external network ext1 has no free address]" {
		t.Errorf("assigned addresses and reasons = %v, %v; want .9 to .11 and one reason", given, why)
	}
	if a := s.LoadBalancers["lb-1"].Assignment; !strings.HasPrefix(a.Address, "10.1.0.") {
		t.Errorf("assignment of lb-1 = %+v, want an address of net-1", a)
	}

	// Another default applies to later projects: this router stays where it is, until
	// its external network is removed. Without networks the router is removed.
	w.put(api.KindExternalNetwork, "ext-1", "", api.ExternalNetworkSpec{Cidr4: "203.0.113.0/24", Ranges4: []string{"203.0.113.9-203.0.113.11"}})
	w.put(api.KindExternalNetwork, "ext-2", "", api.ExternalNetworkSpec{Cidr6: "2001:db8::/32", Ranges6: []string{"2001:db8::5-2001:db9::"}, Default: true})
	if a := w.settle().Routers[r.Meta.ID]; a.Spec.ExternalNetwork != "ext-1" || a.Assignment != r.Assignment {
		t.Errorf("router after another network became the default: %+v, want %+v as before", a.Assignment, r.Assignment)
	}
	w.put(api.KindNetwork, "net-3", "prj-3", api.NetworkSpec{Cidr4: "10.3.0.0/24"})
	if a := w.settle().Routers[routerID("prj-3")]; a.Spec.ExternalNetwork != "ext-2" {
		t.Errorf("a new project's router goes out through %s, want the new default ext-2", a.Spec.ExternalNetwork)
	}
	w.remove(api.KindNetwork, "net-3")
	// A floating IP of another external network needs a router there once it is used.
	w.put(api.KindExternalNetwork, "ext-3", "", api.ExternalNetworkSpec{Cidr4: "203.0.113.0/24", Ranges4: []string{"203.0.113.9-203.0.113.11"}, Vlan: 8})
	w.put(api.KindFloatingIP, "fip-lab", "prj-1", api.FloatingIPSpec{ExternalNetwork: "ext-3"})
	if s := w.settle(); len(s.Routers) != 1 {
		t.Errorf("routers for an unused floating IP = %+v, want one", s.Routers)
	}
	w.put(api.KindFloatingIP, "fip-lab", "prj-1", api.FloatingIPSpec{ExternalNetwork: "ext-3", Instance: "ins-1"})
	s = w.settle()
	b := s.Routers[routerID("prj-1 in ext-3")]
	if len(s.Routers) != 2 || b.Spec.ExternalNetwork != "ext-3" || b.Meta.Project != "prj-1" || b.Assignment.Address4 == "" || s.Routers[r.Meta.ID].Assignment != r.Assignment {
		t.Errorf("routers for a floating IP of another external network = %+v, want two", s.Routers)
	}
	w.remove(api.KindFloatingIP, "fip-lab")
	if s := w.settle(); len(s.Routers) != 1 {
		t.Errorf("routers after that floating IP was removed = %+v, want one", s.Routers)
	}
	w.remove(api.KindExternalNetwork, "ext-3")
	w.remove(api.KindExternalNetwork, "ext-1")
	if a := w.settle().Routers[r.Meta.ID]; a.Spec.ExternalNetwork != "ext-2" || a.Assignment.Address4 != "" || !strings.HasPrefix(a.Assignment.Address6, "2001:db8") {
		t.Errorf("router after its external network was removed = %+v, want one of ext-2 with an IPv6 address only", a)
	}
	w.remove(api.KindLoadBalancer, "lb-1")
	w.remove(api.KindNetwork, "net-1")
	if s := w.settle(); len(s.Routers) != 0 {
		t.Errorf("routers without networks = %v, want none", s.Routers)
	}
}

// With two planners with states of different age, in any order, no address, MAC or key
// is assigned twice, and in the end every object has one while there are any.
func TestNoInterleavingAllocatesTwice(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newNetworkFixture(t)
		w.put(api.KindNetwork, "net-1", "prj-1", api.NetworkSpec{Cidr4: "10.1.0.0/28", Cidr6: "fd00::/64"})
		w.put(api.KindNetwork, "net-2", "prj-1", api.NetworkSpec{Cidr4: "10.2.0.0/28"})
		w.put(api.KindExternalNetwork, "ext-1", "", api.ExternalNetworkSpec{Cidr4: "203.0.113.0/24", Ranges4: []string{"203.0.113.1-203.0.113.5"}, Default: true})
		old := []*State{w.state(), w.state()}
		refused := 0
		for step := range 60 {
			id := fmt.Sprint("ins-", r.IntN(16))
			switch r.IntN(6) {
			case 0:
				_ = w.apply(api.Command{Op: api.OpDelete, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision})
			case 1:
				w.put(api.KindFloatingIP, fmt.Sprint("fip-", r.IntN(6)), "prj-1", api.FloatingIPSpec{ExternalNetwork: "ext-1"})
			case 2:
				w.put(api.KindLoadBalancer, fmt.Sprint("lb-", r.IntN(3)), "prj-1", api.LoadBalancerSpec{Network: "net-1", Port: int64(step + 1)})
			default:
				nets := []api.InstanceNetwork{{Network: "net-1"}, {Network: "net-2"}}[r.IntN(2):]
				if r.IntN(3) == 0 {
					nets[len(nets)-1].Address4 = fmt.Sprint("10.2.0.", 2+r.IntN(12))
				}
				w.instance(id, nets...)
			}
			if i := r.IntN(2); r.IntN(2) == 0 {
				refused += w.plan(old[i])
			} else {
				old[i] = w.state()
			}
			once(t, w.state())
		}
		once(t, w.settle())
	}
}

// once fails the test if two objects have the same claim.
func once(t *testing.T, s *State) {
	t.Helper()
	held := map[string]string{}
	add := func(who string, claims []string) {
		for _, c := range claims {
			if held[c] != "" {
				t.Fatalf("%s and %s both claim %s, want one holder", held[c], who, c)
			}
			held[c] = who
		}
	}
	for id, in := range s.Instances {
		add(id, portClaims(in.Assignment.Ports))
	}
	for id, n := range s.Networks {
		add(id, networkClaims(id, n.Assignment))
	}
	for id, r := range s.Routers {
		add(id, ipClaims(string(r.Spec.ExternalNetwork), r.Assignment.Address4, r.Assignment.Address6))
	}
	for id, f := range s.FloatingIPs {
		add(id, ipClaims(string(f.Spec.ExternalNetwork), f.Assignment.Address))
	}
	for id, l := range s.LoadBalancers {
		add(id, ipClaims(string(l.Spec.Network), l.Assignment.Address))
	}
}

// The search wraps around, terminates, and stays within the range.
func TestAddressesOfARange(t *testing.T) {
	for _, c := range []struct {
		first, last string
		n           int
	}{{"10.0.0.250", "10.0.1.5", 12}, {"10.0.0.1", "10.0.0.1", 1}, {"2001:db8::ffff:ffff:ffff:fffe", "2001:db8:0:1::2", 5}} {
		p := &addresses{s: emptyState()}
		r := api.AddressRange{First: netip.MustParseAddr(c.first), Last: netip.MustParseAddr(c.last)}
		if !r.First.Is4() { // the widest range: the seed may be outside of a small one
			r.First = netip.MustParseAddr("2001:db8:0:1::")
			c.n = 3
		}
		seen := map[netip.Addr]bool{}
		for range c.n {
			a := p.in("net", r, 12345)
			if !a.IsValid() || !r.Contains(a) || seen[a] {
				t.Fatalf("address from %s-%s = %v, want an unused one of the range", c.first, c.last, a)
			}
			seen[a] = true
			p.claim("ip/net/" + a.String())
		}
		if a := p.in("net", r, 12345); a.IsValid() {
			t.Errorf("address from %s-%s when all are in use = %v, want none", c.first, c.last, a)
		}
	}
}

func BenchmarkPlan20000(b *testing.B) {
	s := emptyState()
	s.Nodes["node-1"] = api.Node{Meta: api.Meta{ID: "node-1"}, Status: api.NodeStatus{Vcpus: 1 << 40, MemoryBytes: 1 << 60, SeenAt: netNow, Chassis: true}}
	s.Flavors["flv-1"] = api.Flavor{Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30}}
	s.Images["img-1"] = api.Image{Status: api.ImageStatus{Phase: api.ImageReady}}
	for n := range 100 {
		id := fmt.Sprint("net-", n)
		s.Networks[id] = api.Network{Meta: api.Meta{ID: id}, Spec: api.NetworkSpec{Cidr4: fmt.Sprintf("10.%d.0.0/16", n)}, Assignment: api.NetworkAssignment{Key: int64(n + 1)}}
	}
	for n := range 20000 {
		id := fmt.Sprint("ins-", n)
		net := api.NetworkID(fmt.Sprint("net-", n%100))
		in := api.Instance{Meta: api.Meta{ID: id, Generation: 1}, Spec: api.InstanceSpec{Flavor: "flv-1", Image: "img-1", Networks: []api.InstanceNetwork{{Network: net}}}}
		if n%1000 != 0 { // twenty are new
			in.Assignment = api.InstanceAssignment{Node: "node-1", Generation: 1, Vcpus: 1, MemoryBytes: 1 << 30,
				Ports: []api.InstancePort{{Network: net, Mac: mac(id).String(), Address4: fmt.Sprintf("10.%d.1.%d", n%100, 2+n/100)}}}
		}
		s.Instances[id] = in
	}
	for b.Loop() {
		if len(Next(s, netNow)) != 20 {
			b.Fatalf("commands = %d, want 20", len(Next(s, netNow)))
		}
	}
}

// If the cluster has Ceph, volumes and snapshots are stored there, and instances that
// need it are placed where it works.
func TestCephIsTheFirstPool(t *testing.T) {
	w := newNetworkFixture(t)
	w.put(api.KindCephCluster, "ceph-1", "", api.CephClusterSpec{Enabled: true, Replicas: 3})
	w.report(api.KindCephCluster, "ceph-1", api.CephClusterStatus{Phase: api.CephReady})
	volume := api.VolumeSpec{SizeBytes: 1 << 30}
	w.put(api.KindVolume, "vol-1", "prj-1", volume)
	w.put(api.KindVolume, "vol-2", "prj-1", api.VolumeSpec{SizeBytes: 1 << 30, Pool: api.PoolLocal})
	w.instance("ins-1")
	s := w.settle()
	c := s.Ceph["ceph-1"].Assignment
	if len(c.Fsid) != 36 || fmt.Sprint(c.Mons, c.Mgrs) != "[node-1] [node-1]" {
		t.Errorf("assignment of ceph-1 = %+v, want an fsid, and monitor and manager on node-1", c)
	}
	if a := s.Volumes["vol-1"].Assignment; a.Node != "" || !strings.Contains(a.Reason, "Ceph is not available on any node") {
		t.Errorf("assignment of vol-1 = %+v, want none for lack of Ceph", a)
	}
	if a := s.Volumes["vol-2"].Assignment; a.Node != "node-1" || a.Pool != api.PoolLocal {
		t.Errorf("assignment of vol-2 = %+v, want the local pool of node-1", a)
	}
	if a := s.Instances["ins-1"].Assignment; a.Node != "" || !strings.Contains(a.Reason, "n1: has no working Ceph") && !strings.Contains(a.Reason, "node-1: has no working Ceph") {
		t.Errorf("assignment of ins-1 = %+v, want none for lack of Ceph", a)
	}
	w.report(api.KindNode, "node-2", api.NodeStatus{Vcpus: 8, MemoryBytes: 1 << 40, SeenAt: netNow, Ceph: true})
	w.put(api.KindSnapshot, "snap-1", "prj-1", api.SnapshotSpec{Volume: "vol-1"})
	w.put(api.KindSnapshot, "snap-2", "prj-1", api.SnapshotSpec{Volume: "vol-2"})
	w.put(api.KindBackup, "bak-1", "prj-1", api.BackupSpec{Volume: "vol-2", Target: "bt-1"})
	s = w.settle()
	if a := s.Volumes["vol-1"].Assignment; a.Node != "node-2" || a.Pool != api.PoolCeph {
		t.Errorf("assignment of vol-1 = %+v, want Ceph on node-2", a)
	}
	if a := s.Instances["ins-1"].Assignment; a.Node != "node-2" {
		t.Errorf("assignment of ins-1 = %+v, want node-2", a)
	}
	for id, want := range map[string]api.SnapshotAssignment{"snap-1": {Node: "node-2", Pool: api.PoolCeph}, "snap-2": {Node: "node-1", Pool: api.PoolLocal}} {
		if a := s.Snapshots[id].Assignment; a != want {
			t.Errorf("assignment of %s = %+v, want %+v", id, a, want)
		}
	}
	if a := s.Backups["bak-1"].Assignment; a.Node != "node-1" {
		t.Errorf("assignment of bak-1 = %+v, want node-1", a)
	}
	// A clone of a node-local snapshot is created on that node only.
	w.put(api.KindVolume, "vol-3", "prj-1", api.VolumeSpec{SizeBytes: 1 << 30, Pool: api.PoolLocal, Snapshot: "snap-2"})
	if a := w.settle().Volumes["vol-3"].Assignment; a.Node != "node-1" {
		t.Errorf("assignment of vol-3 = %+v, want node-1", a)
	}
}

// Monitors follow the voters one at a time.
func TestMonitorsFollowVoters(t *testing.T) {
	s := emptyState()
	s.Health = map[string]Health{}
	voters := func(ids ...string) {
		s.Nodes = map[string]api.Node{}
		for _, id := range ids {
			s.Nodes[id] = api.Node{Meta: api.Meta{ID: id}, Assignment: api.NodeAssignment{Voter: true}}
		}
	}
	voters("a", "b", "c")
	mons := monitors(s, nil)
	voters("b", "c", "d", "e")
	var steps []string
	for range 6 {
		mons = monitors(s, mons)
		steps = append(steps, fmt.Sprint(mons))
	}
	if got, want := strings.Join(steps, " "), "[a b c d] [a b c d e] [b c d e] [b c d e] [b c d e] [b c d e]"; got != want {
		t.Errorf("monitors step by step = %s, want %s", got, want)
	}
}
