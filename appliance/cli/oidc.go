package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

// oidcWait is how long a sign-in in the browser may take.
const oidcWait = 10 * time.Minute

// oidcSession signs in with an identity provider, or with one of an organization:
// ORGANIZATION/NAME.
func (a *App) oidcSession(ctx context.Context, provider string) error {
	organization := ""
	if i := strings.LastIndexByte(provider, '/'); i >= 0 { // RESELLER/CUSTOMER contains one too
		organization, provider = provider[:i], provider[i+1:]
	}
	in, err := a.oidcCode(ctx, organization, provider)
	if err != nil {
		return err
	}
	in.Organization, in.Project = a.config.Organization, a.config.Project
	s, err := a.api.FinishOIDCLogin(ctx, in)
	if err != nil {
		return err
	}
	return a.useSession(ctx, s)
}

// oidcCode lets the user sign in at an identity provider, and returns the provider's answer.
// The browser is redirected to a port that only this machine can reach (RFC 8252).
func (a *App) oidcCode(ctx context.Context, organization, provider string) (api.OIDCFinish, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return api.OIDCFinish{}, err
	}
	defer l.Close()
	f, err := a.api.BeginOIDCLogin(ctx, api.OIDCBegin{Organization: organization, Provider: provider, Redirect: "http://" + l.Addr().String() + "/callback"})
	if err != nil {
		return api.OIDCFinish{}, err
	}
	fmt.Fprintf(a.Err, "Open this URL in a browser on this computer, and sign in there:\n\n  %s\n\n", printable(f.URL))
	in, err := awaitCode(ctx, l)
	in.Flow = f.Flow
	return in, err
}

// awaitCode serves until the browser has delivered a code. The server verifies that its state
// is that of this sign-in.
func awaitCode(ctx context.Context, l net.Listener) (api.OIDCFinish, error) {
	ctx, cancel := context.WithTimeout(ctx, oidcWait)
	defer cancel()
	type answer struct {
		in  api.OIDCFinish
		err error
	}
	got := make(chan answer, 1)
	handler := func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		x := answer{in: api.OIDCFinish{State: q.Get("state"), Code: q.Get("code")}}
		switch {
		case r.URL.Path != "/callback" || q.Get("state") == "":
			http.NotFound(w, r)
			return
		case q.Get("error") != "":
			x.err = api.Errorf(api.CodeUnauthenticated, "the identity provider denied the request: %s", printable(cmp.Or(q.Get("error_description"), q.Get("error"))))
			fmt.Fprintln(w, "The identity provider denied the request. You may close this page.")
		default:
			fmt.Fprintln(w, "Signed in. Continue in the terminal; you may close this page.")
		}
		select {
		case got <- x:
		default: // a second request is ignored
		}
	}
	s := &http.Server{Handler: http.HandlerFunc(handler), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() { _ = s.Serve(l) }() // ends with Shutdown
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.Shutdown(end) // waits until the page is sent
	}()
	select {
	case x := <-got:
		return x.in, x.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return api.OIDCFinish{}, api.Errorf(codeTimeout, "sign-in was not completed within %s", oidcWait)
		}
		return api.OIDCFinish{}, ctx.Err()
	}
}

func (a *App) identityProviders() *kind[api.IdentityProvider] {
	return &kind[api.IdentityProvider]{
		app: a, noun: "identity-provider", about: "Identity providers (OpenID Connect, SAML) of organizations and of the cluster",

		refs:    []api.Kind{api.KindOrganization, api.KindProject},
		columns: []string{"ORGANIZATION", "PROTOCOL", "ISSUER", "CLIENT", "CREATES USERS", "GRANTS"},
		row: func(p api.IdentityProvider) []string {
			makes := "no"
			if p.Spec.Create {
				makes = "yes"
			}
			var grants []string
			for _, g := range p.Spec.Grants {
				grants = append(grants, g.Claim+"="+g.Value+":"+a.grantWords([]api.Grant{g.Grant}))
			}
			protocol := "oidc"
			if p.Spec.SAML != nil {
				protocol = "saml"
			}
			return []string{a.named(p.Meta.Organization), protocol, p.Spec.Issuer, cmp.Or(p.Spec.ClientID, "-"), makes, strings.Join(grants, ", ")}
		},
		detail: samlDetail,
		flags:  identityProviderFlags,
		more:   []*cobra.Command{a.samlMetadataCommand(), a.providerTestCommand(), a.refusalsCommand()},
	}
}

func (a *App) providerTestCommand() *cobra.Command {
	return &cobra.Command{Use: "test NAME|ID", Short: "Show what a sign-in with an identity provider would give", Args: cobra.ExactArgs(1),
		Long: "You sign in at the provider in a browser. No session begins, and no user is created or changed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.identityProviders().get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			in, err := a.oidcCode(cmd.Context(), p.Meta.Organization, p.Meta.Name)
			if err != nil {
				return err
			}
			r, err := a.api.TestIdentityProvider(cmd.Context(), p.Meta.ID, api.IdentityProviderTest{Flow: in.Flow, State: in.State, Code: in.Code})
			if err != nil {
				return err
			}
			return a.print(r, func() table { return providerTestTable(r, a.grantWords(r.Grants)) })
		}}
}

