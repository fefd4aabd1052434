package auth

import (
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// Roles is a set of them.
type Roles uint8

const (
	operators Roles = 1 << iota
	resellers
	adminsOnly
	membersOnly
	viewersOnly
	billing
	// Everybody may without a key; a guest has no role.
	Everybody
)

// The sets that operations are given to.
const (
	Sellers = operators | resellers
	admins  = Sellers | adminsOnly
	members = admins | membersOnly
	viewers = members | viewersOnly
)

// RoleBits are the sets of one role.
var RoleBits = map[api.Role]Roles{
	api.RoleOperator: operators, api.RoleReseller: resellers, api.RoleAdmin: adminsOnly,
	api.RoleMember: membersOnly, api.RoleViewer: viewersOnly, api.RoleBilling: billing,
}

// Has reports whether the role is in the set.
func (r Roles) Has(role api.Role) bool { return r&RoleBits[role] != 0 }

// Words are the set's roles: "operator, reseller or admin".
func (r Roles) Words() string {
	var names []string
	for _, role := range api.Roles() {
		if r.Has(role) {
			names = append(names, string(role))
		}
	}
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " or " + names[n]
	}
	return strings.Join(names, "")
}
