package api

// ValidateBackup checks a spec.
func ValidateBackup(s BackupSpec) error {
	var bad faults
	if s.Volume == "" {
		bad.note(invalid("spec.volume", "which volume?").WithHint("basalt volume list"))
	}
	if s.Target == "" {
		bad.note(invalid("spec.target", "where to?").WithHint("basalt backup-target list"))
	}
	return bad.err()
}

// ChangeBackup checks what may change: nothing of the spec.
func ChangeBackup(old, s BackupSpec) error {
	if old != s {
		return invalid("spec", "a backup stays what it is").WithHint("make another one")
	}
	return nil
}
