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
	Pools  []Pool
	// Dismantle deletes the pools, with all their data, so that disks whose data
	// is not needed can be removed.
	Dismantle bool
	// FailureDomain is that of pools that daemons create for themselves: "host"
	// or "osd".
	FailureDomain string
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
}

// Pool is a pool of replicated objects.
type Pool struct {
	Name          string
	Replicas      int
	FailureDomain string // "host" or "osd"
	PGs           int    // 0: as Ceph's autoscaler decides
}

// MinReplicas returns how many replicas must be available for writes.
func (p Pool) MinReplicas() int { return p.Replicas - p.Replicas/2 }

// Rule returns the CRUSH rule's name.
func (p Pool) Rule() string { return "basalt-" + p.FailureDomain }

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
	seen := map[string]bool{}
	for _, d := range in.Disks {
		if !nameForm.MatchString(d.Node) || !uuidForm.MatchString(d.UUID) || seen[d.UUID] || len(d.Path) < 2 || d.Path[0] != '/' {
			return bad("invalid disk: %+v", d)
		}
		seen[d.UUID] = true
	}
	for _, p := range in.Pools {
		if !nameForm.MatchString(p.Name) || p.Replicas < 1 || p.Replicas > 9 || p.PGs < 0 || p.PGs > 65536 ||
			p.FailureDomain != "host" && p.FailureDomain != "osd" {
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
