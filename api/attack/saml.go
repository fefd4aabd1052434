package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const samlIssuer = "https://id.example/saml"

// signer returns the certificate of a provider whose key is thrown away.
func signer() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})), err
}

// forgedSAML sends an assertion consumer service, without credentials, responses that are not
// signed, hostile documents, and states that name other addresses.
func (w *world) forgedSAML(ctx context.Context) error {
	certificate, err := signer()
	if err != nil {
		return err
	}
	o, err := w.make(ctx, w.op, "/v1/identity-providers", w.tag+"-"+word(), api.Meta{}, api.IdentityProviderSpec{Issuer: samlIssuer, Create: true,
		Grants: []api.ClaimGrant{{Claim: "groups", Value: "all", Grant: api.Grant{Role: api.RoleOperator}}},
		SAML:   &api.SAMLProvider{SignOnURL: samlIssuer, Certificates: []string{certificate}, BaseURL: "https://cloud.example", EmailDomains: []string{"example.com"}}})
	if err != nil {
		return err
	}
	const back = "http://127.0.0.1:1/callback"
	f, err := fetch[api.OIDCFlow](ctx, w.wire, "", http.MethodPost, "/v1/login/oidc", api.OIDCBegin{Provider: o.Meta.Name, Redirect: back})
	if err != nil {
		return errors.Join(err, w.drop(ctx, o))
	}
	u, err := url.Parse(f.URL)
	if err != nil {
		return err
	}
	acs := "/v1/login/saml/" + o.Meta.Name + "/acs"
	state := u.Query().Get("RelayState")
	random, _, _ := strings.Cut(state, ".")
	err = each([]string{state, "", random, random + ".https://" + elsewhere + "/", random + ".//" + elsewhere, random + ".http://127.0.0.1@" + elsewhere + "/", random + ".0", "0"}, func(relay string) error {
		return each(forgedResponses(acs), func(document string) error {
			form := url.Values{"RelayState": {relay}, "SAMLResponse": {base64.StdEncoding.EncodeToString([]byte(document))}}
			a, err := w.ask(ctx, "", http.MethodPost, acs, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
			to, parseErr := url.Parse(a.to)
			if err := errors.Join(err, parseErr); err != nil {
				return err
			}
			refused := a.status == http.StatusSeeOther && to.Hostname() == "127.0.0.1" && to.Query().Get("error") != "" && !to.Query().Has("code")
			if !refused && a.Code != api.CodeUnauthenticated {
				return fmt.Errorf("state %q, response %.80s: redirected to %q, %s", relay, document, a.to, a)
			}
			return nil
		})
	})
	return errors.Join(err, w.drop(ctx, o))
}

// forgedResponses returns documents that must not sign anybody in.
func forgedResponses(acs string) []string {
	at := time.Now().UTC().Format(time.RFC3339)
	good := `<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns="urn:oasis:names:tc:SAML:2.0:assertion" ID="r" Version="2.0" IssueInstant="` + at + `" Destination="https://cloud.example` + acs + `">` +
		`<samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status><Assertion ID="a" Version="2.0" IssueInstant="` + at + `"><Issuer>` + samlIssuer + `</Issuer>` +
		`<Subject><NameID Format="urn:oasis:names:tc:SAML:2.0:nameid-format:persistent">root</NameID></Subject></Assertion></samlp:Response>`
	entities := `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>`
	return []string{good, "", "<", entities + "<x>&c;</x>", `<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>`,
		strings.Repeat("<a>", 20000), "<a " + strings.Repeat(`b="" `, 20000) + "/>", strings.Repeat("<a/>", 20000)}
}
