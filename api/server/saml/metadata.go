package saml

import (
	"encoding/base64"
	"encoding/pem"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	crewjam "github.com/crewjam/saml"

	"github.com/basalt-gpu/basalt/api"
)

const protocolSupport = "urn:oasis:names:tc:SAML:2.0:protocol"

// Metadata is what this service needs of an identity provider's metadata.
type Metadata struct {
	EntityID, SignOnURL string
	Certificates        []string // PEM
}

// ParseMetadata reads the metadata of one identity provider. Its signature is not
// verified: whoever passes it must have it from a source that they trust. Requests are not
// signed even if it wants that: Keycloak always says so, and decides by client.
func ParseMetadata(text string, now time.Time) (Metadata, error) {
	var out Metadata
	if len(text) > api.MaxSAMLMetadata {
		return out, fmt.Errorf("metadata has %d bytes, want at most %d", len(text), api.MaxSAMLMetadata)
	}
	root, err := scan([]byte(strings.TrimPrefix(text, "\ufeff")), true, func(element) error { return nil })
	if err != nil {
		return out, err
	}
	if root.Local == "EntitiesDescriptor" {
		return out, errors.New("metadata describes several entities, want the EntityDescriptor of one identity provider")
	}
	var e crewjam.EntityDescriptor
	if err := xml.Unmarshal([]byte(strings.TrimPrefix(text, "\ufeff")), &e); err != nil {
		return out, fmt.Errorf("decode metadata: %w", err)
	}
	if len(e.IDPSSODescriptors) != 1 {
		return out, fmt.Errorf("metadata has %d IDPSSODescriptor elements, want one: it must be the metadata of an identity provider", len(e.IDPSSODescriptors))
	}
	idp := e.IDPSSODescriptors[0]
	switch {
	case !slices.Contains(strings.Fields(idp.ProtocolSupportEnumeration), protocolSupport):
		return out, fmt.Errorf("the identity provider supports %.128q, want SAML 2.0", idp.ProtocolSupportEnumeration)
	case !e.ValidUntil.IsZero() && !now.Before(e.ValidUntil), idp.ValidUntil != nil && !now.Before(*idp.ValidUntil):
		return out, errors.New("metadata has expired (validUntil): download it again")
	}
	out.EntityID = e.EntityID
	for _, s := range idp.SingleSignOnServices {
		if s.Binding == crewjam.HTTPRedirectBinding && out.SignOnURL == "" {
			out.SignOnURL = s.Location
		}
	}
	if out.SignOnURL == "" {
		return out, errors.New("the identity provider has no SingleSignOnService with HTTP-Redirect binding")
	}
	out.Certificates, err = signingCertificates(idp.KeyDescriptors)
	return out, err
}

// signingCertificates returns the certificates that an identity provider signs with.
func signingCertificates(keys []crewjam.KeyDescriptor) ([]string, error) {
	var out []string
	for _, k := range keys {
		if k.Use != "" && k.Use != "signing" {
			continue
		}
		for _, c := range k.KeyInfo.X509Data.X509Certificates {
			raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(c.Data), ""))
			if err != nil {
				return nil, fmt.Errorf("decode a certificate of the metadata: %w", err)
			}
			text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("metadata has no signing certificate")
	}
	return out, nil
}

// ServiceMetadata returns the metadata of this service for the provider.
func (p Provider) ServiceMetadata(now time.Time) ([]byte, error) {
	sp, err := p.service(now)
	if err != nil {
		return nil, err
	}
	out, err := xml.MarshalIndent(sp.Metadata(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the metadata of entity %s: %w", p.EntityID, err)
	}
	return append([]byte(xml.Header), append(out, '\n')...), nil
}

// unclean reports whether a value has space around it or control characters.
func unclean(s string) bool {
	return strings.TrimSpace(s) != s || strings.ContainsFunc(s, unicode.IsControl)
}

func names(all map[string]any) string { return strings.Join(slices.Sorted(maps.Keys(all)), " ") }
