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
	minFree    = 32 << 20 // free bytes on the databases' disk; with less their servers are stopped
)

// Datapath is the kind of Open vSwitch's datapath.
type Datapath string

// Datapaths. Auto is system where the kernel has openvswitch.
const (
	Auto   Datapath = "auto"
	System Datapath = "system"
	Netdev Datapath = "netdev" // userspace: requires only tap devices from the kernel
)

// Intent is the desired state of one node.
type Intent struct {
	// Node is this node's ID, which is the chassis' name.
	Node string
	// Encap is the address of this node's tunnel endpoint.
	Encap    netip.Addr
	Datapath Datapath
	// External maps names of physical networks to interfaces of this node. Such
	// an interface serves that network only: one with addresses is rejected.
	External map[string]string
	// Underlay is, with the userspace datapath, the interface that has the Encap
	// address; the address moves to a bridge. Empty: the address is on a bridge
	// already, or there is only one node.
	Underlay string
	// Members have the databases, whether they are alive or not.
	Members   []Member
	Bootstrap Bootstrap
	// TLS may be empty if the only member is the only node.
	TLS TLS
	// Nodes are all nodes of the cluster: the leader of the southbound database
	// removes chassis of others. Empty: unknown, nothing is removed.
	Nodes []string
}

// Member is a node with the databases.
type Member struct {
	Node    string
	Address netip.Addr
}

// Bootstrap is what the cluster has recorded about its databases.
type Bootstrap struct {
	// Generation counts how often the databases were created, from 1. 0: not
	// decided yet.
	Generation int
	// Founder may create the databases of this generation as long as their IDs
	// are unknown.
	Founder string
	// Clustered means Raft with TLS. The databases of one node without TLS are
	// not clustered, and a second member requires another generation.
	Clustered bool
	// NB and SB are the IDs of the databases' clusters; empty: not known to be
	// created.
	NB, SB string
	// NBServers and SBServers are the IDs (their first digits) of the servers of
	// each, as its present leader reports; empty without a leader. A server that
	// has had no leader for a long time, and is not in the list, was removed from
	// the cluster while it was down.
	NBServers, SBServers []string
}

// TLS are paths of PEM files: the cluster's CA bundle, and this node's
// certificate and key. OVN's daemons reload them when they change.
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

// DBs are the databases in the order in which they are started.
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

// id returns the ID of the database's cluster.
func (f Bootstrap) id(d DB) string {
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

// removed reports whether the server was removed from its cluster and has not
// been notified.
func (f Bootstrap) removed(d DB, o Database) bool {
	list := f.NBServers
	if d == SB {
		list = f.SBServers
	}
	return len(list) > 0 && o.Leaderless &&
		!slices.ContainsFunc(list, func(short string) bool { return strings.HasPrefix(o.Server, short) })
}

// raft returns the address of a member's server of d for the other servers.
func raft(m Member, d DB) string { return "ssl:" + hostPort(m.Address, d.raftPort()) }

// others returns the addresses of the other members' servers of d, in order.
func (i Intent) others(d DB) (all []string) {
	for _, m := range i.Members {
		if m.Node != i.Node {
			all = append(all, raft(m, d))
		}
	}
	return all
}

// founded reports whether clients may use the database of this generation.
func (f Bootstrap) founded(d DB) bool { return f.Generation > 0 && (!f.Clustered || f.id(d) != "") }

// remote is Endpoint for OVN's own programs. It includes the cluster ID, if
// there is one: while new databases are created, some servers of the old ones
// still answer, and a program that has read from one of those rejects the new
// ones for ever, as older than its data (ovsdb(7), "cid"). The list is sorted,
// because the programs look up the cluster in it by bisection, and abort
// otherwise.
func (i Intent) remote(d DB, run string) string {
	if !i.Bootstrap.Clustered {
		return i.Endpoint(d, run)
	}
	all := append(strings.Split(i.Endpoint(d, run), ","), "cid:"+i.Bootstrap.id(d))
	slices.Sort(all)
	return strings.Join(all, ",")
}

// Client returns the arguments with which OVN's own tools connect to d.
func (i Intent) Client(d DB, run string) []string {
	args := []string{"--db=" + i.remote(d, run)}
	if i.Bootstrap.Clustered {
		args = append(args, i.TLS.args()...)
	}
	return args
}

// Endpoint returns the endpoint of d for this node's clients, in OVN's
// notation.
func (i Intent) Endpoint(d DB, run string) string {
	if !i.Bootstrap.Clustered {
		return "unix:" + socket(run, d)
	}
	all := make([]string, len(i.Members))
	for n, m := range i.Members {
		all[n] = "ssl:" + hostPort(m.Address, d.port())
	}
	return strings.Join(all, ",")
}

func socket(run string, d DB) string { return run + "/ovn" + string(d) + "_db.sock" }

// hostPort formats an address with brackets around IPv6, as OVN requires.
func hostPort(a netip.Addr, port int) string {
	return netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(port)).String()
}
