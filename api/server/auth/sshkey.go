package auth

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// SSHKeyOwner is the owner of an SSH key that lets him in, and the key. Every failure
// that is the caller's is the same error, of code unauthenticated.
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

// SSHIdentity is whom the SSH key of a user stands for by one of his grants.
func (a *Authenticator) SSHIdentity(ctx context.Context, u api.User, k api.SSHKey, g api.Grant) Identity {
	return Identity{ID: k.Meta.ID, kind: api.KindSSHKey, Name: u.Meta.Name, User: api.UserID(u.Meta.ID), Role: g.Role, Org: g.Organization, Project: g.Project,
		ParentOf: a.opts.ParentIn(ctx), pays: a.opts.PaysIn(ctx)}
}

// SSHFactor refuses an operation by an SSH key when the grant needs a second factor and
// the user, who has a password, has none.
func (a *Authenticator) SSHFactor(ctx context.Context, u api.User, g api.Grant, operation string) error {
	c := Credentials(u)
	if c.PasswordHash == "" || c.TotpSecret != "" {
		return nil
	}
	needs, err := a.requiresTotp(ctx, g)
	if err != nil {
		return err
	}
	return Identity{NeedsTotp: needs}.HasFactor(operation)
}
