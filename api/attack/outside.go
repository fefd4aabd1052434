package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
)

// webhookHosts are fewer than those for images, since an organization has at most 16
// webhooks; both use the same dialer.
var webhookHosts = []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"}

func (w *world) webhookTries() []try {
	var all []try
	for _, host := range webhookHosts {
		all = append(all, try{"A2 a webhook at " + host, "not reached, and one text for open and closed ports", func(ctx context.Context) error {
			return w.insideWebhook(ctx, host)
		}})
	}
	return append(all,
		try{"A2 a webhook that redirects inside", "not followed", w.redirectedWebhook},
		try{"A1 a flood of events at a webhook that never answers", "another tenant's webhook hears its own at once, and loses none", w.floodedWebhooks})
}

// tested creates a webhook, sends it a test event, and returns its reported error.
func (w *world) tested(ctx context.Context, at string) (said string, err error) {
	o, err := w.make(ctx, w.admin, "/v1/webhooks", w.tag+"-"+word(), api.Meta{}, api.WebhookSpec{URL: at, Events: []string{api.EventTest}})
	if err != nil {
		return "", err
	}
	if err := w.raise(ctx, w.admin, o); err != nil {
		return "", err
	}
	err = within(ctx, 30*time.Second, "an attempt to deliver", func() (bool, error) {
		now, err := fetch[api.Webhook](ctx, w.wire, w.admin, http.MethodGet, o.at(), nil)
		if now.Status.DeliveredAt != nil {
			err = errors.Join(err, errors.New("it was delivered"))
		}
		said = now.Status.LastError
		return said != "", err
	})
	return said, errors.Join(err, w.drop(ctx, o))
}

// raise sends a webhook a test event, retrying if its status changes concurrently.
func (w *world) raise(ctx context.Context, token string, o object) error {
	return within(ctx, 30*time.Second, "an event is raised", func() (bool, error) {
		a, err := w.ask(ctx, token, http.MethodPost, o.at()+"/test", nil)
		if err == nil && !a.ok() && a.Code != api.CodeConflict {
			err = fmt.Errorf("test %s: %s", o.Meta.Name, a)
		}
		return a.ok(), err
	})
}

func (w *world) insideWebhook(ctx context.Context, host string) error {
	var said [2]string
	for i, port := range []string{w.hostile.inside, w.hostile.closed} {
		var err error
		if said[i], err = w.tested(ctx, "http://"+host+":"+port+"/"); err != nil {
			return err
		}
	}
	if said[0] != said[1] || !strings.Contains(said[0], outbound.ErrRefused.Error()) {
		return fmt.Errorf("%q for an open port, %q for a closed one", said[0], said[1])
	}
	return w.hostile.untouched()
}

func (w *world) redirectedWebhook(ctx context.Context) error {
	at, err := w.hostile.url("/to?url=" + url.QueryEscape("http://127.0.0.1:"+w.hostile.inside+"/"))
	if err != nil {
		return err
	}
	if _, err := w.tested(ctx, at); err != nil {
		return err
	}
	return w.hostile.untouched()
}

// floodedWebhooks sends the attacker's webhook more events than it accepts, and then
// one to the victim's.
func (w *world) floodedWebhooks(ctx context.Context) error {
	silent, err := w.hostile.url("/silent")
	if err != nil {
		return err
	}
	foe, err := w.make(ctx, w.admin, "/v1/webhooks", w.tag+"-flood", api.Meta{}, api.WebhookSpec{URL: silent})
	if err != nil {
		return err
	}
	for range 100 {
		if err := w.raise(ctx, w.admin, foe); err != nil {
			return err
		}
	}
	heard, err := w.hostile.url("/hook/" + w.canary)
	if err != nil {
		return err
	}
	own, err := w.make(ctx, w.owner, "/v1/webhooks", w.canary+"-hook", api.Meta{}, api.WebhookSpec{URL: heard, Events: []string{api.EventTest}})
	if err != nil {
		return err
	}
	if err := w.raise(ctx, w.owner, own); err != nil {
		return err
	}
	err = within(ctx, 10*time.Second, "the victim's event arrives", func() (bool, error) { return w.hostile.heard(w.canary) > 0, nil })
	list, listErr := fetch[api.WebhookDeliveryList](ctx, w.wire, w.owner, http.MethodGet, own.at()+"/deliveries", nil)
	if list.Dropped > 0 {
		listErr = errors.Join(listErr, fmt.Errorf("%d events of the victim's were dropped", list.Dropped))
	}
	return errors.Join(err, listErr, w.drop(ctx, foe), w.drop(ctx, own))
}

