package deploy

import (
	"fmt"
	"slices"
)

// State is the state of a daemon on its node.
type State string

// States.
const (
	Absent  State = "absent" // it has no data
	Stopped State = "stopped"
	Running State = "running"
)

// Content is the content of a disk.
type Content string

// Contents.
const (
	Missing Content = "missing" // the disk does not exist
	Blank   Content = "blank"   // only zeros where signatures would be
	OSD     Content = "osd"     // an OSD of this cluster
	Begun   Content = "begun"   // an OSD whose creation was interrupted
	Locked  Content = "locked"  // an encrypted OSD of this cluster that is not open
	Other   Content = "other"   // anything else
)

// Found is the observed content of a disk of the intent.
type Found struct {
	Path    string
	Content Content
	What    string // description, for Other and Missing
	UUID    string // of the OSD on it
	ID      int    // of the OSD; -1: none yet
	Made    bool   // its directory exists on the node
	Running bool
	HasDB   bool // the partition for its database exists

	Encrypted bool // an OSD whose disk is encrypted
	Mapped    bool // it is open, or an earlier device of the OSD is
	DBOpen    bool // its database is open
}

// Observed is the state that a node observes.
type Observed struct {
	Node string
	// Leader means that this node does what is done once for all.
	Leader bool
	Config bool // the files generated from the intent are up to date
	Mon    State
	Mgr    State
	Disks  []Found // those of the intent that are this node's
	// Mapped are the UUIDs of the OSDs of which an encrypted device is open here.
	Mapped []string
	Tables []FoundTable
	// Cluster is the mons' report; nil: they do not answer.
	Cluster *Cluster
}

// Cluster is the state of the cluster as the mons report it.
type Cluster struct {
	Mons  []string
	OSDs  []OSDState
	Pools []PoolState
	Rules []string
}

// OSDState is the state of one OSD.
type OSDState struct {
	ID     int
	UUID   string
	Up, In bool
	Class  string // device class; empty: none is set yet
	// Safe means that nothing is lost if it is destroyed. It is only queried
	// where it matters.
	Safe bool
}

// PoolState is the state of one pool.
type PoolState struct {
	Name               string
	Replicas, Minimum  int
	Rule               string
	PGs                int
	Autoscale, Enabled bool // Enabled: for RBD
}

// Verb is the kind of an action.
type Verb string

// Actions of a node on itself, and below them those of the leader.
const (
	WriteConfig  Verb = "write-config"
	MakeFirstMon Verb = "make-first-mon"
	JoinMon      Verb = "join-mon"
	StartMon     Verb = "start-mon"
	StopMon      Verb = "stop-mon"
	DropMon      Verb = "drop-mon"
	MakeMgr      Verb = "make-mgr"
	StartMgr     Verb = "start-mgr"
	StopMgr      Verb = "stop-mgr"
	PrepareOSD   Verb = "prepare-osd"
	AdoptOSD     Verb = "adopt-osd"
	OpenOSD      Verb = "open-osd"
	CloseOSD     Verb = "close-osd"
	StartOSD     Verb = "start-osd"
	StopOSD      Verb = "stop-osd"
	ReleaseDisk  Verb = "release-disk"
	MakeTable    Verb = "make-table"
	DropTable    Verb = "drop-table"
	Refuse       Verb = "refuse" // nothing is done, for the reason in Why

	RemoveMon  Verb = "remove-mon"
	OutOSD     Verb = "out-osd"
	InOSD      Verb = "in-osd"
	SetClass   Verb = "set-class"
	PurgeOSD   Verb = "purge-osd"
	MakeRule   Verb = "make-rule"
	MakePool   Verb = "make-pool"
	ChangePool Verb = "change-pool"
	DropPool   Verb = "drop-pool"
)

// Action is an action to execute.
type Action struct {
	Do    Verb
	Name  string // a node, a pool, a rule's failure domain, or the UUID of an OSD or a table
	Class string // of a rule or an OSD
	Path  string // of a disk
	ID    int    // of an OSD
	Why   string
}

func (a Action) String() string {
	s := string(a.Do)
	if a.Name != "" {
		s += " " + a.Name
	}
	if a.Path != "" {
		s += " " + a.Path
	}
	switch a.Do {
	case StartOSD, StopOSD, OutOSD, InOSD, PurgeOSD, SetClass:
		s += fmt.Sprintf(" osd.%d", a.ID)
	}
	if a.Class != "" {
		s += " " + a.Class
	}
	if a.Why != "" {
		s += ": " + a.Why
	}
	return s
}

// Next returns what to do now. Each action can be executed whatever the
// outcome of those before it; the result is empty if nothing is left to do.
func Next(in Intent, o Observed) []Action {
	var do []Action
	if !o.Config {
		do = append(do, Action{Do: WriteConfig})
	}
	do = append(do, nextMon(in, o)...)
	do = append(do, nextMgr(in, o)...)
	do = append(do, nextTables(in, o)...)
	do = append(do, nextDisks(in, o)...)
	do = append(do, nextForgotten(in, o)...)
	if o.Leader && o.Cluster != nil {
		do = append(do, nextCluster(in, *o.Cluster)...)
	}
	return do
}

