// Package deploy brings up and keeps the daemons of a Ceph cluster. What there
// should be is an Intent, what there is an Observed; Next, a pure function,
// says which Actions take one nearer to the other. Each node looks, takes the
// actions that are its own (Node), and looks again; nothing is remembered that
// could not be found out, so that a node killed between any two steps goes on
// from what it finds.
//
//	mon   absent ─MakeFirstMon | JoinMon─► stopped ─StartMon─► running
//	             ◄─DropMon─ stopped ◄─StopMon─ running, after RemoveMon by the leader
//
//	disk  blank ─PrepareOSD─► stopped ─StartOSD─► up, in
//	                                      Leave ─OutOSD─► up, out ─data moves away─► safe
//	      released ◄─ReleaseDisk─ purged ◄─PurgeOSD─ down ◄─StopOSD─┘
//
// A disk that holds anything else is left alone, whatever the intent says,
// unless Disk.Wipe. Out, purge, pools and the removal of mons are done by the
// leader, once for all nodes.
package deploy

import (
	"fmt"
	"net/netip"
	"regexp"

	"github.com/basalt-gpu/basalt/api"
)

// MonPort is the mons' own, of the second version of the protocol, the only
// one that is spoken.
const MonPort = 3300

// Intent is the whole cluster as it should be.
type Intent struct {
	FSID string // of the cluster: a UUID
	// Exists: there was a quorum once. Never again is a first mon made: it
	// would be another, empty cluster under the same name.
	Exists bool
	Mons   []Mon // odd; the first makes the cluster
	Mgrs   []string
	Disks  []Disk
	Pools  []Pool
	// Dismantle: the pools go, whatever is in them, so that disks can leave that
	// no data depends on.
	Dismantle bool
	// FailureDomain "host" or "osd" of pools that daemons make for themselves.
	FailureDomain string
	// OSDMemoryBytes an OSD aims at; 0: 4 GiB.
	OSDMemoryBytes int64
	// Settings are more lines of ceph.conf's [global].
	Settings map[string]string
}

// Mon is a monitor. Its name is its node's.
type Mon struct {
	Node    string
	Address netip.AddrPort
}

// Disk that is to be an OSD.
type Disk struct {
	Node string
	Path string
	// UUID of the OSD: another one each time that the disk is put to use anew.
	UUID string
	// Wipe what is on it.
	Wipe bool
	// Leave: its data is to move to the others, and it is given back.
	Leave bool
}

// Pool of replicated objects.
type Pool struct {
	Name          string
	Replicas      int
	FailureDomain string // "host" or "osd"
	PGs           int    // 0: as Ceph thinks right
}

// MinReplicas that must be there for writes to go on.
func (p Pool) MinReplicas() int { return p.Replicas - p.Replicas/2 }

// Rule is the CRUSH rule's name.
func (p Pool) Rule() string { return "basalt-" + p.FailureDomain }

var (
	nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	uuidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	lineForm = regexp.MustCompile(`^[ -~]{0,512}$`)
)

// Validate returns what is wrong with it: an *api.Error, or nil. What it lets
// through is safe in ceph.conf and as a program's argument.
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

// Monitors as clients want them: HOST:PORT.
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

// msgr2 is the address in ceph.conf's words.
func msgr2(a netip.AddrPort) string { return fmt.Sprintf("[v2:%s]", a) }
