package api

// ValidateSnapshot checks a spec.
func ValidateSnapshot(s SnapshotSpec) error {
	if s.Volume == "" {
		return invalid("spec.volume", "a volume is required").WithHint("basalt volume list")
	}
	return nil
}

// ChangeSnapshot returns an error if the spec changes, since no field of it can.
func ChangeSnapshot(old, s SnapshotSpec) error {
	if old != s {
		return invalid("spec.volume", "the spec of a snapshot cannot change").WithHint("create another one")
	}
	return nil
}
