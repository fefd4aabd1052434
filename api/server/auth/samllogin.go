package auth

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/saml"
)

// A SAML provider posts its response to the assertion consumer service, from another site:
// browsers send no cookies and no stored texts with it. The service verifies the response
// and redirects the browser to the page or program that began the login, with a sealed code
// that contains the claims. Only the browser with the flow can use the code, once; the
// response answers the request of that flow, since the request's ID is derived from the
// relay state, which is the flow's state.
//
//	begin ─► url, flow      browser ─► provider ─► acs ─► redirect?state&code      finish(flow, state, code) ─► session
const (
	samlCodeLife = 2 * time.Minute
	samlCodeUse  = "saml-code"
	// maxSAMLCode limits a code, which is a part of a URL; reverse proxies limit those to
	// 8 KiB.
	maxSAMLCode = 6 << 10
	// maxSAMLForm limits the form of a response, which is in base64 and escaped.
	maxSAMLForm = saml.MaxResponse/3*4*3/2 + 4<<10
)

// samlCode is the content of the sealed code.
type samlCode struct {
	Use      string         `json:"use"` // distinguishes it from other sealed texts
	Provider string         `json:"provider"`
	State    string         `json:"state"`
	Subject  string         `json:"subject"`
	Email    string         `json:"email"`
	Name     string         `json:"name,omitempty"`
	Claims   map[string]any `json:"claims,omitempty"` // those that decide grants and groups
	Until    time.Time      `json:"until"`
}

func errSAMLOver() *api.Error {
	return api.Errorf(api.CodeUnauthenticated, "this response does not belong to a sign-in that was started here").WithHint("sign in again from the sign-in page: responses that were not requested are not accepted")
}

// samlProvider returns a provider as package saml needs it.
func samlProvider(p api.IdentityProvider) saml.Provider {
	s := *p.Spec.SAML
	return saml.Provider{Issuer: p.Spec.Issuer, EntityID: s.EntityID(p.AddressName()), ACSURL: s.ACSURL(p.AddressName()), SAML: s}
}

// relayState returns a new state of a login. It contains which of the provider's redirects
// the browser returns to, or the address on loopback: the assertion consumer service has
// nothing else to learn it from. SAML permits 80 bytes (bindings, section 3.4.3).
func relayState(p api.IdentityProviderSpec, redirect string) string {
	for i, r := range p.Redirects {
		if r == redirect {
			return rand.Text() + "." + strconv.Itoa(i)
		}
	}
	return rand.Text() + "." + redirect
}

// redirectIn returns the redirect of a relay state; empty if the provider does not allow
// it.
func redirectIn(p api.IdentityProviderSpec, state string) string {
	_, to, _ := strings.Cut(state, ".")
	if i, err := strconv.Atoi(to); err == nil && i >= 0 && i < len(p.Redirects) {
		return p.Redirects[i]
	}
	if !p.MayReturnTo(to) {
		return ""
	}
	return to
}

// samlURL returns the URL that begins a login, and sets the flow's state.
func (a *Authenticator) samlURL(p api.IdentityProvider, f *flow) (string, error) {
	f.Use, f.State, f.Nonce, f.Verifier = samlFlowUse, relayState(p.Spec, f.Redirect), "", ""
	if len(f.State) > 80 {
		return "", api.Errorf(api.CodeInvalid, "the address to return to is too long for SAML").At("redirect").WithHint("http://127.0.0.1:PORT/callback")
	}
	u, err := samlProvider(p).URL(a.opts.Now(), saml.RequestID(p.Meta.ID, f.Redirect, f.State), f.State)
	if err != nil {
		return "", fmt.Errorf("make a request to identity provider %s: %w", p.Meta.ID, err)
	}
	return u, nil
}

// samlNamed returns the SAML provider whose addresses contain a name.
func (a *Authenticator) samlNamed(ctx context.Context, name string) (api.IdentityProvider, error) {
	p, ok, err := a.addressed(ctx, name)
	if err == nil && (!ok || p.Spec.SAML == nil) {
		err = api.Errorf(api.CodeNotFound, "identity provider %.64q does not exist, or does not use SAML", name).WithHint("the address contains the provider's name, which may have changed, or its ID if it belongs to an organization")
	}
	return p, err
}

// SAMLMetadata returns the metadata of this service for the provider whose addresses contain
// a name.
func (a *Authenticator) SAMLMetadata(ctx context.Context, name string) ([]byte, error) {
	p, err := a.samlNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	out, err := samlProvider(p).ServiceMetadata(a.opts.Now())
	if err != nil {
		return nil, fmt.Errorf("make the metadata for identity provider %s: %w", p.Meta.ID, err)
	}
	return out, nil
}

