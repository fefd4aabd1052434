package deploy

import (
	"net/netip"
	"slices"
	"strings"
)

// Ports on which members listen, all with TLS.
const (
	PortNB     = 6641 // northbound: Basalt's leader and ovn-northd
	PortSB     = 6642 // southbound: every ovn-controller, ovn-northd
	PortNBRaft = 6643
	PortSBRaft = 6644
)

// Limits.
const (
	MaxMembers = 9
	minFree    = 32 << 20 // bytes on the databases' disk; with less their servers are stopped
)

// Datapath of Open vSwitch.
type Datapath string

// Datapaths. Auto is system where the kernel has openvswitch.
const (
	Auto   Datapath = "auto"
	System Datapath = "system"
	Netdev Datapath = "netdev" // userspace: needs nothing of the kernel but tap devices
)

// Intent is what one node should have.
type Intent struct {
	// Node is this node's id: the chassis' name.
	Node string
	// Encap is where tunnels end on this node.
	Encap    netip.Addr
	Datapath Datapath
	// External maps names of physical networks to interfaces of this node. Such
	// an interface serves that network only: one with addresses is refused.
	External map[string]string
	// Underlay is, with the userspace datapath, the interface that has the Encap
	// address; it moves onto a bridge. Empty: the address is on a bridge already,
	// or there is only one node.
	Underlay string
	// Members have the databases, whether they live or not.
	Members  []Member
	Founding Founding
	// TLS may be empty where the only member is the only node.
	TLS TLS
	// Nodes are all that the cluster has: the leader of the southbound database
	// removes chassis of others. Empty: not known, nothing is removed.
	Nodes []string
}

// Member has the databases.
type Member struct {
	Node    string
	Address netip.Addr
}

// Founding is what the cluster has written down about its databases.
type Founding struct {
	// Generation counts how often they were begun anew, from 1. 0: nobody has
	// decided yet.
	Generation int
	// Founder may create the databases of this generation, while their ids are
	// not known.
	Founder string
	// Clustered: with Raft and TLS. What one node without TLS has is not, and a
	// second member needs another generation.
	Clustered bool
	// NB and SB are the ids of the databases' clusters; empty: not created, as
	// far as is known.
	NB, SB string
	// NBServers and SBServers are the ids (their first digits) of the servers of
	// each, as the one that leads them now says; empty while none does. A server
	// that has heard no leader for long, and is not among them, was taken out
	// while it was away.
	NBServers, SBServers []string
}

// TLS names PEM files: the cluster's bundle of CAs, and this node's certificate
// and key. OVN's daemons read them again when they change.
type TLS struct{ Bundle, Cert, Key string }

func (t TLS) on() bool { return t != TLS{} }

func (t TLS) args() []string {
	if !t.on() {
		return nil
	}
	return []string{"--private-key=" + t.Key, "--certificate=" + t.Cert, "--ca-cert=" + t.Bundle}
}

// DB is one of OVN's two databases.
type DB string

// The databases.
const (
	NB DB = "nb"
	SB DB = "sb"
)

// DBs in the order in which they come up.
var DBs = []DB{NB, SB}

func (d DB) schemaName() string {
	if d == NB {
		return "OVN_Northbound"
	}
	return "OVN_Southbound"
}

// global is the table of one row that every database has.
func (d DB) global() string { return strings.ToUpper(string(d)) + "_Global" }

func (d DB) schemaFile() string { return "/usr/share/ovn/ovn-" + string(d) + ".ovsschema" }

func (d DB) port() int {
	if d == NB {
		return PortNB
	}
	return PortSB
}

func (d DB) raftPort() int {
	if d == NB {
		return PortNBRaft
	}
	return PortSBRaft
}

// id of the database's cluster.
func (f Founding) id(d DB) string {
	if d == NB {
		return f.NB
	}
	return f.SB
}

func (i Intent) member(node string) (Member, bool) {
	n := slices.IndexFunc(i.Members, func(m Member) bool { return m.Node == node })
	if n < 0 {
		return Member{}, false
	}
	return i.Members[n], true
}

// removed tells that the server was taken out of its cluster and has not heard
// of it.
func (f Founding) removed(d DB, o Database) bool {
	list := f.NBServers
	if d == SB {
		list = f.SBServers
	}
	return len(list) > 0 && o.Lonely &&
		!slices.ContainsFunc(list, func(short string) bool { return strings.HasPrefix(o.Server, short) })
}

// raft is where a member's server of d meets the others.
func raft(m Member, d DB) string { return "ssl:" + hostPort(m.Address, d.raftPort()) }

// others are where the other members' servers of d meet, in order.
func (i Intent) others(d DB) (all []string) {
	for _, m := range i.Members {
		if m.Node != i.Node {
			all = append(all, raft(m, d))
		}
	}
	return all
}

// founded tells whether the database of this generation is there, as far as
// its clients must know.
func (f Founding) founded(d DB) bool { return f.Generation > 0 && (!f.Clustered || f.id(d) != "") }

// remote is Endpoint for OVN's own programs. It names the cluster, if the
// database has one: while the databases are begun anew, servers of the old ones
// still answer here and there, and a program that has read in one of those
// refuses the new ones for ever, as older than what it knows (ovsdb(7), "cid").
// Sorted, for they look the cluster up in the list by bisection, and abort.
func (i Intent) remote(d DB, run string) string {
	if !i.Founding.Clustered {
		return i.Endpoint(d, run)
	}
	all := append(strings.Split(i.Endpoint(d, run), ","), "cid:"+i.Founding.id(d))
	slices.Sort(all)
	return strings.Join(all, ",")
}

// Client is what OVN's own tools are told to reach d.
func (i Intent) Client(d DB, run string) []string {
	args := []string{"--db=" + i.remote(d, run)}
	if i.Founding.Clustered {
		args = append(args, i.TLS.args()...)
	}
	return args
}

// Endpoint of d for this node's clients, in OVN's notation.
func (i Intent) Endpoint(d DB, run string) string {
	if !i.Founding.Clustered {
		return "unix:" + socket(run, d)
	}
	all := make([]string, len(i.Members))
	for n, m := range i.Members {
		all[n] = "ssl:" + hostPort(m.Address, d.port())
	}
	return strings.Join(all, ",")
}

func socket(run string, d DB) string { return run + "/ovn" + string(d) + "_db.sock" }

// hostPort with brackets around IPv6, as OVN wants it.
func hostPort(a netip.Addr, port int) string {
	return netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(port)).String()
}
