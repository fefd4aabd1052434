package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// GetSecuritySettings returns the settings of the cluster.
func (h *handlers) GetSecuritySettings(ctx context.Context, _ in[none, none]) (*api.SecuritySettings, error) {
	s, err := h.auth.SecuritySettings(ctx)
	shown := s.View()
	return &shown, err
}

// UpdateSecuritySettings replaces the settings.
func (h *handlers) UpdateSecuritySettings(ctx context.Context, r in[none, api.SecuritySettings]) (*api.SecuritySettings, error) {
	spec, err := r.Body.Spec()
	if err != nil {
		return nil, err
	}
	o, err := h.putSettings(ctx, "security settings",
		api.Command{Op: api.OpPutSpec, Kind: api.KindSecuritySettings, ID: api.SecuritySettingsID, Expect: r.Body.Revision, Name: "security", Data: api.Encode(spec)})
	if err != nil {
		return nil, err
	}
	s, err := api.Decode[api.StoredSecuritySettings](o)
	shown := s.View()
	return &shown, err
}
