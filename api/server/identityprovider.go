package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
	"github.com/basalt-gpu/basalt/api/server/saml"
)

// formType is the media type of the form that a SAML provider's page sends.
const formType = "application/x-www-form-urlencoded"

// providerSpec replaces names with IDs, reads metadata, validates, and seals the client's
// secret; without a new secret the old one is kept.
func (h *handlers) providerSpec(ctx context.Context, _ api.Meta, before *api.IdentityProvider, s api.IdentityProviderSpec) (api.IdentityProviderSpec, error) {
	var old api.IdentityProviderSpec
	s, err := h.samlSpec(s)
	if err != nil {
		return s, err
	}
	if before != nil {
		old = before.Spec
		if (s.SAML == nil) != (old.SAML == nil) {
			return s, api.Errorf(api.CodeInvalid, "the protocol of a provider cannot change").At("spec.saml").WithHint("create another provider")
		}
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
	s.ClientSecret, err = h.auth.Sealed(ctx, s.ClientSecret)
	if err != nil {
		return s, fmt.Errorf("encrypt the client secret of an identity provider: %w", err)
	}
	return s, nil
}

// samlSpec sets defaults of a SAML provider, and replaces its metadata with what is needed
// of it.
func (h *handlers) samlSpec(s api.IdentityProviderSpec) (api.IdentityProviderSpec, error) {
	if s.SAML == nil {
		return s, nil
	}
	c := s.SAML.WithDefaults(s.Redirects)
	s.SAML = &c
	if c.Metadata == "" {
		return s, nil
	}
	m, err := saml.ParseMetadata(c.Metadata, h.opts.Now())
	if err != nil {
		return s, api.Errorf(api.CodeInvalid, "%s", clipped(err)).At("spec.saml.metadata").WithHint("paste the XML document that the identity provider offers for service providers")
	}
	if s.Issuer != "" && s.Issuer != m.EntityID {
		return s, api.Errorf(api.CodeInvalid, "metadata is of entity %.256q, and the issuer is %.256q", m.EntityID, s.Issuer).At("spec.saml.metadata").WithHint("omit spec.issuer, or create another provider")
	}
	s.Issuer, s.SAML.SignOnURL, s.SAML.Certificates, s.SAML.Metadata = m.EntityID, m.SignOnURL, m.Certificates, ""
	return s, nil
}

// clipped returns the beginning of an error that repeats input.
func clipped(err error) string { return fmt.Sprintf("%.400s", err.Error()) }

// TestIdentityProvider returns what a sign-in with a provider would give.
func (h *handlers) TestIdentityProvider(ctx context.Context, r in[none, api.IdentityProviderTest]) (*api.IdentityProviderTestResult, error) {
	o, err := h.find(ctx, api.KindIdentityProvider, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	out, err := h.auth.TestIdentityProvider(ctx, o.Meta.ID, r.Body)
	if err != nil {
		return nil, fmt.Errorf("test identity provider %s: %w", o.Meta.ID, err)
	}
	return out, nil
}

// GetSAMLMetadata returns the metadata of this service for an identity provider.
func (h *handlers) GetSAMLMetadata(ctx context.Context, r in[none, none]) (*file, error) {
	out, err := h.auth.SAMLMetadata(ctx, r.ID)
	if err != nil {
		return nil, fmt.Errorf("get the metadata for identity provider %s: %w", r.ID, err)
	}
	return &file{"application/samlmetadata+xml", out}, nil
}

// ReceiveSAMLResponse is the assertion consumer service.
func (h *handlers) ReceiveSAMLResponse(ctx context.Context, r in[none, stream]) (*sentOn, error) {
	if err := mediaType(auth.Request(ctx), formType); err != nil {
		return nil, err
	}
	form, err := io.ReadAll(r.Body) // limited by guard
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, api.Errorf(api.CodeTooLarge, "the form is larger than %d bytes", maxBody)
	}
	if err != nil {
		return nil, err
	}
	to, err := h.auth.ReceiveSAMLResponse(ctx, r.ID, form)
	if err != nil {
		return nil, fmt.Errorf("receive a response of identity provider %s: %w", r.ID, err)
	}
	return &sentOn{to}, nil
}

// sentOn is a response that sends the browser to another address.
type sentOn struct{ to string }

func (s sentOn) write(w http.ResponseWriter) error {
	w.Header().Set("Location", s.to)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}
