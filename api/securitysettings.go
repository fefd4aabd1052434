package api

import (
	"fmt"
	"slices"
)

// SecuritySettingsID is the ID of the only object of its kind.
const SecuritySettingsID = "secsettings-000000000000"

// maxTunnelKeyRotation is the largest SecuritySettings.TunnelKeyRotation.
const maxTunnelKeyRotation = 1_000_000_000

// SecuritySettingsSpec is the settings in the form that the store keeps.
type SecuritySettingsSpec struct {
	RequireSecondFactor   []Role `json:"requireSecondFactor,omitempty"`
	RequireSupportConsent bool   `json:"requireSupportConsent,omitempty"`
	EncryptTunnels        bool   `json:"encryptTunnels,omitempty"`
	TunnelKeyRotation     int64  `json:"tunnelKeyRotation,omitempty"`
}

// StoredSecuritySettings is the stored settings object.
type StoredSecuritySettings struct {
	Kind Kind
	Meta Meta
	Spec SecuritySettingsSpec
}

// View returns the settings in the form of the API.
func (p StoredSecuritySettings) View() SecuritySettings {
	return SecuritySettings{Revision: p.Meta.Revision, RequireSecondFactor: p.Spec.RequireSecondFactor, RequireSupportConsent: p.Spec.RequireSupportConsent,
		EncryptTunnels: p.Spec.EncryptTunnels, TunnelKeyRotation: p.Spec.TunnelKeyRotation}
}

// Spec returns the settings in the form of the store: each role once, in the order of Roles.
func (s SecuritySettings) Spec() (SecuritySettingsSpec, error) {
	out := SecuritySettingsSpec{RequireSupportConsent: s.RequireSupportConsent, EncryptTunnels: s.EncryptTunnels, TunnelKeyRotation: s.TunnelKeyRotation}
	if s.TunnelKeyRotation < 0 || s.TunnelKeyRotation > maxTunnelKeyRotation {
		return out, invalid("tunnelKeyRotation", "is %d, want 0 to %d", s.TunnelKeyRotation, int64(maxTunnelKeyRotation)).WithHint("add 1 to the present value")
	}
	for i, r := range s.RequireSecondFactor {
		if !slices.Contains(Roles(), r) {
			return out, invalid(fmt.Sprintf("requireSecondFactor[%d]", i), "unknown role %q", clip(string(r))).WithHint("want one of %v", Roles())
		}
	}
	for _, r := range Roles() {
		if slices.Contains(s.RequireSecondFactor, r) {
			out.RequireSecondFactor = append(out.RequireSecondFactor, r)
		}
	}
	return out, nil
}