func (a *App) refusalsCommand() *cobra.Command {
	return &cobra.Command{Use: "refusals NAME|ID", Short: "List the sign-ins with an identity provider that were refused lately", Args: cobra.ExactArgs(1),
		Long: "Shows why sign-ins were refused in the last 24 hours, on any node since it was started. The provider had confirmed who\n" +
			"signs in, or not: then anybody can have caused it, and the reason may contain what they sent.",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.identityProviders().get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			all, err := a.api.RefusedSignIns(cmd.Context(), p.Meta.ID)
			if err != nil {
				return err
			}
			if all.Incomplete {
				fmt.Fprintln(a.Err, "A node did not respond: what only it has refused is missing.")
			}
			return a.print(all, func() table { return refusalsTable(all.Items) })
		}}
}

func refusalsTable(all []api.RefusedSignIn) table {
	t := table{{"LAST", "COUNT", "CONFIRMED", "E-MAIL", "REASON"}}
	for _, x := range all {
		confirmed := "no"
		if x.Confirmed {
			confirmed = "yes"
		}
		t = append(t, []string{formatTime(x.At), strconv.FormatInt(x.Count, 10), confirmed, cmp.Or(x.Email, "-"), x.Reason})
	}
	return t
}

// providerTestTable has a row for each part of the result, and for each claim.
func providerTestTable(r api.IdentityProviderTestResult, roles string) table {
	t := table{{"RESULT", "VALUE"}}
	add := func(name, value string) { t = append(t, []string{name, cmp.Or(value, "-")}) }
	add("outcome", string(r.Outcome))
	if r.Reason != "" {
		add("reason", r.Reason)
	}
	add("user", r.User)
	add("subject", r.Subject)
	add("e-mail address", r.Email)
	add("display name", r.DisplayName)
	add("roles", roles)
	add("groups", strings.Join(r.Groups, ", "))
	for _, c := range r.Claims {
		add("claim "+c.Name, strings.Join(c.Values, ", "))
	}
	return t
}

func identityProviderFlags(f *pflag.FlagSet) func(*api.IdentityProvider) error {
	issuer, id := f.String("issuer", "", "issuer URL as in its tokens, without /.well-known/openid-configuration"), f.String("client-id", "", "Basalt's client ID at the provider")
	secret := f.String("client-secret-file", "", "file with the client's secret")
	redirects := f.StringSlice("redirect", nil, "portal URL that browsers return to; not needed for the CLI, and not allowed with --organization")
	scopes := f.StringSlice("scopes", nil, "additional scopes to request")
	makes := f.Bool("create-users", false, "create a user at first sign-in for anyone who has a grant by their claims")
	organization := f.String("users-organization", "", "organization whose administrators manage the users it creates; for a provider of the cluster")
	grants := f.StringArray("grant", nil, "CLAIM=VALUE:ROLE[@ORGANIZATION[/PROJECT]]; CLAIM is a claim or SAML attribute; replaces the previous ones; repeatable")
	groups := f.String("groups-claim", "", "claim or SAML attribute that decides the members of groups of this provider, e.g. groups; empty: none")
	saml := samlFlags(f)
	return func(p *api.IdentityProvider) error {
		s := &p.Spec
		if f.Changed("groups-claim") {
			s.GroupsClaim = *groups
		}
		s.Issuer, s.ClientID, s.Organization = cmp.Or(*issuer, s.Issuer), cmp.Or(*id, s.ClientID), cmp.Or(*organization, s.Organization)
		if f.Changed("redirect") {
			s.Redirects = *redirects
		}
		if f.Changed("scopes") {
			s.Scopes = *scopes
		}
		if f.Changed("create-users") {
			s.Create = *makes
		}
		if f.Changed("grant") {
			s.Grants = nil
		}
		for _, text := range *grants {
			g, err := claimGrant(text)
			if err != nil {
				return err
			}
			s.Grants = append(s.Grants, g)
		}
		if err := saml(s); err != nil {
			return err
		}
		return secretFile(*secret, &s.ClientSecret)
	}
}

// claimGrant parses CLAIM=VALUE:ROLE[@ORGANIZATION[/PROJECT]]; a value may contain colons.
func claimGrant(text string) (api.ClaimGrant, error) {
	claim, rest, ok := strings.Cut(text, "=")
	i := strings.LastIndexByte(rest, ':')
	if !ok || i < 1 || claim == "" {
		return api.ClaimGrant{}, usagef("--grant %s: want CLAIM=VALUE:ROLE@ORGANIZATION", text)
	}
	return api.ClaimGrant{Claim: claim, Value: rest[:i], Grant: grantOf(rest[i+1:])}, nil
}
