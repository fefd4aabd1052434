package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// userSpec replaces the names in grants with IDs and validates. The caller can grant
// only rights that it has; the credentials are kept.
func (h *handlers) userSpec(ctx context.Context, s api.UserSpec, credentials *api.UserCredentials) (api.UserSpec, error) {
	if s.Credentials != nil {
		return s, api.Errorf(api.CodeInvalid, "must be empty: the server generates credentials").At("spec.credentials").WithHint("omit them")
	}
	s.Credentials = credentials
	s.Grants = slices.Clone(s.Grants)
	invalid := api.ValidateUser(s)
	if len(s.Grants) > api.MaxGrants {
		return s, invalid
	}
	var bad []error
	for i := range s.Grants {
		g, field := &s.Grants[i], fmt.Sprintf("spec.grants[%d].", i)
		err := h.grantScope(ctx, g, field)
		switch {
		case err != nil:
		case !who(ctx).Grants(g.Role, g.Organization, g.Project) && auth.RoleBits[g.Role] != 0:
			return s, api.Errorf(api.CodeForbidden, "role %s may not grant role %s in this scope", who(ctx).Role, g.Role).At(field + "role")
		case g.Role == api.RoleReseller:
			err = at(h.maySell(ctx, g.Organization), field+"role")
		}
		bad = append(bad, err)
	}
	if err := api.Join(bad...); err != nil {
		return s, api.Join(invalid, err)
	}
	return s, api.ValidateUser(s)
}

// grantScope replaces a grant's names with IDs.
func (h *handlers) grantScope(ctx context.Context, g *api.Grant, field string) error {
	if g.Organization != "" {
		o, err := h.find(ctx, api.KindOrganization, g.Organization, "", "")
		if err != nil {
			return at(err, field+"organization")
		}
		g.Organization = o.Meta.ID
	}
	if g.Project != "" {
		o, err := h.find(ctx, api.KindProject, g.Project, g.Organization, "")
		if err == nil && g.Organization != "" && g.Organization != o.Meta.Organization {
			err = notFound(api.KindProject, g.Project)
		}
		if err != nil {
			return at(err, field+"project")
		}
		g.Organization, g.Project = o.Meta.Organization, o.Meta.ID
	}
	return nil
}

// CreateUser creates a user without a password. The response contains the token that
// sets one, which is not stored, so there is no Idempotency-Key.
func (h *handlers) CreateUser(ctx context.Context, r in[none, api.User]) (*api.User, error) {
	in := *r.Body
	in.Meta.Name = api.Login(in.Meta.Name)
	m, placeErr := h.place(ctx, api.KindUser, in.Meta)
	if placeErr != nil && !ofMeta(placeErr) {
		return nil, placeErr
	}
	if !who(ctx).Reaches(m.Organization, "") {
		return nil, api.Errorf(api.CodeForbidden, "you may not manage users of this organization").At("meta.organization")
	}
	in.Spec.Terms, in.Spec.Scim = nil, nil // only the user can accept terms, and only a directory provisions
	id, credentials := newID(api.KindUser), &api.UserCredentials{}
	link := auth.NewPasswordLink(id, credentials, h.opts.Now())
	spec, err := h.userSpec(ctx, in.Spec, credentials)
	if err := api.Join(placeErr, err); err != nil {
		return nil, err
	}
	u, err := create[api.User](ctx, h, api.KindUser, id, m, spec, "")
	if api.CodeOf(err) == api.CodeConflict && err != nil {
		err = api.Errorf(api.CodeExists, "e-mail address %s is already used by another user", m.Name).At("meta.name")
	}
	if !dryRun(ctx) {
		u.Link = &link
	}
	return &u, err
}

// ListUsers pages through the users that the caller may see.
func (h *handlers) ListUsers(ctx context.Context, r in[api.ListUsersParams, none]) (*page[api.User], error) {
	p, err := list[api.User](ctx, h, api.KindUser, query{limit: r.Params.Limit, after: r.Params.Continue, name: api.Login(r.Params.Name), search: r.Params.Search, sort: r.Params.Sort, labels: r.Params.LabelSelector, fields: r.Params.FieldSelector, count: r.Params.Count, organization: r.Params.Organization})
	return &p, err
}

