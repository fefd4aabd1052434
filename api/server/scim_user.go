package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
	"github.com/basalt-gpu/basalt/api/server/scim"
)

// provisioned returns a user that the organization's directory manages; others do not
// exist for it, whoever created them.
func (r scimRequest) provisioned(o api.Object) (api.User, bool, error) {
	if o.Kind != api.KindUser || o.Meta.Organization != r.org || o.Meta.DeletedAt != nil {
		return api.User{}, false, nil
	}
	u, err := api.Decode[api.User](o)
	return u, err == nil && u.Spec.Scim != nil, err
}

// user returns the user with an ID, and its object.
func (r scimRequest) user(ctx context.Context, id string) (api.User, api.Object, error) {
	o, err := r.opts.Store.Get(ctx, api.KindUser, id)
	if err != nil {
		return api.User{}, o, fmt.Errorf("read user %s: %w", id, err)
	}
	u, ok, err := r.provisioned(o)
	if err == nil && !ok {
		err = notFound(api.KindUser, id)
	}
	return u, o, err
}

func (r scimRequest) asUser(u api.User) scim.User {
	return scim.User{Meta: scim.Meta{ID: u.Meta.ID, ExternalID: u.Spec.Scim.ExternalID, Created: u.Meta.CreatedAt, Location: r.base + "/Users/" + u.Meta.ID},
		UserName: u.Meta.Name, DisplayName: u.Spec.DisplayName, GivenName: u.Spec.Scim.GivenName, FamilyName: u.Spec.Scim.FamilyName, Active: !u.Spec.Disabled}
}

func (r scimRequest) listUsers(ctx context.Context) (scimAnswer, error) {
	f, err := scim.UserFilter(r.http.URL.Query().Get("filter"))
	if err != nil {
		return scimAnswer{}, fmt.Errorf("parse the filter of users: %w", err)
	}
	q := api.ListQuery{Kind: api.KindUser}
	if name, ok := f.Equal("userName"); ok { // the store has an index of names
		if q.Name = api.Login(name); q.Name == "" {
			return r.list(ctx, q, func(api.Object) (map[string]any, error) { return nil, nil })
		}
	}
	return r.list(ctx, q, func(o api.Object) (map[string]any, error) {
		u, ok, err := r.provisioned(o)
		if err != nil || !ok {
			return nil, err
		}
		if as := r.asUser(u); f.SelectsUser(as) {
			return r.want.User(as), nil
		}
		return nil, nil
	})
}

func (r scimRequest) getUser(ctx context.Context) (scimAnswer, error) {
	u, _, err := r.user(ctx, r.id)
	if err != nil {
		return scimAnswer{}, err
	}
	return scimAnswer{http.StatusOK, r.want.User(r.asUser(u))}, nil
}

func (r scimRequest) createUser(ctx context.Context) (scimAnswer, error) {
	in, err := scim.ReadUser(r.body, scim.User{Active: true})
	if err != nil {
		return scimAnswer{}, fmt.Errorf("parse the user: %w", err)
	}
	m, err := r.place(ctx, api.KindUser, api.Meta{Name: api.Login(in.UserName), Organization: r.org})
	if err != nil {
		return scimAnswer{}, userNameError(err)
	}
	spec := api.UserSpec{Credentials: &api.UserCredentials{}}
	writeScimUser(&spec, in)
	if err := validateScimUser(spec); err != nil {
		return scimAnswer{}, err
	}
	u, err := create[api.User](ctx, r.handlers, api.KindUser, newID(api.KindUser), m, spec, "")
	if err != nil {
		return scimAnswer{}, r.nameTaken(err, m.Name)
	}
	return scimAnswer{http.StatusCreated, r.want.User(r.asUser(u))}, nil
}

// nameTaken explains an error about an address that another user of the organization has.
func (r scimRequest) nameTaken(err error, name string) error {
	if api.CodeOf(err) == api.CodeExists {
		return scimTaken("user %s already exists in this organization and cannot be taken over: delete the user in Basalt, or keep it and do not provision this address", name)
	}
	return err
}

func userNameError(err error) error {
	if e := domainError(err); e != nil && e.Field == "meta.name" {
		return api.Errorf(api.CodeInvalid, "%s", e.Message).At("userName").WithHint("map userName to the e-mail address in the directory")
	}
	return err
}

