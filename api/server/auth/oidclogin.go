package auth

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/oidc"
	"github.com/basalt-gpu/basalt/api/server/pages"
)

// A login with an identity provider takes two requests, which may arrive at two nodes:
// the state that the second needs is a sealed text that the client keeps. It binds the
// response to the browser that began: the redirect's URL alone is not sufficient to
// continue. With SAML the provider's response arrives at a third node, which makes the
// code from it (samllogin.go).
//
//	begin ─► url, flow      browser ─► provider ─► redirect?state&code      finish(flow, state, code) ─► session
const flowLife = 10 * time.Minute

// flow is the content of the sealed text.
type flow struct {
	Use      string    `json:"use"` // distinguishes it from other sealed texts
	ID       string    `json:"id"`
	Provider string    `json:"provider"`
	Redirect string    `json:"redirect"`
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Until    time.Time `json:"until"`
}

// Uses of flows, by protocol.
const (
	flowUse     = "oidc-login"
	samlFlowUse = "saml-login"
)

// person is who an identity provider says has signed in.
type person struct {
	// Issuer and Subject identify the account at the provider.
	Issuer, Subject string
	Email, Name     string
	Claims          map[string]any
}

func errProvider() error {
	return api.Errorf(api.CodeUnauthenticated, "the identity provider did not confirm your identity").WithHint("sign in again; your administrator finds the reason at the identity provider")
}

// oidcClient returns the client of a provider for one login.
func (a *Authenticator) oidcClient(ctx context.Context, p api.IdentityProvider, redirect string) (oidc.Client, error) {
	c := oidc.Client{Issuer: p.Spec.Issuer, ID: p.Spec.ClientID, Redirect: redirect, Scopes: p.Spec.Scopes}
	if p.Spec.ClientSecret == "" {
		return c, nil
	}
	var err error
	c.Secret, err = a.unsealed(ctx, p.Spec.ClientSecret)
	return c, err
}

// BeginOIDCLogin returns the URL to which the browser is sent.
func (a *Authenticator) BeginOIDCLogin(ctx context.Context, in *api.OIDCBegin) (*api.OIDCFlow, error) {
	if a.opts.Secrets == nil {
		return nil, api.Errorf(api.CodeUnavailable, "sign-in with an identity provider is not available on this server")
	}
	if !a.flows.take(addressOf(Request(ctx)), a.opts.Now()) {
		return nil, api.Errorf(api.CodeRateLimited, "too many sign-ins at the same time").WithHint("try again in a second")
	}
	p, err := a.loginProvider(ctx, in)
	if err != nil {
		return nil, err
	}
	f := flow{Use: flowUse, ID: rand.Text(), Provider: p.Meta.ID, Redirect: in.Redirect, State: rand.Text(), Nonce: rand.Text(), Verifier: oidc.Verifier(),
		Until: a.opts.Now().UTC().Add(flowLife)}
	url, err := a.loginURL(ctx, p, &f)
	if err != nil {
		return nil, err
	}
	sealed, err := a.opts.Secrets.Seal(ctx, string(api.Encode(f)))
	if err != nil {
		return nil, fmt.Errorf("encrypt the flow of a login by identity provider %s: %w", p.Meta.ID, err)
	}
	return &api.OIDCFlow{URL: url, Flow: sealed}, nil
}

// loginURL returns the URL at the provider that begins a login.
func (a *Authenticator) loginURL(ctx context.Context, p api.IdentityProvider, f *flow) (string, error) {
	if p.Spec.SAML != nil {
		return a.samlURL(p, f)
	}
	c, err := a.oidcClient(ctx, p, f.Redirect)
	if err != nil {
		return "", err
	}
	url, err := a.discovered(p).URL(ctx, c, f.State, f.Nonce, f.Verifier)
	if err != nil {
		a.refusedBy(ctx, p, "", false, fmt.Errorf("contact the provider: %w", err))
		return "", api.Errorf(api.CodeUnavailable, "the identity provider is not reachable").WithHint("try again; your administrator finds the reason at the identity provider")
	}
	return url, nil
}

