package auth

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Identity is whom a request comes from: a key's or session's role, and where
// it holds.
type Identity struct {
	ID        string   // of the key or session
	kind      api.Kind // which of them
	Name      string
	User      api.UserID // of a session
	Role      api.Role
	Org       string // of all but operators
	Project   string // of member, viewer
	ExpiresAt *time.Time
	usedAt    *time.Time // as last noted
	// scopes and networks narrow a key; none: all.
	scopes, networks []string
	// needsTotp: one-time codes are required of the session's user, who has none.
	NeedsTotp bool
	// Ended reports whether a change ends it: what streams goes no further.
	Ended func(api.Event) bool
	// ParentOf is the reseller of an organization; empty: none.
	ParentOf func(organization string) string
	// pays returns which price books an organization has to do with; nil: none.
	pays func(organization string) PriceBooks
}

// PriceBooks are the one that an organization pays by, and those that it may give
// to its customers. Others' prices and names are nobody's business.
type PriceBooks struct {
	Own    api.PriceBookID // empty: the one named default
	Offers []api.PriceBookID
}

// chargedBy reports whether the caller's organization pays by the price book, or,
// a reseller, has made it or may give it to its customers.
func (i Identity) chargedBy(m api.Meta) bool {
	if i.Role == api.RoleOperator {
		return true
	}
	if RoleBits[i.Role] == 0 || i.Org == "" || i.pays == nil {
		return false
	}
	if i.resells(m) {
		return true
	}
	books, id := i.pays(i.Org), api.PriceBookID(m.ID)
	isDefault := m.Name == api.DefaultPriceBook && m.Organization == ""
	return id == books.Own || books.Own == "" && isDefault || i.Role == api.RoleReseller && (isDefault || slices.Contains(books.Offers, id))
}

// resells reports whether a price book is the caller's own, for its customers.
func (i Identity) resells(m api.Meta) bool {
	return i.Role == api.RoleReseller && i.Org != "" && m.Organization == i.Org
}

// Reaches reports whether what belongs to org and project is within the role's
// scope.
func (i Identity) Reaches(org, project string) bool {
	switch i.Role {
	case api.RoleOperator:
		return true
	case api.RoleReseller:
		return i.Org != "" && (org == i.Org || i.sells(org))
	case api.RoleAdmin, api.RoleBilling:
		return i.Org != "" && org == i.Org
	case api.RoleMember, api.RoleViewer:
		return i.Project != "" && project == i.Project && org == i.Org
	}
	return false
}

// sells reports whether the organization is the reseller's customer, or a customer of
// one.
func (i Identity) sells(org string) bool {
	if i.Role != api.RoleReseller || i.Org == "" || i.ParentOf == nil {
		return false
	}
	for range api.MaxOrganizationDepth {
		if org == "" {
			return false
		}
		if org = i.ParentOf(org); org == i.Org {
			return true
		}
	}
	return false
}

// Grants reports whether the caller may give a role there.
func (i Identity) Grants(role api.Role, org, project string) bool {
	return i.Role.Grants(role) && i.Reaches(org, project) && (role != api.RoleReseller || i.Role == api.RoleOperator || org == i.Org || i.sells(org))
}

// billed are the kinds that exist for role billing, and what they lie in.
var billed = []api.Kind{api.KindUsageRecord, api.KindInvoice, api.KindCreditNote, api.KindPayment, api.KindBudget, api.KindPriceBook, api.KindOrganization, api.KindProject}

// Sees reports whether an object exists for the caller.
func (i Identity) Sees(o api.Object) bool {
	m := o.Meta
	if !o.Kind.Public() {
		return false // the cluster's own
	}
	if i.Role == api.RoleBilling && !slices.Contains(billed, o.Kind) {
		return false
	}
	switch o.Kind {
	case api.KindSSHKey: // it lies in its user's id, as a session does
		return i.User != "" && m.Project == string(i.User)
	case api.KindPriceBook:
		return i.chargedBy(m)
	case api.KindOrganization:
		return i.Role == api.RoleOperator || i.Org != "" && m.ID == i.Org || i.customer(m)
	case api.KindProject:
		return i.Reaches(m.Organization, m.ID)
	case api.KindImage:
		if i.Reaches(m.Organization, m.Project) {
			return true
		}
		image, err := api.Decode[api.Image](o)
		return err == nil && image.Spec.Public && RoleBits[i.Role] != 0
	}
	return i.reads(o.Kind.Info().Readers, m)
}

func (i Identity) reads(by api.Readers, m api.Meta) bool {
	switch by {
	case api.ReadByAll:
		return RoleBits[i.Role] != 0
	case api.ReadByOperators:
		return i.Role == api.RoleOperator
	case api.ReadByAdmins:
		return admins.Has(i.Role) && i.Reaches(m.Organization, m.Project)
	case api.ReadByPayers:
		return (admins | billing).Has(i.Role) && i.Reaches(m.Organization, m.Project)
	case api.ReadBySellers: // its organization is the seller's
		return Sellers.Has(i.Role) && (i.Role == api.RoleOperator || m.Organization == i.Org)
	case api.ReadByMembers:
		return i.Reaches(m.Organization, m.Project)
	}
	return false
}

// customer reports whether an organization is one that the reseller has made, or that
// one of its customers has: it belongs to the maker's.
func (i Identity) customer(m api.Meta) bool {
	return i.Role == api.RoleReseller && i.Org != "" && (m.Organization == i.Org || i.sells(m.Organization))
}

// Owns reports whether the caller may change an object that it sees.
func (i Identity) Owns(o api.Object) bool {
	switch o.Kind {
	case api.KindProject:
		return i.Reaches(o.Meta.Organization, o.Meta.ID)
	case api.KindOrganization:
		return i.Role == api.RoleOperator || i.customer(o.Meta)
	case api.KindPriceBook:
		return i.Role == api.RoleOperator || i.resells(o.Meta)
	case api.KindSSHKey:
		return i.Sees(o)
	case api.KindUser: // one who may more elsewhere is managed by who may too
		u, err := api.Decode[api.User](o)
		beyond := func(g api.Grant) bool { return !i.Grants(g.Role, g.Organization, g.Project) }
		return err == nil && i.Sees(o) && !slices.ContainsFunc(u.Spec.Grants, beyond)
	case api.KindAPIKey: // a stronger role's is not for a weaker one to change
		key, err := api.Decode[api.APIKey](o)
		return err == nil && i.Sees(o) && i.Grants(key.Spec.Role, o.Meta.Organization, o.Meta.Project)
	}
	if o.Kind.Info().Readers == api.ReadByAll {
		return i.Role == api.RoleOperator
	}
	return i.Sees(o) && i.Reaches(o.Meta.Organization, o.Meta.Project)
}