func nextMon(in Intent, o Observed) []Action {
	_, wanted := in.mon(o.Node)
	known := o.Cluster != nil && slices.Contains(o.Cluster.Mons, o.Node)
	switch {
	case wanted && o.Mon == Absent && !in.Exists && in.Mons[0].Node == o.Node:
		return []Action{{Do: MakeFirstMon}, {Do: StartMon}}
	case wanted && o.Mon == Absent && o.Cluster != nil:
		return []Action{{Do: JoinMon}, {Do: StartMon}}
	case wanted && o.Mon == Stopped:
		return []Action{{Do: StartMon}}
	case wanted || o.Mon == Absent || o.Cluster == nil || known:
		return nil // while it is in the monmap the others may need its vote
	case o.Mon == Running:
		return []Action{{Do: StopMon}, {Do: DropMon}}
	}
	return []Action{{Do: DropMon}}
}

func nextMgr(in Intent, o Observed) []Action {
	wanted := slices.Contains(in.Mgrs, o.Node)
	switch {
	case wanted && o.Mgr == Absent && o.Cluster != nil:
		return []Action{{Do: MakeMgr}, {Do: StartMgr}}
	case wanted && o.Mgr == Stopped:
		return []Action{{Do: StartMgr}}
	case !wanted && o.Mgr == Running:
		return []Action{{Do: StopMgr}}
	}
	return nil
}

func nextDisks(in Intent, o Observed) []Action {
	var do []Action
	for _, d := range in.Disks {
		if d.Node != o.Node {
			continue
		}
		at := slices.IndexFunc(o.Disks, func(f Found) bool { return f.Path == d.Path })
		if at < 0 {
			continue
		}
		if d.Leave {
			do = append(do, nextLeaving(d, o.Disks[at], o.Cluster)...)
		} else {
			do = append(do, nextDisk(d, o.Disks[at], o.Cluster)...)
		}
	}
	return do
}

// nextDisk returns the actions for a disk that is to be an OSD.
func nextDisk(d Disk, f Found, c *Cluster) []Action {
	refuse := func(why string) []Action { return []Action{{Do: Refuse, Name: d.UUID, Path: d.Path, Why: why}} }
	prepare := []Action{{Do: PrepareOSD, Name: d.UUID, Path: d.Path}}
	ours := (f.Content == OSD || f.Content == Locked) && f.UUID == d.UUID
	switch {
	case f.Content == Missing:
		return refuse("the disk was not found: " + f.What)
	case d.DB != nil && ours && !f.HasDB:
		// Also if it still runs: it will not start again.
		return refuse("the disk with its database is missing or was erased: unless that returns, the data on this disk is lost; release this disk, and Ceph restores the data from other copies")
	case ours && f.Made && f.Running:
		return nil
	case ours && !f.isOpen(d):
		return nextOpen(d, f)
	case ours && f.Made:
		return []Action{{Do: StartOSD, Name: d.UUID, Path: d.Path, ID: f.ID}}
	case (f.Content == OSD || f.Content == Locked) && !ours && !d.Wipe:
		return refuse("it is OSD " + f.UUID + " of this cluster, want another OSD")
	case f.Content == Other && !d.Wipe:
		return refuse("the disk is not empty: " + f.What)
	case c == nil:
		return nil // the mons assign its ID
	case ours && c.known(d.UUID) < 0:
		// Its ID was purged, and so its data is lost.
		return refuse("the OSD was purged from the Ceph cluster: release the disk, then add it again")
	case ours:
		return []Action{{Do: AdoptOSD, Name: d.UUID, Path: d.Path, ID: f.ID}}
	case d.lacksKey(Found{}) != "":
		return refuse(d.lacksKey(Found{}))
	}
	return prepare
}

// nextLeaving returns the actions for a disk that is to be released.
func nextLeaving(d Disk, f Found, c *Cluster) []Action {
	if c == nil {
		return nil
	}
	at := c.known(d.UUID)
	ours := f.UUID == d.UUID && (f.Content == OSD || f.Content == Begun || f.Content == Locked)
	switch {
	case at < 0 && f.Running:
		return []Action{{Do: StopOSD, Name: d.UUID, ID: f.ID}}
	case at < 0 && (f.Made || ours || f.Mapped):
		return []Action{{Do: ReleaseDisk, Name: d.UUID, Path: d.Path}}
	case at < 0:
		return nil
	}
	switch s := c.OSDs[at]; {
	case !s.In && s.Safe && f.Running:
		return []Action{{Do: StopOSD, Name: d.UUID, ID: s.ID}}
	case !s.Safe && !f.Running && f.Made && ours && (d.DB == nil || f.HasDB): // its data must still be moved
		switch {
		case f.Encrypted && f.Content == Begun: // it has no data
			return nil
		case !f.isOpen(d):
			return nextOpen(d, f)
		}
		return []Action{{Do: StartOSD, Name: d.UUID, Path: d.Path, ID: s.ID}}
	}
	return nil
}

