package auth

import (
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/pages"
)

// claimedTries is how often a sign-in writes its user's memberships, while other sign-ins
// change the same groups.
const claimedTries = 5

// groupsDecidedBy returns the groups whose members an identity provider decides.
func (a *Authenticator) groupsDecidedBy(ctx context.Context, p api.IdentityProvider) ([]api.Group, error) {
	if p.UsersOrganization() == "" {
		return nil, nil
	}
	all, err := pages.All[api.Group](ctx, a.opts.Store, api.ListQuery{Kind: api.KindGroup, Organization: p.UsersOrganization()})
	return slices.DeleteFunc(all, func(g api.Group) bool {
		return g.Spec.Source != api.GroupIdentityProvider || string(g.Spec.IdentityProvider) != p.Meta.ID
	}), err
}

// claimedGroups returns the groups that claims make their subject a member of.
func (a *Authenticator) claimedGroups(ctx context.Context, p api.IdentityProvider, claims map[string]any) ([]api.Group, error) {
	all, err := a.groupsDecidedBy(ctx, p)
	return slices.DeleteFunc(all, func(g api.Group) bool { return !g.ClaimedBy(p.Spec.GroupsClaim, claims) }), err
}

// joinClaimed adds a user to the groups of its claims, and removes it from the provider's
// other groups.
func (a *Authenticator) joinClaimed(ctx context.Context, p api.IdentityProvider, claims map[string]any, u api.User) error {
	for try := 1; ; try++ {
		all, err := a.groupsDecidedBy(ctx, p)
		if err != nil {
			return err
		}
		var cmds []api.Command
		for _, g := range all {
			wants := u.Meta.Organization == g.Meta.Organization && g.ClaimedBy(p.Spec.GroupsClaim, claims)
			if !setMember(&g, api.UserID(u.Meta.ID), wants) {
				continue
			}
			if len(g.Spec.Members) > api.MaxGroupMembers {
				a.opts.Log.Warn("group is full", "group", g.Meta.Name, "user", u.Meta.Name, "members", api.MaxGroupMembers)
				continue
			}
			cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindGroup, ID: g.Meta.ID, Expect: g.Meta.Revision, Name: g.Meta.Name, Labels: g.Meta.Labels, Data: api.Encode(g.Spec)})
		}
		if len(cmds) == 0 {
			return nil
		}
		if err = a.applied(ctx, cmds...); err == nil || api.CodeOf(err) != api.CodeConflict || try == claimedTries {
			return err
		}
	}
}

// setMember adds a user to a group or removes it, and reports whether that changes the
// group.
func setMember(g *api.Group, user api.UserID, member bool) bool {
	if slices.Contains(g.Spec.Members, user) == member {
		return false
	}
	members := slices.DeleteFunc(slices.Clone(g.Spec.Members), func(m api.UserID) bool { return m == user })
	if member {
		members = append(members, user)
		slices.Sort(members)
	}
	g.Spec.Members = members
	return true
}
