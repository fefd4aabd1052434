package api

import (
	"cmp"
	"fmt"
	"slices"
)

// deviceClasses are the classes that a disk or a pool may have.
var deviceClasses = []DeviceClass{ClassHDD, ClassSSD, ClassNVMe}

// PoolName returns the name of the storage pool: that of its class, so that the
// name alone tells that the pool is in Ceph.
func (p CephPool) PoolName() string { return PoolCeph + "-" + string(p.DeviceClass) }

// InCeph reports whether the storage pool of that name is one of Ceph.
func InCeph(pool string) bool {
	return pool == PoolCeph || slices.ContainsFunc(deviceClasses, func(c DeviceClass) bool { return pool == CephPool{DeviceClass: c}.PoolName() })
}

// validateCephPools checks the additional pools, each of which has a class of its
// own.
func validateCephPools(all []CephPool, bad *faults) {
	seen := map[DeviceClass]bool{}
	for i, p := range all {
		at := fmt.Sprintf("spec.pools[%d]", i)
		bad.note(oneOf(at+".deviceClass", p.DeviceClass, deviceClasses...))
		if p.Replicas != 0 {
			bad.note(between(at+".replicas", p.Replicas, 1, maxReplicas, " copies"))
		}
		if seen[p.DeviceClass] {
			bad.note(invalid(at+".deviceClass", "there is already a pool with device class %s", p.DeviceClass).WithHint("omit one of them"))
		}
		seen[p.DeviceClass] = true
	}
}

// CheckDeviceClasses refuses a device class for the pool ceph, or for an additional
// pool, that too few disks have. Disks are those of the cluster; what it has already is
// not refused.
func CheckDeviceClasses(old, s CephClusterSpec, disks []Disk) error {
	var bad faults
	if class := s.DeviceClass; s.Enabled && class != "" && class != old.DeviceClass {
		if n := domainsOf(class, s.FailureDomain, disks); n < int(s.Replicas) {
			bad.note(Errorf(CodeState, "device class %s: %s, want at least %d for as many copies", class, domainCount(n, s.FailureDomain), s.Replicas).At("spec.deviceClass").
				WithHint("add disks of that class, or set it on disks: basalt disk use DISK ceph --device-class %s", class))
		}
	}
	for i, p := range s.Pools {
		had := slices.ContainsFunc(old.Pools, func(o CephPool) bool { return o.DeviceClass == p.DeviceClass })
		if s.Enabled && !had && domainsOf(p.DeviceClass, s.FailureDomain, disks) == 0 {
			bad.note(Errorf(CodeState, "no disk that Ceph uses has device class %s", p.DeviceClass).At(fmt.Sprintf("spec.pools[%d].deviceClass", i)).
				WithHint("add a disk of that class first: basalt disk use DISK ceph"))
		}
	}
	return bad.err()
}

// domainsOf counts the failure domains that have a disk of the class.
func domainsOf(class DeviceClass, domain FailureDomain, disks []Disk) int {
	seen := map[string]bool{}
	for _, d := range disks {
		if d.Spec.Use != DiskCeph || d.Meta.DeletedAt != nil || cmp.Or(d.Spec.DeviceClass, d.Status.DeviceClass) != class {
			continue
		}
		if domain == DomainOSD {
			seen[d.Meta.ID] = true
		} else {
			seen[string(d.Status.Node)] = true
		}
	}
	return len(seen)
}

func domainCount(n int, domain FailureDomain) string {
	if domain == DomainOSD {
		return fmt.Sprintf("%d disks have it", n)
	}
	return fmt.Sprintf("%d nodes have disks of it", n)
}

// CheckDBDisk refuses to store the database of a disk on one that is not for databases,
// is on another node, or has too little space.
func CheckDBDisk(d Disk, s DiskSpec, disks []Disk) error {
	if s.DBDisk == "" {
		return nil
	}
	at := slices.IndexFunc(disks, func(o Disk) bool { return o.Meta.ID == string(s.DBDisk) })
	bad := func(format string, args ...any) *Error { return Errorf(CodeInvalid, format, args...).At("spec.dbDisk") }
	switch {
	case at < 0:
		return bad("disk %s does not exist", s.DBDisk)
	case d.Meta.ID == string(s.DBDisk):
		return bad("disk %s cannot store its database on itself in a partition", d.Meta.Name).WithHint("omit the field: without it, a disk has its database on itself")
	}
	db := disks[at]
	switch {
	case db.Spec.Use != DiskCephDB:
		return bad("disk %s is not used for databases: its use is %q, want ceph-db", db.Meta.Name, db.Spec.Use).WithHint("basalt disk use %s ceph-db", db.Meta.Name)
	case db.Status.Node != d.Status.Node:
		return bad("disk %s is on another node than disk %s", db.Meta.Name, d.Meta.Name).WithHint("choose a disk of the same node")
	}
	var taken []int64
	for _, o := range disks {
		if o.Spec.DBDisk == s.DBDisk && o.Meta.ID != d.Meta.ID {
			taken = append(taken, o.Spec.DBBytes)
		}
	}
	if room := DBRoom(db.Status.SizeBytes, taken...); s.DBBytes > room {
		return Errorf(CodeDiskFull, "disk %s is too small: %s requested, %s free", db.Meta.Name, sizeText(s.DBBytes), sizeText(max(room, 0))).At("spec.dbBytes").
			WithHint("request a smaller database: basalt disk use DISK ceph --db-size SIZE")
	}
	return nil
}
