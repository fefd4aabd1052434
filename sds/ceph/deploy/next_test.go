package deploy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

const (
	fsid  = "11111111-2222-4333-8444-555555555555"
	osdA  = "aaaaaaaa-0000-4000-8000-000000000000"
	osdB  = "bbbbbbbb-0000-4000-8000-000000000000"
	osdC  = "cccccccc-0000-4000-8000-000000000000"
	diskA = "/dev/sda"
)

func three() Intent {
	in := Intent{FSID: fsid, Exists: true, FailureDomain: "host", Mgrs: []string{"node-a", "node-b"}}
	for i, n := range []string{"node-a", "node-b", "node-c"} {
		in.Mons = append(in.Mons, Mon{n, netip.MustParseAddrPort(fmt.Sprintf("10.0.0.%d:3300", i+1))})
	}
	in.Disks = []Disk{{Node: "node-a", Path: diskA, UUID: osdA}, {Node: "node-b", Path: "/dev/sdb", UUID: osdB}, {Node: "node-c", Path: "/dev/sdc", UUID: osdC}}
	in.Pools = []Pool{{Name: "basalt", Replicas: 3, FailureDomain: "host"}}
	return in
}

// healthy returns what node-a observes when there is nothing to do.
func healthy() Observed {
	return Observed{
		Node: "node-a", Leader: true, Config: true, Mon: Running, Mgr: Running,
		Disks: []Found{{Path: diskA, Content: OSD, UUID: osdA, ID: 0, Made: true, Running: true}},
		Cluster: &Cluster{
			Mons:  []string{"node-a", "node-b", "node-c"},
			OSDs:  []OSDState{{ID: 0, UUID: osdA, Up: true, In: true}, {ID: 1, UUID: osdB, Up: true, In: true}, {ID: 2, UUID: osdC, Up: true, In: true}},
			Pools: []PoolState{{Name: "basalt", Replicas: 3, Minimum: 2, Rule: "basalt-host", PGs: 32, Autoscale: true, Enabled: true}},
			Rules: []string{"replicated_rule", "basalt-host"},
		},
	}
}

const (
	tableA    = "dddddddd-0000-4000-8000-000000000000"
	tableDisk = "/dev/nvme0n1"
)

// withDB stores the database of node-a's OSD on another disk.
func withDB(in *Intent, o *Observed) {
	in.Disks[0].DB = &DB{Table: tableA, Bytes: 1 << 30}
	in.Tables = []Table{{Node: "node-a", Path: tableDisk, UUID: tableA}, {Node: "node-b", Path: tableDisk, UUID: osdC}}
	o.Disks[0].HasDB = true
	o.Tables = []FoundTable{{Path: tableDisk, Content: Parted, UUID: tableA, Parts: []string{osdA}}}
}

// encrypt encrypts node-a's OSD, which is open.
func encrypt(in *Intent, o *Observed) {
	in.Disks[0].Crypt = &Encryption{Key: NewSecret("hidden")}
	o.Disks[0].Encrypted, o.Disks[0].Mapped = true, true
}

// locked closes node-a's encrypted OSD.
func locked(o *Observed) {
	o.Disks[0] = Found{Path: diskA, Content: Locked, UUID: osdA, ID: 0, Made: true, Encrypted: true}
}

