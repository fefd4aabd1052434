package auth

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// SignUp is how people sign up in a portal.
type SignUp struct {
	api.SignUpSettingsSpec        // with the blocked domains of the providers above
	Reseller               string // whose customers new organizations are; empty: the cluster's
	root                   string // as in SignUpAbove
}

// SignUpAbove is what the providers above a portal decide about sign-up in it.
type SignUpAbove struct {
	// Allowed reports that all providers above permit it, and that no reseller from this
	// one up is suspended or restricted.
	Allowed bool
	blocked []string
	root    string // the highest reseller; empty: the portal is the cluster's
}

// SignUpAbove returns what the providers above the portal of a reseller decide; empty: of
// the cluster, above which there is none.
func (a *Authenticator) SignUpAbove(ctx context.Context, reseller string) (SignUpAbove, error) {
	out := SignUpAbove{Allowed: true}
	for id, n := reseller, 0; id != "" && n < api.MaxOrganizationDepth; n++ {
		o, err := a.opts.Store.Get(ctx, api.KindOrganization, id)
		if api.CodeOf(err) == api.CodeNotFound {
			out.Allowed = false
			break
		}
		if err != nil {
			return out, fmt.Errorf("read organization %s: %w", id, err)
		}
		org, err := api.Decode[api.Organization](o)
		if err != nil {
			return out, err
		}
		out.root, id = id, o.Meta.Organization
		above, err := a.SignUpSettings(ctx, id)
		if err != nil {
			return out, err
		}
		out.Allowed = out.Allowed && above.Spec.Resellers && org.Spec.Suspended == nil && org.Spec.Restricted == nil && o.Meta.DeletedAt == nil
		out.blocked = append(out.blocked, above.Spec.BlockedDomains...)
	}
	return out, nil
}

// HasOwnBranding reports whether a reseller has a branding. Without one, links in mail lead to
// the portal of another provider, where they are not valid.
func (a *Authenticator) HasOwnBranding(ctx context.Context, reseller string) (bool, error) {
	b, err := api.BrandingFor(ctx, a.opts.Store, reseller)
	return b.Organization == reseller, err
}

// SignUpOpen returns the settings that apply in the portal of the request, or an error if
// sign-up is closed there. Under an unknown host name they are the cluster's.
func (a *Authenticator) SignUpOpen(ctx context.Context) (SignUp, error) {
	p, err := a.Portal(ctx)
	if err != nil {
		return SignUp{}, err
	}
	s, err := a.SignUpSettings(ctx, p.Organization)
	if err != nil {
		return SignUp{}, err
	}
	m, err := a.MailSettings(ctx)
	if err != nil {
		return SignUp{}, err
	}
	above, err := a.SignUpAbove(ctx, p.Organization)
	if err != nil {
		return SignUp{}, err
	}
	branded, err := a.HasOwnBranding(ctx, p.Organization)
	if err != nil {
		return SignUp{}, err
	}
	out := SignUp{SignUpSettingsSpec: s.Spec, Reseller: p.Organization, root: above.root}
	out.BlockedDomains = append(above.blocked, s.Spec.BlockedDomains...)
	if !s.Spec.Enabled || !m.Spec.Enabled || a.opts.Secrets == nil || !above.Allowed || !branded {
		return out, errSignUpClosed
	}
	return out, nil
}

var errSignUpClosed = api.Errorf(api.CodeState, "nobody can sign up here").WithHint("ask your provider of this service for an account")

// withinRates counts a request for a link, and returns an error if there are too many: in
// the portals of one highest reseller, so that they do not use up what all have together,
// and in all.
func (a *Authenticator) withinRates(ctx context.Context, s SignUp) error {
	now := a.opts.Now().UTC()
	if s.root != "" && !a.signUpsAt.take(s.root, now) || !a.signUps.take("", now) {
		return api.Errorf(api.CodeRateLimited, "many people are signing up now").WithHint("try again in a minute")
	}
	return nil
}

// rootOf returns the highest reseller above an organization, or itself; empty for empty.
func (a *Authenticator) rootOf(ctx context.Context, organization string) string {
	parentOf := a.opts.ParentIn(ctx)
	for n := 0; organization != "" && n < api.MaxOrganizationDepth; n++ {
		parent := parentOf(organization)
		if parent == "" {
			break
		}
		organization = parent
	}
	return organization
}
