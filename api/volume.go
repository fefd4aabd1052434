package api

// ValidateVolume checks a spec whose references are ids.
func ValidateVolume(s VolumeSpec) error {
	if err := volumeBytes("spec.sizeBytes", s.SizeBytes); err != nil {
		return err
	}
	if err := storagePool("spec.pool", s.Pool); err != nil {
		return err
	}
	if s.SizeBytes == 0 && s.Image == "" {
		return invalid("spec.sizeBytes", "an empty volume needs a size").WithHint("or an image to start from")
	}
	return nil
}

// ChangeVolume checks what may change once a volume is there: it can grow, and
// move to another instance.
func ChangeVolume(old, s VolumeSpec) error {
	switch {
	case old.Image != s.Image:
		return invalid("spec.image", "a volume's image does not change").WithHint("make another volume")
	case old.Pool != s.Pool:
		return invalid("spec.pool", "a volume stays in its pool").WithHint("make another volume")
	case old.Root != s.Root:
		return invalid("spec.root", "it is decided when the volume is made")
	case old.Root && old.Instance != s.Instance:
		return invalid("spec.instance", "a root volume stays with its instance")
	case s.SizeBytes < old.SizeBytes:
		return invalid("spec.sizeBytes", "a volume cannot shrink from %s to %s", sizeText(old.SizeBytes), sizeText(s.SizeBytes))
	}
	return nil
}

// storagePool is one of those that a node can have; empty: the cluster chooses.
func storagePool(field, name string) *Error {
	switch name {
	case "", PoolLocal, PoolShared:
		return nil
	}
	return invalid(field, "there is no storage pool %q", clip(name)).WithHint("%s or %s", PoolLocal, PoolShared)
}
