package sdn

import (
	"encoding/json"
	"flag"
	"math/rand"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// objects returns a small cluster: one project with every kind of object, one
// with few.
func objects() Objects {
	meta := func(id, project, name string) api.Meta { return api.Meta{ID: id, Project: project, Name: name} }
	gone := time.Unix(1, 0)
	o := Objects{
		Cluster:  "basalt",
		Projects: []api.Project{{Meta: meta("prj-1", "", "Shop")}, {Meta: meta("prj-2", "", "lab")}},
		Networks: []api.Network{
			{Meta: meta("net-1", "prj-1", "default"), Spec: api.NetworkSpec{Cidr4: "10.64.0.0/24", Cidr6: "fd12:3456::/64"}, Assignment: api.NetworkAssignment{Key: 1, Gateway4: "10.64.0.1", Gateway6: "fd12:3456::1"}},
			{Meta: meta("net-2", "prj-1", "back"), Spec: api.NetworkSpec{Cidr4: "10.20.0.0/24", Isolated: true, Mtu: 1400, DNSServers: []string{"9.9.9.9", "10.20.0.53"}}, Assignment: api.NetworkAssignment{Key: 2, Gateway4: "10.20.0.1"}},
			{Meta: meta("net-3", "prj-2", "default"), Spec: api.NetworkSpec{Cidr4: "10.64.0.0/24"}, Assignment: api.NetworkAssignment{Key: 3, Gateway4: "10.64.0.1"}},
			{Meta: meta("net-4", "prj-2", "waits"), Spec: api.NetworkSpec{Cidr4: "10.65.0.0/24"}},
			{Meta: api.Meta{ID: "net-5", Project: "prj-2", DeletedAt: &gone}, Spec: api.NetworkSpec{Cidr4: "10.66.0.0/24"}, Assignment: api.NetworkAssignment{Gateway4: "10.66.0.1"}},
		},
		SecurityGroups: []api.SecurityGroup{
			{Meta: meta("sg-1", "prj-1", "default"), Spec: api.SecurityGroupSpec{Rules: []api.SecurityRule{
				{Direction: api.Ingress, Protocol: api.ProtocolAny, Group: "sg-1"}, {Direction: api.Egress, Protocol: api.ProtocolAny}}}},
			{Meta: meta("sg-2", "prj-1", "web"), Spec: api.SecurityGroupSpec{Rules: []api.SecurityRule{
				{Direction: api.Ingress, Protocol: api.ProtocolTCP, Ports: "80"}, {Direction: api.Ingress, Protocol: api.ProtocolUDP, Ports: "8000-8080", Cidr: "192.0.2.0/24"}}}},
		},
		ExternalNetworks: []api.ExternalNetwork{{Meta: meta("ext-1", "", "internet"), Spec: api.ExternalNetworkSpec{Cidr4: "203.0.113.0/24", Gateway4: "203.0.113.1", Vlan: 7, Default: true}}},
		Routers:          []api.Router{{Meta: meta("rtr-1", "prj-1", "router"), Spec: api.RouterSpec{ExternalNetwork: "ext-1"}, Assignment: api.RouterAssignment{Address4: "203.0.113.10"}}},
		FloatingIPs: []api.FloatingIP{
			{Meta: meta("fip-1", "prj-1", "www"), Spec: api.FloatingIPSpec{ExternalNetwork: "ext-1", Instance: "ins-1"}, Assignment: api.FloatingIPAssignment{Address: "203.0.113.20"}},
			{Meta: meta("fip-2", "prj-1", "balanced"), Spec: api.FloatingIPSpec{ExternalNetwork: "ext-1"}, Assignment: api.FloatingIPAssignment{Address: "203.0.113.21"}},
			{Meta: meta("fip-3", "prj-1", "waits"), Spec: api.FloatingIPSpec{ExternalNetwork: "ext-1", Instance: "ins-1"}},
		},
		LoadBalancers: []api.LoadBalancer{{Meta: meta("lb-1", "prj-1", "web"), Assignment: api.LoadBalancerAssignment{Address: "10.64.0.200"},
			Spec: api.LoadBalancerSpec{Network: "net-1", Protocol: api.ProtocolTCP, Port: 80, Health: true, FloatingIP: "fip-2", Backends: []api.LoadBalancerBackend{{Instance: "ins-1", Port: 8080}, {Instance: "ins-9", Port: 8080}}}}},
		Instances: []api.Instance{
			{Meta: meta("ins-1", "prj-1", "Web1"), Spec: api.InstanceSpec{Networks: []api.InstanceNetwork{{Network: "net-1", SecurityGroups: []api.SecurityGroupID{"sg-1", "sg-2"}}, {Network: "net-2"}}},
				Assignment: api.InstanceAssignment{Node: "node-1", Ports: []api.InstancePort{{Network: "net-1", Mac: "52:54:00:00:00:01", Address4: "10.64.0.10", Address6: "fd12:3456::10"}, {Network: "net-2", Mac: "52:54:00:00:00:02", Address4: "10.20.0.10"}}}},
			{Meta: meta("ins-2", "prj-1", "db"), Assignment: api.InstanceAssignment{Node: "node-2", Ports: []api.InstancePort{{Network: "net-1", Mac: "52:54:00:00:00:03", Address4: "10.64.0.11"}}}},
			{Meta: meta("ins-3", "prj-2", "web1"), Assignment: api.InstanceAssignment{Node: "node-1", Ports: []api.InstancePort{{Network: "net-3", Mac: "52:54:00:00:00:04", Address4: "10.64.0.10"}}}},
			{Meta: meta("ins-4", "prj-2", "waits")},
		},
		Migrations: []api.Migration{{Spec: api.MigrationSpec{Instance: "ins-2"}, Assignment: api.MigrationAssignment{Source: "node-2", Target: "node-1"}}},
		Nodes: []api.Node{
			{Meta: meta("node-1", "", "n1"), Spec: api.NodeSpec{PeerAddresses: []string{"192.0.2.1:7481"}, APIAddress: "192.0.2.1:7480"}, Status: api.NodeStatus{Chassis: true}},
			{Meta: meta("node-3", "", "n3"), Status: api.NodeStatus{Chassis: true}}, // not connected to that network
			{Meta: meta("node-2", "", "n2"), Spec: api.NodeSpec{PeerAddresses: []string{"192.0.2.2:7481", "[2001:db8::2]:7481"}}},
		},
		Physical:  map[api.NodeID][]string{"node-1": {"campus", "external"}, "node-2": {"external"}, "node-3": {"campus"}}, // node-2 is not up
		Forbidden: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")},
	}
	return o
}

func TestIntentIsGolden(t *testing.T) {
	topology, problems := Intent(objects())
	if len(problems) > 0 {
		t.Errorf("Intent returned problems %+v, want none", problems)
	}
	got, err := json.MarshalIndent(topology, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/intent.json"
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)+"\n"); d != "" {
		t.Errorf("topology mismatch; if intended, run with -update (-want +got):\n%s", d)
	}

	// The order of the objects must not matter.
	o := objects()
	r := rand.New(rand.NewSource(1))
	r.Shuffle(len(o.Networks), func(i, j int) { o.Networks[i], o.Networks[j] = o.Networks[j], o.Networks[i] })
	r.Shuffle(len(o.Nodes), func(i, j int) { o.Nodes[i], o.Nodes[j] = o.Nodes[j], o.Nodes[i] })
	slices.Reverse(o.Instances)
	slices.Reverse(o.FloatingIPs)
	slices.Reverse(o.SecurityGroups)
	again, _ := Intent(o)
	raw, _ := json.MarshalIndent(again, "", "\t")
	if d := cmp.Diff(string(got), string(raw)); d != "" {
		t.Errorf("topology of the objects in another order: mismatch (-want +got):\n%s", d)
	}
}

