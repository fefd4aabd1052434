package server

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// identity is whom a request comes from: a key's or session's role, and where
// it holds.
type identity struct {
	id        string   // of the key or session
	kind      api.Kind // which of them
	name      string
	user      api.UserID // of a session
	role      api.Role
	org       string // of all but operators
	project   string // of member, viewer
	expiresAt *time.Time
	usedAt    *time.Time // as last noted
	// scopes and networks narrow a key; none: all.
	scopes, networks []string
	// needsTotp: one-time codes are required of the session's user, who has none.
	needsTotp bool
	// ended reports whether a change ends it: what streams goes no further.
	ended func(api.Event) bool
	// parentOf is the reseller of an organization; empty: none.
	parentOf func(organization string) string
	// pays says which price books an organization has to do with; nil: none.
	pays func(organization string) priceBooks
}

// priceBooks are the one that an organization pays by, and those that it may give
// to its customers. Others' prices and names are nobody's business.
type priceBooks struct {
	own    api.PriceBookID // empty: the one named default
	offers []api.PriceBookID
}

// chargedBy reports whether the caller's organization pays by the price book, or,
// a reseller, may give it to its customers.
func (i identity) chargedBy(m api.Meta) bool {
	if i.role == api.RoleOperator {
		return true
	}
	if roleBits[i.role] == 0 || i.org == "" || i.pays == nil {
		return false
	}
	books, id := i.pays(i.org), api.PriceBookID(m.ID)
	isDefault := m.Name == api.DefaultPriceBook
	return id == books.own || books.own == "" && isDefault || i.role == api.RoleReseller && (isDefault || slices.Contains(books.offers, id))
}

// reaches reports whether what belongs to org and project is within the role's
// scope.
func (i identity) reaches(org, project string) bool {
	switch i.role {
	case api.RoleOperator:
		return true
	case api.RoleReseller:
		return i.org != "" && (org == i.org || i.sells(org))
	case api.RoleAdmin, api.RoleBilling:
		return i.org != "" && org == i.org
	case api.RoleMember, api.RoleViewer:
		return i.project != "" && project == i.project && org == i.org
	}
	return false
}

// sells reports whether the organization is the reseller's customer.
func (i identity) sells(org string) bool {
	return i.role == api.RoleReseller && org != "" && i.parentOf != nil && i.parentOf(org) == i.org
}

// grants reports whether the caller may give a role there.
func (i identity) grants(role api.Role, org, project string) bool {
	return i.role.Grants(role) && i.reaches(org, project) && (role != api.RoleReseller || i.role == api.RoleOperator || org == i.org)
}

// billed are the kinds that exist for role billing, and what they lie in.
var billed = []api.Kind{api.KindUsageRecord, api.KindInvoice, api.KindCreditNote, api.KindPayment, api.KindBudget, api.KindPriceBook, api.KindOrganization, api.KindProject}

// sees reports whether an object exists for the caller.
func (i identity) sees(o api.Object) bool {
	m := o.Meta
	if !o.Kind.Public() {
		return false // the cluster's own
	}
	if i.role == api.RoleBilling && !slices.Contains(billed, o.Kind) {
		return false
	}
	switch o.Kind {
	case api.KindSSHKey: // it lies in its user's id, as a session does
		return i.user != "" && m.Project == string(i.user)
	case api.KindPriceBook:
		return i.chargedBy(m)
	case api.KindOrganization:
		return i.role == api.RoleOperator || i.org != "" && m.ID == i.org || i.customer(m)
	case api.KindProject:
		return i.reaches(m.Organization, m.ID)
	case api.KindImage:
		if i.reaches(m.Organization, m.Project) {
			return true
		}
		image, err := api.Decode[api.Image](o)
		return err == nil && image.Spec.Public && roleBits[i.role] != 0
	}
	return i.reads(o.Kind.Info().Readers, m)
}

func (i identity) reads(by api.Readers, m api.Meta) bool {
	switch by {
	case api.ReadByAll:
		return roleBits[i.role] != 0
	case api.ReadByOperators:
		return i.role == api.RoleOperator
	case api.ReadByAdmins:
		return admins.has(i.role) && i.reaches(m.Organization, m.Project)
	case api.ReadByPayers:
		return (admins | billing).has(i.role) && i.reaches(m.Organization, m.Project)
	case api.ReadBySellers: // its organization is the seller's
		return sellers.has(i.role) && (i.role == api.RoleOperator || m.Organization == i.org)
	case api.ReadByMembers:
		return i.reaches(m.Organization, m.Project)
	}
	return false
}

// customer reports whether an organization is one that the reseller has made: it
// belongs to the reseller's.
func (i identity) customer(m api.Meta) bool {
	return i.role == api.RoleReseller && i.org != "" && m.Organization == i.org
}

// owns reports whether the caller may change an object that it sees.
func (i identity) owns(o api.Object) bool {
	switch o.Kind {
	case api.KindProject:
		return i.reaches(o.Meta.Organization, o.Meta.ID)
	case api.KindOrganization:
		return i.role == api.RoleOperator || i.customer(o.Meta)
	case api.KindSSHKey:
		return i.sees(o)
	case api.KindUser: // one who may more elsewhere is managed by who may too
		u, err := api.Decode[api.User](o)
		beyond := func(g api.Grant) bool { return !i.grants(g.Role, g.Organization, g.Project) }
		return err == nil && i.sees(o) && !slices.ContainsFunc(u.Spec.Grants, beyond)
	case api.KindAPIKey: // a stronger role's is not for a weaker one to change
		key, err := api.Decode[api.APIKey](o)
		return err == nil && i.sees(o) && i.grants(key.Spec.Role, o.Meta.Organization, o.Meta.Project)
	}
	if o.Kind.Info().Readers == api.ReadByAll {
		return i.role == api.RoleOperator
	}
	return i.sees(o) && i.reaches(o.Meta.Organization, o.Meta.Project)
}
