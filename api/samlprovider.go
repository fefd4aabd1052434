package api

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// NameIDFormat is what identifies a user at a SAML identity provider.
type NameIDFormat string

// The formats of a NameID (SAML 2.0 core, section 8.3). Others are not supported: a
// transient one changes with each sign-in, and an unspecified one may be used again for
// somebody else.
const (
	NameIDPersistent NameIDFormat = "persistent"
	NameIDEmail      NameIDFormat = "emailAddress"
)

// Limits of a SAML identity provider.
const (
	MaxSAMLMetadata      = 256 << 10 // bytes
	maxSAMLCertificates  = 8
	maxSAMLCertificate   = 8 << 10 // bytes, PEM
	maxSAMLEmailDomains  = 16
	maxEntityID          = 1024 // bytes (SAML 2.0 core, section 8.3.6)
	minSAMLKeyBits       = 2048 // RSA
	defaultSAMLEmailName = "email"
)

// domainPattern matches the domain of an e-mail address in lower case.
var domainPattern = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// WithDefaults returns the settings with defaults for those that are empty; redirects are
// the provider's.
func (s SAMLProvider) WithDefaults(redirects []string) SAMLProvider {
	if s.NameIDFormat == "" {
		s.NameIDFormat = NameIDPersistent
	}
	if s.EmailAttribute == "" && s.NameIDFormat == NameIDPersistent {
		s.EmailAttribute = defaultSAMLEmailName
	}
	if s.BaseURL == "" && len(redirects) > 0 {
		if u, ok := secureURL(redirects[0]); ok {
			s.BaseURL = u.Scheme + "://" + u.Host
		}
	}
	s.EmailDomains = slices.Clone(s.EmailDomains)
	for i, d := range s.EmailDomains {
		s.EmailDomains[i] = strings.ToLower(d)
	}
	return s
}

// EntityID returns the entity ID of this service for a provider with this name: the
// address of its metadata.
func (s SAMLProvider) EntityID(name string) string {
	return s.BaseURL + "/v1/login/saml/" + name + "/metadata"
}

// ACSURL returns the address to which a provider with this name sends its responses.
func (s SAMLProvider) ACSURL(name string) string {
	return s.BaseURL + "/v1/login/saml/" + name + "/acs"
}

// Confirms reports whether the provider is responsible for the domain of an e-mail address
// in lower case.
func (s SAMLProvider) Confirms(email string) bool {
	_, domain, ok := strings.Cut(email, "@")
	return ok && slices.Contains(s.EmailDomains, domain)
}

func validateSAML(p IdentityProviderSpec, bad *faults) {
	s := *p.SAML
	if p.Issuer == "" || len(p.Issuer) > maxEntityID || hasControl(p.Issuer) {
		bad.note(invalid("spec.issuer", "the provider's entity ID must have 1 to %d bytes and no control characters", maxEntityID).WithHint("it is in the provider's metadata: set spec.saml.metadata"))
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"spec.clientId", p.ClientID != ""}, {"spec.clientSecret", p.ClientSecret != ""}, {"spec.scopes", len(p.Scopes) > 0}} {
		if f.set {
			bad.note(invalid(f.name, "is for OpenID Connect only").WithHint("omit it, or omit spec.saml"))
		}
	}
	if _, ok := secureURL(s.SignOnURL); !ok || len(s.SignOnURL) > maxEntityID {
		bad.note(invalid("spec.saml.signOnURL", "%q is not a valid address of the provider", clip(s.SignOnURL)).WithHint("the https URL of its single sign-on service; it is in the provider's metadata: set spec.saml.metadata"))
	}
	if u, ok := secureURL(s.BaseURL); !ok || u.Path+u.RawQuery != "" || len(s.BaseURL) > maxTextBytes {
		bad.note(invalid("spec.saml.baseURL", "%q is not a valid address of this service", clip(s.BaseURL)).WithHint("without a path, e.g. https://cloud.example; or set spec.redirects, from which it is taken"))
	}
	bad.note(oneOf("spec.saml.nameIdFormat", s.NameIDFormat, NameIDPersistent, NameIDEmail))
	bad.note(text("spec.saml.emailAttribute", s.EmailAttribute))
	bad.note(text("spec.saml.nameAttribute", s.NameAttribute))
	validateEmailDomains(s.EmailDomains, bad)
	if n := len(s.Certificates); n == 0 || n > maxSAMLCertificates {
		bad.note(invalid("spec.saml.certificates", "has %d certificates, want 1 to %d", n, maxSAMLCertificates).WithHint("they are in the provider's metadata: set spec.saml.metadata"))
		return
	}
	for i, c := range s.Certificates {
		if _, err := SAMLCertificate(c); err != nil {
			bad.note(invalid(fmt.Sprintf("spec.saml.certificates[%d]", i), "%s", err))
		}
	}
}

func validateEmailDomains(domains []string, bad *faults) {
	if n := len(domains); n == 0 || n > maxSAMLEmailDomains {
		bad.note(invalid("spec.saml.emailDomains", "has %d domains, want 1 to %d", n, maxSAMLEmailDomains).WithHint("the domains of the users' e-mail addresses, e.g. example.com"))
		return
	}
	for i, d := range domains {
		if len(d) > 253 || !domainPattern.MatchString(d) {
			bad.note(invalid(fmt.Sprintf("spec.saml.emailDomains[%d]", i), "%q is not a domain", clip(d)).WithHint("e.g. example.com"))
		}
	}
}

// SAMLCertificate decodes a certificate in PEM form whose key is strong enough to verify
// the provider's signatures.
func SAMLCertificate(text string) (*x509.Certificate, error) {
	if len(text) > maxSAMLCertificate {
		return nil, fmt.Errorf("certificate has %d bytes, want at most %d", len(text), maxSAMLCertificate)
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" || strings.TrimSpace(string(rest)) != "" {
		return nil, fmt.Errorf("is not one certificate in PEM form")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("decode certificate: %w", err)
	}
	switch key := c.PublicKey.(type) {
	case *ecdsa.PublicKey:
		return c, nil
	case *rsa.PublicKey:
		if n := key.N.BitLen(); n < minSAMLKeyBits {
			return nil, fmt.Errorf("certificate has an RSA key of %d bits, want at least %d", n, minSAMLKeyBits)
		}
		return c, nil
	}
	return nil, fmt.Errorf("certificate has a key of type %T, want RSA or ECDSA", c.PublicKey)
}