// ReceiveSAMLResponse returns the address to which the browser is redirected after the
// provider whose addresses contain a name has sent this form.
func (a *Authenticator) ReceiveSAMLResponse(ctx context.Context, name string, form []byte) (string, error) {
	if a.opts.Secrets == nil {
		return "", api.Errorf(api.CodeUnavailable, "sign-in with an identity provider is not available on this server")
	}
	if !a.flows.take(addressOf(Request(ctx)), a.opts.Now()) {
		return "", api.Errorf(api.CodeRateLimited, "too many sign-ins at the same time").WithHint("try again in a second")
	}
	state, response, err := samlForm(form)
	if err != nil {
		return "", err
	}
	p, err := a.samlNamed(ctx, name)
	if err != nil {
		return "", err
	}
	to := redirectIn(p.Spec, state)
	if to == "" {
		return "", errSAMLOver()
	}
	back := url.Values{"state": {state}}
	claims, err := samlProvider(p).Verify(a.opts.Now(), response, saml.RequestID(p.Meta.ID, to, state))
	var unusable *saml.Unusable
	confirmed := err == nil || errors.As(err, &unusable)
	if err == nil {
		var code string
		if code, err = a.samlSealed(ctx, p, state, claims); err == nil {
			back.Set("code", code)
		}
	}
	if err != nil {
		a.refusedBy(ctx, p, api.Login(claims.Email), confirmed, err)
		back.Set("error", "access_denied")
	}
	return withQuery(to, back), nil
}

// withQuery adds parameters to a redirect, which may have others.
func withQuery(to string, more url.Values) string {
	separator := "?"
	if strings.Contains(to, "?") {
		separator = "&"
	}
	return to + separator + more.Encode()
}

// samlForm returns the relay state and the response in a form.
func samlForm(form []byte) (state string, response []byte, err error) {
	if len(form) > maxSAMLForm {
		return "", nil, api.Errorf(api.CodeTooLarge, "the form is larger than %d bytes", maxSAMLForm)
	}
	values, err := url.ParseQuery(string(form))
	if err != nil || len(values["SAMLResponse"]) != 1 || len(values["RelayState"]) > 1 {
		return "", nil, api.Errorf(api.CodeInvalid, "the form has no SAMLResponse, or several").At("SAMLResponse").WithHint("the provider must use the HTTP-POST binding")
	}
	response, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(values.Get("SAMLResponse")), ""))
	if err != nil {
		return "", nil, api.Errorf(api.CodeInvalid, "SAMLResponse is not in base64").At("SAMLResponse")
	}
	return values.Get("RelayState"), response, nil
}

// samlSealed returns the code of a verified response.
func (a *Authenticator) samlSealed(ctx context.Context, p api.IdentityProvider, state string, c saml.Claims) (string, error) {
	email := api.Login(c.Email)
	if api.ValidateLogin(email) != nil || !p.Spec.SAML.Confirms(email) {
		return "", fmt.Errorf("e-mail address %.80q is not valid or not in a domain of the provider, want one of %q", email, p.Spec.SAML.EmailDomains)
	}
	if p.Spec.SAML.NameIDFormat == api.NameIDEmail {
		c.Subject = strings.ToLower(c.Subject)
	}
	claims, err := a.relevant(ctx, p, c.All)
	if err != nil {
		return "", err
	}
	code, err := a.opts.Secrets.Seal(ctx, string(api.Encode(samlCode{Use: samlCodeUse, Provider: p.Meta.ID, State: state, Subject: c.Subject, Email: email, Name: c.Name, Claims: claims,
		Until: a.opts.Now().UTC().Add(samlCodeLife)})))
	if err != nil {
		return "", fmt.Errorf("encrypt the code of a login by identity provider %s: %w", p.Meta.ID, err)
	}
	if len(code) > maxSAMLCode {
		return "", fmt.Errorf("the attributes of %s that give grants or groups exceed %d bytes when encrypted, want at most %d: use fewer groups", email, len(code), maxSAMLCode)
	}
	return code, nil
}

// relevant returns the values of claims that give a grant, or make their subject a member
// of a group.
func (a *Authenticator) relevant(ctx context.Context, p api.IdentityProvider, all map[string]any) (map[string]any, error) {
	groups, err := a.groupsDecidedBy(ctx, p)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for name, values := range all {
		list, _ := values.([]any)
		var kept []any
		for _, v := range list {
			one := map[string]any{name: v}
			matters := len(p.Spec.GrantsOf(one)) > 0
			for _, g := range groups {
				matters = matters || g.ClaimedBy(p.Spec.GroupsClaim, one)
			}
			if matters {
				kept = append(kept, v)
			}
		}
		if len(kept) > 0 {
			out[name] = kept
		}
	}
	return out, nil
}

// samlPerson opens a code that the assertion consumer service has made for this flow.
func (a *Authenticator) samlPerson(ctx context.Context, p api.IdentityProvider, f flow, code string) (who person, err error) {
	var c samlCode
	plain, err := "", errors.New("too long")
	if len(code) <= maxSAMLCode {
		plain, err = a.opts.Secrets.Open(ctx, code)
	}
	if err != nil || json.Unmarshal([]byte(plain), &c) != nil || c.Use != samlCodeUse || c.Provider != p.Meta.ID || c.State != f.State || c.Subject == "" || !a.opts.Now().Before(c.Until) {
		a.refusedBy(ctx, p, "", false, fmt.Errorf("the code of the response is of another sign-in, or older than %s", samlCodeLife))
		return who, errProvider()
	}
	return person{Issuer: p.IdentityIssuer(), Subject: c.Subject, Email: c.Email, Name: c.Name, Claims: c.Claims}, nil
}