func TestNext(t *testing.T) {
	cases := []struct {
		name string
		with func(in *Intent, o *Observed)
	}{
		{"nothing to do", func(*Intent, *Observed) {}},
		{"the first node of a new cluster", func(in *Intent, o *Observed) {
			in.Exists = false
			*o = Observed{Node: "node-a", Leader: true, Mon: Absent, Mgr: Absent, Disks: []Found{{Path: diskA, Content: Blank, ID: -1}}}
		}},
		{"another node of a new cluster waits", func(in *Intent, o *Observed) {
			in.Exists = false
			*o = Observed{Node: "node-b", Config: true, Mon: Absent, Mgr: Absent, Disks: []Found{{Path: "/dev/sdb", Content: Blank, ID: -1}}}
		}},
		{"another node when the first mon answers", func(_ *Intent, o *Observed) {
			o.Node, o.Leader, o.Mon, o.Mgr = "node-b", false, Absent, Absent
			o.Disks = []Found{{Path: "/dev/sdb", Content: Blank, ID: -1}}
			o.Cluster = &Cluster{Mons: []string{"node-a"}}
		}},
		{"never a second first mon", func(_ *Intent, o *Observed) {
			*o = Observed{Node: "node-a", Leader: true, Config: true, Mon: Absent, Mgr: Stopped, Disks: []Found{{Path: diskA, Content: OSD, UUID: osdA, Made: true}}}
		}},
		{"after a reboot", func(_ *Intent, o *Observed) {
			o.Mon, o.Mgr, o.Disks[0].Running, o.Cluster = Stopped, Stopped, false, nil
		}},
		{"the first disk makes the pool", func(_ *Intent, o *Observed) {
			o.Cluster.Pools, o.Cluster.Rules = nil, []string{"replicated_rule"}
		}},
		{"no disk is up yet", func(_ *Intent, o *Observed) {
			o.Cluster.Pools, o.Cluster.OSDs = nil, nil
		}},
		{"a node installed anew, with its disk", func(_ *Intent, o *Observed) {
			o.Disks[0].Made, o.Disks[0].Running = false, false
		}},
		{"the making of a disk broke off", func(_ *Intent, o *Observed) {
			o.Disks[0] = Found{Path: diskA, Content: Begun, UUID: osdA, ID: -1}
			o.Cluster.OSDs = o.Cluster.OSDs[1:]
		}},
		{"a disk that is not empty", func(_ *Intent, o *Observed) {
			o.Disks[0] = Found{Path: diskA, Content: Other, What: "it contains ext4", ID: -1}
		}},
		{"a disk that is not empty, and to be wiped", func(in *Intent, o *Observed) {
			in.Disks[0].Wipe = true
			o.Disks[0] = Found{Path: diskA, Content: Other, What: "it contains ext4", ID: -1}
		}},
		{"a disk that is another's of this cluster", func(_ *Intent, o *Observed) {
			o.Disks[0].UUID, o.Disks[0].Made = osdC, false
		}},
		{"a disk that is gone", func(_ *Intent, o *Observed) {
			o.Disks[0] = Found{Path: diskA, Content: Missing, What: "no such file", ID: -1}
		}},
		{"a disk that was purged behind our back", func(_ *Intent, o *Observed) {
			o.Disks[0].Made, o.Disks[0].Running = false, false
			o.Cluster.OSDs = o.Cluster.OSDs[1:]
		}},
		{"drain: out", func(in *Intent, _ *Observed) { in.Disks[0].Leave = true }},
		{"a pool of the manager's own", func(_ *Intent, o *Observed) {
			o.Cluster.Pools = append(o.Cluster.Pools, PoolState{Name: "device_health_metrics", Replicas: 2, Minimum: 1, Rule: "replicated_rule", PGs: 1})
		}},
		{"all is dismantled", func(in *Intent, o *Observed) {
			in.Dismantle = true
			for i := range in.Disks {
				in.Disks[i].Leave = true
			}
		}},
		{"drain: data moves", func(in *Intent, o *Observed) {
			in.Disks[0].Leave, o.Cluster.OSDs[0].In = true, false
		}},
		{"drain: safe", func(in *Intent, o *Observed) {
			in.Disks[0].Leave, o.Cluster.OSDs[0].In, o.Cluster.OSDs[0].Safe = true, false, true
		}},
		{"drain: stopped, and safe", func(in *Intent, o *Observed) {
			in.Disks[0].Leave, o.Disks[0].Running = true, false
			o.Cluster.OSDs[0] = OSDState{ID: 0, UUID: osdA, Safe: true}
		}},
		{"drain: stopped, and no longer safe", func(in *Intent, o *Observed) {
			in.Disks[0].Leave, o.Disks[0].Running = true, false
			o.Cluster.OSDs[0] = OSDState{ID: 0, UUID: osdA}
		}},
		{"drain: purged", func(in *Intent, o *Observed) {
			in.Disks[0].Leave, o.Disks[0].Running = true, false
			o.Cluster.OSDs = o.Cluster.OSDs[1:]
		}},
		{"drain: released", func(in *Intent, o *Observed) {
			in.Disks[0].Leave = true
			o.Disks[0], o.Cluster.OSDs = Found{Path: diskA, Content: Blank, ID: -1}, o.Cluster.OSDs[1:]
		}},
		{"drain: the disk has died", func(in *Intent, o *Observed) {
			in.Disks[0].Leave = true
			o.Disks[0] = Found{Path: diskA, Content: Missing, ID: -1}
			o.Cluster.OSDs[0] = OSDState{ID: 0, UUID: osdA, Safe: true}
		}},
		{"drain: no mon answers", func(in *Intent, o *Observed) { in.Disks[0].Leave, o.Cluster = true, nil }},
		{"drain: taken back", func(_ *Intent, o *Observed) { o.Cluster.OSDs[0].In = false }},
		{"a follower does what is its own only", func(in *Intent, o *Observed) {
			o.Leader, in.Disks[1].Leave, o.Cluster.Pools = false, true, nil
		}},
		{"more copies", func(in *Intent, _ *Observed) { in.Pools[0].Replicas = 2 }},
		{"a number of groups", func(in *Intent, _ *Observed) { in.Pools[0].PGs = 64 }},
		{"another failure domain", func(in *Intent, _ *Observed) { in.Pools[0].FailureDomain = "osd" }},
		{"a pool of a device class", func(in *Intent, o *Observed) {
			in.Pools = append(in.Pools, Pool{Name: "basalt-ssd", Replicas: 2, FailureDomain: "host", Class: "ssd"})
			o.Cluster.OSDs[1].Class, o.Cluster.OSDs[2].Class = "ssd", "hdd"
		}},
		{"a pool of a class that no OSD has", func(in *Intent, o *Observed) {
			in.Pools = append(in.Pools, Pool{Name: "basalt-nvme", Replicas: 2, FailureDomain: "host", Class: "nvme"})
		}},
		{"a pool of a class whose OSDs are down", func(in *Intent, o *Observed) {
			in.Pools = append(in.Pools, Pool{Name: "basalt-ssd", Replicas: 2, FailureDomain: "host", Class: "ssd"})
			o.Cluster.OSDs[1] = OSDState{ID: 1, UUID: osdB, Class: "ssd"}
		}},
		{"the pool gets a device class", func(in *Intent, o *Observed) {
			in.Pools[0].Class, o.Cluster.OSDs[0].Class = "hdd", "hdd"
			o.Cluster.Pools = append(o.Cluster.Pools, PoolState{Name: "device_health_metrics", Replicas: 3, Minimum: 2, Rule: "basalt-host", PGs: 1})
			o.Cluster.Rules = append(o.Cluster.Rules, "basalt-host-hdd")
		}},
		{"the pool gets a class that no OSD has", func(in *Intent, o *Observed) { in.Pools[0].Class = "nvme" }},
		{"a pool is deleted", func(in *Intent, o *Observed) {
			in.Drop = []string{"basalt-ssd", "basalt-nvme"}
			o.Cluster.Pools = append(o.Cluster.Pools, PoolState{Name: "basalt-ssd", Replicas: 1})
		}},
		{"another class for an OSD", func(in *Intent, o *Observed) {
			in.Disks[1].Class, o.Cluster.OSDs[1].Class = "nvme", "ssd"
		}},
		{"a class for an OSD that has none yet", func(in *Intent, o *Observed) { in.Disks[1].Class = "nvme" }},
		{"a disk for databases", func(in *Intent, o *Observed) {
			withDB(in, o)
			o.Tables[0] = FoundTable{Path: tableDisk, Content: Blank}
			o.Disks[0] = Found{Path: diskA, Content: Blank, ID: -1}
		}},
		{"a disk for databases that is not empty", func(in *Intent, o *Observed) {
			withDB(in, o)
			o.Tables[0] = FoundTable{Path: tableDisk, Content: Other, What: "it contains ext4"}
		}},
		{"a disk for databases that is to be wiped", func(in *Intent, o *Observed) {
			withDB(in, o)
			in.Tables[0].Wipe = true
			o.Tables[0] = FoundTable{Path: tableDisk, Content: Other, What: "it contains ext4"}
		}},
		{"a disk for databases that lost its table", func(in *Intent, o *Observed) {
			withDB(in, o)
			in.Tables[0].Taken, in.Tables[0].Wipe, o.Disks[0].HasDB = true, true, false
			o.Tables[0] = FoundTable{Path: tableDisk, Content: Blank}
		}},
		{"a disk for databases is gone", func(in *Intent, o *Observed) {
			withDB(in, o)
			o.Disks[0].HasDB, o.Disks[0].Running = false, false
			o.Tables[0] = FoundTable{Path: tableDisk, Content: Missing, What: "no such file"}
		}},
		{"drain: the database is lost", func(in *Intent, o *Observed) {
			withDB(in, o)
			in.Disks[0].Leave, o.Disks[0].HasDB, o.Disks[0].Running = true, false, false
			o.Cluster.OSDs[0].Up = false
		}},
		{"encrypted: nothing to do", encrypt},
		{"encrypted: a new disk", func(in *Intent, o *Observed) {
			encrypt(in, o)
			o.Disks[0] = Found{Path: diskA, Content: Blank, ID: -1}
		}},
		{"encrypted: a new disk, no key", func(in *Intent, o *Observed) {
			encrypt(in, o)
			in.Disks[0].Crypt.Lacks = "no ring"
			o.Disks[0] = Found{Path: diskA, Content: Blank, ID: -1}
		}},
		{"encrypted: the making of a disk broke off", func(in *Intent, o *Observed) {
			encrypt(in, o)
			o.Disks[0] = Found{Path: diskA, Content: Begun, UUID: osdA, ID: -1, Encrypted: true, Mapped: true}
		}},
		{"encrypted: after a reboot, no mon answers", func(in *Intent, o *Observed) {
			encrypt(in, o)
			locked(o)
			o.Cluster = nil
		}},
		{"encrypted: after a reboot, opened", func(in *Intent, o *Observed) {
			encrypt(in, o)
			o.Disks[0].Running, o.Cluster = false, nil
		}},
		{"encrypted: after a reboot, no key", func(in *Intent, o *Observed) {
			encrypt(in, o)
			in.Disks[0].Crypt.Lacks = "no ring"
			locked(o)
		}},
		{"encrypted: it runs, no key", func(in *Intent, o *Observed) {
			encrypt(in, o)
			in.Disks[0].Crypt.Lacks = "no ring"
		}},
		{"encrypted: the cluster does not know", func(_ *Intent, o *Observed) { locked(o) }},
		{"encrypted: the disk returned under another name, and runs on the old one", func(in *Intent, o *Observed) {
			encrypt(in, o)
			locked(o)
			o.Disks[0].Running, o.Disks[0].Mapped = true, true
		}},
		{"encrypted: a node installed anew, with its disk", func(in *Intent, o *Observed) {
			encrypt(in, o)
			locked(o)
			o.Disks[0].Made = false
		}},
		{"encrypted: a node installed anew, opened", func(in *Intent, o *Observed) {
			encrypt(in, o)
			o.Disks[0].Made, o.Disks[0].Running = false, false
		}},
		{"encrypted: a disk that is another's of this cluster", func(_ *Intent, o *Observed) {
			locked(o)
			o.Disks[0].UUID, o.Disks[0].Made = osdC, false
		}},
		{"encrypted: its content is damaged", func(in *Intent, o *Observed) {
			encrypt(in, o)
			o.Disks[0].Content, o.Disks[0].What, o.Disks[0].Running = Other, "its content is not an OSD", false
		}},
		{"encrypted: the database is not open", func(in *Intent, o *Observed) {
			withDB(in, o)
			encrypt(in, o)
			o.Disks[0].Running = false
		}},
		{"encrypted: the database is open", func(in *Intent, o *Observed) {
			withDB(in, o)
			encrypt(in, o)
			o.Disks[0].Running, o.Disks[0].DBOpen = false, true
		}},
		{"encrypted: drain: stopped, and no longer safe", func(in *Intent, o *Observed) {
			encrypt(in, o)
			locked(o)
			in.Disks[0].Leave = true
			o.Cluster.OSDs[0] = OSDState{ID: 0, UUID: osdA}
		}},
		{"encrypted: drain: purged", func(in *Intent, o *Observed) {
			encrypt(in, o)
			locked(o)
			in.Disks[0].Leave, o.Cluster.OSDs = true, o.Cluster.OSDs[1:]
		}},
		{"encrypted: drain: purged, and the disk is gone", func(in *Intent, o *Observed) {
			encrypt(in, o)
			in.Disks[0].Leave, o.Cluster.OSDs = true, o.Cluster.OSDs[1:]
			o.Disks[0] = Found{Path: diskA, Content: Missing, ID: -1, Mapped: true}
		}},
		{"a disk for databases leaves while it has one", func(in *Intent, o *Observed) {
			withDB(in, o)
			in.Tables[0].Leave = true
		}},
		{"a disk for databases leaves", func(in *Intent, o *Observed) {
			withDB(in, o)
			in.Tables[0].Leave, o.Tables[0].Parts = true, nil
		}},
		{"a mon too many, its successor has joined", func(in *Intent, o *Observed) {
			o.Cluster.Mons = append(o.Cluster.Mons, "node-d")
		}},
		{"a mon too many, its successor has not joined", func(in *Intent, o *Observed) {
			o.Cluster.Mons = []string{"node-a", "node-b", "node-d"}
		}},
		{"no longer a mon, in the map", func(in *Intent, o *Observed) {
			o.Node, o.Leader, o.Disks = "node-d", false, nil
			o.Cluster.Mons = append(o.Cluster.Mons, "node-d")
		}},
		{"no longer a mon, out of the map", func(in *Intent, o *Observed) {
			o.Node, o.Leader, o.Disks = "node-d", false, nil
		}},
	}
	var b strings.Builder
	for _, c := range cases {
		in, o := three(), healthy()
		c.with(&in, &o)
		fmt.Fprintf(&b, "%s\n", c.name)
		for _, a := range Next(in, o) {
			fmt.Fprintf(&b, "\t%v\n", a)
		}
	}
	golden(t, "testdata/next.txt", b.String())
}