// writeScimUser writes the attributes of a directory's user to a spec. A user whom an
// admin has disabled stays disabled until an admin enables it.
func writeScimUser(s *api.UserSpec, in scim.User) {
	was := api.UserScim{}
	if s.Scim != nil {
		was = *s.Scim
	}
	byAdmin := s.Disabled && !was.Inactive
	s.DisplayName = in.DisplayName
	s.Scim = &api.UserScim{ExternalID: in.ExternalID, GivenName: in.GivenName, FamilyName: in.FamilyName, Inactive: !in.Active && !byAdmin}
	s.Disabled = byAdmin || s.Scim.Inactive
}

func validateScimUser(s api.UserSpec) error {
	if err := api.ValidateUserScim(*s.Scim); err != nil {
		return err
	}
	return api.ValidateUser(s)
}

func (r scimRequest) replaceUser(ctx context.Context) (scimAnswer, error) {
	return r.changeUser(ctx, func(was scim.User) (scim.User, error) { return scim.ReadUser(r.body, was) })
}

func (r scimRequest) patchUser(ctx context.Context) (scimAnswer, error) {
	return r.changeUser(ctx, func(was scim.User) (scim.User, error) { return scim.PatchUser(r.body, was) })
}

func (r scimRequest) changeUser(ctx context.Context, change func(scim.User) (scim.User, error)) (scimAnswer, error) {
	return r.again(ctx, func() (scimAnswer, error) {
		u, o, err := r.user(ctx, r.id)
		if err != nil {
			return scimAnswer{}, err
		}
		was := r.asUser(u)
		now, err := change(was)
		if err != nil {
			return scimAnswer{}, err
		}
		now.UserName = api.Login(now.UserName)
		if now == was {
			return scimAnswer{http.StatusOK, r.want.User(was)}, nil
		}
		u, err = r.writeUser(ctx, u, o, was, now)
		if err != nil {
			return scimAnswer{}, r.nameTaken(err, now.UserName)
		}
		return scimAnswer{http.StatusOK, r.want.User(r.asUser(u))}, nil
	})
}

// writeUser writes a changed user. Anybody can be deactivated; a user who has roles that
// an admin of the organization could not grant cannot be changed otherwise, as the
// directory would gain these roles.
func (r scimRequest) writeUser(ctx context.Context, u api.User, o api.Object, was, now scim.User) (api.User, error) {
	ends := was
	ends.Active = false
	if now != ends && !who(ctx).Owns(o) {
		return u, api.Errorf(api.CodeForbidden, "user %s has roles outside of this organization: it can only be deactivated", was.UserName)
	}
	if err := userNameError(newName(api.KindUser, was.UserName, now.UserName)); err != nil {
		return u, err
	}
	disabled := u.Spec.Disabled
	writeScimUser(&u.Spec, now)
	if err := validateScimUser(u.Spec); err != nil {
		return u, err
	}
	var with []api.Command
	if u.Spec.Disabled && !disabled {
		c := auth.Credentials(u)
		c.Epoch++
		u.Spec.Credentials = &c
		sessions, err := r.auth.SessionsOf(ctx, api.UserID(u.Meta.ID))
		if err != nil {
			return u, fmt.Errorf("list the sessions of user %s: %w", u.Meta.ID, err)
		}
		with = auth.EndAll(sessions)
	}
	m := o.Meta
	m.Name = now.UserName
	return put[api.User](ctx, r.handlers, o, m, u.Spec, with)
}

func (r scimRequest) deleteUser(ctx context.Context) (scimAnswer, error) {
	return r.again(ctx, func() (scimAnswer, error) {
		u, o, err := r.user(ctx, r.id)
		if err != nil {
			return scimAnswer{}, err
		}
		if !who(ctx).Owns(o) {
			return scimAnswer{}, api.Errorf(api.CodeForbidden, "user %s has roles outside of this organization: it can only be deactivated", u.Meta.Name)
		}
		with, err := r.userDeleted(ctx, u)
		if err == nil {
			_, err = remove[api.User](ctx, r.handlers, api.KindUser, u.Meta.ID, with...)
		}
		return scimAnswer{status: http.StatusNoContent}, err
	})
}
