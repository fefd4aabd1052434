package api

// ValidateSnapshot checks a spec.
func ValidateSnapshot(s SnapshotSpec) error {
	if s.Volume == "" {
		return invalid("spec.volume", "which volume?").WithHint("basalt volume list")
	}
	return nil
}

// ChangeSnapshot checks what may change: nothing of the spec.
func ChangeSnapshot(old, s SnapshotSpec) error {
	if old != s {
		return invalid("spec.volume", "a snapshot stays what it is").WithHint("make another one")
	}
	return nil
}
