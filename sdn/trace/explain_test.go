package trace

import (
	"errors"
	"flag"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
)

var update = flag.Bool("update", false, "write the golden files")

func addr(s string) netip.Addr    { return netip.MustParseAddr(s) }
func cidr(s string) netip.Prefix  { return netip.MustParsePrefix(s) }
func end(s string) End            { return endOf(s, 0) }
func port(name string) sdn.PortID { return sdn.PortOf(api.InstanceID(name), 0) }
func names(id string) string      { return strings.TrimPrefix(strings.TrimPrefix(id, "ins-"), "sg-") }
func endOf(s string, card int) End {
	if a, err := netip.ParseAddr(s); err == nil {
		return End{Address: a}
	}
	return End{Port: sdn.PortOf(api.InstanceID(s), card)}
}

// testTopology returns two projects: blue with two networks, an isolated one
// and a load balancer, red with the same range as blue's first.
func testTopology() sdn.Topology {
	p := func(id, network, mac, a4, a6 string, groups ...api.SecurityGroupID) sdn.Port {
		out := sdn.Port{ID: port(id), Network: api.NetworkID(network), MAC: mac, Address4: addr(a4), SecurityGroups: groups}
		if a6 != "" {
			out.Address6 = addr(a6)
		}
		return out
	}
	everything := sdn.Rule{Direction: api.Egress, Protocol: api.ProtocolAny}
	return sdn.Topology{
		Cluster: "town", Forbidden: []netip.Prefix{cidr("192.0.2.0/24")},
		Networks: []sdn.Network{
			{ID: "net-front", Project: "prj-blue", CIDR4: cidr("10.64.0.0/24"), Gateway4: addr("10.64.0.1"), CIDR6: cidr("fd00:1::/64"), Gateway6: addr("fd00:1::1"), MTU: 1442},
			{ID: "net-back", Project: "prj-blue", CIDR4: cidr("10.64.1.0/24"), Gateway4: addr("10.64.1.1"), MTU: 1442},
			{ID: "net-alone", Project: "prj-blue", CIDR4: cidr("10.64.2.0/24"), Gateway4: addr("10.64.2.1"), Isolated: true, MTU: 1442},
			{ID: "net-red", Project: "prj-red", CIDR4: cidr("10.64.0.0/24"), Gateway4: addr("10.64.0.1"), MTU: 1442},
		},
		Routers:  []sdn.Router{{Project: "prj-blue", External: "ext", Address4: addr("203.0.113.10")}, {Project: "prj-red"}},
		External: []sdn.ExternalNetwork{{ID: "ext", Physical: "external", CIDR4: cidr("203.0.113.0/24"), Gateway4: addr("203.0.113.1"), Gateways: []api.NodeID{"node-a"}}},
		SecurityGroups: []sdn.SecurityGroup{
			{ID: "sg-default", Project: "prj-blue", Rules: []sdn.Rule{everything, {Direction: api.Ingress, Protocol: api.ProtocolAny, Group: "sg-default"}}},
			{ID: "sg-web", Project: "prj-blue", Rules: []sdn.Rule{everything, {Direction: api.Ingress, Protocol: api.ProtocolTCP, FirstPort: 443, LastPort: 443},
				{Direction: api.Ingress, Protocol: api.ProtocolTCP, FirstPort: 8000, LastPort: 8080, Peer: cidr("10.64.1.0/24")}}},
			{ID: "sg-mute", Project: "prj-blue", Rules: []sdn.Rule{{Direction: api.Egress, Protocol: api.ProtocolUDP, FirstPort: 53, LastPort: 53}}},
			{ID: "sg-red", Project: "prj-red", Rules: []sdn.Rule{everything}},
		},
		Ports: []sdn.Port{
			p("ins-web", "net-front", "52:54:00:00:00:01", "10.64.0.5", "fd00:1::5", "sg-web"),
			p("ins-app", "net-front", "52:54:00:00:00:02", "10.64.0.6", "fd00:1::6", "sg-default"),
			p("ins-db", "net-back", "52:54:00:00:00:03", "10.64.1.7", "", "sg-default"),
			p("ins-mute", "net-back", "52:54:00:00:00:04", "10.64.1.8", "", "sg-mute"),
			p("ins-bare", "net-front", "52:54:00:00:00:05", "10.64.0.9", ""),
			p("ins-alone", "net-alone", "52:54:00:00:00:06", "10.64.2.5", "", "sg-default"),
			p("ins-red", "net-red", "52:54:00:00:00:07", "10.64.0.5", "", "sg-red"),
		},
		FloatingIPs: []sdn.FloatingIP{{ID: "fip-1", Project: "prj-blue", External: "ext", Address: addr("203.0.113.20"), Port: port("ins-web"), Target: addr("10.64.0.5")}},
		LoadBalancers: []sdn.LoadBalancer{{ID: "lb-1", Project: "prj-blue", Network: "net-front", Address: addr("10.64.0.100"), Protocol: api.ProtocolTCP, Port: 80,
			Backends: []sdn.Backend{{Port: port("ins-web"), Address: addr("10.64.0.5"), Target: 443}, {Port: port("ins-app"), Address: addr("10.64.0.6"), Target: 8080}},
			External: "ext", Floating: addr("203.0.113.30")}},
	}
}

