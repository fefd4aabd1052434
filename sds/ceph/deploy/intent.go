// Package deploy runs the daemons of a Ceph cluster. The desired state is an
// Intent, the present one an Observed; Next, a pure function, returns the
// Actions that bring the latter closer to the former. Each node observes,
// executes its own actions (Node), and observes again; nothing is stored that
// could not be observed, so a node that is killed between any two steps
// continues from what it finds.
//
//	mon   absent ─MakeFirstMon | JoinMon─► stopped ─StartMon─► running
//	             ◄─DropMon─ stopped ◄─StopMon─ running, after RemoveMon by the leader
//
//	table blank ─MakeTable─► ours, with a partition per OSD ─DropTable, when it has none─► blank
//
//	disk  blank ─PrepareOSD─► stopped ─StartOSD─► up, in
//	                                      Leave ─OutOSD─► up, out ─data moves away─► safe
//	      released ◄─ReleaseDisk─ purged ◄─PurgeOSD─ down ◄─StopOSD─┘
//
// A disk with any other content is left unchanged, whatever the intent is,
// unless Disk.Wipe is set. The leader does out, purge, pools and the removal
// of mons, once for all nodes.
package deploy

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// MonPort is the mons' port for version 2 of the protocol, the only one that
// is enabled.
const MonPort = 3300

// FirstPort and LastPort are the ports of OSDs and managers. Ceph's own range reaches
// up to 7568 and contains ports of basaltd.
const (
	FirstPort = 6800
	LastPort  = 7300
)

// Intent is the desired state of the whole cluster.
type Intent struct {
	FSID string // of the cluster: a UUID
	// Exists means that there has been a quorum once. From then on no first mon
	// is created: it would start another, empty cluster under the same name.
	Exists bool
	Mons   []Mon // odd; the first creates the cluster
	Mgrs   []string
	Disks  []Disk
	Tables []Table
	Pools  []Pool
	// Drop are the names of pools that are to be deleted, with all data in them.
	Drop []string
	// Dismantle deletes the pools, with all their data, so that disks whose data
	// is not needed can be removed.
	Dismantle bool
	// FailureDomain is that of pools that daemons create for themselves: "host"
	// or "osd".
	FailureDomain string
	// Address is the node's own, if it is not that of Node.
	Address netip.Addr
	// OSDMemoryBytes is the memory target of an OSD; 0: 4 GiB.
	OSDMemoryBytes int64
	// Settings are additional lines of ceph.conf's [global].
	Settings map[string]string
}

// Mon is a monitor. Its name is its node's.
type Mon struct {
	Node    string
	Address netip.AddrPort
}

// Disk is a disk that is to be an OSD.
type Disk struct {
	Node string
	Path string
	// UUID is that of the OSD: a new one each time that the disk is added.
	UUID string
	// Wipe allows the disk's content to be erased.
	Wipe bool
	// Leave means that its data is to move to the other disks, and that it is
	// released afterwards.
	Leave bool
	// Class is the OSD's device class; empty: that which Ceph detects.
	Class string
	// DB is where the OSD's database is stored; nil: on the disk itself.
	DB *DB
	// Crypt is the OSD's encryption; nil: its devices are in plain.
	Crypt *Encryption
}

// DB is the place of an OSD's database (BlueStore's block.db): a partition on a
// disk of the same node whose GUID is the OSD's UUID.
type DB struct {
	Table string // UUID of the Table
	Bytes int64
}

// Table is a disk with partitions for the databases of OSDs.
type Table struct {
	Node string
	Path string
	// UUID is the disk GUID in its partition table: a new one each time that the
	// disk is added.
	UUID string
	// Wipe allows the disk's content to be erased.
	Wipe bool
	// Taken means that the table existed once. From then on none is created: it would
	// be empty, and lose the databases.
	Taken bool
	// Leave means that the disk is released when it has no partition.
	Leave bool
}

// Pool is a pool of replicated objects.
type Pool struct {
	Name          string
	Replicas      int
	FailureDomain string // "host" or "osd"
	Class         string // device class of its disks; empty: any
	PGs           int    // 0: as Ceph's autoscaler decides
}

// MinReplicas returns how many replicas must be available for writes.
func (p Pool) MinReplicas() int { return p.Replicas - p.Replicas/2 }

// Rule returns the CRUSH rule's name.
func (p Pool) Rule() string {
	if p.Class == "" {
		return "basalt-" + p.FailureDomain
	}
	return "basalt-" + p.FailureDomain + "-" + p.Class
}

var classes = []string{"hdd", "ssd", "nvme"}

