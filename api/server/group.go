package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
	"github.com/basalt-gpu/basalt/api/server/pages"
)

// groupSpec replaces names with IDs and validates. The caller can give a group only roles
// that it could grant to each member, and members that it may change; what a directory or
// an identity provider decides stays as it is.
func (h *handlers) groupSpec(ctx context.Context, m api.Meta, old *api.Group, s api.GroupSpec) (api.GroupSpec, error) {
	var was api.GroupSpec
	if old != nil {
		was = old.Spec
	}
	s.Source = cmp.Or(s.Source, was.Source, api.GroupLocal)
	s.Grants, s.Members = slices.Clone(s.Grants), slices.Clone(s.Members)
	if len(s.Grants) > api.MaxGroupGrants || len(s.Members) > api.MaxGroupMembers {
		return s, api.ValidateGroup(m, s)
	}
	if err := h.groupGrants(ctx, m, s.Grants); err != nil {
		return s, err
	}
	bad := []error{h.groupMembers(ctx, m, was.Members, s.Members)}
	if s.IdentityProvider != "" {
		p, err := h.providerOf(ctx, m.Organization, string(s.IdentityProvider))
		bad = append(bad, at(err, "spec.identityProvider"))
		s.IdentityProvider = p
	}
	slices.Sort(s.Members)
	s.Members = slices.Compact(s.Members)
	bad = append(bad, decidedElsewhere(m, old, s))
	if err := api.Join(bad...); err != nil {
		return s, err
	}
	return s, api.ValidateGroup(m, s)
}

// groupGrants replaces the names in a group's grants with IDs.
func (h *handlers) groupGrants(ctx context.Context, m api.Meta, grants []api.Grant) error {
	var bad []error
	for i := range grants {
		g, field := &grants[i], fmt.Sprintf("spec.grants[%d].", i)
		if g.Organization == "" && g.Role != api.RoleOperator {
			g.Organization = m.Organization
		}
		err := h.grantScope(ctx, g, field)
		if err == nil && !who(ctx).Grants(g.Role, g.Organization, g.Project) && auth.RoleBits[g.Role] != 0 {
			return api.Errorf(api.CodeForbidden, "role %s may not grant role %s in this scope", who(ctx).Role, g.Role).At(field + "role")
		}
		bad = append(bad, err)
	}
	return api.Join(bad...)
}

// groupMembers replaces the names in a group's members with IDs. New members must be users
// of the organization that the caller may change.
func (h *handlers) groupMembers(ctx context.Context, m api.Meta, was, members []api.UserID) error {
	var bad []error
	for i, ref := range members {
		if slices.Contains(was, ref) {
			continue
		}
		field := fmt.Sprintf("spec.members[%d]", i)
		name := string(ref)
		if strings.Contains(name, "@") {
			name = api.Login(name)
		}
		o, err := h.find(ctx, api.KindUser, name, m.Organization, "")
		switch {
		case err == nil && o.Meta.Organization != m.Organization:
			err = notFound(api.KindUser, name)
		case err == nil && !slices.Contains(was, api.UserID(o.Meta.ID)) && !who(ctx).Owns(o):
			return api.Errorf(api.CodeForbidden, "you may not change user %s, who has roles elsewhere", o.Meta.Name).At(field)
		}
		bad = append(bad, at(err, field))
		members[i] = api.UserID(o.Meta.ID)
	}
	return api.Join(bad...)
}

// providerOf returns the ID of an identity provider whose users belong to the
// organization: one of its own, or of the operators'. Admins cannot list the latter, but
// their names are public.
func (h *handlers) providerOf(ctx context.Context, organization, ref string) (api.IdentityProviderID, error) {
	one, there, err := api.Find[api.IdentityProvider](ctx, h.opts.Store, api.KindIdentityProvider, ref)
	if err != nil {
		return "", err
	}
	found := []api.IdentityProvider{one}
	if !there {
		if found, err = pages.All[api.IdentityProvider](ctx, h.opts.Store, api.ListQuery{Kind: api.KindIdentityProvider, Name: ref}); err != nil {
			return "", err
		}
	}
	found = slices.DeleteFunc(found, func(p api.IdentityProvider) bool {
		return ref == "" || organization == "" || p.UsersOrganization() != organization
	})
	switch len(found) {
	case 0:
		return "", notFound(api.KindIdentityProvider, ref).WithHint("want one of the organization of the group, or one of the operators with that spec.organization")
	case 1:
		return api.IdentityProviderID(found[0].Meta.ID), nil
	}
	return "", api.Errorf(api.CodeInvalid, "both the organization and an operator have an identity provider named %s", ref).WithHint("use its ID")
}

// decidedElsewhere returns an error if a change by a person concerns what the source of a
// group decides.
func decidedElsewhere(m api.Meta, old *api.Group, s api.GroupSpec) error {
	var was api.GroupSpec
	switch {
	case old != nil && s.Source != old.Spec.Source:
		return api.Errorf(api.CodeInvalid, "the source of a group cannot change").At("spec.source").WithHint("create another group")
	case old == nil && s.Source == api.GroupScim:
		return api.Errorf(api.CodeInvalid, "groups of source %s are created by a directory", s.Source).At("spec.source").WithHint("assign the group to Basalt in the directory")
	case s.Source == api.GroupLocal || !slices.Contains([]api.GroupSource{api.GroupIdentityProvider, api.GroupScim}, s.Source):
		return nil
	case old != nil:
		was = old.Spec
	}
	if !slices.Equal(s.Members, slices.Sorted(slices.Values(was.Members))) {
		return api.Errorf(api.CodeInvalid, "the members of a group of source %s cannot be changed here", s.Source).At("spec.members").WithHint("change them where they come from, or use a group of source %s", api.GroupLocal)
	}
	if s.Source == api.GroupScim && (m.Name != old.Meta.Name || s.DisplayName != was.DisplayName || s.ExternalID != was.ExternalID) {
		return api.Errorf(api.CodeInvalid, "the directory decides the name, display name and external ID of the group").At("spec.displayName").WithHint("change them there")
	}
	return nil
}

// leaveGroups returns the commands that remove a user from its groups.
func (h *handlers) leaveGroups(ctx context.Context, u api.User) ([]api.Command, error) {
	in, err := h.auth.GroupsOf(ctx, u)
	var out []api.Command
	for _, g := range in {
		g.Spec.Members = slices.DeleteFunc(g.Spec.Members, func(m api.UserID) bool { return string(m) == u.Meta.ID })
		out = append(out, putGroup(g))
	}
	if err != nil {
		return nil, fmt.Errorf("read the groups of user %s: %w", u.Meta.ID, err)
	}
	return out, nil
}

// putGroup returns the command that writes a group at the revision that was read.
func putGroup(g api.Group) api.Command {
	return api.Command{Op: api.OpPutSpec, Kind: api.KindGroup, ID: g.Meta.ID, Expect: g.Meta.Revision, Name: g.Meta.Name, Labels: g.Meta.Labels, Data: api.Encode(g.Spec)}
}
