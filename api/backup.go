package api

// ValidateBackup checks a spec.
func ValidateBackup(s BackupSpec) error {
	var bad faults
	if s.Volume == "" {
		bad.note(invalid("spec.volume", "a volume is required").WithHint("basalt volume list"))
	}
	if s.Target == "" {
		bad.note(invalid("spec.target", "a backup target is required").WithHint("basalt backup-target list"))
	}
	return bad.err()
}

// ChangeBackup returns an error if the spec changes, since no field of it can.
func ChangeBackup(old, s BackupSpec) error {
	if old != s {
		return invalid("spec", "the spec of a backup cannot change").WithHint("create another one")
	}
	return nil
}
