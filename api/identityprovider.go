package api

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// ValidateIdentityProvider checks a spec whose grants contain IDs. An issuer on loopback may
// use plain HTTP, since nobody can intercept it there.
func ValidateIdentityProvider(m Meta, s IdentityProviderSpec) error {
	var bad faults
	if s.SAML != nil {
		validateSAML(s, &bad)
	} else {
		validateOIDC(s, &bad)
	}
	bad.note(text("spec.groupsClaim", s.GroupsClaim))
	if s.GroupsClaim != "" && (IdentityProvider{Meta: m, Spec: s}).UsersOrganization() == "" {
		bad.note(invalid("spec.organization", "is required with groupsClaim").WithHint("name the organization whose groups the provider decides"))
	}
	if len(s.Redirects) > 16 || len(s.Scopes) > 16 || len(s.Grants) > MaxGrants {
		bad.note(invalid("spec", "has too many redirects, scopes or grants"))
		return bad.err()
	}
	for i, r := range s.Redirects {
		if _, ok := secureURL(r); !ok {
			bad.note(invalid(fmt.Sprintf("spec.redirects[%d]", i), "%q is not a valid URL of a portal", clip(r)).WithHint("e.g. https://cloud.example/login/oidc"))
		}
	}
	for i, c := range s.Grants {
		at := fmt.Sprintf("spec.grants[%d].", i)
		if c.Claim == "" || c.Value == "" || len(c.Claim)+len(c.Value) > maxTextBytes {
			bad.note(invalid(at+"claim", "a claim and its value are required").WithHint("e.g. groups and gpu-users"))
		}
		bad.note(validateClaimedGrant(at+"grant.", m, c.Grant))
	}
	if m.Organization != "" {
		validateOwnedProvider(m, s, &bad)
	}
	return bad.err()
}

func validateOIDC(s IdentityProviderSpec, bad *faults) {
	if u, ok := secureURL(s.Issuer); !ok || u.RawQuery != "" {
		bad.note(invalid("spec.issuer", "%q is not a valid issuer", clip(s.Issuer)).WithHint("an https URL exactly as the provider uses it: the part before /.well-known/openid-configuration"))
	}
	if s.ClientID == "" || len(s.ClientID) > maxTextBytes || hasControl(s.ClientID) {
		bad.note(invalid("spec.clientId", "a client ID is required").WithHint("the provider issues it when Basalt is registered there"))
	}
}

// secureURL returns a URL without user and fragment whose requests nobody can read: https,
// or http on loopback.
func secureURL(s string) (*url.URL, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return nil, false
	}
	return u, u.Scheme == "https" || u.Scheme == "http" && onLoopback(u)
}

func onLoopback(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback()
}

// MayReturnTo reports whether a login may redirect the browser to this address: one of
// the provider's redirects, or a program on the same machine (RFC 8252, section 7.3).
func (s IdentityProviderSpec) MayReturnTo(to string) bool {
	if slices.Contains(s.Redirects, to) {
		return true
	}
	u, err := url.Parse(to)
	return err == nil && u.Scheme == "http" && onLoopback(u) && u.User == nil && u.RawQuery+u.Fragment == "" && len(to) < 256
}

// GrantsOf returns the grants for a token's claims, without duplicates.
func (s IdentityProviderSpec) GrantsOf(claims map[string]any) []Grant {
	var out []Grant
	for _, c := range s.Grants {
		if claimHolds(claims[c.Claim], c.Value) && !slices.Contains(out, c.Grant) {
			out = append(out, c.Grant)
		}
	}
	return out
}

func claimHolds(claim any, value string) bool {
	if list, ok := claim.([]any); ok {
		return slices.Contains(list, any(value))
	}
	text, ok := claim.(string)
	return ok && text == value
}

// ProviderTestOutcome is what a sign-in with an identity provider would do.
type ProviderTestOutcome string

// The outcomes of a test.
const (
	ProviderTestSignIn  ProviderTestOutcome = "sign-in"
	ProviderTestCreate  ProviderTestOutcome = "create"
	ProviderTestRefused ProviderTestOutcome = "refused"
)

// ExternalIdentityID returns the ID of the external identity of a subject at an issuer;
// each pair has exactly one.
func ExternalIdentityID(issuer, subject string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{issuer, subject}, "\x00")))
	return KindExternalIdentity.Info().IDPrefix + "-" + hex.EncodeToString(sum[:])
}

// ExternalIdentitySpec links a user to an account at an identity provider. It is only
// stored: the API does not show it.
type ExternalIdentitySpec struct {
	User     UserID `json:"user"`
	Provider string `json:"provider"` // the provider's ID
	Issuer   string `json:"issuer"`
	Subject  string `json:"subject"` // identifies the user at the issuer (OpenID Connect Core, section 2: sub)
}
