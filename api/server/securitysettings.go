package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// securitySettings defines the security settings.
func (h *handlers) securitySettings() settings[none, api.StoredSecuritySettings, api.SecuritySettings] {
	return settings[none, api.StoredSecuritySettings, api.SecuritySettings]{
		what:  "security settings",
		unset: ofCluster(api.KindSecuritySettings, api.SecuritySettingsID, "security"),
		view: func(_ context.Context, s api.StoredSecuritySettings) (api.SecuritySettings, error) {
			return s.View(), nil
		},
		spec: func(_ context.Context, _ api.StoredSecuritySettings, s api.SecuritySettings) (any, error) {
			return s.Spec()
		},
	}
}
