package server

import (
	"context"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// CreateAPIKey creates a key with at most the caller's role and scope. The response
// contains the token, which is not stored, so there is no Idempotency-Key: a repeated
// response could not contain it.
func (h *handlers) CreateAPIKey(ctx context.Context, r in[none, api.APIKey]) (*api.APIKey, error) {
	me, spec := who(ctx), r.Body.Spec
	refused := api.Errorf(api.CodeForbidden, "a key of role %s cannot create a key of role %.16s in this scope", me.Role, spec.Role).At("spec.role")
	if auth.RoleBits[spec.Role] != 0 && !me.Role.Grants(spec.Role) {
		return nil, refused
	}
	if spec.Hash+spec.OldHash != "" || spec.OldExpiresAt != nil {
		return nil, api.Errorf(api.CodeInvalid, "must be empty: the server generates the secret").At("spec.hash").WithHint("omit it")
	}
	m, err := h.place(ctx, api.KindAPIKey, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	if err := api.ValidateAPIKey(m, spec, h.opts.Now()); err != nil {
		return nil, err
	}
	if !me.Grants(spec.Role, m.Organization, m.Project) {
		return nil, refused
	}
	if err := me.Covers(spec); err != nil {
		return nil, fmt.Errorf("create API key %s: %w", m.Name, err)
	}
	if spec.Role == api.RoleReseller {
		if err := h.maySell(ctx, m.Organization); err != nil {
			return nil, at(err, "spec.role")
		}
	}
	cmd, token := auth.NewAPIKey(m, spec)
	out, err := h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: []api.Command{cmd}})
	if err != nil {
		return nil, named(err, api.KindAPIKey, m.Name)
	}
	key, err := decode[api.APIKey](out[0])
	key.Secret = onlyOnce(ctx, token)
	return &key, err
}

// changedKey returns the spec of a key whose scopes, networks or expiry change.
func (h *handlers) changedKey(ctx context.Context, _ api.Meta, old *api.APIKey, s api.APIKeySpec) (api.APIKeySpec, error) {
	if s.Role != old.Spec.Role {
		return s, api.Errorf(api.CodeInvalid, "the role of a key cannot change").At("spec.role").WithHint("create another key")
	}
	s.Hash, s.OldHash, s.OldExpiresAt = old.Spec.Hash, old.Spec.OldHash, old.Spec.OldExpiresAt
	if err := api.ValidateAPIKey(old.Meta, s, h.opts.Now()); err != nil {
		return s, err
	}
	if err := who(ctx).Covers(s); err != nil {
		return s, fmt.Errorf("change API key %s: %w", old.Meta.ID, err)
	}
	return s, nil
}

// RotateAPIKey generates a new secret; the former one stays valid for a limited time.
func (h *handlers) RotateAPIKey(ctx context.Context, r in[none, api.APIKeyRotation]) (*api.APIKey, error) {
	o, err := h.own(ctx, api.KindAPIKey, r.ID)
	if err != nil {
		return nil, err
	}
	key, err := api.Decode[api.APIKey](o)
	if err != nil {
		return nil, err
	}
	if err := who(ctx).Covers(key.Spec); err != nil {
		return nil, fmt.Errorf("rotate API key %s: %w", key.Meta.ID, err)
	}
	keep, err := keptFor(r.Body.KeepSeconds)
	if err != nil {
		return nil, err
	}
	token, hash := auth.NewToken(key.Meta.ID)
	s, now := &key.Spec, h.opts.Now().UTC()
	s.OldHash, s.OldExpiresAt = "", nil
	if keep > 0 {
		end := now.Add(keep).Truncate(time.Second)
		s.OldHash, s.OldExpiresAt = s.Hash, &end
	}
	s.Hash = hash
	out, err := h.opts.Store.Apply(ctx, api.Batch{At: now, Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindAPIKey, ID: key.Meta.ID,
		Expect: key.Meta.Revision, Labels: key.Meta.Labels, Data: api.Encode(*s)}}})
	if err != nil {
		return nil, fmt.Errorf("rotate API key %s: %w", key.Meta.ID, err)
	}
	shown, err := decode[api.APIKey](out[0])
	shown.Secret = token
	return &shown, err
}

// keptFor returns how long a replaced secret stays valid.
func keptFor(seconds *int64) (time.Duration, error) {
	const most = 30 * 24 * 3600
	if seconds == nil {
		return 24 * time.Hour, nil
	}
	if *seconds < 0 || *seconds > most {
		return 0, api.Errorf(api.CodeInvalid, "must be between 0 and %d", most).At("keepSeconds")
	}
	return time.Duration(*seconds) * time.Second, nil
}