// TestFloatingIPNetwork checks that an address belongs to the network
// of the floating IP, and not to the router's: two external networks may have
// the same range.
func TestFloatingIPNetwork(t *testing.T) {
	o := objects()
	o.ExternalNetworks = append(o.ExternalNetworks, api.ExternalNetwork{Meta: api.Meta{ID: "ext-2", Name: "lab"},
		Spec: api.ExternalNetworkSpec{Cidr4: "203.0.113.0/24", Gateway4: "203.0.113.1", Vlan: 8}})
	// The other project's router is connected to it, with the same addresses.
	o.Routers = append(o.Routers, api.Router{Meta: api.Meta{ID: "rtr-2", Project: "prj-2", Name: api.MainRouter}, Spec: api.RouterSpec{ExternalNetwork: "ext-2"},
		Assignment: api.RouterAssignment{Address4: "203.0.113.10"}})
	o.FloatingIPs = append(o.FloatingIPs, api.FloatingIP{Meta: api.Meta{ID: "fip-4", Project: "prj-2"},
		Spec: api.FloatingIPSpec{ExternalNetwork: "ext-2", Instance: "ins-3"}, Assignment: api.FloatingIPAssignment{Address: "203.0.113.20"}})
	topology, problems := Intent(o)
	if len(problems) > 0 {
		t.Fatalf("problems of floating IPs with equal addresses on two networks = %+v, want none", problems)
	}
	where := map[api.FloatingIPID]api.ExternalNetworkID{}
	for _, f := range topology.FloatingIPs {
		where[f.ID] = f.External
	}
	if d := cmp.Diff(map[api.FloatingIPID]api.ExternalNetworkID{"fip-1": "ext-1", "fip-4": "ext-2"}, where); d != "" {
		t.Errorf("external networks of the floating IPs (-want +got):\n%s", d)
	}

	// An address of the other network is never added to the project's own router,
	// where it may belong to another project.
	o.FloatingIPs[0].Spec.ExternalNetwork, o.FloatingIPs[1].Spec.ExternalNetwork = "ext-2", "ext-2"
	o.FloatingIPs[0].Assignment.Address = "203.0.113.30"
	topology, _ = Intent(o)
	for _, r := range topology.Routers {
		for _, f := range topology.FloatingIPs {
			if f.Project == r.Project && f.External != r.External {
				t.Errorf("floating IP %s of %s is on the router of %s to %s, want it on none", f.ID, f.External, r.Project, r.External)
			}
		}
		for _, l := range topology.LoadBalancers {
			if l.Project == r.Project && l.Floating.IsValid() && l.External != r.External {
				t.Errorf("load balancer %s has %s of %s on a router to %s, want no external address", l.ID, l.Floating, l.External, r.External)
			}
		}
	}

	// With a router to that network, a branch, both have their address.
	o.Routers = append(o.Routers, api.Router{Meta: api.Meta{ID: "rtr-3", Project: "prj-1", Name: "router-ext-2"}, Spec: api.RouterSpec{ExternalNetwork: "ext-2"},
		Assignment: api.RouterAssignment{Address4: "203.0.113.11"}})
	topology, problems = Intent(o)
	if len(problems) > 0 || len(topology.Branches) != 1 || len(topology.FloatingIPs) != 2 || len(topology.LoadBalancers) != 1 || topology.LoadBalancers[0].External != "ext-2" {
		t.Errorf("with a branch: problems %+v, topology %+v, want no problems, one branch, two floating IPs and a load balancer of ext-2", problems, topology)
	}
}

