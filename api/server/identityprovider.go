package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
	"github.com/basalt-gpu/basalt/api/server/saml"
)

// formType is the media type of the form that a SAML provider's page sends.
const formType = "application/x-www-form-urlencoded"

// providerSpec replaces names with IDs, reads metadata, validates, and seals the client's
// secret; without a new secret the old one is kept.
func (h *handlers) providerSpec(ctx context.Context, m api.Meta, before *api.IdentityProvider, s api.IdentityProviderSpec) (api.IdentityProviderSpec, error) {
	var old api.IdentityProviderSpec
	if before == nil && !who(ctx).Reaches(m.Organization, "") {
		return s, api.Errorf(api.CodeForbidden, "you may not manage identity providers of this organization").At("meta.organization")
	}
	s, err := h.samlSpec(ctx, m, s)
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
	if s, err = h.namedInProvider(ctx, m, s); err != nil {
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

// namedInProvider replaces the names in a provider's spec with IDs, and validates it.
func (h *handlers) namedInProvider(ctx context.Context, m api.Meta, s api.IdentityProviderSpec) (api.IdentityProviderSpec, error) {
	s.Grants = slices.Clone(s.Grants)
	if len(s.Grants) > api.MaxGrants {
		return s, api.ValidateIdentityProvider(m, s)
	}
	var bad []error
	for i := range s.Grants {
		g := &s.Grants[i].Grant
		if g.Organization == "" && g.Role != api.RoleOperator {
			g.Organization = m.Organization
		}
		bad = append(bad, h.grantScope(ctx, g, fmt.Sprintf("spec.grants[%d].grant.", i)))
	}
	if s.Organization != "" {
		o, err := h.find(ctx, api.KindOrganization, s.Organization, "", "")
		bad = append(bad, at(err, "spec.organization"))
		if err == nil {
			s.Organization = o.Meta.ID
		}
	}
	return s, api.Join(append([]error{api.ValidateIdentityProvider(m, s)}, bad...)...)
}

// samlSpec sets defaults of a SAML provider, and replaces its metadata with what is needed
// of it.
func (h *handlers) samlSpec(ctx context.Context, m api.Meta, s api.IdentityProviderSpec) (api.IdentityProviderSpec, error) {
	if s.SAML == nil {
		return s, nil
	}
	c := s.SAML.WithDefaults(s.Redirects)
	s.SAML = &c
	if err := h.samlBase(ctx, m, s.SAML); err != nil {
		return s, err
	}
	if c.Metadata == "" {
		return s, nil
	}
	read, err := saml.ParseMetadata(c.Metadata, h.opts.Now())
	if err != nil {
		return s, api.Errorf(api.CodeInvalid, "%s", clipped(err)).At("spec.saml.metadata").WithHint("paste the XML document that the identity provider offers for service providers")
	}
	if s.Issuer != "" && s.Issuer != read.EntityID {
		return s, api.Errorf(api.CodeInvalid, "metadata is of entity %.256q, and the issuer is %.256q", read.EntityID, s.Issuer).At("spec.saml.metadata").WithHint("omit spec.issuer, or create another provider")
	}
	s.Issuer, s.SAML.SignOnURL, s.SAML.Certificates, s.SAML.Metadata = read.EntityID, read.SignOnURL, read.Certificates, ""
	return s, nil
}

// samlBase sets or checks the address of this service of a provider of an organization: that
// of a portal of the organization, by default the one that the request was sent to.
func (h *handlers) samlBase(ctx context.Context, m api.Meta, s *api.SAMLProvider) error {
	if m.Organization == "" {
		return nil
	}
	portals, err := h.auth.PortalsFor(ctx, m.Organization)
	if err != nil {
		return fmt.Errorf("find the portals of organization %s: %w", m.Organization, err)
	}
	here := api.HostName(auth.Request(ctx).Host)
	for _, portal := range portals {
		if s.BaseURL == "" && auth.HostOf(portal) == here {
			s.BaseURL = portal
		}
	}
	switch {
	case len(portals) == 0:
		return api.Errorf(api.CodeState, "the portal has no address").At("spec.saml.baseURL").WithHint("an operator sets portalURL in the mail settings, an https URL")
	case s.BaseURL == "":
		s.BaseURL = portals[0]
	case !slices.Contains(portals, s.BaseURL):
		return api.Errorf(api.CodeInvalid, "%.256q is not a portal of the organization", s.BaseURL).At("spec.saml.baseURL").WithHint("one of %s", strings.Join(portals, ", "))
	}
	return nil
}

// clipped returns the beginning of an error that repeats input.
func clipped(err error) string { return fmt.Sprintf("%.400s", err.Error()) }

// ownProviders returns the commands that delete the providers of an organization with it.
func (h *handlers) ownProviders(ctx context.Context, organization string) ([]api.Command, error) {
	var out []api.Command
	err := h.each(ctx, api.ListQuery{Kind: api.KindIdentityProvider, Organization: organization}, func(o api.Object) bool {
		out = append(out, api.Command{Op: api.OpDelete, Kind: o.Kind, ID: o.Meta.ID, Expect: o.Meta.Revision})
		return true
	})
	return out, err
}

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

// ListRefusedSignIns returns why sign-ins with a provider were refused lately, on any node.
func (h *handlers) ListRefusedSignIns(ctx context.Context, r in[none, none]) (*api.RefusedSignInList, error) {
	o, err := h.find(ctx, api.KindIdentityProvider, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	all := h.RefusedSignIns(o.Meta.ID)
	if h.opts.Refusals == nil {
		return &api.RefusedSignInList{Items: all}, nil
	}
	others, complete := h.opts.Refusals(ctx, o.Meta.ID)
	return &api.RefusedSignInList{Items: auth.MergeRefusals(h.opts.Now(), all, others), Incomplete: !complete}, nil
}

// RefusedSignIns returns why this node has refused sign-ins with a provider lately, for other
// nodes.
func (s *Server) RefusedSignIns(provider string) []api.RefusedSignIn {
	return s.auth.RefusedSignIns(provider)
}

// ListLoginProviders returns the names of the providers of operators or an organization.
func (h *handlers) ListLoginProviders(ctx context.Context, r in[api.ListLoginProvidersParams, none]) (*api.LoginProviders, error) {
	out, err := h.auth.ListLoginProviders(ctx, r.Params.Organization)
	if err != nil {
		return nil, fmt.Errorf("list the identity providers for a sign-in: %w", err)
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
