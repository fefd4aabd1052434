package auth

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// Limits of what a test of a provider shows of its claims, which anybody at the provider may
// have written.
const (
	maxShownClaims = 64
	maxShownValues = 64 // of a claim
	maxShownText   = 256
)

// TestIdentityProvider returns what a sign-in that was begun with the provider would give.
// It writes nothing.
func (a *Authenticator) TestIdentityProvider(ctx context.Context, provider string, in *api.IdentityProviderTest) (*api.IdentityProviderTestResult, error) {
	p, _, who, err := a.redeemedFlow(ctx, in.Flow, in.State, in.Code)
	if err != nil {
		return nil, err
	}
	if p.Meta.ID != provider {
		return nil, api.Errorf(api.CodeInvalid, "this sign-in was started with another identity provider").At("flow").WithHint("start the test again")
	}
	groups, err := a.claimedGroups(ctx, p, who.Claims)
	if err != nil {
		return nil, err
	}
	out := api.IdentityProviderTestResult{Subject: who.Subject, Email: who.Email, DisplayName: who.Name, Claims: shownClaims(who.Claims), Grants: p.Spec.GrantsOf(who.Claims),
		Groups: make([]string, len(groups)), Outcome: api.ProviderTestSignIn}
	for i, g := range groups {
		out.Groups[i] = g.Meta.Name
	}
	u, _, err := a.recognized(ctx, p, who)
	if err == nil && u.Meta.ID == "" {
		out.Outcome = api.ProviderTestCreate
		err = mayCreate(p, len(out.Grants)+len(groups))
	} else if err == nil {
		out.User, out.Grants = u.Meta.Name, grantsAfter(u, p, out.Grants)
		err = a.hasRole(ctx, p, u, out.Grants, groups)
	}
	var refused *api.Error
	switch {
	case errors.As(err, &refused) && refused.Code == api.CodeForbidden:
		out.Outcome, out.Reason = api.ProviderTestRefused, refused.Message
	case err != nil:
		return nil, err
	}
	if out.Grants == nil {
		out.Grants = []api.Grant{}
	}
	return &out, nil
}

// hasRole returns an error if a user would have no role after a sign-in with these grants
// and groups of the provider.
func (a *Authenticator) hasRole(ctx context.Context, p api.IdentityProvider, u api.User, grants []api.Grant, claimed []api.Group) error {
	in, err := a.GroupsOf(ctx, u)
	if err != nil {
		return err
	}
	in = slices.DeleteFunc(in, func(g api.Group) bool {
		return g.Spec.Source == api.GroupIdentityProvider && string(g.Spec.IdentityProvider) == p.Meta.ID
	})
	if len(grants) > 0 || slices.ContainsFunc(append(in, claimed...), func(g api.Group) bool { return len(g.Spec.Grants) > 0 }) {
		return nil
	}
	return errNoRole()
}

// shownClaims returns the claims by name, within limits.
func shownClaims(claims map[string]any) []api.ReceivedClaim {
	out := []api.ReceivedClaim{}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		if len(out) == maxShownClaims {
			break
		}
		list, ok := claims[name].([]any)
		if !ok {
			list = []any{claims[name]}
		}
		values := []string{}
		for _, v := range list[:min(len(list), maxShownValues)] {
			values = append(values, shownText(v))
		}
		out = append(out, api.ReceivedClaim{Name: clip(name), Values: values})
	}
	return out
}

func shownText(v any) string {
	if s, ok := v.(string); ok {
		return clip(s)
	}
	raw, err := json.Marshal(v)
	if err != nil { // it was decoded from JSON
		return ""
	}
	return clip(string(raw))
}

// clip cuts a text to maxShownText bytes of valid UTF-8.
func clip(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxShownText)], "")
}