// openFlow opens a text that this cluster has sealed for this login and that has not
// expired.
func (a *Authenticator) openFlow(ctx context.Context, sealed, state string) (f flow, err error) {
	over := api.Errorf(api.CodeUnauthenticated, "this sign-in was not started here or has expired").WithHint("sign in again")
	if a.opts.Secrets == nil || sealed == "" || len(sealed) > 8<<10 {
		return f, over
	}
	plain, err := a.opts.Secrets.Open(ctx, sealed)
	if err != nil {
		return f, over
	}
	if json.Unmarshal([]byte(plain), &f) != nil || f.Use != flowUse && f.Use != samlFlowUse || f.State == "" || f.State != state || !a.opts.Now().Before(f.Until) {
		return f, over
	}
	return f, nil
}

// redeemedFlow returns the provider of a flow and the person that its code stands for. It
// may be called a few times for a flow: each asks the provider.
func (a *Authenticator) redeemedFlow(ctx context.Context, sealed, state, code string) (p api.IdentityProvider, f flow, who person, err error) {
	if sealed == "" || state == "" || code == "" {
		return p, f, who, api.Errorf(api.CodeInvalid, "flow, state and code are required").At("flow").WithHint("flow is returned when the sign-in is started; state and code are in the address to which the browser is redirected")
	}
	if f, err = a.openFlow(ctx, sealed, state); err != nil {
		return p, f, who, err
	}
	if !a.codes.take(f.ID, a.opts.Now().UTC()) {
		return p, f, who, api.Errorf(api.CodeRateLimited, "too many codes were tried for this sign-in").WithHint("sign in again")
	}
	if p, err = stored[api.IdentityProvider](ctx, a, api.KindIdentityProvider, f.Provider); err != nil {
		return p, f, who, err
	}
	who, err = a.redeemed(ctx, p, f, code)
	return p, f, who, err
}

// FinishOIDCLogin begins a session with the provider's code.
func (a *Authenticator) FinishOIDCLogin(ctx context.Context, in *api.OIDCFinish) (*api.Session, error) {
	now, address := a.opts.Now().UTC(), addressOf(Request(ctx))
	p, f, who, err := a.redeemedFlow(ctx, in.Flow, in.State, in.Code)
	if err != nil {
		return nil, err
	}
	u, err := a.externalUser(ctx, p, who)
	if err != nil {
		return nil, a.refusedPerson(ctx, p, who, err)
	}
	// A flow that has begun a session begins no other, whatever the provider answers.
	c := Credentials(u)
	if err := spend(&c, f.ID, f.Until, now, errUsedFlow()); err != nil {
		return nil, err
	}
	if err := a.joinClaimed(by(ctx, u), p, who.Claims, u); err != nil {
		return nil, a.refusedPerson(ctx, p, who, err)
	}
	g, err := a.Chosen(ctx, u, in.Organization, in.Project)
	if err != nil {
		return nil, a.refusedPerson(ctx, p, who, err)
	}
	s, err := a.begin(by(ctx, u), u, c, g, address, now, "oidc-login:"+f.ID)
	if code := api.CodeOf(err); err != nil && (code == api.CodeConflict || code == api.CodeExists) {
		return nil, errUsedFlow()
	}
	return &s, err
}

func errUsedFlow() *api.Error {
	return api.Errorf(api.CodeUnauthenticated, "this sign-in was already used, or another one took place at the same time").WithHint("sign in again")
}

