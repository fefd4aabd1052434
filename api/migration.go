package api

// MigrationPhase is where a migration is in its life.
type MigrationPhase string

// Migration phases.
//
//	Pending ─► Preparing ─► Copying ─► Succeeded
//	   └──────────┴────────────┴─────► Failed, Aborted (the instance stays where it was)
const (
	MigrationPending   MigrationPhase = "Pending"
	MigrationPreparing MigrationPhase = "Preparing"
	MigrationCopying   MigrationPhase = "Copying"
	MigrationSucceeded MigrationPhase = "Succeeded"
	MigrationFailed    MigrationPhase = "Failed"
	MigrationAborted   MigrationPhase = "Aborted"
)

// Ended reports whether nothing happens any more.
func (p MigrationPhase) Ended() bool {
	return p == MigrationSucceeded || p == MigrationFailed || p == MigrationAborted
}

// ValidateMigration checks a spec.
func ValidateMigration(s MigrationSpec) error {
	if s.Instance == "" {
		return invalid("spec.instance", "which instance?").WithHint("basalt instance list")
	}
	return nil
}

// ChangeMigration checks what may change: it can be aborted, once.
func ChangeMigration(old, s MigrationSpec) error {
	switch {
	case old.Instance != s.Instance:
		return invalid("spec.instance", "a migration keeps its instance").WithHint("make another migration")
	case old.Target != s.Target:
		return invalid("spec.target", "a migration keeps its target").WithHint("abort it and make another")
	case old.Abort && !s.Abort:
		return invalid("spec.abort", "it is being aborted").WithHint("make another migration")
	}
	return nil
}
