package deploy

// Observed is what a node looks like.
type Observed struct {
	Switch Switch
	NB, SB Database
	// Northd and Controller run.
	Northd, Controller bool
	// Connected: ovn-controller has the southbound database.
	Connected bool
	// Free bytes where the databases lie.
	Free uint64
	// Chassis that the southbound database has; nil: not known.
	Chassis []string
}

// Switch is the node's Open vSwitch.
type Switch struct {
	// Kernel has the openvswitch module.
	Kernel bool
	// Foreign: the distribution's service runs it; it is not ours to start.
	Foreign bool
	// File of its database (ours only).
	File FileState
	// DB and Daemon run: ovsdb-server and ovs-vswitchd.
	DB, Daemon bool
	// Outdated: the installed schema is newer than the database's (ours only).
	Outdated bool
	// Configured is what ovsdb-server has; nil: it does not answer.
	Configured *Configured
	// Links of this node that the intent names, by name.
	Links map[string]Link
}

// Configured is Open vSwitch's configuration as far as we look at it.
type Configured struct {
	ExternalIDs map[string]string
	Bridges     map[string]Bridge
}

// Bridge of Open vSwitch.
type Bridge struct {
	Datapath string // "" or "system", "netdev"
	Secure   bool   // fail mode
	Ports    []string
	// Error of one of its interfaces.
	Error string
}

// Link is a network interface.
type Link struct {
	Addresses []string // with prefix lengths; link-local ones left out
	Up        bool
	Default   bool // a default route goes through it
	// Offload: it leaves checksums to hardware that an userspace switch is not.
	Offload bool
}

// FileState of a database.
type FileState int

// States of a file. What runs is good.
const (
	Absent FileState = iota
	Good
	Left   // its server has left the cluster, or was made to
	Broken // it cannot be read
)

func (s FileState) String() string { return [...]string{"absent", "good", "left", "broken"}[s] }

// Database is one of OVN's on this node.
type Database struct {
	File FileState
	// Clustered, Cluster, Server and Address are what the file says of itself.
	Clustered       bool
	Cluster, Server string // ids
	Address         string // where its server meets the others
	Running         bool
	// Status in the cluster, of one that runs; nil: no answer.
	Status *Status
	// Lonely: it is a member and has heard no leader for Config.Patience.
	Lonely bool
	// Unknown: the server runs and says that it has no such database (any more).
	Unknown bool
	// Outdated: the installed schema is newer than the database's, and this is
	// the server to say so to.
	Outdated bool
	// Stale files: of other generations.
	Stale []string
	// Words: what the server wrote last, when it does not stay up.
	Words string
}

func (o Observed) db(d DB) Database {
	if d == NB {
		return o.NB
	}
	return o.SB
}