// redeemed returns the person that a code stands for.
func (a *Authenticator) redeemed(ctx context.Context, p api.IdentityProvider, f flow, code string) (who person, err error) {
	if saml := p.Spec.SAML != nil; saml != (f.Use == samlFlowUse) {
		return who, errProvider()
	} else if saml {
		return a.samlPerson(ctx, p, f, code)
	}
	c, err := a.oidcClient(ctx, p, f.Redirect)
	if err != nil {
		return who, err
	}
	claims, err := a.discovered(p).Redeem(ctx, c, code, f.Nonce, f.Verifier)
	if err != nil {
		a.refusedBy(ctx, p, "", false, err)
		return who, errProvider()
	}
	email := api.Login(claims.Email)
	if !claims.EmailVerified || api.ValidateLogin(email) != nil {
		a.refusedBy(ctx, p, email, true, fmt.Errorf("e-mail address %.80q of subject %.80q is not valid or not verified (email_verified is %t, want true)", email, claims.Subject, claims.EmailVerified))
		return who, api.Errorf(api.CodeUnauthenticated, "the identity provider has not verified your e-mail address").WithHint("verify it there, and sign in again")
	}
	return person{Issuer: p.IdentityIssuer(), Subject: claims.Subject, Email: email, Name: claims.Name, Claims: claims.All}, nil
}

// recognized returns the user of the provider's issuer and subject, and whether they are
// already linked to it: a user that the organization's directory has provisioned is linked
// at its first sign-in. Without a user, its ID is empty. An e-mail address alone never
// identifies any other user. A user whom the provider may not sign in is refused.
func (a *Authenticator) recognized(ctx context.Context, p api.IdentityProvider, c person) (u api.User, linked bool, err error) {
	id := api.ExternalIdentityID(c.Issuer, c.Subject)
	o, err := a.opts.Store.Get(ctx, api.KindExternalIdentity, id)
	if err != nil && api.CodeOf(err) != api.CodeNotFound {
		return u, false, fmt.Errorf("read external identity %s: %w", id, err)
	}
	if err != nil {
		u, _, err = a.provisioned(ctx, p, c.Email)
	} else {
		var known api.ExternalIdentitySpec
		if err := json.Unmarshal(o.Spec, &known); err != nil {
			return u, true, fmt.Errorf("decode external identity %s: %w", o.Meta.ID, err)
		}
		linked = true
		if u, err = stored[api.User](ctx, a, api.KindUser, string(known.User)); err != nil {
			return u, linked, errNotWelcome()
		}
	}
	switch {
	case err != nil || u.Meta.ID == "":
	case u.Spec.Disabled:
		err = errNotWelcome()
	case !p.Admits(u):
		err = errBeyond()
	}
	return u, linked, err
}

func errNotWelcome() error {
	return api.Errorf(api.CodeForbidden, "you may not sign in here").WithHint("ask your administrator")
}

// externalUser returns the user of a person, with the grants of the current claims; a new
// user if the provider may create them.
func (a *Authenticator) externalUser(ctx context.Context, p api.IdentityProvider, c person) (api.User, error) {
	grants := p.Spec.GrantsOf(c.Claims)
	u, linked, err := a.recognized(ctx, p, c)
	switch {
	case err != nil:
		return u, err
	case u.Meta.ID == "":
		return a.newExternalUser(ctx, p, c, grants)
	case linked:
		return a.withGrants(ctx, u, p, grants)
	}
	link, err := a.linked(ctx, p, c, u)
	if err != nil {
		return u, err
	}
	return a.withGrants(ctx, u, p, grants, link...)
}

// linkOf returns the command that links a user to an account at a provider.
func linkOf(p api.IdentityProvider, c person, u api.User) api.Command {
	known := api.ExternalIdentitySpec{User: api.UserID(u.Meta.ID), Provider: p.Meta.ID, Issuer: c.Issuer, Subject: c.Subject}
	return api.Command{Op: api.OpPutSpec, Kind: api.KindExternalIdentity, ID: api.ExternalIdentityID(c.Issuer, c.Subject), Organization: u.Meta.Organization, Project: u.Meta.ID, Data: api.Encode(known)}
}

// grantsAfter returns a user's grants after a sign-in whose claims give these. A
// provisioned user keeps its grants if no claim of the provider gives any.
func grantsAfter(u api.User, p api.IdentityProvider, claimed []api.Grant) []api.Grant {
	if u.Spec.Scim != nil && len(p.Spec.Grants) == 0 {
		return u.Spec.Grants
	}
	return claimed
}

