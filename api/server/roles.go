package server

import (
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// roles is a set of them.
type roles uint8

const (
	operators roles = 1 << iota
	resellers
	adminsOnly
	membersOnly
	viewersOnly
	billing
	// everybody may without a key; a guest has no role.
	everybody
)

// The sets that operations are given to.
const (
	sellers = operators | resellers
	admins  = sellers | adminsOnly
	members = admins | membersOnly
	viewers = members | viewersOnly
)

var roleBits = map[api.Role]roles{
	api.RoleOperator: operators, api.RoleReseller: resellers, api.RoleAdmin: adminsOnly,
	api.RoleMember: membersOnly, api.RoleViewer: viewersOnly, api.RoleBilling: billing,
}

// has reports whether the role is in the set.
func (r roles) has(role api.Role) bool { return r&roleBits[role] != 0 }

// words are the set's roles: "operator, reseller or admin".
func (r roles) words() string {
	var names []string
	for _, role := range api.Roles() {
		if r.has(role) {
			names = append(names, string(role))
		}
	}
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " or " + names[n]
	}
	return strings.Join(names, "")
}
