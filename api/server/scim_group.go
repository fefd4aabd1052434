package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/scim"
)

// ofDirectory returns a group that the organization's directory manages; others do not
// exist for it.
func (r scimRequest) ofDirectory(o api.Object) (api.Group, bool, error) {
	if o.Kind != api.KindGroup || o.Meta.Organization != r.org || o.Meta.DeletedAt != nil {
		return api.Group{}, false, nil
	}
	g, err := api.Decode[api.Group](o)
	return g, err == nil && g.Spec.Source == api.GroupScim, err
}

func (r scimRequest) group(ctx context.Context, id string) (api.Group, api.Object, error) {
	o, err := r.opts.Store.Get(ctx, api.KindGroup, id)
	if err != nil {
		return api.Group{}, o, fmt.Errorf("read group %s: %w", id, err)
	}
	g, ok, err := r.ofDirectory(o)
	if err == nil && !ok {
		err = notFound(api.KindGroup, id)
	}
	return g, o, err
}

func (r scimRequest) asGroup(g api.Group) scim.Group {
	out := scim.Group{Meta: scim.Meta{ID: g.Meta.ID, ExternalID: g.Spec.ExternalID, Created: g.Meta.CreatedAt, Location: r.base + "/Groups/" + g.Meta.ID}, DisplayName: g.Spec.DisplayName}
	for _, m := range g.Spec.Members {
		out.Members = append(out.Members, string(m))
	}
	slices.Sort(out.Members)
	return out
}

func (r scimRequest) listGroups(ctx context.Context) (scimAnswer, error) {
	f, err := scim.GroupFilter(r.http.URL.Query().Get("filter"))
	if err != nil {
		return scimAnswer{}, fmt.Errorf("parse the filter of groups: %w", err)
	}
	return r.list(ctx, api.ListQuery{Kind: api.KindGroup}, func(o api.Object) (map[string]any, error) {
		g, ok, err := r.ofDirectory(o)
		if err != nil || !ok {
			return nil, err
		}
		if as := r.asGroup(g); f.SelectsGroup(as) {
			return r.want.Group(as), nil
		}
		return nil, nil
	})
}

func (r scimRequest) getGroup(ctx context.Context) (scimAnswer, error) {
	g, _, err := r.group(ctx, r.id)
	if err != nil {
		return scimAnswer{}, err
	}
	return scimAnswer{http.StatusOK, r.want.Group(r.asGroup(g))}, nil
}

// scimGroupName returns the name of a group, which is unique in the organization, for a
// display name, which may be any text.
func scimGroupName(displayName string) string {
	sum := sha256.Sum256([]byte(displayName))
	var b strings.Builder
	for _, c := range strings.ToLower(displayName) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 32 {
			break
		}
	}
	return "scim-" + strings.TrimPrefix(strings.Trim(b.String(), "-")+"-"+hex.EncodeToString(sum[:4]), "-")
}

func (r scimRequest) createGroup(ctx context.Context) (scimAnswer, error) {
	in, err := scim.ReadGroup(r.body, scim.Group{})
	if err != nil {
		return scimAnswer{}, fmt.Errorf("parse the group: %w", err)
	}
	m, err := r.place(ctx, api.KindGroup, api.Meta{Name: scimGroupName(in.DisplayName), Organization: r.org})
	if err != nil {
		return scimAnswer{}, err
	}
	spec, err := r.groupOf(ctx, m, api.GroupSpec{Source: api.GroupScim}, in)
	if err != nil {
		return scimAnswer{}, err
	}
	g, err := create[api.Group](ctx, r.handlers, api.KindGroup, newID(api.KindGroup), m, spec, "")
	if err != nil {
		return scimAnswer{}, groupTaken(err, in.DisplayName)
	}
	return scimAnswer{http.StatusCreated, r.want.Group(r.asGroup(g))}, nil
}

func groupTaken(err error, name string) error {
	if api.CodeOf(err) == api.CodeExists {
		return scimTaken("group %.64q already exists", name)
	}
	return err
}

// groupOf returns a group's spec with the attributes of the directory; its roles stay.
// New members must be users that the directory has provisioned.
func (r scimRequest) groupOf(ctx context.Context, m api.Meta, s api.GroupSpec, in scim.Group) (api.GroupSpec, error) {
	was := s.Members
	s.DisplayName, s.ExternalID, s.Members = in.DisplayName, in.ExternalID, nil
	if len(in.Members) > api.MaxGroupMembers {
		return s, &scim.Error{Status: http.StatusBadRequest, Type: scim.InvalidValue, Detail: "a group can have 1000 members"}
	}
	for _, id := range in.Members {
		if !slices.Contains(was, api.UserID(id)) {
			_, o, err := r.user(ctx, id)
			if api.CodeOf(err) == api.CodeNotFound && err != nil {
				return s, &scim.Error{Status: http.StatusBadRequest, Type: scim.InvalidValue, Detail: "member " + id + " is not a provisioned user of this organization"}
			}
			if err == nil && !who(ctx).Owns(o) {
				err = api.Errorf(api.CodeForbidden, "user %s has roles outside of this organization and cannot be added", id)
			}
			if err != nil {
				return s, err
			}
		}
		s.Members = append(s.Members, api.UserID(id))
	}
	return s, api.ValidateGroup(m, s)
}

func (r scimRequest) replaceGroup(ctx context.Context) (scimAnswer, error) {
	return r.changeGroup(ctx, func(was scim.Group) (scim.Group, error) { return scim.ReadGroup(r.body, was) })
}

func (r scimRequest) patchGroup(ctx context.Context) (scimAnswer, error) {
	return r.changeGroup(ctx, func(was scim.Group) (scim.Group, error) { return scim.PatchGroup(r.body, was) })
}

func (r scimRequest) changeGroup(ctx context.Context, change func(scim.Group) (scim.Group, error)) (scimAnswer, error) {
	return r.again(ctx, func() (scimAnswer, error) {
		g, o, err := r.group(ctx, r.id)
		if err != nil {
			return scimAnswer{}, err
		}
		if !who(ctx).Owns(o) {
			return scimAnswer{}, api.Errorf(api.CodeForbidden, "group %s has roles that this key could not grant", g.Meta.Name)
		}
		was := r.asGroup(g)
		now, err := change(was)
		if err != nil {
			return scimAnswer{}, err
		}
		if now.DisplayName == was.DisplayName && now.ExternalID == was.ExternalID && slices.Equal(now.Members, was.Members) {
			return scimAnswer{http.StatusOK, r.want.Group(was)}, nil
		}
		m := o.Meta
		if now.DisplayName != was.DisplayName {
			m.Name = scimGroupName(now.DisplayName)
		}
		spec, err := r.groupOf(ctx, m, g.Spec, now)
		if err != nil {
			return scimAnswer{}, err
		}
		if g, err = put[api.Group](ctx, r.handlers, o, m, spec, nil); err != nil {
			return scimAnswer{}, groupTaken(err, now.DisplayName)
		}
		return scimAnswer{http.StatusOK, r.want.Group(r.asGroup(g))}, nil
	})
}

func (r scimRequest) deleteGroup(ctx context.Context) (scimAnswer, error) {
	g, _, err := r.group(ctx, r.id)
	if err == nil {
		_, err = remove[api.Group](ctx, r.handlers, api.KindGroup, g.Meta.ID)
	}
	return scimAnswer{status: http.StatusNoContent}, err
}