// TestTablesNeverDestroyed checks that, whatever is observed, no table is created on a
// disk that had one or that has other content, unless it is to be wiped, and none with
// a partition is removed.
func TestTablesNeverDestroyed(t *testing.T) {
	n := 0
	for _, content := range []Content{Missing, Blank, Parted, Other} {
		for _, uuid := range []string{"", tableA, osdC} {
			for bits := range 1 << 4 {
				table := Table{Node: "node-a", Path: tableDisk, UUID: tableA, Wipe: bits&1 != 0, Taken: bits&2 != 0, Leave: bits&4 != 0}
				f := FoundTable{Path: tableDisk, Content: content, UUID: uuid}
				if bits&8 != 0 {
					f.Parts = []string{osdA}
				}
				ours := content == Parted && uuid == tableA
				for _, a := range nextTable(table, f) {
					n++
					switch {
					case a.Do == MakeTable && (table.Taken || table.Leave || ours || content == Missing || content != Blank && !table.Wipe),
						a.Do == DropTable && (!table.Leave || !ours || len(f.Parts) > 0):
						t.Errorf("nextTable(%+v, %+v) = %v, want no unsafe action", table, f, a)
					}
				}
			}
		}
	}
	if n == 0 {
		t.Error("nextTable returned no action in any case, so this test proves nothing")
	}
}

