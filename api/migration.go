package api

// MigrationPhase is the phase of a migration.
type MigrationPhase string

// Migration phases.
//
//	Pending ─► Preparing ─► Copying ─► Succeeded
//	   └──────────┴────────────┴─────► Failed, Aborted (what is migrated stays where it was)
const (
	MigrationPending   MigrationPhase = "Pending"
	MigrationPreparing MigrationPhase = "Preparing"
	MigrationCopying   MigrationPhase = "Copying"
	MigrationSucceeded MigrationPhase = "Succeeded"
	MigrationFailed    MigrationPhase = "Failed"
	MigrationAborted   MigrationPhase = "Aborted"
)

// Ended reports whether the phase is final.
func (p MigrationPhase) Ended() bool {
	return p == MigrationSucceeded || p == MigrationFailed || p == MigrationAborted
}

// AtRest reports whether an instance has no run that could be migrated while it
// continues: its disks are closed, and can be copied.
func AtRest(in Instance) bool {
	return in.Status.StartedAt == nil && (in.Status.Phase == InstanceStopped || in.Status.Phase == InstanceFailed)
}

// Subject returns the instance or the volume that is migrated.
func (s MigrationSpec) Subject() ObjectRef {
	if s.Volume != "" {
		return ObjectRef{Kind: KindVolume, ID: string(s.Volume)}
	}
	return ObjectRef{Kind: KindInstance, ID: string(s.Instance)}
}

// ValidateMigration checks a spec.
func ValidateMigration(s MigrationSpec) error {
	switch {
	case s.Instance == "" && s.Volume == "":
		return invalid("spec.instance", "an instance or a volume is required").WithHint("basalt instance list")
	case s.Instance != "" && s.Volume != "":
		return invalid("spec.volume", "cannot be set together with an instance, whose volumes are migrated with it").WithHint("create a migration for each")
	}
	return nil
}

// ChangeMigration checks which fields of a migration change: it can only be aborted,
// once.
func ChangeMigration(old, s MigrationSpec) error {
	switch {
	case old.Instance != s.Instance:
		return invalid("spec.instance", "the instance of a migration cannot change").WithHint("create another migration")
	case old.Volume != s.Volume:
		return invalid("spec.volume", "the volume of a migration cannot change").WithHint("create another migration")
	case old.Target != s.Target:
		return invalid("spec.target", "the target of a migration cannot change").WithHint("abort it and create another")
	case old.Offline != s.Offline:
		return invalid("spec.offline", "cannot change: it is set by the server").WithHint("create another migration")
	case old.Abort && !s.Abort:
		return invalid("spec.abort", "cannot change: the migration is being aborted").WithHint("create another migration")
	}
	return nil
}
