package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// soldBy is the label of users that were created for services; its value is the
// installation. Only such users are shared between services, so that nobody gets access
// to another person's account by giving their address to a billing system.
const soldBy = "basalt/installation"

func grantOf(s api.ServiceSpec) api.Grant {
	return api.Grant{Role: api.RoleAdmin, Organization: string(s.Organization)}
}

// userOfSeller returns a seller's user with that address, or a zero user. Operators'
// own users have cluster-wide addresses, so an operator gets an error if a user of
// another organization has the address.
func (h *handlers) userOfSeller(ctx context.Context, seller, email string) (api.User, error) {
	found, err := all[api.User](ctx, h, api.ListQuery{Kind: api.KindUser, Name: email})
	if err != nil {
		return api.User{}, err
	}
	if i := slices.IndexFunc(found, func(u api.User) bool { return u.Meta.Organization == seller }); i >= 0 {
		return found[i], nil
	}
	if who(ctx).Role == api.RoleOperator {
		u, err := h.auth.UserFor(ctx, email, "")
		if err != nil {
			return u, fmt.Errorf("find the user of a service of reseller %s: %w", seller, err)
		}
		return u, nil
	}
	return api.User{}, nil
}

// granted returns the commands that grant a service to the user with its address, who
// is created if necessary.
func (h *handlers) granted(ctx context.Context, seller, installation string, s api.ServiceSpec) (api.UserID, []api.Command, error) {
	u, err := h.userOfSeller(ctx, seller, s.Email)
	if err != nil {
		return "", nil, err
	}
	g := grantOf(s)
	if u.Meta.ID == "" {
		id := newID(api.KindUser)
		spec := api.UserSpec{DisplayName: s.DisplayName, Grants: []api.Grant{g}, Credentials: &api.UserCredentials{}}
		return api.UserID(id), []api.Command{{Op: api.OpPutSpec, Kind: api.KindUser, ID: id, Name: s.Email, Organization: seller,
			Labels: map[string]string{soldBy: installation}, Claims: claimsOf(ctx, api.KindUser, "", s.Email, spec), Data: api.Encode(spec)}}, nil
	}
	others := func(g api.Grant) bool { return g.Role == api.RoleOperator || g.Role == api.RoleReseller }
	if u.Meta.Organization != seller || u.Meta.Labels[soldBy] != installation || slices.ContainsFunc(u.Spec.Grants, others) {
		return "", nil, api.Errorf(api.CodeExists, "e-mail address %s is already used by another user", s.Email).At("spec.email").WithHint("use another e-mail address")
	}
	if slices.Contains(u.Spec.Grants, g) {
		return api.UserID(u.Meta.ID), nil, nil
	}
	u.Spec.Grants = append(slices.Clone(u.Spec.Grants), g)
	return api.UserID(u.Meta.ID), []api.Command{putUser(u)}, api.ValidateUser(u.Spec)
}

// ungranted returns the commands that remove the service's grant from its user, who is
// deleted with the last one.
func (h *handlers) ungranted(ctx context.Context, s api.Service) ([]api.Command, error) {
	o, err := h.opts.Store.Get(ctx, api.KindUser, string(s.Spec.User))
	if api.CodeOf(err) == api.CodeNotFound && err != nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read user %s: %w", s.Spec.User, err)
	}
	u, err := api.Decode[api.User](o)
	if err != nil {
		return nil, err
	}
	org := string(s.Spec.Organization)
	u.Spec.Grants = slices.DeleteFunc(slices.Clone(u.Spec.Grants), func(g api.Grant) bool { return g.Organization == org })
	if len(u.Spec.Grants) > 0 || u.Meta.Labels[soldBy] == "" {
		return []api.Command{putUser(u)}, nil
	}
	sessions, err := h.auth.SessionsOf(ctx, api.UserID(u.Meta.ID))
	return append(auth.EndAll(sessions), api.Command{Op: api.OpDelete, Kind: api.KindUser, ID: u.Meta.ID, Expect: u.Meta.Revision}), err
}

// regranted moves a service to another address: its user is renamed if it has no other
// grants; otherwise the service is granted to another user.
func (h *handlers) regranted(ctx context.Context, old api.Service, want api.ServiceSpec, revived bool) ([]api.Command, api.UserID, error) {
	installation, _, err := api.ParseServiceName(old.Meta.Name)
	if err != nil {
		return nil, "", err
	}
	var left []api.Command
	if !revived {
		o, err := h.opts.Store.Get(ctx, api.KindUser, string(old.Spec.User))
		if err == nil {
			u, err := api.Decode[api.User](o)
			if err != nil {
				return nil, "", err
			}
			there, err := h.userOfSeller(ctx, old.Meta.Organization, want.Email)
			if err != nil {
				return nil, "", err
			}
			if there.Meta.ID == "" && len(u.Spec.Grants) == 1 && u.Meta.Labels[soldBy] == installation {
				cmd := putUser(u)
				cmd.Name, cmd.Claims = want.Email, claimsOf(ctx, api.KindUser, u.Meta.Name, want.Email, nil)
				return []api.Command{cmd}, old.Spec.User, nil
			}
		}
		if left, err = h.ungranted(ctx, old); err != nil {
			return nil, "", err
		}
	}
	user, cmds, err := h.granted(ctx, old.Meta.Organization, installation, want)
	return append(left, cmds...), user, err
}

func putUser(u api.User) api.Command {
	return api.Command{Op: api.OpPutSpec, Kind: api.KindUser, ID: u.Meta.ID, Expect: u.Meta.Revision, Labels: u.Meta.Labels, Data: api.Encode(u.Spec)}
}

// userOf returns a service and its user.
func (h *handlers) userOf(ctx context.Context, ref string) (api.Service, api.User, error) {
	s, err := h.service(ctx, ref)
	if err != nil {
		return s, api.User{}, err
	}
	o, err := h.opts.Store.Get(ctx, api.KindUser, string(s.Spec.User))
	if s.Spec.TerminatedAt != nil || api.CodeOf(err) == api.CodeNotFound && err != nil {
		return s, api.User{}, api.Errorf(api.CodeState, "service %s has no user", s.Meta.Name).WithHint("it may have ended; otherwise create it again: PUT /v1/services/…")
	}
	if err != nil {
		return s, api.User{}, fmt.Errorf("read user %s: %w", s.Spec.User, err)
	}
	u, err := api.Decode[api.User](o)
	return s, u, err
}

// SetServicePassword sets the password of the service's user.
func (h *handlers) SetServicePassword(ctx context.Context, r in[none, api.ServicePassword]) (*api.Service, error) {
	var hash string
	s, err := h.again(ctx, func() (api.Service, error) {
		s, u, err := h.userOf(ctx, r.ID)
		if err != nil {
			return s, err
		}
		if err := api.ValidatePassword("password", r.Body.Password, u.Meta.Name); err != nil {
			return s, err
		}
		if hash == "" {
			if hash, err = h.opts.Passwords.Hash(ctx, r.Body.Password); err != nil {
				return s, fmt.Errorf("hash the password of user %s: %w", s.Spec.User, err)
			}
		}
		c := auth.Credentials(u)
		c.PasswordHash, c.LinkHash, c.LinkExpiresAt, c.Epoch = hash, "", nil, c.Epoch+1
		return s, h.auth.WriteCredentials(ctx, u, c)
	})
	return &s, err
}