// questions are packets and whether they arrive. TestOVNAgrees checks the same
// with the real OVN.
var questions = []struct {
	from, to, what string
	passes         bool
}{
	{"ins-app", "ins-web", "tcp/443", true},
	{"ins-app", "ins-web", "tcp/22", false},
	{"ins-app", "ins-web", "icmp", false},
	{"ins-app", "fd00:1::5", "tcp/443", true},
	{"ins-app", "ins-web", "icmp6", false},
	{"ins-app", "ins-db", "tcp/5432", true}, // through the router, same group
	{"ins-db", "ins-app", "icmp", true},
	{"ins-web", "ins-db", "tcp/5432", false}, // not a member
	{"ins-db", "ins-web", "tcp/8080", true},
	{"ins-app", "ins-web", "tcp/8080", false}, // outside the allowed range
	{"ins-mute", "ins-web", "tcp/443", false},
	{"ins-mute", "ins-app", "udp/53", false},
	{"ins-bare", "ins-web", "tcp/443", false},
	{"ins-web", "ins-bare", "tcp/443", false},
	{"ins-app", "ins-alone", "tcp/443", false},
	{"ins-alone", "ins-app", "tcp/443", false},
	{"ins-app", "10.64.0.77", "tcp/443", false},
	{"ins-app", "192.0.2.1", "tcp/22", false},
	{"ins-app", "198.51.100.1", "tcp/443", true},
	{"ins-red", "198.51.100.1", "tcp/443", false}, // no external network
	{"ins-red", "10.64.1.7", "tcp/5432", false},
	{"ins-app", "169.254.169.254", "tcp/80", true},
	{"ins-bare", "169.254.169.254", "tcp/80", true},
	{"ins-bare", "169.254.169.254", "tcp/53", true},
	{"ins-bare", "169.254.169.254", "udp/53", true},
	{"ins-bare", "169.254.169.254", "udp/80", false},
	{"ins-app", "10.64.0.1", "icmp", true},
	{"ins-app", "10.64.0.1", "tcp/22", false},
	{"ins-db", "10.64.0.100", "tcp/80", true},
	{"ins-db", "10.64.0.100", "tcp/81", false},
	{"198.51.100.1", "203.0.113.20", "tcp/443", true},
	{"198.51.100.1", "203.0.113.20", "tcp/22", false},
	{"198.51.100.1", "203.0.113.30", "tcp/80", true},
	{"198.51.100.1", "203.0.113.30", "tcp/22", false},
	{"198.51.100.1", "203.0.113.99", "tcp/22", false},
}

func ask(t *testing.T, from, to, what string) Question {
	t.Helper()
	q := Question{From: end(from), To: end(to), Name: names}
	var err error
	if q.Protocol, q.Port, err = ParseWhat(what); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestExplain(t *testing.T) {
	top, problems := testTopology().Check()
	if len(problems) > 0 {
		t.Fatalf("Check of the test's topology = %+v, want no problems", problems)
	}
	var golden strings.Builder
	for _, c := range questions {
		q := ask(t, c.from, c.to, c.what)
		v, err := Explain(top, q)
		if err != nil {
			t.Errorf("Explain from %s to %s: %v", c.from, c.to, err)
			continue
		}
		if v.Passes != c.passes {
			t.Errorf("%s to %s, %s: passes = %v, want %v", c.from, c.to, c.what, v.Passes, c.passes)
		}
		if !v.Passes && v.Next == "" {
			t.Errorf("%s to %s, %s: dropped without Next, want what to do", c.from, c.to, c.what)
		}
		golden.WriteString(strings.Join(Lines(q, v, nil, ""), "\n") + "\n\n")
	}
	const file = "testdata/explain.txt"
	if *update {
		if err := os.WriteFile(file, []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if golden.String() != string(want) {
		t.Errorf("explanations differ from %s; if intended, run with -update:\n%s", file, golden.String())
	}
}

func TestBadQuestions(t *testing.T) {
	for _, c := range []struct{ from, to, what string }{
		{"ins-nobody", "ins-web", "tcp/1"}, {"ins-web", "ins-nobody", "tcp/1"},
		{"ins-web", "ins-db", "icmp6"}, {"ins-db", "fd00:1::5", "tcp/443"},
		{"198.51.100.1", "ins-web", "tcp/443"}, {"fd00::1", "10.0.0.1", "tcp/1"},
	} {
		_, err := Explain(testTopology(), ask(t, c.from, c.to, c.what))
		var e *api.Error
		if !errors.As(err, &e) {
			t.Errorf("%s to %s, %s: error = %v, want an *api.Error", c.from, c.to, c.what, err)
		}
	}
	for _, what := range []string{"", "tcp", "tcp/", "tcp/0", "tcp/65536", "icmp/8", "sctp/1", "tcp/-1", "any"} {
		if _, _, err := ParseWhat(what); err == nil {
			t.Errorf("ParseWhat(%q) = nil, want an error", what)
		}
	}
}
