package deploy

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden file")

const (
	sidA = "aaaa0000-0000-4000-8000-000000000000"
	sidB = "bbbb0000-0000-4000-8000-000000000000"
	cid  = "cccc0000-0000-4000-8000-000000000000"
)

func three() Intent {
	return Intent{Node: "n1", Encap: netip.MustParseAddr("10.0.0.1"), Datapath: Auto,
		TLS: TLS{"/pki/ca.pem", "/pki/node.crt", "/pki/node.key"},
		Members: []Member{{"n1", netip.MustParseAddr("10.0.0.1")}, {"n2", netip.MustParseAddr("10.0.0.2")},
			{"n3", netip.MustParseAddr("fd00::3")}},
		Bootstrap: Bootstrap{Generation: 1, Founder: "n1", Clustered: true, NB: cid, SB: cid}}
}

// healthy returns the observed state of a member with everything running.
func healthy(in Intent) Observed {
	o := Observed{Northd: true, Controller: true, Connected: true, Free: 1 << 30,
		Switch: Switch{Kernel: true, File: Good, DB: true, Daemon: true, Configured: &Configured{
			ExternalIDs: map[string]string{"system-id": in.Node, "ovn-bridge": Integration, "ovn-bridge-datapath-type": "system", "ovn-encap-type": "geneve",
				"ovn-encap-ip": in.Encap.String(), "ovn-openflow-probe-interval": "60", "ovn-remote-probe-interval": "10000", "ovn-remote": in.remote(SB, "/run/ovn")},
			Bridges: map[string]Bridge{Integration: {Datapath: "system", Secure: true, Ports: []string{Integration}}}}}}
	db := func(d DB) Database {
		me, ok := in.member(in.Node)
		if !ok {
			return Database{}
		}
		o := Database{File: Good, Clustered: true, Cluster: cid, Server: sidA, Address: raft(me, d), Running: true}
		s := &Status{Cluster: cid, Server: sidA, Address: o.Address, State: "cluster member", Role: "leader", Leader: "self", Term: 2}
		for i, m := range in.Members {
			s.Servers = append(s.Servers, Server{Short: string(rune('a'+i)) + "000", Address: raft(m, d), Self: m == me, Heard: time.Second, Match: 9})
		}
		o.Status = s
		return o
	}
	o.NB, o.SB = db(NB), db(SB)
	return o
}

