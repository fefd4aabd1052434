package deploy

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Paths are the directories of a node.
type Paths struct {
	State  string // databases
	Run    string // OVN's sockets
	OVSRun string // Open vSwitch's sockets
}

// File returns the file of a database's generation.
func (p Paths) File(d DB, generation int) string {
	return filepath.Join(p.State, fmt.Sprintf("%s-%d.db", d, generation))
}

func (p Paths) local() string { return filepath.Join(p.State, "conf.db") }

// Next returns what to do now, in order: if an action fails, the later ones of
// its part must wait for the next call. An empty result means that nothing is
// left to do now; the node must still be observed again later.
func Next(in Intent, o Observed, p Paths) ([]Action, []Problem) {
	n := &next{Intent: in, o: o, paths: p}
	n.openvswitch()
	for _, d := range DBs {
		n.database(d)
	}
	n.northd()
	n.chassis()
	return n.actions, n.problems
}

type next struct {
	Intent
	o        Observed
	paths    Paths
	actions  []Action
	problems []Problem
}

func (n *next) add(a Action) { n.actions = append(n.actions, a) }

func (n *next) problem(part Part, next, what string, args ...any) {
	n.problems = append(n.problems, Problem{Part: part, What: fmt.Sprintf(what, args...), Next: next})
}

// env sets the directories of OVN's and Open vSwitch's programs.
func (n *next) env(argv ...string) []string {
	return append([]string{"/usr/bin/env", "OVN_RUNDIR=" + n.paths.Run, "OVS_RUNDIR=" + n.paths.OVSRun, "OVN_DBDIR=" + n.paths.State}, argv...)
}

// client is env for clients of the databases. They store how far they have
// read and reject older data, so they are restarted for another generation.
func (n *next) client(program string) []string {
	return append(n.env(fmt.Sprintf("BASALT_GENERATION=%d", n.Bootstrap.Generation), program), quiet...)
}

var quiet = []string{"-vconsole:info", "-vsyslog:off", "-vfile:off"}

func (n *next) database(d DB) {
	part, o := d.part(), n.o.db(d)
	file := n.paths.File(d, n.Bootstrap.Generation)
	daemon := "ovn-" + string(d)
	if n.Bootstrap.Generation == 0 || len(n.Members) == 0 {
		return // the members are unknown, which does not mean that there are none
	}
	me, member := n.member(n.Node)
	if !member {
		n.leave(d, o, file)
		return
	}
	others := n.others(d)
	if !n.Bootstrap.Clustered && len(others) > 0 {
		n.problem(part, "", "waiting for databases that %d nodes can share", len(n.Members))
		return
	}
	if n.Bootstrap.Clustered && !n.TLS.on() {
		n.problem(part, "give this node a certificate of the cluster", "this node has no certificate, and the members accept TLS only")
		return
	}
	if n.o.Free < minFree {
		if o.Running {
			n.add(Action{Part: part, Verb: Stop, DB: d, Name: daemon})
		}
		n.problem(part, "free space on "+n.paths.State, "%d MiB are free for the databases, want at least %d MiB: their servers were stopped on this node", n.o.Free>>20, minFree>>20)
		return
	}
	for _, stale := range o.Stale {
		n.add(Action{Part: part, Verb: Remove, DB: d, File: stale})
	}
	known := n.Bootstrap.id(d)
	foreign := o.File == Good && (o.Clustered != n.Bootstrap.Clustered ||
		o.Clustered && (o.Address != raft(me, d) || known != "" && o.Cluster != "" && o.Cluster != known))
	if o.Unknown || foreign || n.Bootstrap.removed(d, o) || o.File == Left || o.File == Broken {
		if o.File == Broken {
			n.problem(part, "check this node's disk if it happens again", "its file is damaged and is recreated from the other members")
		}
		n.add(Action{Part: part, Verb: Stop, DB: d, Name: daemon})
		n.add(Action{Part: part, Verb: SetAside, DB: d, File: file})
		o.File = Absent
	}
	if o.File == Absent {
		switch {
		case known != "" && n.Bootstrap.Clustered && len(others) > 0:
			n.add(Action{Part: part, Verb: Join, DB: d, File: file, ID: known, Addr: raft(me, d), Others: others})
		case known != "":
			// Its only copy was on this node. Found raises the generation.
			n.problem(part, "", "the only copy of the database is lost; a new one is created")
			return
		case n.Bootstrap.Founder != n.Node:
			n.problem(part, "", "waiting for node %s to create the database", n.Bootstrap.Founder)
			return
		case n.Bootstrap.Clustered:
			n.add(Action{Part: part, Verb: Found, DB: d, File: file, Addr: raft(me, d)})
		default:
			n.add(Action{Part: part, Verb: Create, DB: d, File: file})
		}
	}
	n.add(Action{Part: part, Verb: Run, DB: d, Name: daemon, Argv: n.server(d, me, file)})
	if o.Running && o.File == Good {
		n.maintainCluster(d, o)
	} else if o.LastOutput != "" {
		n.problem(part, "", "its server keeps exiting: %s", o.LastOutput)
	}
}