// TestBadObjects checks that an invalid object is one problem, and affects no
// others.
func TestBadObjects(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Objects)
		kind  api.Kind
		id    string
		code  api.Code
	}{
		"overlapping networks on one router": {func(o *Objects) {
			o.Networks = append(o.Networks, api.Network{Meta: api.Meta{ID: "net-9", Project: "prj-1"}, Spec: api.NetworkSpec{Cidr4: "10.64.0.128/25"}, Assignment: api.NetworkAssignment{Gateway4: "10.64.0.129"}})
		}, api.KindNetwork, "net-9", api.CodeConflict},
		"a range that is none":       {func(o *Objects) { o.Networks[2].Spec.Cidr4 = "10.64/24"; o.Instances = o.Instances[:2] }, api.KindNetwork, "net-3", api.CodeInvalid},
		"a gateway outside":          {func(o *Objects) { o.Networks[2].Assignment.Gateway4 = "10.65.0.1"; o.Instances = o.Instances[:2] }, api.KindNetwork, "net-3", api.CodeInvalid},
		"one address twice":          {func(o *Objects) { o.Instances[1].Assignment.Ports[0].Address4 = "10.64.0.10" }, api.KindInstance, "ins-2", api.CodeConflict},
		"the health checks' address": {func(o *Objects) { o.Instances[1].Assignment.Ports[0].Address4 = "10.64.0.254" }, api.KindInstance, "ins-2", api.CodeConflict},
		"the gateway's address":      {func(o *Objects) { o.Instances[1].Assignment.Ports[0].Address4 = "10.64.0.1" }, api.KindInstance, "ins-2", api.CodeConflict},
		"a MAC of many":              {func(o *Objects) { o.Instances[1].Assignment.Ports[0].Mac = "01:00:5e:00:00:01" }, api.KindInstance, "ins-2", api.CodeInvalid},
		"a router's MAC":             {func(o *Objects) { o.Instances[1].Assignment.Ports[0].Mac = "0a:00:00:00:00:01" }, api.KindInstance, "ins-2", api.CodeInvalid},
		"no such network":            {func(o *Objects) { o.Instances[1].Assignment.Ports[0].Network = "net-x" }, api.KindInstance, "ins-2", api.CodeNotFound},
		"another project's group": {func(o *Objects) {
			o.Instances[2].Spec.Networks = []api.InstanceNetwork{{Network: "net-3", SecurityGroups: []api.SecurityGroupID{"sg-1"}}}
		}, api.KindInstance, "ins-3", api.CodeNotFound},
		"a rule of no ports":                   {func(o *Objects) { o.SecurityGroups[1].Spec.Rules[0].Ports = "90-80" }, api.KindSecurityGroup, "sg-2", api.CodeInvalid},
		"a rule of a stranger":                 {func(o *Objects) { o.SecurityGroups[1].Spec.Rules[0].Group = "sg-x" }, api.KindSecurityGroup, "sg-2", api.CodeNotFound},
		"ports of ICMP":                        {func(o *Objects) { o.SecurityGroups[1].Spec.Rules[0].Protocol = api.ProtocolICMP }, api.KindSecurityGroup, "sg-2", api.CodeInvalid},
		"a balancer's address for an instance": {func(o *Objects) { o.FloatingIPs[1].Spec.Instance = "ins-2" }, api.KindFloatingIP, "fip-2", api.CodeInUse},
		"a balancer's address is the router's": {func(o *Objects) { o.FloatingIPs[1].Assignment.Address = "203.0.113.10" }, api.KindLoadBalancer, "lb-1", api.CodeConflict},
		"a branch to where the router leads": {func(o *Objects) {
			o.Routers = append(o.Routers, api.Router{Meta: api.Meta{ID: "rtr-9", Project: "prj-1", Name: "router-ext-1"}, Spec: api.RouterSpec{ExternalNetwork: "ext-1"},
				Assignment: api.RouterAssignment{Address4: "203.0.113.99"}})
		}, api.KindRouter, "prj-1", api.CodeConflict},
		"the router's address twice": {func(o *Objects) { o.FloatingIPs[0].Assignment.Address = "203.0.113.10" }, api.KindFloatingIP, "fip-1", api.CodeConflict},
		"no way out":                 {func(o *Objects) { o.Routers = nil; o.LoadBalancers = nil }, api.KindFloatingIP, "fip-1", api.CodeState},
		"into an isolated network":   {func(o *Objects) { o.FloatingIPs[0].Spec.Network = "net-2" }, api.KindFloatingIP, "fip-1", api.CodeState},
		"balanced over nothing":      {func(o *Objects) { o.LoadBalancers[0].Assignment.Address = "10.64.1.1" }, api.KindLoadBalancer, "lb-1", api.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			o := objects()
			c.spoil(&o)
			topology, problems := Intent(o)
			if len(problems) != 1 || problems[0].Kind != c.kind || problems[0].ID != c.id || problems[0].Error.Code != c.code {
				t.Fatalf("problems = %+v, want one of %s %s with code %s", problems, c.kind, c.id, c.code)
			}
			if _, again := topology.Check(); len(again) > 0 {
				t.Errorf("Check of the remaining topology = %+v, want no problems", again)
			}
			if len(topology.Networks) < 2 || len(topology.Ports) < 2 || len(topology.SecurityGroups) != 2 {
				t.Errorf("topology = %+v, want at least 2 networks, 2 ports and exactly 2 security groups", topology)
			}
		})
	}
}

func TestHealthAddress(t *testing.T) {
	for cidr, want := range map[string]string{"10.64.0.0/24": "10.64.0.254", "10.0.0.0/8": "10.255.255.254", "192.0.2.8/29": "192.0.2.14", "10.1.0.0/20": "10.1.15.254"} {
		if got := HealthAddress(netip.MustParsePrefix(cidr)); got.String() != want {
			t.Errorf("HealthAddress(%s) = %s, want %s", cidr, got, want)
		}
	}
}

func FuzzPortID(f *testing.F) {
	f.Add("port-ins-4f9c2a7be01d-0")
	f.Fuzz(func(t *testing.T, s string) {
		if i, ok := PortID(s).Instance(); ok && i == "" {
			t.Errorf("Instance of port ID %q is valid but empty", s)
		}
	})
}
