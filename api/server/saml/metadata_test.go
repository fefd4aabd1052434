package saml_test

import (
	"encoding/base64"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	crewjam "github.com/crewjam/saml"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/saml"
	"github.com/basalt-gpu/basalt/api/server/saml/samltest"
)

func must[A, R any](t *testing.T, f func(A) (R, error), a A) R {
	t.Helper()
	out, err := f(a)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustXML(t *testing.T, v any) []byte { t.Helper(); return must(t, xml.Marshal, v) }

func decoded(t *testing.T, text string) []byte {
	t.Helper()
	return must(t, base64.StdEncoding.DecodeString, text)
}

func serviceOf(t *testing.T, text []byte) *crewjam.EntityDescriptor {
	t.Helper()
	var e crewjam.EntityDescriptor
	if err := xml.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	return &e
}

func TestParseMetadata(t *testing.T) {
	i := samltest.New(t)
	good := i.Metadata()
	m, err := saml.ParseMetadata("\ufeff"+strings.Replace(good, "<md:IDP", "<!-- ours --><md:IDP", 1), time.Now())
	if err != nil || m.EntityID != i.EntityID || m.SignOnURL != i.SignOnURL || len(m.Certificates) != 1 || m.Certificates[0] != i.PEM() {
		t.Errorf("ParseMetadata = %+v, error %v; want %s, %s and its certificate", m, err, i.EntityID, i.SignOnURL)
	}
	if _, err := saml.ParseMetadata(strings.Replace(good, "<md:IDPSSODescriptor", `<md:IDPSSODescriptor WantAuthnRequestsSigned="true"`, 1), time.Now()); err != nil { // as Keycloak
		t.Error(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"too large":  {good + strings.Repeat(" ", api.MaxSAMLMetadata), "bytes"},
		"DTD":        {strings.Replace(good, "<md:E", "<!DOCTYPE x><md:E", 1), "DTD"},
		"aggregate":  {`<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata"></md:EntitiesDescriptor>`, "several entities"},
		"no IdP":     {strings.ReplaceAll(good, "IDPSSO", "SPSSO"), "0 IDPSSODescriptor"},
		"SAML 1.1":   {strings.Replace(good, "SAML:2.0:protocol", "SAML:1.1:protocol", 1), "want SAML 2.0"},
		"expired":    {strings.Replace(good, "entityID", `validUntil="2020-01-01T00:00:00Z" entityID`, 1), "expired"},
		"POST only":  {strings.Replace(good, "HTTP-Redirect", "SOAP", 1), "HTTP-Redirect"},
		"no key":     {strings.Replace(good, `use="signing"`, `use="encryption"`, 1), "no signing certificate"},
		"broken key": {strings.Replace(good, "MII", "!!!", 1), "certificate"},
		"no XML":     {"hello", "text outside"},
		"empty":      {"", "XML"},
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := saml.ParseMetadata(c.text, time.Now()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("ParseMetadata = %+v, error %v; want an error with %q", m, err, c.want)
			}
		})
	}
}

// TestServiceMetadata checks the metadata that identity providers read.
func TestServiceMetadata(t *testing.T) {
	p := providerOf(samltest.New(t))
	text, err := p.ServiceMetadata(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	e := serviceOf(t, text)
	sp := e.SPSSODescriptors[0]
	if e.EntityID != base+"/v1/login/saml/corp/metadata" || len(sp.AssertionConsumerServices) != 1 || sp.AssertionConsumerServices[0].Location != base+"/v1/login/saml/corp/acs" ||
		sp.AssertionConsumerServices[0].Binding != crewjam.HTTPPostBinding || sp.WantAssertionsSigned == nil || !*sp.WantAssertionsSigned || len(sp.KeyDescriptors) != 0 || len(sp.SingleLogoutServices) != 0 {
		t.Errorf("metadata = %s, want one assertion consumer service and no keys", text)
	}
}

// FuzzParseMetadata checks that metadata that is accepted has what a sign-in needs.
func FuzzParseMetadata(f *testing.F) {
	f.Add(samltest.New(f).Metadata())
	f.Fuzz(func(t *testing.T, text string) {
		m, err := saml.ParseMetadata(text, time.Unix(1.9e9, 0))
		if err == nil && (m.SignOnURL == "" || len(m.Certificates) == 0) {
			t.Errorf("ParseMetadata(%q) = %+v, want an error", text, m)
		}
	})
}
