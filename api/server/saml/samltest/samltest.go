// Package samltest is a SAML identity provider for tests: it makes responses that tests
// change before and after they are signed.
package samltest

import (
	"bytes"
	"compress/flate"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	crewjam "github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"
)

// IdP is an identity provider.
type IdP struct {
	EntityID, SignOnURL string
	Certificate         *x509.Certificate
	Key                 *rsa.PrivateKey
}

// New returns an identity provider with a new key, whose certificate is valid for a day.
func New(t testing.TB) *IdP {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "idp"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return &IdP{EntityID: "https://idp.example/entity", SignOnURL: "https://idp.example/sso", Certificate: c, Key: key}
}

// PEM returns the certificate in PEM form.
func (i *IdP) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate.Raw}))
}

// Metadata returns the provider's metadata.
func (i *IdP) Metadata() string {
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="%s">
  <md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">
    <md:KeyDescriptor use="signing"><ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data><ds:X509Certificate>%s</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>
    <md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="%s/post"/>
    <md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="%s"/>
  </md:IDPSSODescriptor>
</md:EntityDescriptor>
`, i.EntityID, base64.StdEncoding.EncodeToString(i.Certificate.Raw), i.SignOnURL, i.SignOnURL)
}

// Request is what a browser brings to the provider.
type Request struct {
	crewjam.AuthnRequest
	RelayState string
}

// Read decodes the request in a URL (HTTP-Redirect binding).
func Read(t testing.TB, address string) Request {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := base64.StdEncoding.DecodeString(u.Query().Get("SAMLRequest"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	r := Request{RelayState: u.Query().Get("RelayState")}
	if err := xml.Unmarshal(raw, &r.AuthnRequest); err != nil {
		t.Fatal(err)
	}
	return r
}

// Answer is the content of a response.
type Answer struct {
	RequestID, ACS, Audience string
	Issuer                   string // empty: that of the provider
	NameID, Format           string
	Attributes               map[string][]string
	Now                      time.Time
	Life                     time.Duration // 0: a minute
	// SignAssertion and SignResponse are what is signed, by the method of goxmldsig;
	// empty: RSA with SHA-256.
	SignAssertion, SignResponse bool
	Method                      string
	// Edit changes the response before it is signed.
	Edit func(response *etree.Element)
}

// To returns the usual answer to a request, with a signed assertion.
func To(r Request) Answer {
	return Answer{RequestID: r.ID, ACS: r.AssertionConsumerServiceURL, Audience: r.Issuer.Value, NameID: "u-1", Format: string(crewjam.PersistentNameIDFormat),
		Attributes: map[string][]string{"email": {"Ann@example.com"}, "name": {"Ann"}, "groups": {"staff", "gpu"}}, Now: time.Now(), SignAssertion: true}
}

// Element returns the signed response to an answer.
func (i *IdP) Element(t testing.TB, a Answer) *etree.Element {
	t.Helper()
	doc := etree.NewDocument()
	if err := doc.ReadFromString(i.text(a)); err != nil {
		t.Fatal(err)
	}
	root := doc.Root()
	if a.Edit != nil {
		a.Edit(root)
	}
	if old := root.SelectElement("Assertion"); a.SignAssertion && old != nil {
		signed := i.Sign(t, old, a.Method)
		root.InsertChildAt(old.Index(), signed)
		root.RemoveChild(old)
	}
	if a.SignResponse {
		root = i.Sign(t, root, a.Method)
	}
	return root
}

// Response returns the signed response to an answer as text.
func (i *IdP) Response(t testing.TB, a Answer) []byte {
	t.Helper()
	return Text(t, i.Element(t, a))
}

// Text returns an element as a document.
func Text(t testing.TB, root *etree.Element) []byte {
	t.Helper()
	doc := etree.NewDocument()
	doc.SetRoot(root.Copy())
	out, err := doc.WriteToBytes()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Form returns the form that a browser sends.
func Form(response []byte, relayState string) url.Values {
	return url.Values{"SAMLResponse": {base64.StdEncoding.EncodeToString(response)}, "RelayState": {relayState}}
}

// Sign returns a copy of an element with an enveloped signature.
func (i *IdP) Sign(t testing.TB, e *etree.Element, method string) *etree.Element {
	t.Helper()
	c, err := dsig.NewSigningContext(crypto.Signer(i.Key), [][]byte{i.Certificate.Raw})
	if err != nil {
		t.Fatal(err)
	}
	c.Canonicalizer = dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("")
	if method != "" {
		if err := c.SetSignatureMethod(method); err != nil {
			t.Fatal(err)
		}
	}
	out, err := c.SignEnveloped(e)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (i *IdP) text(a Answer) string {
	issuer, life := a.Issuer, a.Life
	if issuer == "" {
		issuer = i.EntityID
	}
	if life == 0 {
		life = time.Minute
	}
	at, until := a.Now.UTC().Format(time.RFC3339), a.Now.Add(life).UTC().Format(time.RFC3339)
	var attributes strings.Builder
	for _, name := range slices.Sorted(maps.Keys(a.Attributes)) {
		fmt.Fprintf(&attributes, `<saml:Attribute Name=%q>`, name)
		for _, v := range a.Attributes[name] {
			fmt.Fprintf(&attributes, `<saml:AttributeValue>%s</saml:AttributeValue>`, escaped(v))
		}
		attributes.WriteString(`</saml:Attribute>`)
	}
	return fmt.Sprintf(`<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="r%s" InResponseTo=%q Version="2.0" IssueInstant=%q Destination=%q>`+
		`<saml:Issuer>%s</saml:Issuer><samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>`+
		`<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="a%s" Version="2.0" IssueInstant=%q><saml:Issuer>%s</saml:Issuer>`+
		`<saml:Subject><saml:NameID Format=%q>%s</saml:NameID><saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData InResponseTo=%q Recipient=%q NotOnOrAfter=%q/></saml:SubjectConfirmation></saml:Subject>`+
		`<saml:Conditions NotBefore=%q NotOnOrAfter=%q><saml:AudienceRestriction><saml:Audience>%s</saml:Audience></saml:AudienceRestriction></saml:Conditions>`+
		`<saml:AuthnStatement AuthnInstant=%q><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>`+
		`<saml:AttributeStatement>%s</saml:AttributeStatement></saml:Assertion></samlp:Response>`,
		rand.Text(), a.RequestID, at, a.ACS, escaped(issuer), rand.Text(), at, escaped(issuer), a.Format, escaped(a.NameID), a.RequestID, a.ACS, until, at, until, escaped(a.Audience), at, attributes.String())
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer's writes do not fail
	return b.String()
}
