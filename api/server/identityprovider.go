package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// providerSpec replaces names with IDs, validates, and seals the client's secret;
// without a new secret the old one is kept.
func (h *handlers) providerSpec(ctx context.Context, _ api.Meta, before *api.IdentityProvider, s api.IdentityProviderSpec) (api.IdentityProviderSpec, error) {
	var old api.IdentityProviderSpec
	if before != nil {
		old = before.Spec
		if s.Issuer != old.Issuer {
			return s, api.Errorf(api.CodeInvalid, "the issuer of a provider cannot change").At("spec.issuer").WithHint("create another provider")
		}
	}
	s.Grants = slices.Clone(s.Grants)
	invalid := api.ValidateIdentityProvider(s)
	if len(s.Grants) > api.MaxGrants {
		return s, invalid
	}
	var bad []error
	for i := range s.Grants {
		bad = append(bad, h.grantScope(ctx, &s.Grants[i].Grant, fmt.Sprintf("spec.grants[%d].grant.", i)))
	}
	if s.Organization != "" {
		o, err := h.find(ctx, api.KindOrganization, s.Organization, "", "")
		bad = append(bad, at(err, "spec.organization"))
		s.Organization = o.Meta.ID
	}
	if err := api.Join(bad...); err != nil {
		return s, api.Join(invalid, err)
	}
	if err := api.ValidateIdentityProvider(s); err != nil {
		return s, err
	}
	if s.ClientSecret == "" {
		s.ClientSecret = old.ClientSecret
		return s, nil
	}
	var err error
	s.ClientSecret, err = h.auth.Sealed(ctx, s.ClientSecret)
	if err != nil {
		return s, fmt.Errorf("encrypt the client secret of an identity provider: %w", err)
	}
	return s, nil
}
