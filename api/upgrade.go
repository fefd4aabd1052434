package api

import (
	"encoding/hex"
	"regexp"
	"slices"
)

// UpgradePhase is the phase of an upgrade.
type UpgradePhase string

// Phases of an upgrade.
//
//	Checking ─► Running ─► Done
//	    └──────────┴─► Paused ─(resumed)─► Checking
const (
	UpgradeChecking UpgradePhase = "Checking"
	UpgradeRunning  UpgradePhase = "Running"
	UpgradePaused   UpgradePhase = "Paused"
	UpgradeDone     UpgradePhase = "Done"
)

// UpgradeNodePhase is the phase of one node in an upgrade.
type UpgradeNodePhase string

// Phases of a node in an upgrade.
//
//	Waiting ─► Draining ─► Installing ─► Verifying ─► Done
//	   ▲                       ├──────► RolledBack ─┐
//	   │                       └──────────┴► Failed ┤
//	   └───────────────(resumed)────────────────────┘
const (
	UpgradeNodeWaiting    UpgradeNodePhase = "Waiting"
	UpgradeNodeDraining   UpgradeNodePhase = "Draining"
	UpgradeNodeInstalling UpgradeNodePhase = "Installing"
	UpgradeNodeVerifying  UpgradeNodePhase = "Verifying"
	UpgradeNodeDone       UpgradeNodePhase = "Done"
	UpgradeNodeRolledBack UpgradeNodePhase = "RolledBack"
	UpgradeNodeFailed     UpgradeNodePhase = "Failed"
)

// InProgress reports whether the node is between its old and its new state.
func (p UpgradeNodePhase) InProgress() bool {
	return p == UpgradeNodeDraining || p == UpgradeNodeInstalling || p == UpgradeNodeVerifying
}

// UpgradeResult is the result of installing another release on a node.
type UpgradeResult string

// Results of an installation.
const (
	UpgradeResultDone       UpgradeResult = "Done"
	UpgradeResultRolledBack UpgradeResult = "RolledBack"
	UpgradeResultFailed     UpgradeResult = "Failed"
)

// UpgradeName is the name of the only upgrade.
const UpgradeName = "upgrade"

// Limits of an upgrade's packages.
const (
	MaxUpgradePackages      = 16
	MaxUpgradePackageBytes  = 2 << 30
	maxUpgradeVersionLength = 128
)

// Versions and names never begin with a dash, since they are passed to programs as
// arguments.
var (
	upgradeVersionPattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+~:-]*$`)
	upgradePackagePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{1,63}$`)
)

// IsSHA256 reports whether s is a SHA-256 sum in lower-case hexadecimal digits.
func IsSHA256(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32 && hex.EncodeToString(raw) == s
}

// ValidateUpgrade checks a new upgrade.
func ValidateUpgrade(name string, s UpgradeSpec) error {
	var bad faults
	switch {
	case name != UpgradeName:
		bad.note(invalid("meta.name", "must be %s: there is only one upgrade", UpgradeName))
	case len(s.Version) > maxUpgradeVersionLength || !upgradeVersionPattern.MatchString(s.Version):
		bad.note(invalid("spec.version", "%q is not a version of a Debian package", clip(s.Version)).WithHint("e.g. 1.3.0, or 1.3.0+5.gabcdef"))
	case len(s.Packages) > MaxUpgradePackages:
		bad.note(invalid("spec.packages", "has %d packages, want at most %d", len(s.Packages), MaxUpgradePackages))
	case s.Attempt != 0:
		bad.note(invalid("spec.attempt", "must be 0 for a new upgrade"))
	}
	if len(bad) > 0 {
		return bad.err()
	}
	var names []string
	for _, p := range s.Packages {
		switch {
		case !upgradePackagePattern.MatchString(p.Name):
			bad.note(invalid("spec.packages.name", "%q is not the name of a Debian package", clip(p.Name)))
		case slices.Contains(names, p.Name):
			bad.note(invalid("spec.packages.name", "package %s is named twice", p.Name))
		case p.SizeBytes < 1 || p.SizeBytes > MaxUpgradePackageBytes:
			bad.note(invalid("spec.packages.sizeBytes", "package %s has an invalid size of %d bytes", p.Name, p.SizeBytes).WithHint("want 1 to %d", int64(MaxUpgradePackageBytes)))
		case !IsSHA256(p.Sha256):
			bad.note(invalid("spec.packages.sha256", "package %s: %q is not a SHA-256 sum", p.Name, clip(p.Sha256)).WithHint("64 lower-case hexadecimal digits"))
		}
		names = append(names, p.Name)
	}
	return bad.err()
}

// ChangeUpgrade checks which fields change: only whether it is paused, and the number
// of attempts, which may grow by one.
func ChangeUpgrade(old, s UpgradeSpec) error {
	switch {
	case old.Version != s.Version:
		return invalid("spec.version", "the version of an upgrade cannot change").WithHint("delete it and create another")
	case !slices.Equal(old.Packages, s.Packages):
		return invalid("spec.packages", "the packages of an upgrade cannot change").WithHint("delete it and create another")
	case s.Attempt != old.Attempt && s.Attempt != old.Attempt+1:
		return invalid("spec.attempt", "must be %d after %d, got %d", old.Attempt+1, old.Attempt, s.Attempt)
	}
	return nil
}

// Unfinished reports whether any node is in a phase that is in progress.
func (u Upgrade) Unfinished() bool {
	return slices.ContainsFunc(u.Status.Nodes, func(n UpgradeNode) bool { return n.Phase.InProgress() })
}
