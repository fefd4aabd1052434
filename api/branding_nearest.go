package api

import (
	"context"
	"net/url"
	"slices"
	"strings"
)

// BrandingIDOf returns the ID of the branding of an organization.
func BrandingIDOf(organization string) string {
	_, rest, _ := strings.Cut(organization, "-")
	return KindBranding.Info().IDPrefix + "-" + rest
}

// BrandingReader is the part of a store that is read to find a branding.
type BrandingReader interface {
	Lister
	Getter
}

// NearestBranding is the branding for the users of an organization.
type NearestBranding struct {
	StoredBranding
	Organization string // the reseller that has set it; empty: it is the cluster's
	Domain       string // host name of its portal; empty: that of the cluster
}

// Portal returns the URL of the portal with this branding, given that of the cluster. The
// scheme, the port and the path are the same, since the same servers answer.
func (b NearestBranding) Portal(cluster string) string {
	if b.Domain == "" {
		return cluster
	}
	u, err := url.Parse(cluster)
	if err != nil || u.Host == "" {
		return "https://" + b.Domain
	}
	if port := u.Port(); port != "" {
		u.Host = b.Domain + ":" + port
	} else {
		u.Host = b.Domain
	}
	return u.String()
}

// BrandingFor returns the branding for the users of an organization: its own, that of the
// nearest reseller above it that has one, or that of the cluster. Empty stands for no
// organization.
func BrandingFor(ctx context.Context, r BrandingReader, organization string) (NearestBranding, error) {
	for range MaxOrganizationDepth {
		if organization == "" {
			break
		}
		b, err := Settings[StoredBranding](ctx, r, KindBranding, BrandingIDOf(organization))
		if err != nil {
			return NearestBranding{}, err
		}
		if b.Spec.ProductName != "" {
			domain, err := portalDomainOf(ctx, r, organization)
			return NearestBranding{StoredBranding: b, Organization: organization, Domain: domain}, err
		}
		if organization, err = parentOrganization(ctx, r, organization); err != nil {
			return NearestBranding{}, err
		}
	}
	b, err := Settings[StoredBranding](ctx, r, KindBranding, BrandingID)
	return NearestBranding{StoredBranding: b}, err
}

// SellerBranding returns the branding of whoever sells to an organization, for messages
// about what it owes.
func SellerBranding(ctx context.Context, r BrandingReader, organization string) (NearestBranding, error) {
	seller := ""
	if organization != "" {
		var err error
		if seller, err = parentOrganization(ctx, r, organization); err != nil {
			return NearestBranding{}, err
		}
	}
	return BrandingFor(ctx, r, seller)
}

// PortalDomainFor returns the approved host name with a name; ok is false if there is none,
// or if its organization does not exist any more.
func PortalDomainFor(ctx context.Context, r BrandingReader, name string) (d PortalDomain, ok bool, err error) {
	if ValidatePortalDomainName(name) != nil {
		return d, false, nil
	}
	all, err := All[PortalDomain](ctx, r, ListQuery{Kind: KindPortalDomain, Name: name})
	if err != nil {
		return d, false, err
	}
	i := slices.IndexFunc(all, PortalDomain.inEffect)
	if i < 0 {
		return d, false, nil
	}
	_, err = r.Get(ctx, KindOrganization, all[i].Meta.Organization)
	if CodeOf(err) == CodeNotFound {
		return d, false, nil
	}
	return all[i], err == nil, err
}

func (d PortalDomain) inEffect() bool { return d.Spec.Approved && d.Meta.DeletedAt == nil }

// PortalsFor returns the addresses of the portals in which users of an organization sign in,
// without a path: that of the cluster, and those of the organization's host names and of its
// resellers'. Only addresses whose requests nobody can read are among them.
func PortalsFor(ctx context.Context, r BrandingReader, organization, cluster string) ([]string, error) {
	all := []string{cluster}
	for n := 0; organization != "" && n < MaxOrganizationDepth; n++ {
		domains, err := All[PortalDomain](ctx, r, ListQuery{Kind: KindPortalDomain, Organization: organization})
		if err != nil {
			return nil, err
		}
		for _, d := range domains {
			if d.inEffect() {
				all = append(all, NearestBranding{Domain: d.Meta.Name}.Portal(cluster))
			}
		}
		if organization, err = parentOrganization(ctx, r, organization); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, address := range all {
		if u, ok := secureURL(address); ok {
			out = append(out, u.Scheme+"://"+u.Host)
		}
	}
	return out, nil
}

// portalDomainOf returns the approved host name of an organization that was created first;
// empty: it has none.
func portalDomainOf(ctx context.Context, r BrandingReader, organization string) (string, error) {
	all, err := All[PortalDomain](ctx, r, ListQuery{Kind: KindPortalDomain, Organization: organization})
	all = slices.DeleteFunc(all, func(d PortalDomain) bool { return !d.inEffect() })
	if err != nil || len(all) == 0 {
		return "", err
	}
	return slices.MinFunc(all, func(a, b PortalDomain) int {
		if n := a.Meta.CreatedAt.Compare(b.Meta.CreatedAt); n != 0 {
			return n
		}
		return strings.Compare(a.Meta.ID, b.Meta.ID)
	}).Meta.Name, nil
}

// parentOrganization returns the reseller of an organization; empty: it has none, or does
// not exist any more.
func parentOrganization(ctx context.Context, r BrandingReader, organization string) (string, error) {
	o, err := r.Get(ctx, KindOrganization, organization)
	if err != nil {
		if CodeOf(err) == CodeNotFound {
			err = nil
		}
		return "", err
	}
	return o.Meta.Organization, nil
}