// fits reports whether the pool stores data on an OSD of the class.
func (p Pool) fits(class string) bool { return p.Class == "" || p.Class == class }

var (
	nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	uuidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	lineForm = regexp.MustCompile(`^[ -~]{0,512}$`)
)

// Validate returns what is wrong with the intent: an *api.Error, or nil. Valid
// values are safe in ceph.conf and as a program's argument.
func (in Intent) Validate() error {
	bad := func(format string, args ...any) error { return api.Errorf(api.CodeInvalid, format, args...) }
	if !uuidForm.MatchString(in.FSID) {
		return bad("the cluster's fsid %q is not a UUID", in.FSID)
	}
	if len(in.Mons) == 0 || len(in.Mons) > 9 || len(in.Disks) > 4096 || len(in.Pools) > 64 {
		return bad("too many monitors, disks or pools: %d, %d, %d", len(in.Mons), len(in.Disks), len(in.Pools))
	}
	for _, m := range in.Mons {
		if !nameForm.MatchString(m.Node) || !m.Address.IsValid() || m.Address.Port() == 0 {
			return bad("invalid monitor: %q at %v", m.Node, m.Address)
		}
	}
	for _, m := range in.Mgrs {
		if !nameForm.MatchString(m) {
			return bad("invalid node: %q", m)
		}
	}
	if err := in.validateTables(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, d := range in.Disks {
		if !nameForm.MatchString(d.Node) || !uuidForm.MatchString(d.UUID) || seen[d.UUID] || len(d.Path) < 2 || d.Path[0] != '/' {
			return bad("invalid disk: %+v", d)
		}
		if d.Class != "" && !slices.Contains(classes, d.Class) {
			return bad("invalid device class of disk %s: %q", d.Path, d.Class)
		}
		seen[d.UUID] = true
	}
	for _, p := range in.Pools {
		if !nameForm.MatchString(p.Name) || p.Replicas < 1 || p.Replicas > 9 || p.PGs < 0 || p.PGs > 65536 ||
			p.FailureDomain != "host" && p.FailureDomain != "osd" || p.Class != "" && !slices.Contains(classes, p.Class) {
			return bad("invalid pool: %+v", p)
		}
	}
	for k, v := range in.Settings {
		if !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(k) || !lineForm.MatchString(v) {
			return bad("invalid setting: %q = %q", k, v)
		}
	}
	return nil
}

// validateTables checks the tables, and that each database has one on its node.
func (in Intent) validateTables() error {
	bad := func(format string, args ...any) error { return api.Errorf(api.CodeInvalid, format, args...) }
	for i, t := range in.Tables {
		twice := slices.ContainsFunc(in.Tables[:i], func(o Table) bool { return o.UUID == t.UUID })
		if !nameForm.MatchString(t.Node) || !uuidForm.MatchString(t.UUID) || twice || len(t.Path) < 2 || t.Path[0] != '/' || len(in.Tables) > 1024 {
			return bad("invalid disk for databases: %+v", t)
		}
	}
	for _, d := range in.Disks {
		if d.DB == nil {
			continue
		}
		t, ok := in.table(d.DB.Table)
		if d.DB.Bytes <= 0 || ok && (t.Node != d.Node || t.Path == d.Path) {
			return bad("invalid database of disk %s: %+v", d.Path, *d.DB)
		}
	}
	for _, p := range in.Drop {
		if !nameForm.MatchString(p) || slices.ContainsFunc(in.Pools, func(o Pool) bool { return o.Name == p }) {
			return bad("invalid pool to delete: %q", p)
		}
	}
	return nil
}

func (in Intent) disk(uuid string) (Disk, error) {
	if at := slices.IndexFunc(in.Disks, func(d Disk) bool { return d.UUID == uuid }); at >= 0 {
		return in.Disks[at], nil
	}
	return Disk{}, fmt.Errorf("OSD %s is not in the intent", uuid)
}

func (in Intent) table(uuid string) (Table, bool) {
	if at := slices.IndexFunc(in.Tables, func(t Table) bool { return t.UUID == uuid }); at >= 0 {
		return in.Tables[at], true
	}
	return Table{}, false
}

// Monitors returns the monitors in the form for clients: HOST:PORT.
func (in Intent) Monitors() []string {
	var all []string
	for _, m := range in.Mons {
		all = append(all, m.Address.String())
	}
	return all
}

func (in Intent) mon(node string) (Mon, bool) {
	for _, m := range in.Mons {
		if m.Node == node {
			return m, true
		}
	}
	return Mon{}, false
}

// msgr2 formats the address for ceph.conf.
func msgr2(a netip.AddrPort) string { return fmt.Sprintf("[v2:%s]", a) }
