// Package saml authenticates users with SAML 2.0 identity providers, by the web browser
// SSO profile: the request by the HTTP-Redirect binding, the response by the HTTP-POST
// binding. crewjam/saml verifies signature, issuer, destination, recipient, audience, time
// and the request that is answered. Before it reads a response, Check refuses every
// document that has more than one way to be read: decision 82.
package saml

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"time"

	crewjam "github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/basalt-gpu/basalt/api"
)

// Limits of a response.
const (
	MaxResponse   = 256 << 10 // bytes, decoded
	maxNameID     = 256       // bytes (SAML 2.0 core, section 8.3.7)
	maxAttributes = 128
	maxValues     = 800  // of all attributes
	maxValue      = 1024 // bytes
)

// Provider is an identity provider, and this service as it knows it.
type Provider struct {
	Issuer   string // entity ID of the provider
	EntityID string // of this service
	ACSURL   string
	SAML     api.SAMLProvider
}

// Claims are what a verified assertion states about a user.
type Claims struct {
	Subject string // the NameID
	Email   string // not verified
	Name    string
	All     map[string]any // values of the attributes, each a list of strings
}

// RequestID returns the ID of the request that begins a sign-in. It depends on everything
// that the browser returns beside the signed response: the response names the ID, so the
// rest cannot be exchanged.
func RequestID(provider, redirect, relayState string) string {
	sum := sha256.Sum256([]byte("saml request\x00" + provider + "\x00" + redirect + "\x00" + relayState))
	return "id-" + hex.EncodeToString(sum[:])
}

// service returns the library's service provider, with the strictest of its options.
func (p Provider) service(now time.Time) (*crewjam.ServiceProvider, error) {
	acs, err := url.Parse(p.ACSURL)
	if err != nil {
		return nil, err
	}
	return &crewjam.ServiceProvider{
		EntityID: p.EntityID, AcsURL: *acs, IDPMetadata: p.metadata(),
		AuthnNameIDFormat:                nameIDFormats[p.SAML.NameIDFormat],
		AssertionConsumerServiceBindings: []string{crewjam.HTTPPostBinding},
		MetadataOmitValidUntil:           true,
		RejectUnknownConditions:          true,
		RejectSHA1Signatures:             true,
		LimitRelayStateLength:            true,
		Clock:                            dsig.NewFakeClockAt(now),
	}, nil
}

// metadata returns the provider's metadata in the form that the library reads.
func (p Provider) metadata() *crewjam.EntityDescriptor {
	var keys []crewjam.KeyDescriptor
	for _, text := range p.SAML.Certificates {
		c, err := api.SAMLCertificate(text)
		if err != nil {
			continue // validated when it was stored
		}
		keys = append(keys, crewjam.KeyDescriptor{Use: "signing", KeyInfo: crewjam.KeyInfo{X509Data: crewjam.X509Data{
			X509Certificates: []crewjam.X509Certificate{{Data: base64.StdEncoding.EncodeToString(c.Raw)}}}}})
	}
	return &crewjam.EntityDescriptor{EntityID: p.Issuer, IDPSSODescriptors: []crewjam.IDPSSODescriptor{{
		SSODescriptor:        crewjam.SSODescriptor{RoleDescriptor: crewjam.RoleDescriptor{KeyDescriptors: keys}},
		SingleSignOnServices: []crewjam.Endpoint{{Binding: crewjam.HTTPRedirectBinding, Location: p.SAML.SignOnURL}}}}}
}

var nameIDFormats = map[api.NameIDFormat]crewjam.NameIDFormat{
	api.NameIDPersistent: crewjam.PersistentNameIDFormat,
	api.NameIDEmail:      crewjam.EmailAddressNameIDFormat,
}

