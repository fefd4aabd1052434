package auth

import (
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/pages"
)

// Held is a grant that a user has, and the group that gives it; without a group, the user
// has it itself.
type Held struct {
	Grant api.Grant
	Group api.GroupID
}

// GroupsOf returns the groups of which a user is a member, by ID. All of them belong to
// the user's organization.
func (a *Authenticator) GroupsOf(ctx context.Context, u api.User) ([]api.Group, error) {
	if u.Meta.Organization == "" {
		return nil, nil
	}
	all, err := pages.All[api.Group](ctx, a.opts.Store, api.ListQuery{Kind: api.KindGroup, Organization: u.Meta.Organization})
	return slices.DeleteFunc(all, func(g api.Group) bool { return !slices.Contains(g.Spec.Members, api.UserID(u.Meta.ID)) }), err
}

// Holds returns the grants that a user has, each once: its own first, then those of its
// groups. It reads the groups of the organization, so it is for the begin of a session;
// requests look up the one group of their session (holds).
func (a *Authenticator) Holds(ctx context.Context, u api.User) ([]Held, error) {
	var out []Held
	add := func(h Held) {
		if !slices.ContainsFunc(out, func(has Held) bool { return has.Grant == h.Grant }) {
			out = append(out, h)
		}
	}
	for _, g := range u.Spec.Grants {
		add(Held{Grant: g})
	}
	groups, err := a.GroupsOf(ctx, u)
	for _, group := range groups {
		for _, g := range group.Spec.Grants {
			if group.Gives(api.UserID(u.Meta.ID), g) {
				add(Held{g, api.GroupID(group.Meta.ID)})
			}
		}
	}
	return out, err
}

// Has reports whether a user still has a grant.
func (a *Authenticator) Has(ctx context.Context, u api.User, h Held) (bool, error) {
	if h.Group == "" {
		return slices.Contains(u.Spec.Grants, h.Grant), nil
	}
	o, err := a.opts.Store.Get(ctx, api.KindGroup, string(h.Group))
	if err != nil {
		if api.CodeOf(err) == api.CodeNotFound {
			err = nil
		}
		return false, err
	}
	g, err := api.Decode[api.Group](o)
	return err == nil && g.Gives(api.UserID(u.Meta.ID), h.Grant), err
}

// EndsWith reports whether an event takes a grant from a user: it concerns the user or the
// group that gives it.
func (h Held) EndsWith(e api.Event, user api.UserID) bool {
	switch m := e.Object.Meta; {
	case e.Object.Kind == api.KindGroup && h.Group != "" && m.ID == string(h.Group):
		g, err := api.Decode[api.Group](e.Object)
		return err != nil || e.Type == api.EventRemove || !g.Gives(user, h.Grant)
	case e.Object.Kind == api.KindUser && h.Group == "" && m.ID == string(user):
		u, err := api.Decode[api.User](e.Object)
		return err != nil || e.Type == api.EventRemove || !slices.Contains(u.Spec.Grants, h.Grant)
	}
	return false
}