// TestNext checks the actions for observed states. Run actions of daemons that
// are running are left out.
func TestNext(t *testing.T) {
	paths := Paths{State: "/db", Run: "/run/ovn", OVSRun: "/run/ovs"}
	type change func(*Intent, *Observed)
	cases := []struct {
		name string
		change
		runs bool // include Run actions
	}{
		{"healthy", func(*Intent, *Observed) {}, false},
		{"bare founder", func(in *Intent, o *Observed) {
			in.Bootstrap.NB, in.Bootstrap.SB = "", ""
			*o = Observed{Free: 1 << 30}
		}, true},
		{"bare member before the ids are known", func(in *Intent, o *Observed) {
			in.Bootstrap = Bootstrap{Generation: 1, Founder: "n2", Clustered: true}
			*o = Observed{Free: 1 << 30}
		}, false},
		{"bare member", func(in *Intent, o *Observed) { *o = Observed{Free: 1 << 30} }, false},
		{"nothing decided yet", func(in *Intent, o *Observed) {
			in.Bootstrap, in.Members, *o = Bootstrap{}, nil, Observed{Free: 1 << 30}
		}, false},
		{"members not known: nothing is touched", func(in *Intent, o *Observed) { in.Members = nil }, false},
		{"one node without TLS", func(in *Intent, o *Observed) {
			in.TLS, in.Members = TLS{}, in.Members[:1]
			in.Bootstrap = Bootstrap{Generation: 1, Founder: "n1"}
			*o = Observed{Free: 1 << 30}
		}, true},
		{"member without a certificate", func(in *Intent, o *Observed) { in.TLS = TLS{} }, false},
		{"no module", func(in *Intent, o *Observed) { in.Datapath, o.Switch.Kernel = System, false }, false},
		{"module gone after an upgrade", func(in *Intent, o *Observed) { o.Switch.Kernel = false }, false},
		{"userspace with underlay", func(in *Intent, o *Observed) {
			in.Underlay, in.Datapath, o.Switch.Kernel = "eth1", Netdev, false
			o.Switch.Links = map[string]Link{"eth1": {Addresses: []string{"10.0.0.1/24"}, Up: true, Offload: true}}
		}, false},
		{"underlay with the default route", func(in *Intent, o *Observed) {
			in.Underlay, in.Datapath, o.Switch.Kernel = "eth1", Netdev, false
			o.Switch.Links = map[string]Link{"eth1": {Up: true, Default: true}}
		}, false},
		{"external networks", func(in *Intent, o *Observed) {
			in.External = map[string]string{"external": "eth2", "a-very-long-name": "eth3", "absent": "eth4", "used": "eth5"}
			o.Switch.Links = map[string]Link{"eth2": {}, "eth3": {}, "eth5": {Addresses: []string{"192.0.2.1/24"}}}
		}, false},
		{"the distribution's switch does not answer", func(in *Intent, o *Observed) {
			o.Switch = Switch{Kernel: true, Unmanaged: true}
		}, false},
		{"broken switch database", func(in *Intent, o *Observed) { o.Switch = Switch{Kernel: true, File: Broken} }, false},
		{"broken file", func(in *Intent, o *Observed) { o.NB = Database{File: Broken} }, false},
		{"kicked while it ran", func(in *Intent, o *Observed) { o.NB.Unknown, o.NB.Status = true, nil }, false},
		{"kicked while it was away", func(in *Intent, o *Observed) {
			in.Bootstrap.NBServers, o.NB.Leaderless = []string{"bbbb", "dddd"}, true
			o.NB.Status.Role, o.NB.Status.Leader = "candidate", "unknown"
		}, false},
		{"no leader", func(in *Intent, o *Observed) {
			in.Bootstrap.NBServers, o.NB.Leaderless = []string{"aaaa", "bbbb"}, true
			o.NB.Status.Role, o.NB.Status.Leader = "candidate", "unknown"
			o.NB.Status.Servers[1].Heard, o.NB.Status.Servers[2].Heard = time.Hour, -1
		}, false},
		{"not listed yet, and the leader just died", func(in *Intent, o *Observed) {
			in.Bootstrap.NBServers = []string{"bbbb", "dddd"}
			o.NB.Status.Role, o.NB.Status.Leader = "candidate", "unknown"
		}, false},
		{"full disk", func(in *Intent, o *Observed) { o.Free = 1 << 20 }, false},
		{"another's cluster", func(in *Intent, o *Observed) { o.NB.Cluster = sidB }, false},
		{"moved to another address", func(in *Intent, o *Observed) { o.NB.Address = "ssl:10.0.0.77:6643" }, false},
		{"another generation", func(in *Intent, o *Observed) {
			in.Bootstrap.Generation, in.Bootstrap.NB = 2, ""
			o.NB = Database{Running: true, Stale: []string{"/db/nb-1.db"}}
		}, false},
		{"the only copy is lost", func(in *Intent, o *Observed) {
			in.Members, o.NB = in.Members[:1], Database{}
			o.SB.Status.Servers = o.SB.Status.Servers[:1]
		}, false},
		{"a stranger and an old self", func(in *Intent, o *Observed) {
			o.NB.Status.Servers = append(o.NB.Status.Servers, Server{Short: "eeee", Address: "ssl:10.0.0.9:6643", Heard: time.Second})
			o.SB.Status.Servers = append(o.SB.Status.Servers, Server{Short: "eeee", Address: o.SB.Status.Servers[1].Address, Heard: -1})
		}, false},
		{"a new self and an old one", func(in *Intent, o *Observed) {
			o.NB.Status.Servers = append(o.NB.Status.Servers, Server{Short: "eeee", Address: o.NB.Status.Servers[1].Address, Heard: time.Millisecond})
		}, false},
		{"a follower kicks nobody", func(in *Intent, o *Observed) {
			o.NB.Status.Role, o.NB.Status.Leader = "follower", "bbbb"
			o.NB.Status.Servers = append(o.NB.Status.Servers, Server{Short: "eeee", Address: "ssl:10.0.0.9:6643", Heard: time.Second})
		}, false},
		{"no member any more", func(in *Intent, o *Observed) { in.Members = in.Members[1:] }, false},
		{"no member any more, and nobody leads", func(in *Intent, o *Observed) {
			in.Members = in.Members[1:]
			o.NB.Status.Leader, o.SB = "unknown", Database{File: Good}
		}, false},
		{"a member that is silent", func(in *Intent, o *Observed) { o.NB.Status.Servers[2].Heard = time.Minute }, false},
		{"old schema", func(in *Intent, o *Observed) { o.NB.Outdated, o.Switch.Outdated = true, true }, false},
		{"a chassis of no node", func(in *Intent, o *Observed) {
			in.Nodes, o.Chassis = []string{"n1", "n2"}, []string{"n1", "n2", "n9"}
		}, false},
		{"the controller is cut off", func(in *Intent, o *Observed) { o.Connected = false }, false},
	}
	var golden strings.Builder
	for _, c := range cases {
		in := three()
		o := healthy(in)
		c.change(&in, &o)
		actions, problems := Next(in, o, paths)
		fmt.Fprintf(&golden, "# %s\n", c.name)
		for _, a := range actions {
			if a.Verb != Run {
				fmt.Fprintln(&golden, a)
			} else if c.runs {
				fmt.Fprintln(&golden, strings.NewReplacer("/usr/bin/env OVN_RUNDIR=/run/ovn OVS_RUNDIR=/run/ovs OVN_DBDIR=/db ", "", "-vconsole:info -vsyslog:off -vfile:off ", "").Replace(a.String()))
			}
		}
		for _, p := range problems {
			fmt.Fprintf(&golden, "! %s: %s\n", p.Part, p)
		}
	}
	const file = "testdata/next.txt"
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
		t.Errorf("actions differ from %s; if intended, run with -update:\n%s", file, golden.String())
	}
}

