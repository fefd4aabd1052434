package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// A pool of a device class is deleted only when it is not wanted any more and known to
// be empty, and the decision can be reverted until then.
func TestLifeOfAPool(t *testing.T) {
	w := newFixture(t)
	pools := func(when string, want ...ClassPool) {
		t.Helper()
		if diff := cmp.Diff(want, w.settled().f.Pools); diff != "" {
			t.Errorf("pools %s (-want +got):\n%s", when, diff)
		}
	}
	pools("of a new cluster")
	w.cluster.Spec.Pools = []api.CephPool{{DeviceClass: api.ClassSSD}, {DeviceClass: api.ClassHDD, Replicas: 2}}
	hdd, ssd := ClassPool{Class: "hdd", Replicas: 2}, ClassPool{Class: "ssd", Replicas: 3}
	pools("that were added", hdd, ssd)
	w.mons()
	w.survey.Cluster.Pools = []deploy.PoolState{{Name: "basalt-hdd"}, {Name: "basalt-ssd"}}
	w.cluster.Spec.Pools = w.cluster.Spec.Pools[:1]
	leaving := hdd
	leaving.Leaving = true
	pools("while the content of a removed one is unknown", leaving, ssd)
	w.images = map[string]int{"basalt-hdd": 1}
	pools("while a removed one contains an image", leaving, ssd)
	w.cluster.Spec.Pools = append(w.cluster.Spec.Pools, api.CephPool{DeviceClass: api.ClassHDD, Replicas: 2})
	pools("after the removal was reverted", hdd, ssd)
	w.cluster.Spec.Pools, w.images = w.cluster.Spec.Pools[:1], map[string]int{"basalt-hdd": 0}
	dropped := leaving
	dropped.Drop = true
	pools("after a removed one was empty", dropped, ssd)
	w.cluster.Spec.Pools = append(w.cluster.Spec.Pools, api.CephPool{DeviceClass: api.ClassHDD, Replicas: 2})
	pools("that was added again while it was deleted", dropped, ssd)
	w.survey.Cluster.Pools = w.survey.Cluster.Pools[1:]
	pools("that was added again after it was deleted", hdd, ssd)

	w.cluster.Spec.Enabled = false
	w.images = map[string]int{Pool: 0, "basalt-hdd": 0, "basalt-ssd": 4}
	if w.settled(); w.f.Dismantle {
		t.Error("Dismantle with a volume in a pool of a device class = true, want false")
	}
	if st := explain(w.f, w.observation, nil); st.Summary != "it cannot be disabled: it contains 4 volumes and images" {
		t.Errorf("summary of a disabled cluster with a volume = %q, want the number of volumes and images", st.Summary)
	}
	w.images["basalt-ssd"] = 0
	if w.settled(); !w.f.Dismantle && w.f.FSID != "" {
		t.Errorf("Bootstrap without volumes = %+v, want it dismantled", w.f)
	}
}

func TestPoolStatus(t *testing.T) {
	w := newFixture(t)
	for _, n := range []string{"1", "2", "3"} {
		w.disk("disk-"+n, "node-"+n, api.DiskCeph, api.DiskFree)
	}
	d := w.disks["disk-3"]
	d.Spec.DeviceClass = api.ClassNVMe
	w.disks["disk-3"] = d
	w.cluster.Spec.Pools = []api.CephPool{{DeviceClass: api.ClassSSD, Replicas: 2}, {DeviceClass: api.ClassNVMe, Replicas: 1}, {DeviceClass: api.ClassHDD, Replicas: 1}}
	w.mons(deploy.OSDState{UUID: "uuid-1", Class: "ssd"}, deploy.OSDState{UUID: "uuid-2", Class: "ssd"}, deploy.OSDState{UUID: "uuid-3", Class: "ssd"})
	w.survey.Cluster.Pools = []deploy.PoolState{
		{Name: "basalt", Enabled: true, Replicas: 3, Rule: "basalt-host"},
		{Name: "basalt-ssd", Enabled: true, Replicas: 2, Rule: "basalt-host"},
	}
	w.survey.Usage = map[string]deploy.PoolUsage{"basalt": {UsedBytes: 5, FreeBytes: 7}}
	want := []api.CephPoolStatus{
		{Name: "ceph", Replicas: 3, Ready: true, Domains: 3, UsedBytes: 5, FreeBytes: 7},
		{Name: "ceph-hdd", DeviceClass: "hdd", Replicas: 1, Reason: "0 nodes with disks of device class hdd, want at least 1 for as many copies"},
		{Name: "ceph-nvme", DeviceClass: "nvme", Replicas: 1, Domains: 1, Reason: "it is being created"},
		{Name: "ceph-ssd", DeviceClass: "ssd", Replicas: 2, Domains: 2, Reason: "its device class or number of copies is being changed"},
	}
	if diff := cmp.Diff(want, explain(w.settled().f, w.observation, nil).Pools); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
}

// A disk for databases is released only when no OSD has its database on it, and its
// content is erased at most once.
func TestLifeOfATable(t *testing.T) {
	w := newFixture(t)
	set := func(id string, with func(s *api.DiskSpec)) {
		d := w.disks[id]
		with(&d.Spec)
		w.disks[id] = d
	}
	table := func(when string, want ...Table) {
		t.Helper()
		if diff := cmp.Diff(want, w.settled().f.Tables); diff != "" {
			t.Errorf("disks for databases %s (-want +got):\n%s", when, diff)
		}
	}
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree).disk("disk-n", "node-1", "", api.DiskFree).disk("disk-o", "node-2", api.DiskCephDB, api.DiskFree)
	set("disk-a", func(s *api.DiskSpec) { s.DBDisk, s.DBBytes = "disk-n", 1<<30 })
	w.want("") // it waits for the other disk
	set("disk-a", func(s *api.DiskSpec) { s.DBDisk = "disk-o" })
	w.want("") // on another node
	w.disk("disk-o", "node-2", "", api.DiskReady).report("disk-o", api.DiskFree)
	set("disk-a", func(s *api.DiskSpec) { s.DBDisk = "disk-n" })
	w.disk("disk-n", "node-1", api.DiskCephDB, api.DiskInUse)
	set("disk-n", func(s *api.DiskSpec) { s.Wipe = true })
	w.settled()
	if len(w.f.Tables) != 1 {
		t.Fatalf("disks for databases = %+v, want one", w.f.Tables)
	}
	n := w.f.Tables[0]
	if want := (Table{Disk: "disk-n", Node: "node-1", UUID: n.UUID, Wipe: true}); n != want {
		t.Errorf("disk for databases = %+v, want %+v", n, want)
	}
	if o := w.f.OSD("disk-a"); o == nil || o.DB == nil || *o.DB != (deploy.DB{Table: n.UUID, Bytes: 1 << 30}) {
		t.Fatalf("OSD = %+v, want its database in table %s", o, n.UUID)
	}
	uuid := w.f.OSD("disk-a").UUID
	w.mons(deploy.OSDState{UUID: uuid, Up: true, In: true}).report("disk-n", api.DiskReady)
	n.Taken = true
	table("after it was prepared", n)
	w.report("disk-n", api.DiskFailed)
	table("after it failed", n)
	w.disk("disk-n", "node-1", "", api.DiskFree).report("disk-n", api.DiskFree)
	n.Leaving = true
	table("that is to be released while it has a database", n)
	w.disk("disk-a", "node-1", "", api.DiskReady).mons().report("disk-a", api.DiskFree)
	table("after the OSD was released")
}
