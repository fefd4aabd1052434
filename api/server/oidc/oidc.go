// Package oidc authenticates users with OpenID Connect providers: authorization code
// with PKCE and a nonce. go-oidc verifies the ID token: signature, issuer, audience,
// time.
package oidc

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	coreos "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/basalt-gpu/basalt/api/outbound"
)

const (
	askTime   = 10 * time.Second
	maxAnswer = 1 << 20
	// keep is how long a provider's metadata is cached.
	keep = time.Hour
	// maxKept limits the cached providers.
	maxKept = 64
)

// Client is a client of one provider.
type Client struct {
	Issuer, ID, Secret, Redirect string
	Scopes                       []string
}

// Claims are the claims of a verified ID token.
type Claims struct {
	Subject       string
	Email         string
	EmailVerified bool
	Name          string
	All           map[string]any
}

// ProviderCache caches the metadata and keys of providers.
type ProviderCache struct {
	now  func() time.Time
	http *http.Client

	mu    sync.Mutex // guards known
	known map[string]known
}

type known struct {
	provider *coreos.Provider
	until    time.Time
}

// New returns a ProviderCache. The provider chooses the addresses in its metadata, so urls
// defines which may be reached.
func New(now func() time.Time, urls outbound.Policy, log *slog.Logger) *ProviderCache {
	return &ProviderCache{now: now, known: map[string]known{}, http: outbound.NewClient(outbound.Options{
		Policy: urls, MaxBody: maxAnswer, Connect: askTime, Header: askTime, Silence: askTime, Total: askTime, Keep: true, Log: log})}
}

func (pc *ProviderCache) provider(ctx context.Context, issuer string) (*coreos.Provider, error) {
	pc.mu.Lock()
	k, ok := pc.known[issuer]
	pc.mu.Unlock()
	if ok && pc.now().Before(k.until) {
		return k.provider, nil
	}
	// Its keys are fetched with this context later, too.
	p, err := coreos.NewProvider(coreos.ClientContext(context.WithoutCancel(ctx), pc.http), issuer)
	if err == nil {
		err = checkPage(p.Endpoint().AuthURL, issuer)
	}
	if err != nil {
		return nil, err
	}
	pc.mu.Lock()
	defer pc.mu.Unlock()
	if len(pc.known) >= maxKept {
		clear(pc.known)
	}
	pc.known[issuer] = known{p, pc.now().Add(keep)}
	return p, nil
}

// checkPage refuses an address that browsers should not be sent to. The provider chooses it,
// and a page of the portal opens it: javascript: would run in that page. Only an issuer on
// loopback may use http.
func checkPage(address, issuer string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !strings.HasPrefix(issuer, "http:")) {
		return finding{fmt.Errorf("authorization endpoint %.256q is not an https URL", address)}
	}
	return nil
}

func (c Client) config(p *coreos.Provider) oauth2.Config {
	return oauth2.Config{ClientID: c.ID, ClientSecret: c.Secret, Endpoint: p.Endpoint(), RedirectURL: c.Redirect,
		Scopes: append([]string{coreos.ScopeOpenID, "email"}, c.Scopes...)}
}

// URL returns the URL to which the browser is sent. Errors are a *Failure.
func (pc *ProviderCache) URL(ctx context.Context, c Client, state, nonce, verifier string) (string, error) {
	p, err := pc.provider(ctx, c.Issuer)
	if err != nil {
		return "", failed(err)
	}
	conf := c.config(p)
	return conf.AuthCodeURL(state, coreos.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), nil
}

// Verifier returns a new PKCE verifier.
func Verifier() string { return oauth2.GenerateVerifier() }

// Redeem exchanges a code for the claims about the user it was issued to. Errors are a
// *Failure.
func (pc *ProviderCache) Redeem(ctx context.Context, c Client, code, nonce, verifier string) (Claims, error) {
	out, err := pc.redeem(ctx, c, code, nonce, verifier)
	return out, failed(err)
}

func (pc *ProviderCache) redeem(ctx context.Context, c Client, code, nonce, verifier string) (Claims, error) {
	var out Claims
	p, err := pc.provider(ctx, c.Issuer)
	if err != nil {
		return out, err
	}
	ctx = coreos.ClientContext(ctx, pc.http)
	conf := c.config(p)
	token, err := conf.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	if err != nil {
		return out, fmt.Errorf("redeem the code: %w", err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return out, finding{errors.New("the provider sent no ID token")}
	}
	id, err := p.Verifier(&coreos.Config{ClientID: c.ID, Now: pc.now}).Verify(ctx, raw)
	if err != nil {
		return out, tokenError(err)
	}
	var named struct {
		Email         string `json:"email"`
		EmailVerified bool   `json:"email_verified"`
		Name          string `json:"name"`
		Party         string `json:"azp"`
	}
	if err := errors.Join(id.Claims(&named), id.Claims(&out.All)); err != nil {
		return out, finding{fmt.Errorf("the ID token's claims: %w", err)}
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1 || nonce == "":
		return out, finding{errors.New("the ID token is of another login: its nonce is not that of this one")}
	case id.Subject == "" || len(id.Subject) > 255:
		return out, finding{errors.New("the ID token has no subject")}
	case len(id.Audience) > 1 && named.Party != c.ID, !slices.Contains(id.Audience, c.ID):
		return out, finding{fmt.Errorf("the ID token is for %.256q, want client %q", id.Audience, c.ID)}
	}
	out.Subject, out.Email, out.EmailVerified, out.Name = id.Subject, named.Email, named.EmailVerified, named.Name
	return out, nil
}