func TestDecide(t *testing.T) {
	in := three()
	good := func(generation int) Report {
		d := DatabaseReport{Cluster: cid, Settled: true}
		return Report{Generation: generation, NB: d, SB: d}
	}
	f := Decide(Bootstrap{}, in.Members, true, map[string]Report{"n2": {}}, 0)
	if f.Generation != 1 || f.Founder != "n2" || !f.Clustered || f.NB != "" {
		t.Fatalf("first decision = %+v, want generation 1 of founder n2, clustered, without IDs", f)
	}
	// Without new information nothing changes, however often it is called.
	if again := Decide(f, in.Members, true, map[string]Report{"n1": {Generation: 1}}, 0); fmt.Sprint(again) != fmt.Sprint(f) {
		t.Errorf("decision without new information = %+v, want %+v", again, f)
	}
	// Only the founder's report counts, and only about this generation.
	if got := Decide(f, in.Members, true, map[string]Report{"n1": good(1), "n2": good(7)}, 0); got.NB != "" || got.SB != "" {
		t.Errorf("decision on reports of another node and generation = %+v, want no IDs", got)
	}
	lead := good(1)
	lead.NB.Leads, lead.NB.Term, lead.NB.Servers = true, 4, []string{"bbbb", "aaaa"}
	old := good(1)
	old.NB.Leads, old.NB.Term, old.NB.Servers = true, 3, []string{"eeee"}
	f = Decide(f, in.Members, true, map[string]Report{"n2": lead, "n3": old}, 0)
	if f.NB != cid || f.SB != cid || fmt.Sprint(f.NBServers) != "[aaaa bbbb]" {
		t.Fatalf("decision on the founder's report = %+v, want both IDs and the leader's servers", f)
	}
	if got := Decide(f, in.Members, true, map[string]Report{"n2": good(1)}, 0); len(got.NBServers) > 0 {
		t.Errorf("servers without a leader = %v, want none", got.NBServers)
	}
	all := map[string]Report{"n1": good(1), "n2": good(1), "n3": good(1)}
	mute := map[string]Report{"n1": {Generation: 1}, "n2": {Generation: 1}}
	lost, joins := Report{Generation: 1, NB: DatabaseReport{Lost: true}}, Report{Generation: 1, NB: DatabaseReport{Joining: true}}
	for name, c := range map[string]struct {
		members []Member
		tls     bool
		reports map[string]Report
		silence time.Duration
		anew    bool
	}{
		"all well":                      {in.Members, true, all, 0, false},
		"founder gone, cluster there":   {in.Members[2:], true, all, 0, false},
		"nobody leads, just now":        {in.Members, true, mute, LeaderlessLimit - 1, false},
		"nobody leads, for long":        {in.Members, true, mute, LeaderlessLimit, true},
		"silence, but somebody settled": {in.Members, true, all, 2 * LeaderlessLimit, false},
		"the only one lost it":          {in.Members[:1], true, map[string]Report{"n1": lost}, 0, true},
		"one of three says lost":        {in.Members, true, map[string]Report{"n1": lost, "n2": good(1), "n3": good(1)}, 0, false},
		"all join, nobody has it":       {in.Members, true, map[string]Report{"n1": joins, "n2": joins, "n3": joins}, 0, true},
		"all who report join":           {in.Members, true, map[string]Report{"n1": joins, "n2": joins}, 0, false},
		"two join the third":            {in.Members, true, map[string]Report{"n1": joins, "n2": joins, "n3": good(1)}, 0, false},
		"TLS is gone on three nodes":    {in.Members, false, all, 0, false},
		"no members known":              {nil, true, all, 2 * LeaderlessLimit, false},
	} {
		got := Decide(f, c.members, c.tls, c.reports, c.silence)
		if anew := got.Generation == 2; anew != c.anew || !anew && got.NB != cid || anew && got.NB != "" {
			t.Errorf("%s: decision = %+v, want a new generation: %v", name, got, c.anew)
		}
	}
	// From a single node to a cluster.
	alone := Bootstrap{Generation: 3, Founder: "n1", NB: single, SB: single}
	if got := Decide(alone, in.Members[:1], false, map[string]Report{"n1": good(3)}, 0); got.Generation != 3 {
		t.Errorf("decision for a single node = %+v, want generation 3", got)
	}
	if got := Decide(alone, in.Members, true, nil, 0); got.Generation != 4 || !got.Clustered || got.NB != "" {
		t.Errorf("decision for a grown cluster = %+v, want generation 4, clustered, without IDs", got)
	}
	// A founder that is removed before its first report.
	if got := Decide(Bootstrap{Generation: 1, Founder: "n9", Clustered: true}, in.Members, true, nil, 0); got.Generation != 2 || got.Founder != "n1" {
		t.Errorf("decision after the loss of the founder = %+v, want generation 2 of founder n1", got)
	}
}

// TestReportOfPhysicalNetworks checks that a node reports the physical
// networks with an interface that exists and has no other use.
func TestReportOfPhysicalNetworks(t *testing.T) {
	in := Intent{Node: "n1", External: map[string]string{"external": "eth2", "campus": "eth3", "absent": "eth4", "used": "eth5"}}
	o := Observed{Switch: Switch{Links: map[string]Link{"eth2": {}, "eth3": {}, "eth5": {Addresses: []string{"192.0.2.1/24"}}}}}
	if got := report(in, o, Paths{}, nil).Physical; !slices.Equal(got, []string{"campus", "external"}) {
		t.Errorf("physical networks = %q, want campus and external", got)
	}
}
