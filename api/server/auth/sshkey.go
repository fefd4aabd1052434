package auth

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// SSHKeyOwner returns an SSH key and its owner. The error is of code unauthenticated,
// and always the same, when the key is unknown, deleted or expired, or its owner is
// disabled or deleted.
func (a *Authenticator) SSHKeyOwner(ctx context.Context, id api.SSHKeyID) (u api.User, k api.SSHKey, err error) {
	if k, err = stored[api.SSHKey](ctx, a, api.KindSSHKey, string(id)); err != nil {
		return u, k, err
	}
	if u, err = stored[api.User](ctx, a, api.KindUser, string(k.Spec.User)); err != nil {
		return u, k, err
	}
	end := k.Spec.ExpiresAt
	if end != nil && !a.opts.Now().Before(*end) || k.Meta.DeletedAt != nil || u.Meta.DeletedAt != nil || u.Spec.Disabled {
		return u, k, errRefused
	}
	return u, k, nil
}

// SSHIdentity returns the identity of a user who signs in with an SSH key, with the
// rights of one of their grants.
func (a *Authenticator) SSHIdentity(ctx context.Context, u api.User, k api.SSHKey, g api.Grant) Identity {
	return Identity{ID: k.Meta.ID, kind: api.KindSSHKey, Name: u.Meta.Name, User: api.UserID(u.Meta.ID), Role: g.Role, Org: g.Organization, Project: g.Project,
		ParentOf: a.opts.ParentIn(ctx), pays: a.opts.PaysIn(ctx)}
}

// SSHFactor returns an error of code forbidden if the grant requires a second factor
// for the operation and the user has a password without one.
func (a *Authenticator) SSHFactor(ctx context.Context, u api.User, g api.Grant, operation string) error {
	c := Credentials(u)
	if c.PasswordHash == "" || hasFactor(c) {
		return nil
	}
	needs, err := a.requiresTotp(ctx, g)
	if err != nil {
		return err
	}
	return Identity{NeedsTotp: needs}.HasFactor(operation)
}
