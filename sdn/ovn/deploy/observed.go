package deploy

// Observed is the observed state of a node.
type Observed struct {
	Switch Switch
	NB, SB Database
	// Northd and Controller report whether the daemons run.
	Northd, Controller bool
	// Connected reports whether ovn-controller is connected to the southbound
	// database.
	Connected bool
	// Free are the free bytes on the databases' file system.
	Free uint64
	// Chassis are the chassis in the southbound database; nil: unknown.
	Chassis []string
}

// Switch is the state of the node's Open vSwitch.
type Switch struct {
	// Kernel reports whether the kernel has the openvswitch module.
	Kernel bool
	// Unmanaged reports whether the distribution's service runs it, so that Basalt
	// must not start it.
	Unmanaged bool
	// File is the state of its database file (only if Basalt runs it).
	File FileState
	// DB and Daemon report whether ovsdb-server and ovs-vswitchd run.
	DB, Daemon bool
	// Outdated reports whether the installed schema is newer than the database's
	// (only if Basalt runs it).
	Outdated bool
	// Configured is the content of the database; nil: ovsdb-server does not
	// answer.
	Configured *Configured
	// Links are the links of this node that are named in the intent, by name.
	Links map[string]Link
}

// Configured is the part of Open vSwitch's configuration that this package
// uses.
type Configured struct {
	ExternalIDs map[string]string
	Bridges     map[string]Bridge
}

// Bridge is a bridge of Open vSwitch.
type Bridge struct {
	Datapath string // "" or "system", "netdev"
	Secure   bool   // fail mode
	Ports    []string
	// Error is the error of one of its interfaces.
	Error string
}

// Link is a network interface.
type Link struct {
	Addresses []string // with prefix lengths; link-local ones left out
	Up        bool
	Default   bool // a default route goes through it
	// Offload reports whether it offloads checksums, which a userspace switch
	// does not complete.
	Offload bool
}

// FileState is the state of a database file.
type FileState int

// States of a file. The file of a running server is good.
const (
	Absent FileState = iota
	Good
	Left   // its server has left the cluster, or was removed from it
	Broken // the file cannot be read
)

func (s FileState) String() string { return [...]string{"absent", "good", "left", "broken"}[s] }

// Database is the state of one of OVN's databases on this node.
type Database struct {
	File FileState
	// Clustered, Cluster, Server and Address come from the file's header.
	Clustered       bool
	Cluster, Server string // IDs
	Address         string // address of its server for the others
	Running         bool
	// Status is the cluster status of a running server; nil: no answer.
	Status *Status
	// Leaderless means that it is a member and has had no leader for Config.Patience.
	Leaderless bool
	// Unknown means that the server runs and reports that it does not have the
	// database (any more).
	Unknown bool
	// Outdated means that the installed schema is newer than the database's, and
	// that this server can convert it.
	Outdated bool
	// Stale are files of other generations.
	Stale []string
	// LastOutput is the last output of the server, if it does not stay running.
	LastOutput string
}

func (o Observed) db(d DB) Database {
	if d == NB {
		return o.NB
	}
	return o.SB
}