// server returns the command line of a member's database server.
func (n *next) server(d DB, me Member, file string) []string {
	argv := append(n.env("/usr/sbin/ovsdb-server"), quiet...)
	argv = append(argv, "--remote=punix:"+socket(n.paths.Run, d),
		"--pidfile="+n.paths.Run+"/ovn"+string(d)+"_db.pid", "--unixctl="+control(n.paths.Run, d))
	if n.Bootstrap.Clustered {
		argv = append(argv, "--remote=pssl:"+strings.TrimSuffix(fmt.Sprintf("%d:%s", d.port(), bracket(me)), ":"))
		argv = append(argv, n.TLS.args()...)
	}
	return append(argv, file)
}

func control(run string, d DB) string { return run + "/ovn" + string(d) + "_db.ctl" }

func bracket(m Member) string {
	if a := m.Address.Unmap(); a.Is6() {
		return "[" + a.WithZone("").String() + "]"
	}
	return m.Address.Unmap().String()
}

// maintainCluster maintains the cluster of a running server; the leader does
// it, one step at a time.
func (n *next) maintainCluster(d DB, o Database) {
	part := d.part()
	if !n.Bootstrap.Clustered {
		if o.Outdated {
			n.add(Action{Part: part, Verb: Convert, DB: d})
		}
		return
	}
	switch s := o.Status; {
	case s == nil:
		n.problem(part, "", "its server is not responding")
	case s.joining():
		n.problem(part, "", "joining the cluster, which needs a majority of the other members")
	case !s.settled():
		alive, all := o.reach()
		n.problem(part, "restore a member, or remove the lost ones from the cluster",
			"has no leader: %d of %d servers are reachable, want at least %d", alive, all, all/2+1)
	case s.leads():
		if gone := n.staleServer(d, s); gone != "" {
			n.add(Action{Part: part, Verb: Kick, DB: d, ID: gone})
		} else if o.Outdated {
			n.add(Action{Part: part, Verb: Convert, DB: d})
		}
		if d == SB && len(n.Nodes) > 0 {
			n.dropChassis()
		}
	}
	if s := o.Status; s.settled() {
		if alive, all := o.reach(); alive < all {
			n.problem(part, "check the members that are down", "%d of %d servers are reachable", alive, all)
		}
	}
}

// staleServer returns a server that should not be in the cluster: one at no
// member's address, or of two at the same address the one that does not
// respond.
func (n *next) staleServer(d DB, s *Status) string {
	at := map[string]Server{}
	for _, server := range s.Servers {
		if server.Self {
			at[server.Address] = server
		}
	}
	for _, server := range s.Servers {
		if server.Self {
			continue
		}
		known := false
		for _, m := range n.Members {
			known = known || raft(m, d) == server.Address
		}
		if !known {
			return server.Short
		}
		other, twice := at[server.Address]
		if !twice {
			at[server.Address] = server
			continue
		}
		if other.Self || heardLater(other, server) {
			return server.Short
		}
		return other.Short
	}
	return ""
}

// heardLater reports whether a was heard from later than b.
func heardLater(a, b Server) bool {
	if a.Heard < 0 || b.Heard < 0 {
		return a.Heard >= 0 || b.Heard < 0 && a.Match >= b.Match
	}
	return a.Heard < b.Heard
}

func (n *next) dropChassis() {
	nodes := map[string]bool{}
	for _, node := range n.Nodes {
		nodes[node] = true
	}
	for _, c := range n.o.Chassis {
		if !nodes[c] {
			n.add(Action{Part: PartSB, Verb: DropChassis, DB: SB, ID: c})
		}
	}
}

// leave removes a database that this node should not have.
func (n *next) leave(d DB, o Database, file string) {
	part, daemon := d.part(), "ovn-"+string(d)
	for _, stale := range o.Stale {
		n.add(Action{Part: part, Verb: Remove, DB: d, File: stale})
	}
	if o.File == Absent && !o.Running {
		return
	}
	// Removing a leader from outside leaves a gap until the next election; a
	// leader that leaves transfers its role first. It can only leave while there
	// is a majority.
	if s := o.Status; o.Running && s.settled() && len(s.Servers) > 1 {
		n.add(Action{Part: part, Verb: Leave, DB: d})
		return
	}
	if s := o.Status; o.Running && s != nil && s.State == "leaving cluster" && s.Leader != "unknown" {
		return
	}
	n.add(Action{Part: part, Verb: Stop, DB: d, Name: daemon})
	n.add(Action{Part: part, Verb: Remove, DB: d, File: file})
}

// reach counts the servers that were heard from lately, including itself. A
// follower hears from the leader only.
func (d Database) reach() (alive, all int) {
	for _, s := range d.Status.Servers {
		all++
		if s.Self || d.Status.Role != "leader" && d.Status.settled() || s.Heard >= 0 && s.Heard < silent {
			alive++
		}
	}
	return alive, all
}
