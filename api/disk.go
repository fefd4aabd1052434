package api

// DefaultDisk clears Wipe on an unused disk, so that whoever uses the disk again must
// ask for the wipe again.
func DefaultDisk(s DiskSpec) DiskSpec {
	s.Wipe = s.Wipe && s.Use != DiskUnused
	return s
}

// ValidateDisk checks a spec.
func ValidateDisk(s DiskSpec) error {
	var bad faults
	switch {
	case s.Use != DiskUnused && s.Use != DiskCeph && s.Use != DiskLocal:
		bad.note(invalid("spec.use", "unknown value %q", clip(string(s.Use))).WithHint("want ceph, local or empty"))
	case s.Use != DiskLocal && s.Pool != "":
		bad.note(invalid("spec.pool", "a name of a pool is for disks with use local").WithHint("omit it"))
	case s.Use == DiskLocal && s.Pool == "":
		bad.note(invalid("spec.pool", "a disk with use local needs the name of its storage pool").WithHint("for example fast"))
	case s.Use == DiskLocal && builtinPool(s.Pool):
		bad.note(invalid("spec.pool", "%s is the name of another storage pool", s.Pool).WithHint("choose a name other than %s, %s and %s", PoolLocal, PoolShared, PoolCeph))
	case s.Use == DiskLocal && ValidateName(s.Pool) != nil:
		bad.note(invalid("spec.pool", "%q is not a name", clip(s.Pool)).WithHint("1 to 63 of a-z, 0-9 and '-', beginning and ending with a letter or digit"))
	}
	return bad.err()
}

// ChangeDisk checks a change of a disk's use: it must be unused before it is used for
// something else.
func ChangeDisk(old, s DiskSpec) error {
	switch {
	case old.Use != DiskUnused && s.Use != DiskUnused && old.Use != s.Use:
		return Errorf(CodeState, "the disk is used for %s", old.Use).At("spec.use").WithHint("release it first: basalt disk release")
	case old.Use == DiskLocal && s.Use == DiskLocal && old.Pool != s.Pool:
		return Errorf(CodeState, "the disk is storage pool %s, whose name cannot change", old.Pool).At("spec.pool").WithHint("release it first: basalt disk release")
	}
	return nil
}
