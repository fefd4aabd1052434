package storage

import (
	"errors"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

func TestDiskStatus(t *testing.T) {
	block := &Block{Path: "/dev/sdb"}
	osd := &storage.OSD{UUID: "u"}
	taken, leaving := &storage.OSD{UUID: "u", Taken: true}, &storage.OSD{UUID: "u", Taken: true, Leaving: true}
	running := &deploy.Found{Content: deploy.OSD, UUID: "u", ID: 4, Made: true, Running: true}
	stopped := &deploy.Found{Content: deploy.OSD, UUID: "u", ID: 4, Made: true}
	blank := &deploy.Found{Content: deploy.Blank, ID: -1}
	round := func(states ...deploy.OSDState) deploy.Round {
		return deploy.Round{Seen: deploy.Observed{Cluster: &deploy.Cluster{OSDs: states}}}
	}
	up := deploy.OSDState{ID: 4, UUID: "u", Up: true, In: true}
	ceph, unused := api.Disk{Spec: api.DiskSpec{Use: api.DiskCeph}}, api.Disk{}
	wipe := ceph
	wipe.Spec.Wipe = true
	db := api.Disk{Spec: api.DiskSpec{Use: api.DiskCephDB}}
	table, gone := &storage.Table{UUID: "u", Taken: true}, &storage.Table{UUID: "u", Leaving: true}
	parted := &deploy.FoundTable{Content: deploy.Parted, UUID: "u", Parts: []string{"osd"}, FreeBytes: 7}
	refused := round()
	refused.Did = []deploy.Action{{Do: deploy.Refuse, Name: "u", Why: "the disk is not empty: it contains ext4"}}
	failed := round()
	failed.Failed = map[string]error{"u": errors.New("input/output error")}
	for _, c := range []struct {
		name  string
		v     diskView
		state api.DiskState
		osd   int64
		says  string
	}{
		{"free", diskView{disk: unused, block: block}, api.DiskFree, -1, ""},
		{"mounted", diskView{disk: wipe, block: &Block{Held: "it is mounted at /srv"}}, api.DiskInUse, -1, "it is mounted at /srv"},
		{"not empty", diskView{disk: unused, block: &Block{Holds: "it contains ext4"}}, api.DiskInUse, -1, "--wipe"},
		{"to be wiped", diskView{disk: wipe, block: &Block{Holds: "it contains ext4"}}, api.DiskInUse, -1, "will be erased"},
		{"no Ceph", diskView{disk: ceph, block: block, off: true}, api.DiskFree, -1, "basalt ceph enable"},
		{"pulled out", diskView{disk: unused}, api.DiskFailed, -1, "not found"},
		{"begun", diskView{disk: ceph, block: block, osd: osd, found: blank, round: round()}, api.DiskPreparing, -1, "being prepared"},
		{"refused", diskView{disk: ceph, block: block, osd: osd, found: blank, round: refused}, api.DiskFailed, -1, "it contains ext4"},
		{"failed", diskView{disk: ceph, block: block, osd: osd, found: blank, round: failed}, api.DiskFailed, -1, "input/output error"},
		{"mounted meanwhile", diskView{disk: ceph, block: &Block{Held: "it is mounted at /srv"}, osd: osd, round: round()}, api.DiskFailed, -1, "mounted"},
		{"not up yet", diskView{disk: ceph, block: block, osd: osd, found: running, round: round()}, api.DiskPreparing, 4, "not up yet"},
		{"ready", diskView{disk: ceph, block: block, osd: osd, found: running, round: round(up)}, api.DiskReady, 4, ""},
		{"crashed", diskView{disk: ceph, block: block, osd: taken, found: stopped, round: round(up)}, api.DiskFailed, 4, "was not running"},
		{"died", diskView{disk: ceph, osd: taken, found: stopped, round: round(up)}, api.DiskFailed, 4, "not found"},
		{"nobody answers", diskView{disk: ceph, block: block, osd: taken, found: running}, api.DiskFailed, 4, "not reachable"},
		{"draining", diskView{disk: unused, block: block, osd: leaving, found: running, round: round(up)}, api.DiskDraining, 4, "being moved"},
		{"drained", diskView{disk: unused, block: block, osd: leaving, found: running, round: round(deploy.OSDState{UUID: "u", Safe: true})}, api.DiskDraining, 4, "being removed"},
		{"purged", diskView{disk: unused, block: block, osd: leaving, found: stopped, round: round()}, api.DiskDraining, 4, "erased"},
		{"released", diskView{disk: unused, block: block, osd: leaving, found: blank, round: round()}, api.DiskFree, -1, ""},
		{"released of no cluster", diskView{disk: unused, block: block, osd: leaving, found: blank, begun: true}, api.DiskFree, -1, ""},
		{"database's disk unused", diskView{disk: ceph, block: block, dbReady: false}, api.DiskFree, -1, "not used for databases"},
		{"for databases", diskView{disk: db, block: block, table: table, parted: parted}, api.DiskReady, -1, ""},
		{"for databases, begun", diskView{disk: db, block: block, table: table, parted: &deploy.FoundTable{Content: deploy.Blank}}, api.DiskPreparing, -1, "being prepared"},
		{"for databases, not empty", diskView{disk: db, block: &Block{Holds: "it contains ext4"}, dbReady: true}, api.DiskInUse, -1, "ceph-db --wipe"},
		{"for databases, died", diskView{disk: db, table: table, parted: &deploy.FoundTable{Content: deploy.Missing}}, api.DiskFailed, -1, "not found"},
		{"for databases, refused", diskView{disk: db, block: block, table: table, round: refused}, api.DiskFailed, -1, "it contains ext4"},
		{"for databases, to be released", diskView{disk: unused, block: block, table: gone, parted: parted}, api.DiskDraining, -1, "databases of other disks (1)"},
		{"for databases, released", diskView{disk: unused, block: block, table: gone, parted: &deploy.FoundTable{Content: deploy.Blank}}, api.DiskFree, -1, ""},
	} {
		if c.v.disk.Spec.DBDisk == "" && !strings.HasPrefix(c.name, "database's") {
			c.v.dbReady = true
		}
		st := diskStatus("node-1", c.v)
		if st.State != c.state || st.Osd != c.osd || !strings.Contains(st.Reason, c.says) || c.says == "" && st.Reason != "" {
			t.Errorf("%s: state %s, osd %d, reason %q; want %s, %d, a reason with %q", c.name, st.State, st.Osd, st.Reason, c.state, c.osd, c.says)
		}
	}
	// A changed spec is observed only when the Bootstrap reflects it.
	v := diskView{disk: unused, block: block, osd: osd, found: blank, round: round()}
	v.disk.Meta.Generation = 3
	if st := diskStatus("node-1", v); st.ObservedGeneration != 0 {
		t.Errorf("observedGeneration of a disk that is to leave = %d, want 0", st.ObservedGeneration)
	}
}

// TestEncryptedStatus checks that a disk is reported as encrypted if its OSD is, and no
// longer when it was released.
func TestEncryptedStatus(t *testing.T) {
	disk := api.Disk{Spec: api.DiskSpec{Use: api.DiskCeph}}
	osd, block := &storage.OSD{UUID: "u", Key: "sealed"}, &Block{Path: "/dev/sdb"}
	locked := &deploy.Found{Content: deploy.Locked, UUID: "u", ID: 4, Made: true, Encrypted: true}
	for _, c := range []struct {
		name  string
		v     diskView
		was   bool
		want  bool
		state api.DiskState
	}{
		{"locked", diskView{osd: osd, block: block, found: locked}, false, true, api.DiskPreparing},
		{"in plain", diskView{osd: &storage.OSD{UUID: "u"}, block: block, found: &deploy.Found{Content: deploy.OSD, UUID: "u", Made: true}}, false, false, api.DiskPreparing},
		{"not inspected yet", diskView{osd: osd, block: block}, true, true, api.DiskPreparing},
		{"of another OSD", diskView{osd: osd, block: block, found: &deploy.Found{Content: deploy.Locked, UUID: "v", Encrypted: true}}, false, false, api.DiskPreparing},
		{"released", diskView{block: block, dbReady: true}, true, false, api.DiskFree},
	} {
		c.v.disk = disk
		c.v.disk.Status.Encrypted = c.was
		if st := diskStatus("node-1", c.v); st.Encrypted != c.want || st.State != c.state {
			t.Errorf("%s: status = %+v, want encrypted %v, state %s", c.name, st, c.want, c.state)
		}
	}
}