// TestNextNeverDestroys checks that, whatever is observed, a disk that is not
// empty is never changed unless it is to be wiped, and nothing unsafe is
// purged or stopped.
func TestNextNeverDestroys(t *testing.T) {
	bools := []bool{false, true}
	n := 0
	for _, content := range []Content{Missing, Blank, OSD, Begun, Locked, Other} {
		for _, uuid := range []string{"", osdA, osdC} {
			for bits := range 1 << 10 {
				bit := func(i int) bool { return bools[bits>>i&1] }
				in, o := three(), healthy()
				in.Disks[0].Leave, in.Disks[0].Wipe = bit(0), bit(1)
				o.Disks[0] = Found{Path: diskA, Content: content, UUID: uuid, Made: bit(2), Running: bit(3)}
				o.Cluster.OSDs[0] = OSDState{ID: 0, UUID: osdA, Up: bit(4), In: bit(5), Safe: bit(6)}
				if bit(7) {
					o.Cluster.OSDs = o.Cluster.OSDs[1:]
				}
				if bit(8) {
					in.Disks[0].Crypt = &Encryption{Key: NewSecret("hidden")}
				}
				o.Disks[0].Encrypted = content == Locked || bit(8)
				o.Disks[0].Mapped = bit(9)
				known := o.Cluster.known(osdA) >= 0
				for _, a := range Next(in, o) {
					n++
					have := content == OSD || content == Locked
					foreign := content == Other || have && uuid != osdA
					switch {
					case a.Do == PrepareOSD && foreign && !in.Disks[0].Wipe,
						a.Do == PrepareOSD && content == Missing,
						a.Do == PrepareOSD && have && uuid == osdA,
						a.Do == OpenOSD && (uuid != osdA || !have || in.Disks[0].Crypt == nil),
						(a.Do == StartOSD || a.Do == AdoptOSD) && content == Locked,
						a.Do == ReleaseDisk && known,
						(a.Do == PurgeOSD || a.Do == StopOSD || a.Do == ReleaseDisk || a.Do == OutOSD) && !in.Disks[0].Leave,
						a.Do == PurgeOSD && !o.Cluster.OSDs[0].Safe,
						a.Do == StopOSD && known && !o.Cluster.OSDs[0].Safe:
						t.Errorf("Next returned %v for %+v, %+v, want no unsafe action", a, o.Disks[0], o.Cluster.OSDs)
					}
				}
			}
		}
	}
	if n == 0 {
		t.Error("Next returned no action in any case, so this test proves nothing")
	}
}

