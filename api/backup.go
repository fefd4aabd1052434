package api

// ValidateBackup checks a spec.
func ValidateBackup(s BackupSpec) error {
	switch {
	case s.Volume == "":
		return invalid("spec.volume", "which volume?").WithHint("basalt volume list")
	case s.Target == "":
		return invalid("spec.target", "where to?").WithHint("basalt backup-target list")
	}
	return nil
}

// ChangeBackup checks what may change: nothing of the spec.
func ChangeBackup(old, s BackupSpec) error {
	if old != s {
		return invalid("spec", "a backup stays what it is").WithHint("make another one")
	}
	return nil
}
