package api

// ValidateVolume checks a spec whose references are IDs.
func ValidateVolume(s VolumeSpec) error {
	var bad faults
	bad.note(volumeBytes("spec.sizeBytes", s.SizeBytes))
	bad.note(storagePool("spec.pool", s.Pool))
	bad.note(volumeSource(s), volumeQoS(s.Qos))
	if s.Rollback != nil {
		if s.Rollback.Snapshot == "" {
			bad.note(invalid("spec.rollback.snapshot", "a snapshot is required").WithHint("basalt snapshot list"))
		}
		bad.note(between("spec.rollback.count", s.Rollback.Count, 0, 1<<53, ""))
	}
	if s.SizeBytes == 0 && s.Image == "" && s.Snapshot == "" && s.Backup == "" {
		bad.note(invalid("spec.sizeBytes", "a size is required for an empty volume").WithHint("or name an image"))
	}
	return bad.err()
}

// ChangeVolume checks which fields of an existing volume change: it can grow, and be
// attached to another instance.
func ChangeVolume(old, s VolumeSpec) error {
	switch {
	case old.Image != s.Image:
		return invalid("spec.image", "the image of a volume cannot change").WithHint("create another volume")
	case old.Snapshot != s.Snapshot:
		return invalid("spec.snapshot", "cannot change after the volume is created").WithHint("create another volume, or roll this one back")
	case old.Backup != s.Backup:
		return invalid("spec.backup", "cannot change after the volume is created").WithHint("create another volume")
	case old.Encrypted != s.Encrypted:
		return invalid("spec.encrypted", "cannot change after the volume is created").WithHint("create another volume and copy the data")
	case old.Instance != "" && s.Instance != "" && old.Instance != s.Instance:
		return invalid("spec.instance", "the volume is attached to another instance").WithHint("detach it first: basalt volume detach")
	case rollbackCount(s) < rollbackCount(old):
		return invalid("spec.rollback.count", "must not decrease")
	case old.Pool != s.Pool:
		return invalid("spec.pool", "the storage pool of a volume cannot change").WithHint("create another volume")
	case old.Root != s.Root:
		return invalid("spec.root", "cannot change after the volume is created")
	case old.Root && old.Instance != s.Instance:
		return invalid("spec.instance", "a root volume cannot be detached from its instance")
	case s.SizeBytes < old.SizeBytes:
		return invalid("spec.sizeBytes", "a volume cannot shrink from %s to %s", sizeText(old.SizeBytes), sizeText(s.SizeBytes))
	}
	return nil
}

// storagePool checks that the name can be that of a pool; empty lets the cluster
// choose. Whether a pool on a disk with that name exists is checked by the server.
func storagePool(field, name string) *Error {
	if name == "" || builtinPool(name) || ValidateName(name) == nil {
		return nil
	}
	return invalid(field, "unknown storage pool %q", clip(name)).WithHint("want local, shared, ceph, ceph-hdd, ceph-ssd, ceph-nvme or the name of a pool on a disk")
}

// volumeSource checks that a volume has at most one source; without one it is blank.
func volumeSource(s VolumeSpec) *Error {
	sources := 0
	for _, from := range []string{string(s.Image), string(s.Snapshot), string(s.Backup)} {
		if from != "" {
			sources++
		}
	}
	if sources > 1 {
		return invalid("spec.snapshot", "must have at most one of image, snapshot and backup").WithHint("omit the others")
	}
	return nil
}

func volumeQoS(q *VolumeQoS) *Error {
	if q == nil {
		return nil
	}
	for _, l := range []struct {
		field      string
		got, least int64
		unit       string
	}{
		{"readIOPS", q.ReadIOPS, 10, " operations a second; 0: no limit"},
		{"writeIOPS", q.WriteIOPS, 10, " operations a second; 0: no limit"},
		{"readBytesPerSecond", q.ReadBytesPerSecond, 64 << 10, " bytes a second; 0: no limit"},
		{"writeBytesPerSecond", q.WriteBytesPerSecond, 64 << 10, " bytes a second; 0: no limit"},
	} {
		if l.got == 0 {
			continue
		}
		if err := between("spec.qos."+l.field, l.got, l.least, 1<<40, l.unit); err != nil {
			return err
		}
	}
	return nil
}

func rollbackCount(s VolumeSpec) int64 {
	if s.Rollback == nil {
		return 0
	}
	return s.Rollback.Count
}