// changeUser changes name, labels and spec. It ends the sessions of removed grants, and
// all sessions of a disabled user.
func (h *handlers) changeUser(ctx context.Context, ref string, to api.User) (*api.User, error) {
	to.Meta.Name = api.Login(to.Meta.Name)
	o, err := update(ctx, h, api.KindUser, ref, to.Meta, func(old api.User) (any, error) {
		kept := auth.Credentials(old)
		if to.Spec.Disabled && !old.Spec.Disabled {
			kept.Epoch++
		}
		to.Spec.Terms, to.Spec.Scim = old.Spec.Terms, old.Spec.Scim
		if old.Spec.Scim != nil && old.Spec.Scim.Inactive && !to.Spec.Disabled {
			return nil, api.Errorf(api.CodeInvalid, "the directory of the organization has deactivated this user").At("spec.disabled").WithHint("activate the user there")
		}
		return h.userSpec(ctx, to.Spec, &kept)
	})
	return &o, err
}

// userDeleted returns the commands that delete a user's sessions, SSH keys and external
// identities with the user.
func (h *handlers) userDeleted(ctx context.Context, u api.User) ([]api.Command, error) {
	mine, err := h.auth.SessionsOf(ctx, api.UserID(u.Meta.ID))
	if err != nil {
		return nil, fmt.Errorf("list the sessions of user %s: %w", u.Meta.ID, err)
	}
	known, err := all[api.Project](ctx, h, api.ListQuery{Kind: api.KindExternalIdentity, Project: u.Meta.ID})
	if err != nil {
		return nil, err
	}
	keys, err := h.sshKeysOf(ctx, api.UserID(u.Meta.ID))
	if err != nil {
		return nil, err
	}
	with := auth.EndAll(mine)
	left, err := h.leaveGroups(ctx, u)
	if err != nil {
		return nil, err
	}
	with = append(with, left...)
	for _, k := range keys {
		with = append(with, api.Command{Op: api.OpDelete, Kind: api.KindSSHKey, ID: k.Meta.ID, Expect: api.AnyRevision})
	}
	for _, k := range known {
		with = append(with, api.Command{Op: api.OpDelete, Kind: api.KindExternalIdentity, ID: k.Meta.ID, Expect: api.AnyRevision})
	}
	return with, nil
}

// ResetUser invalidates a user's password that was lost or disclosed.
func (h *handlers) ResetUser(ctx context.Context, r in[none, api.UserReset]) (*api.PasswordLink, error) {
	o, err := h.own(ctx, api.KindUser, r.ID)
	if err != nil {
		return nil, err
	}
	u, err := api.Decode[api.User](o)
	if err != nil {
		return nil, err
	}
	c := auth.Credentials(u)
	c.PasswordHash, c.Epoch = "", c.Epoch+1
	if r.Body.Totp {
		c.TotpSecret, c.TotpPending, c.RecoveryCodes, c.Passkeys = "", "", nil, nil
	}
	link := auth.NewPasswordLink(u.Meta.ID, &c, h.opts.Now())
	if err := h.auth.WriteCredentials(ctx, u, c); err != nil {
		return nil, fmt.Errorf("reset user %s: %w", u.Meta.ID, err)
	}
	return &link, nil
}

// DeletePasskey deletes one of the caller's passkeys.
func (h *handlers) DeletePasskey(ctx context.Context, r in[none, api.PasskeyDelete]) (*api.Passkey, error) {
	p, err := h.auth.DeletePasskey(ctx, r.ID, r.Body)
	if err != nil {
		return nil, fmt.Errorf("delete passkey %s: %w", r.ID, err)
	}
	return p, nil
}

// shownStatus returns which credentials a user has, and nothing else about them.
func shownStatus(u api.User, verified bool) api.UserStatus {
	c := auth.Credentials(u)
	return api.UserStatus{Verified: verified, HasPassword: c.PasswordHash != "", Totp: c.TotpSecret != "", Passkeys: len(c.Passkeys), LastLoginAt: u.Status.LastLoginAt,
		Failures: u.Status.Failures, FailedAt: u.Status.FailedAt}
}
