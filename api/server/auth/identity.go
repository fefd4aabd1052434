package auth

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Identity is who sends a request: the role of a key or session, and its scope.
type Identity struct {
	ID        string   // of the key or session
	kind      api.Kind // KindAPIKey or KindSession
	Name      string
	User      api.UserID // of a session
	Role      api.Role
	Org       string      // of all roles except operator
	Project   string      // of member, viewer
	group     api.GroupID // that gives a session its role
	ExpiresAt *time.Time
	usedAt    *time.Time // as last recorded
	// scopes and networks restrict a key; empty: no restriction.
	scopes, networks []string
	// NeedsTotp means that the session's user must set up a required second factor
	// first.
	NeedsTotp bool
	// Ended reports whether a change ends the key or session, which ends its streams.
	Ended func(api.Event) bool
	// ParentOf returns the reseller of an organization; empty: none.
	ParentOf func(organization string) string
	// pays returns the price books that an organization may see; nil: none.
	pays func(organization string) PriceBooks
}

// PriceBooks are the price book that an organization pays by, and those that it may
// assign to its customers. It cannot see any others.
type PriceBooks struct {
	Own    api.PriceBookID // empty: the one named default
	Offers []api.PriceBookID
}

// chargedBy reports whether the caller's organization pays by the price book or, as a
// reseller, owns it or may assign it to its customers.
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

// resells reports whether a price book belongs to the caller, for its customers.
func (i Identity) resells(m api.Meta) bool {
	return i.Role == api.RoleReseller && i.Org != "" && m.Organization == i.Org
}

// IsKey reports whether the caller uses an API key, not a session.
func (i Identity) IsKey() bool { return i.kind == api.KindAPIKey }

// Reaches reports whether the organization and project are within the role's scope.
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

// Grants reports whether the caller may grant a role in that scope.
func (i Identity) Grants(role api.Role, org, project string) bool {
	return i.Role.Grants(role) && i.Reaches(org, project) && (role != api.RoleReseller || i.Role == api.RoleOperator || org == i.Org || i.sells(org))
}

// billed reports whether role billing can see objects of a kind: of those that it may
// list, and of the organizations and projects that contain them.
func billed(kind api.Kind) bool {
	return kindRights[kind].read.Has(api.RoleBilling) || len(api.Members(kind)) > 0
}

// Sees reports whether the caller may see an object.
func (i Identity) Sees(o api.Object) bool {
	if !o.Kind.Public() {
		return false // internal to the cluster
	}
	if i.Role == api.RoleBilling && !billed(o.Kind) {
		return false
	}
	if sees := kindRights[o.Kind].sees; sees != nil {
		return sees(i, o)
	}
	return i.reads(o.Kind.Info().Readers, o.Meta)
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

// customer reports whether the reseller created an organization, or one of its
// customers did.
func (i Identity) customer(m api.Meta) bool {
	return i.Role == api.RoleReseller && i.Org != "" && (m.Organization == i.Org || i.sells(m.Organization))
}

// Owns reports whether the caller may change an object that it sees.
func (i Identity) Owns(o api.Object) bool {
	if owns := kindRights[o.Kind].owns; owns != nil {
		return owns(i, o)
	}
	if o.Kind.Info().Readers == api.ReadByAll {
		return i.Role == api.RoleOperator
	}
	return i.Sees(o) && i.Reaches(o.Meta.Organization, o.Meta.Project)
}
