package api

// DefaultDisk clears Wipe on an unused disk, so that whoever uses the disk again must
// ask for the wipe again.
func DefaultDisk(s DiskSpec) DiskSpec {
	s.Wipe = s.Wipe && s.Use != DiskUnused
	return s
}

// Sizes of the partition for an OSD's database (block.db). Ceph's documentation
// recommends 1 to 2 % of the disk for RBD; what does not fit is stored on the disk
// itself.
const (
	dbPercent    = 2
	minDBBytes   = 1 << 30
	dbTableBytes = 2 << 20 // for the partition table and its copy at the end
	dbAlignment  = 1 << 20
	dbRoundingTo = 1 << 30
)

// DBBytes returns the default size of the database of a disk: 2 % of it, rounded up
// to a GiB.
func DBBytes(diskBytes int64) int64 {
	return max(minDBBytes, (diskBytes/100*dbPercent+dbRoundingTo-1)/dbRoundingTo*dbRoundingTo)
}

// DBRoom returns how many bytes of a disk with use ceph-db can be assigned to
// databases, where taken are the sizes of those that it has.
func DBRoom(diskBytes int64, taken ...int64) int64 {
	room := diskBytes - dbTableBytes
	for _, t := range taken {
		room -= (t + dbAlignment - 1) / dbAlignment * dbAlignment
	}
	return room
}

// ValidateDisk checks a spec.
func ValidateDisk(s DiskSpec) error {
	var bad faults
	switch {
	case s.Use != DiskUnused && s.Use != DiskCeph && s.Use != DiskCephDB && s.Use != DiskLocal:
		bad.note(invalid("spec.use", "unknown value %q", clip(string(s.Use))).WithHint("want ceph, ceph-db, local or empty"))
	case s.Use != DiskLocal && s.Pool != "":
		bad.note(invalid("spec.pool", "a name of a pool is for disks with use local").WithHint("omit it"))
	case s.Use == DiskLocal && s.Pool == "":
		bad.note(invalid("spec.pool", "a disk with use local needs the name of its storage pool").WithHint("for example fast"))
	case s.Use == DiskLocal && builtinPool(s.Pool):
		bad.note(invalid("spec.pool", "%s is the name of another storage pool", s.Pool).WithHint("choose a name other than local, shared, ceph, ceph-hdd, ceph-ssd and ceph-nvme"))
	case s.Use == DiskLocal && ValidateName(s.Pool) != nil:
		bad.note(invalid("spec.pool", "%q is not a name", clip(s.Pool)).WithHint("1 to 63 of a-z, 0-9 and '-', beginning and ending with a letter or digit"))
	}
	validateOSD(s, &bad)
	return bad.err()
}

// validateOSD checks the fields that only disks with use ceph have.
func validateOSD(s DiskSpec, bad *faults) {
	other := s.Use != DiskCeph
	switch {
	case other && s.DeviceClass != "":
		bad.note(invalid("spec.deviceClass", "a device class is for disks with use ceph").WithHint("omit it"))
	case s.DeviceClass != "":
		bad.note(oneOf("spec.deviceClass", s.DeviceClass, deviceClasses...))
	}
	switch {
	case other && s.DBDisk != "":
		bad.note(invalid("spec.dbDisk", "a disk for the database is for disks with use ceph").WithHint("omit it"))
	case s.DBDisk == "" && s.DBBytes != 0:
		bad.note(invalid("spec.dbBytes", "the size of a database needs the disk that it is stored on").WithHint("set spec.dbDisk, or omit it"))
	case s.DBDisk != "" && s.DBBytes < minDBBytes:
		bad.note(invalid("spec.dbBytes", "too small: %s, want at least %s", sizeText(s.DBBytes), sizeText(minDBBytes)))
	}
}

// ChangeDisk checks a change of a disk's use: it must be unused before it is used for
// something else.
func ChangeDisk(old, s DiskSpec) error {
	switch {
	case old.Use != DiskUnused && s.Use != DiskUnused && old.Use != s.Use:
		return Errorf(CodeState, "the disk is used for %s", old.Use).At("spec.use").WithHint("release it first: basalt disk release")
	case old.Use == DiskCeph && s.Use == DiskCeph && (old.DBDisk != s.DBDisk || old.DBBytes != s.DBBytes):
		return Errorf(CodeState, "the disk is used by Ceph, and the place of its database cannot change").At("spec.dbDisk").WithHint("release it first: basalt disk release")
	case old.Use == DiskLocal && s.Use == DiskLocal && old.Pool != s.Pool:
		return Errorf(CodeState, "the disk is storage pool %s, whose name cannot change", old.Pool).At("spec.pool").WithHint("release it first: basalt disk release")
	}
	return nil
}