// withGrants writes the grants of the current claims, with further commands of the same
// batch.
func (a *Authenticator) withGrants(ctx context.Context, u api.User, p api.IdentityProvider, grants []api.Grant, with ...api.Command) (api.User, error) {
	grants = grantsAfter(u, p, grants)
	if slices.Equal(u.Spec.Grants, grants) && len(with) == 0 {
		return u, nil
	}
	u.Spec.Grants = grants
	if !p.Admits(u) {
		return u, errBeyond()
	}
	out, err := a.opts.Store.Apply(by(ctx, u), api.Batch{At: a.opts.Now().UTC(), Commands: append([]api.Command{{Op: api.OpPutSpec, Kind: api.KindUser, ID: u.Meta.ID,
		Expect: u.Meta.Revision, Labels: u.Meta.Labels, Data: api.Encode(u.Spec)}}, with...)})
	if err != nil {
		return u, fmt.Errorf("write the roles of user %s: %w", u.Meta.ID, err)
	}
	u.Meta.Revision = out[0].Meta.Revision
	return u, nil
}

// provisioned returns the user that the directory of the provider's organization has
// provisioned with an address, and whether there is one. Directory and provider belong to
// the same organization, so the address alone identifies its user; users whom an admin has
// created are never found.
func (a *Authenticator) provisioned(ctx context.Context, p api.IdentityProvider, email string) (api.User, bool, error) {
	if p.UsersOrganization() == "" {
		return api.User{}, false, nil
	}
	found, err := pages.All[api.User](ctx, a.opts.Store, api.ListQuery{Kind: api.KindUser, Organization: p.UsersOrganization(), Name: email})
	for _, u := range found {
		if u.Spec.Scim != nil && u.Meta.DeletedAt == nil {
			return u, true, err
		}
	}
	return api.User{}, false, err
}

// mayCreate returns an error if a provider may not create a user who has so many roles and
// groups by its claims.
func mayCreate(p api.IdentityProvider, given int) error {
	if p.Spec.Create && given > 0 {
		return nil
	}
	return api.Errorf(api.CodeForbidden, "the identity provider knows you, but you have no account here").WithHint("ask your administrator")
}

func (a *Authenticator) newExternalUser(ctx context.Context, p api.IdentityProvider, c person, grants []api.Grant) (api.User, error) {
	email := c.Email
	in, err := a.claimedGroups(ctx, p, c.Claims)
	if err == nil {
		err = mayCreate(p, len(grants)+len(in))
	}
	if err != nil {
		return api.User{}, err
	}
	user := api.RandomID(api.KindUser)
	u := api.User{Meta: api.Meta{ID: user, Name: email, Organization: p.UsersOrganization()}, Spec: api.UserSpec{DisplayName: c.Name, Grants: grants}}
	speak(ctx, &u)
	if api.ValidateUser(u.Spec) != nil { // the display name is not essential
		u.Spec.DisplayName = ""
	}
	if err := api.ValidateUser(u.Spec); err != nil {
		return u, err
	}
	if !p.Admits(u) {
		return u, errBeyond()
	}
	out, err := a.opts.Store.Apply(by(ctx, u), api.Batch{At: a.opts.Now().UTC(), Commands: []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindUser, ID: user, Name: email, Organization: u.Meta.Organization, Claims: claimedBy(p, email), Data: api.Encode(u.Spec)},
		linkOf(p, c, u),
	}})
	if code := api.CodeOf(err); err != nil && (code == api.CodeConflict || code == api.CodeExists) {
		return u, api.Errorf(api.CodeExists, "e-mail address %s is already used by another user", email).WithHint("sign in as before, or ask your administrator")
	}
	if err != nil {
		return u, fmt.Errorf("create the user of external identity %s: %w", api.ExternalIdentityID(c.Issuer, c.Subject), err)
	}
	return api.Decode[api.User](out[0])
}