func (c *Cluster) known(uuid string) int {
	return slices.IndexFunc(c.OSDs, func(s OSDState) bool { return s.UUID == uuid })
}

func nextCluster(in Intent, c Cluster) []Action {
	var do []Action
	joined := !slices.ContainsFunc(in.Mons, func(m Mon) bool { return !slices.Contains(c.Mons, m.Node) })
	for _, m := range c.Mons {
		// One at a time, after the new ones have joined.
		if _, wanted := in.mon(m); !wanted && joined {
			do = append(do, Action{Do: RemoveMon, Name: m})
			break
		}
	}
	for _, d := range in.Disks {
		at := c.known(d.UUID)
		if at < 0 {
			continue
		}
		switch s := c.OSDs[at]; {
		case d.Leave && s.In:
			do = append(do, Action{Do: OutOSD, Name: d.UUID, ID: s.ID})
		case d.Leave && !s.Up && s.Safe:
			do = append(do, Action{Do: PurgeOSD, Name: d.UUID, ID: s.ID})
		case !d.Leave && !s.In && s.Up:
			do = append(do, Action{Do: InOSD, Name: d.UUID, ID: s.ID})
		case !d.Leave && d.Class != "" && s.Class != "" && s.Class != d.Class:
			do = append(do, Action{Do: SetClass, Name: d.UUID, ID: s.ID, Class: d.Class})
		}
	}
	if in.Dismantle {
		for _, p := range c.Pools {
			do = append(do, Action{Do: DropPool, Name: p.Name})
		}
		return do
	}
	return append(do, nextPools(in, c)...)
}

func nextPools(in Intent, c Cluster) []Action {
	var do []Action
	made := map[string]bool{}
	for _, name := range in.Drop {
		if slices.ContainsFunc(c.Pools, func(s PoolState) bool { return s.Name == name }) {
			do = append(do, Action{Do: DropPool, Name: name})
		}
	}
	for _, p := range in.Pools {
		if p.Class != "" && !slices.ContainsFunc(c.OSDs, func(s OSDState) bool { return s.Class == p.Class }) {
			continue // a rule needs a class that an OSD has; the pool keeps the one that it has
		}
		up := slices.ContainsFunc(c.OSDs, func(s OSDState) bool { return s.Up && s.In && p.fits(s.Class) })
		if r := p.Rule(); !slices.Contains(c.Rules, r) && !made[r] {
			made[r] = true
			do = append(do, Action{Do: MakeRule, Name: p.FailureDomain, Class: p.Class})
		}
		at := slices.IndexFunc(c.Pools, func(s PoolState) bool { return s.Name == p.Name })
		switch {
		case at < 0 && up:
			do = append(do, Action{Do: MakePool, Name: p.Name})
		case at >= 0 && c.Pools[at] != p.state(c.Pools[at]):
			do = append(do, Action{Do: ChangePool, Name: p.Name})
		}
	}
	for _, s := range c.Pools {
		if len(in.Pools) > 0 && !slices.Contains(in.Drop, s.Name) && in.isStray(s) && slices.Contains(c.Rules, in.Pools[0].Rule()) {
			do = append(do, Action{Do: ChangePool, Name: s.Name})
		}
	}
	return do
}

// isStray reports whether Ceph's daemons created the pool for themselves, with
// other settings than Basalt's. It would prevent disks from being removed.
func (in Intent) isStray(s PoolState) bool {
	if slices.ContainsFunc(in.Pools, func(p Pool) bool { return p.Name == s.Name }) {
		return false
	}
	p := in.pool(s.Name)
	return s.Replicas != p.Replicas || s.Minimum != p.MinReplicas() || s.Rule != p.Rule()
}

// pool returns the wanted pool of that name; a pool of Ceph's own gets the
// settings of the first.
func (in Intent) pool(name string) Pool {
	for _, p := range in.Pools {
		if p.Name == name {
			return p
		}
	}
	return Pool{Name: name, Replicas: in.Pools[0].Replicas, FailureDomain: in.Pools[0].FailureDomain, Class: in.Pools[0].Class}
}

// state returns the wanted state of the pool, where have is its present one:
// the number of placement groups is left to Ceph if the intent does not set
// it.
func (p Pool) state(have PoolState) PoolState {
	want := PoolState{Name: p.Name, Replicas: p.Replicas, Minimum: p.MinReplicas(), Rule: p.Rule(), PGs: have.PGs, Autoscale: p.PGs == 0, Enabled: true}
	if p.PGs != 0 {
		want.PGs = p.PGs
	}
	return want
}
