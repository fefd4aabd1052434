package api

import (
	"strings"
	"testing"
)

func TestCheckDeviceClasses(t *testing.T) {
	disk := func(id, node string, set, detected DeviceClass) Disk {
		return Disk{Meta: Meta{ID: id}, Spec: DiskSpec{Use: DiskCeph, DeviceClass: set}, Status: DiskStatus{Node: NodeID(node), DeviceClass: detected}}
	}
	unused := disk("disk-u", "node-4", ClassSSD, "")
	unused.Spec.Use = DiskUnused
	disks := []Disk{disk("disk-a", "node-1", "", ClassSSD), disk("disk-b", "node-1", "", ClassSSD), disk("disk-c", "node-2", ClassSSD, ClassHDD), unused}
	spec := func(class DeviceClass, domain FailureDomain, pools ...DeviceClass) CephClusterSpec {
		s := CephClusterSpec{Enabled: true, Replicas: 3, FailureDomain: domain, DeviceClass: class}
		for _, p := range pools {
			s.Pools = append(s.Pools, CephPool{DeviceClass: p})
		}
		return s
	}
	for _, c := range []struct {
		name   string
		old, s CephClusterSpec
		says   string // empty: no error
	}{
		{"all disks", CephClusterSpec{}, spec("", DomainHost), ""},
		{"too few nodes", CephClusterSpec{}, spec(ClassSSD, DomainHost), "device class ssd: 2 nodes have disks of it, want at least 3"},
		{"enough disks", CephClusterSpec{}, spec(ClassSSD, DomainOSD), ""},
		{"a class that was replaced by the operator's", CephClusterSpec{}, spec(ClassHDD, DomainOSD), "0 disks have it, want at least 3"},
		{"a class that the pool has already", spec(ClassSSD, DomainHost), spec(ClassSSD, DomainHost), ""},
		{"a pool with some disks", CephClusterSpec{}, spec("", DomainHost, ClassSSD), ""},
		{"a pool without disks", CephClusterSpec{}, spec("", DomainHost, ClassSSD, ClassNVMe), "no disk that Ceph uses has device class nvme"},
		{"a pool that it has already", spec("", DomainHost, ClassNVMe), spec("", DomainHost, ClassNVMe), ""},
	} {
		wantFault(t, c.name, CheckDeviceClasses(c.old, c.s, disks), c.says)
	}
}

func wantFault(t *testing.T, name string, err error, says string) {
	t.Helper()
	if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
		t.Errorf("%s: error = %v, want one with %q", name, err, says)
	}
}

func TestCheckDBDisk(t *testing.T) {
	disk := func(id, node string, s DiskSpec, bytes int64) Disk {
		return Disk{Meta: Meta{ID: id, Name: "name-of-" + id}, Spec: s, Status: DiskStatus{Node: NodeID(node), SizeBytes: bytes}}
	}
	const gib = 1 << 30
	d := disk("disk-a", "node-1", DiskSpec{}, 1000*gib)
	disks := []Disk{
		d,
		disk("disk-b", "node-1", DiskSpec{Use: DiskCeph, DBDisk: "disk-n", DBBytes: 40 * gib}, 1000*gib),
		disk("disk-n", "node-1", DiskSpec{Use: DiskCephDB}, 100*gib),
		disk("disk-o", "node-2", DiskSpec{Use: DiskCephDB}, 100*gib),
		disk("disk-l", "node-1", DiskSpec{Use: DiskLocal, Pool: "fast"}, 100*gib),
	}
	for _, c := range []struct {
		name  string
		db    DiskID
		bytes int64
		says  string
	}{
		{"none", "", 0, ""},
		{"a disk with room", "disk-n", 59 * gib, ""},
		{"a disk that is too small", "disk-n", 60 * gib, "disk name-of-disk-n is too small: 60 GiB requested, 61438 MiB free"},
		{"a disk of another node", "disk-o", gib, "is on another node than disk name-of-disk-a"},
		{"a disk with another use", "disk-l", gib, `its use is "local", want ceph-db`},
		{"the disk itself", "disk-a", gib, "cannot store its database on itself"},
		{"a disk that does not exist", "disk-x", gib, "disk disk-x does not exist"},
	} {
		wantFault(t, c.name, CheckDBDisk(d, DiskSpec{Use: DiskCeph, DBDisk: c.db, DBBytes: c.bytes}, disks), c.says)
	}
	for bytes, want := range map[int64]int64{4 * gib: gib, 50 * gib: gib, 1000 * gib: 20 * gib, 1001 * gib: 21 * gib} {
		if got := DBBytes(bytes); got != want {
			t.Errorf("DBBytes(%d) = %d, want %d", bytes, got, want)
		}
	}
}

func TestCephPoolsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		with func(s *CephClusterSpec)
		says string
	}{
		"pools": {func(s *CephClusterSpec) {
			s.Pools = []CephPool{{DeviceClass: ClassHDD}, {DeviceClass: ClassSSD, Replicas: 2}}
		}, ""},
		"class":              {func(s *CephClusterSpec) { s.DeviceClass = "tape" }, "tape"},
		"class of a pool":    {func(s *CephClusterSpec) { s.Pools = []CephPool{{DeviceClass: ""}} }, "hdd"},
		"replicas of a pool": {func(s *CephClusterSpec) { s.Pools = []CephPool{{DeviceClass: ClassHDD, Replicas: 6}} }, "want 1 to 5 copies"},
		"class twice":        {func(s *CephClusterSpec) { s.Pools = []CephPool{{DeviceClass: ClassHDD}, {DeviceClass: ClassHDD}} }, "there is already a pool with device class hdd"},
	} {
		s := DefaultCephCluster(CephClusterSpec{})
		c.with(&s)
		wantFault(t, name, ValidateCephCluster(CephName, s), c.says)
	}
	for name, want := range map[string]bool{"ceph": true, "ceph-ssd": true, "ceph-nvme": true, "ceph-hdd": true, "ceph-": false, "ceph-fast": false, "local": false} {
		if got := InCeph(name); got != want {
			t.Errorf("InCeph(%s) = %v, want %v", name, got, want)
		}
		if name != "local" && name != "ceph-" && SharedPool(name) != want || DiskPool(name) != (!want && name != "local") {
			t.Errorf("SharedPool(%s), DiskPool = %v, %v, want %v and the opposite", name, SharedPool(name), DiskPool(name), want)
		}
	}
}
