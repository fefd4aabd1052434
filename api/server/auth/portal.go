package auth

import (
	"context"
	"net/url"

	"github.com/basalt-gpu/basalt/api"
)

// Portal is the portal that a request was sent to, by its host name. The zero value is
// that of the cluster, which is also reached under every name that is unknown.
type Portal struct {
	Domain       string
	Organization string // the reseller whose portal it is
}

// Portal returns the portal that the context's request was sent to. Only Host counts:
// X-Forwarded-Host is what a client says.
func (a *Authenticator) Portal(ctx context.Context) (Portal, error) {
	d, ok, err := api.PortalDomainFor(ctx, a.opts.Store, api.HostName(Request(ctx).Host))
	if err != nil || !ok {
		return Portal{}, err
	}
	m, err := a.MailSettings(ctx)
	if err != nil || HostOf(m.Spec.PortalURL) == d.Meta.Name { // it became the cluster's own
		return Portal{}, err
	}
	return Portal{Domain: d.Meta.Name, Organization: d.Meta.Organization}, nil
}

// HostOf returns the host name of a URL; empty if it has none.
func HostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return api.HostName(u.Hostname())
}

// admitted refuses to begin a session in a reseller's portal for anybody but the
// reseller's users and its customers'. The reseller controls the name: it could direct it
// to a server of its own, to which browsers then send the session's cookie.
func (a *Authenticator) admitted(ctx context.Context, g api.Grant) error {
	p, err := a.Portal(ctx)
	if err != nil || p.Organization == "" {
		return err
	}
	parentOf := a.opts.ParentIn(ctx)
	for id, n := g.Organization, 0; id != "" && n < api.MaxOrganizationDepth; id, n = parentOf(id), n+1 {
		if id == p.Organization {
			return nil
		}
	}
	return api.Errorf(api.CodeForbidden, "you cannot sign in at %s", p.Domain).WithHint("sign in at the address of your own provider")
}
