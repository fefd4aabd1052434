package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// portalDomainSpec validates a host name and its certificate, and seals the key. Operators
// approve names; an approved name is claimed for the whole cluster.
func (h *handlers) portalDomainSpec(ctx context.Context, m api.Meta, before *api.PortalDomain, s api.PortalDomainSpec) (api.PortalDomainSpec, error) {
	var old api.PortalDomainSpec
	if before != nil {
		old = before.Spec
		if m.Name != before.Meta.Name {
			return s, api.Errorf(api.CodeInvalid, "the name of a portal domain cannot change").At("meta.name").WithHint("create another one")
		}
	}
	if s.Approved != old.Approved && who(ctx).Role != api.RoleOperator {
		return s, api.Errorf(api.CodeForbidden, "only an operator may approve a host name").At("spec.approved").WithHint("leave it unchanged, and ask your operator")
	}
	if before == nil || s.Approved && !old.Approved {
		if err := h.mayHavePortal(ctx, m); err != nil {
			return s, err
		}
	}
	return h.portalCertificate(ctx, m.Name, old, s)
}

// mayHavePortal refuses names that are not host names of the Internet, or are the cluster's
// own, and organizations that cannot be resellers.
func (h *handlers) mayHavePortal(ctx context.Context, m api.Meta) error {
	if err := api.ValidatePortalDomainName(m.Name); err != nil {
		return nil // reported with the other faults of the name
	}
	if ascii, err := idna.Lookup.ToASCII(m.Name); err != nil || ascii != m.Name {
		return api.Errorf(api.CodeInvalid, "%s is not a valid host name: a label is not valid Punycode", m.Name).At("meta.name").WithHint("give the name in the form that DNS has")
	}
	own, err := h.ownHosts(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(own, func(host string) bool { return m.Name == host || strings.HasSuffix(host, "."+m.Name) }) || h.isAppHost(m.Name) {
		return api.Errorf(api.CodeInvalid, "%s is a name of the cluster itself", m.Name).At("meta.name").WithHint("choose a name below a domain of the reseller")
	}
	return at(h.maySell(ctx, m.Organization), "meta.organization")
}

// ownHosts returns the host names of the cluster: those in its settings, and the one that
// an operator uses now. An operator cannot sign in under a reseller's name.
func (h *handlers) ownHosts(ctx context.Context) ([]string, error) {
	mail, err := h.auth.MailSettings(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the mail settings: %w", err)
	}
	pay, err := api.Settings[api.StoredPaymentSettings](ctx, h.opts.Store, api.KindPaymentSettings, api.PaymentSettingsID)
	if err != nil {
		return nil, err
	}
	own := []string{auth.HostOf(mail.Spec.PortalURL), auth.HostOf(pay.Spec.PortalURL)}
	if who(ctx).Role == api.RoleOperator {
		own = append(own, api.HostName(auth.Request(ctx).Host))
	}
	if h.opts.SSHGateway != nil {
		g, err := h.opts.SSHGateway(ctx)
		if err != nil {
			return nil, err
		}
		own = append(own, api.HostName(g.Host))
	}
	err = h.each(ctx, api.ListQuery{Kind: api.KindNode}, func(o api.Object) bool {
		own = append(own, strings.ToLower(o.Meta.Name))
		return true
	})
	return slices.DeleteFunc(own, func(host string) bool { return host == "" }), err
}

// isAppHost reports whether a name is the app gateway's domain, above or below it.
func (h *handlers) isAppHost(name string) bool {
	if h.opts.Apps == nil {
		return false
	}
	apps := strings.ToLower(h.opts.Apps.Domain())
	return apps != "" && (name == apps || strings.HasSuffix(name, "."+apps) || strings.HasSuffix(apps, "."+name))
}

// portalCertificate returns the spec with the key sealed; the stored key is kept while the
// certificate is the same.
func (h *handlers) portalCertificate(ctx context.Context, name string, old, s api.PortalDomainSpec) (api.PortalDomainSpec, error) {
	s.ExpiresAt = nil
	switch {
	case s.Certificate == "" && s.Key != "":
		return s, api.Errorf(api.CodeInvalid, "a key needs its certificate").At("spec.certificate").WithHint("give both, or neither")
	case s.Certificate == "":
		return s, nil
	case s.Certificate == old.Certificate && s.Key == "":
		s.Key, s.ExpiresAt = old.Key, old.ExpiresAt
		return s, nil
	}
	end, err := api.ValidatePortalCertificate(name, s, h.opts.Now())
	if err != nil {
		return s, err
	}
	s.ExpiresAt = &end
	s.Key, err = h.auth.Sealed(ctx, s.Key)
	if err != nil {
		return s, fmt.Errorf("encrypt the private key of host name %s: %w", name, err)
	}
	return s, nil
}
