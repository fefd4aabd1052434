package auth

import (
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// Roles is a set of roles.
type Roles uint8

const (
	operators Roles = 1 << iota
	resellers
	adminsOnly
	membersOnly
	viewersOnly
	billing
	// Everybody includes callers without a key, who have no role.
	Everybody
)

// The sets of roles that may call operations.
const (
	Sellers = operators | resellers
	admins  = Sellers | adminsOnly
	members = admins | membersOnly
	viewers = members | viewersOnly
)

// RoleBits maps each role to the set that contains only it.
var RoleBits = map[api.Role]Roles{
	api.RoleOperator: operators, api.RoleReseller: resellers, api.RoleAdmin: adminsOnly,
	api.RoleMember: membersOnly, api.RoleViewer: viewersOnly, api.RoleBilling: billing,
}

// Has reports whether the role is in the set.
func (r Roles) Has(role api.Role) bool { return r&RoleBits[role] != 0 }

// Words returns the set's roles in words: "operator, reseller or admin".
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