// URL returns the URL to which the browser is sent, with a request of this ID. The relay
// state has at most 80 bytes.
func (p Provider) URL(now time.Time, requestID, relayState string) (string, error) {
	sp, err := p.service(now)
	if err != nil {
		return "", err
	}
	r, err := sp.MakeAuthenticationRequest(p.SAML.SignOnURL, crewjam.HTTPRedirectBinding, crewjam.HTTPPostBinding)
	if err != nil {
		return "", err
	}
	r.ID = requestID
	u, err := r.Redirect(relayState, sp)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// Verify returns the claims of a response to the request with this ID. The error is not
// for the person who signs in: it may contain parts of the response.
func (p Provider) Verify(now time.Time, response []byte, requestID string) (Claims, error) {
	if err := Check(response); err != nil {
		return Claims{}, err
	}
	sp, err := p.service(now)
	if err != nil {
		return Claims{}, err
	}
	a, err := sp.ParseXMLResponse(response, []string{requestID}, sp.AcsURL)
	var private *crewjam.InvalidResponseError
	if errors.As(err, &private) {
		return Claims{}, private.PrivateErr
	}
	if err != nil {
		return Claims{}, err
	}
	c, err := p.claims(a)
	if err != nil {
		return Claims{}, &Unusable{err}
	}
	return c, nil
}

// Unusable is the error of an assertion that the provider has signed, and that says something
// else about its subject than is needed.
type Unusable struct{ err error }

func (u *Unusable) Error() string { return u.err.Error() }
func (u *Unusable) Unwrap() error { return u.err }

// claims reads a verified assertion.
func (p Provider) claims(a *crewjam.Assertion) (Claims, error) {
	id, want := a.Subject.NameID, nameIDFormats[p.SAML.NameIDFormat]
	switch {
	case want == "" || id.Format != string(want):
		return Claims{}, fmt.Errorf("NameID has format %q, want %q: change it at the provider, or spec.saml.nameIdFormat", id.Format, want)
	case id.Value == "" || len(id.Value) > maxNameID || unclean(id.Value):
		return Claims{}, fmt.Errorf("NameID %.64q has %d bytes, want 1 to %d without spaces around it and control characters", id.Value, len(id.Value), maxNameID)
	case id.NameQualifier != "" && id.NameQualifier != p.Issuer:
		return Claims{}, fmt.Errorf("NameID is qualified by %.64q, want issuer %q", id.NameQualifier, p.Issuer)
	case id.SPNameQualifier != "" && id.SPNameQualifier != p.EntityID:
		return Claims{}, fmt.Errorf("NameID is for %.64q, want %q", id.SPNameQualifier, p.EntityID)
	}
	all, err := attributes(a)
	if err != nil {
		return Claims{}, err
	}
	c := Claims{Subject: id.Value, Email: id.Value, All: all}
	if p.SAML.EmailAttribute != "" {
		if c.Email, err = single(all, p.SAML.EmailAttribute); err != nil {
			return Claims{}, err
		}
	}
	if p.SAML.NameAttribute != "" {
		c.Name, _ = single(all, p.SAML.NameAttribute) // not essential
	}
	return c, nil
}

// attributes returns the values of an assertion's attributes by their names.
func attributes(a *crewjam.Assertion) (map[string]any, error) {
	out, values := map[string]any{}, 0
	for _, s := range a.AttributeStatements {
		for _, attribute := range s.Attributes {
			list, _ := out[attribute.Name].([]any)
			for _, v := range attribute.Values {
				if values++; values > maxValues || len(v.Value) > maxValue {
					return nil, fmt.Errorf("attribute %.64q: assertion has more than %d values, or one of more than %d bytes", attribute.Name, maxValues, maxValue)
				}
				if v.NameID == nil && !v.Nil && !unclean(v.Value) {
					list = append(list, v.Value)
				}
			}
			if out[attribute.Name] = list; len(out) > maxAttributes {
				return nil, fmt.Errorf("assertion has more than %d attributes", maxAttributes)
			}
		}
	}
	return out, nil
}

// single returns the value of an attribute that must have exactly one.
func single(all map[string]any, name string) (string, error) {
	list, _ := all[name].([]any)
	if len(list) != 1 {
		return "", fmt.Errorf("attribute %q has %d values, want one; attributes of the assertion: %.256q", name, len(list), names(all))
	}
	text, _ := list[0].(string)
	return text, nil
}