func TestIntentRefused(t *testing.T) {
	if err := three().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, with := range map[string]func(*Intent){
		"fsid":            func(in *Intent) { in.FSID = "x" },
		"no mon":          func(in *Intent) { in.Mons = nil },
		"mon's name":      func(in *Intent) { in.Mons[0].Node = "a\nb" },
		"mon's port":      func(in *Intent) { in.Mons[0].Address = netip.AddrPort{} },
		"mgr's name":      func(in *Intent) { in.Mgrs = []string{"--help"} },
		"disk twice":      func(in *Intent) { in.Disks[1].UUID = osdA },
		"disk's path":     func(in *Intent) { in.Disks[0].Path = "sda" },
		"pool's name":     func(in *Intent) { in.Pools[0].Name = "a b" },
		"no copy":         func(in *Intent) { in.Pools[0].Replicas = 0 },
		"domain":          func(in *Intent) { in.Pools[0].FailureDomain = "rack" },
		"disk's class":    func(in *Intent) { in.Disks[0].Class = "tape" },
		"pool's class":    func(in *Intent) { in.Pools[0].Class = "ssd;" },
		"pool to delete":  func(in *Intent) { in.Drop = []string{"basalt"} },
		"its own table":   func(in *Intent) { withDB(in, &Observed{Disks: make([]Found, 1)}); in.Tables[0].Path = diskA },
		"table elsewhere": func(in *Intent) { withDB(in, &Observed{Disks: make([]Found, 1)}); in.Disks[0].DB.Table = osdC },
		"empty database":  func(in *Intent) { withDB(in, &Observed{Disks: make([]Found, 1)}); in.Disks[0].DB.Bytes = 0 },
		"table's UUID":    func(in *Intent) { in.Tables = []Table{{Node: "node-a", Path: tableDisk, UUID: "x"}} },
		"setting":         func(in *Intent) { in.Settings = map[string]string{"x": "1\n[mon]"} },
		"setting's name":  func(in *Intent) { in.Settings = map[string]string{"x y": "1"} },
	} {
		in := three()
		in.Disks = slices.Clone(in.Disks)
		with(&in)
		if err := in.Validate(); err == nil {
			t.Errorf("Validate with %s = nil, want an error", name)
		}
	}
}