func (w *world) providerTries() []try {
	return []try{
		{"A2 identity providers inside", "not reached, and one answer for open and closed ports", func(ctx context.Context) error { return w.insideProviders(ctx, w.op, "") }},
		{"A2 identity providers of an organization inside", "not reached, and one answer for open and closed ports", func(ctx context.Context) error {
			return w.insideProviders(ctx, w.admin, w.foe.Meta.ID)
		}},
		{"A3 an organization's identity provider for others", "no roles, redirects or sign-ins outside of the organization", w.ownedProvider},
		{"A3 SAML responses that nobody has signed", "no code, and no redirect elsewhere", w.forgedSAML}}
}

// insideProviders begins logins at providers with internal addresses, which an operator or the
// admin of an organization has created: the caller must learn nothing from them.
func (w *world) insideProviders(ctx context.Context, token, organization string) error {
	first := ""
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "169.254.169.254"} {
		for _, port := range []string{w.hostile.inside, w.hostile.closed} {
			issuer := "https://" + host + ":" + port + "/"
			o, err := w.make(ctx, token, "/v1/identity-providers", w.tag+"-"+word(), api.Meta{Organization: organization}, api.IdentityProviderSpec{Issuer: issuer, ClientID: "x"})
			if err != nil {
				return err
			}
			a, err := w.once(ctx, "", http.MethodPost, "/v1/login/oidc", api.OIDCBegin{Provider: o.Meta.Name, Organization: organization, Redirect: "http://127.0.0.1:1/"})
			if err := errors.Join(err, w.drop(ctx, o)); err != nil {
				return err
			}
			if first == "" {
				first = a.String()
			}
			if a.Code != api.CodeUnavailable || a.String() != first {
				return fmt.Errorf("%s: %s, and the first was told %s", issuer, a, first)
			}
		}
	}
	return w.hostile.untouched()
}

// ownedProvider configures a provider of the attacker's organization with roles, redirects and
// users that are not the organization's, and begins logins with it as if it were another's.
func (w *world) ownedProvider(ctx context.Context) error {
	foe := api.Meta{Organization: w.foe.Meta.ID}
	plain := api.IdentityProviderSpec{Issuer: "https://id.example/", ClientID: "x", Create: true}
	with := func(change func(*api.IdentityProviderSpec)) api.IdentityProviderSpec {
		s := plain
		change(&s)
		return s
	}
	grant := func(g api.Grant) api.IdentityProviderSpec {
		return with(func(s *api.IdentityProviderSpec) { s.Grants = []api.ClaimGrant{{Claim: "a", Value: "b", Grant: g}} })
	}
	err := each([]api.IdentityProviderSpec{
		grant(api.Grant{Role: api.RoleOperator}), grant(api.Grant{Role: api.RoleReseller, Organization: w.foe.Meta.ID}), grant(api.Grant{Role: api.RoleAdmin, Organization: w.victim.Meta.ID}),
		grant(api.Grant{Role: api.RoleMember, Organization: w.foe.Meta.ID, Project: w.web.Meta.ID}),
		with(func(s *api.IdentityProviderSpec) { s.Redirects = []string{"https://evil.example/login/oidc"} }),
		with(func(s *api.IdentityProviderSpec) { s.Organization = w.victim.Meta.ID }),
	}, func(s api.IdentityProviderSpec) error {
		return w.refused(ctx, w.admin, http.MethodPost, "/v1/identity-providers", body{withName(foe, w.tag+"-"+word()), s}, api.CodeInvalid, api.CodeForbidden)
	})
	victim := withName(api.Meta{Organization: w.victim.Meta.ID}, w.tag+"-"+word())
	err = errors.Join(err, w.refused(ctx, w.admin, http.MethodPost, "/v1/identity-providers", body{victim, plain}, api.CodeInvalid, api.CodeForbidden))
	if err != nil {
		return err
	}
	o, err := w.make(ctx, w.admin, "/v1/identity-providers", w.tag+"-"+word(), foe, plain)
	if err != nil {
		return err
	}
	return errors.Join(each([]api.OIDCBegin{
		{Provider: o.Meta.Name, Redirect: "http://127.0.0.1:1/"},
		{Provider: o.Meta.Name, Organization: w.victim.Meta.ID, Redirect: "http://127.0.0.1:1/"},
		{Provider: o.Meta.Name, Organization: w.foe.Meta.ID, Redirect: "https://evil.example/login/oidc"},
	}, func(in api.OIDCBegin) error {
		return w.refused(ctx, "", http.MethodPost, "/v1/login/oidc", in, api.CodeInvalid)
	}), w.drop(ctx, o))
}
