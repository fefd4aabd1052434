package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// CreateAPIKey makes a key no stronger and no wider than the caller's. The
// answer holds the token, which is nowhere else, so this takes no
// Idempotency-Key: a second answer could not hold it.
func (h *handlers) CreateAPIKey(ctx context.Context, r CreateAPIKeyRequestObject) (CreateAPIKeyResponseObject, error) {
	h.references.RLock()
	defer h.references.RUnlock()
	me, spec := who(ctx), r.Body.Spec
	if spec.Role.Rank() > me.role.Rank() {
		return nil, api.Errorf(api.CodeForbidden, "a key of role %s makes none of role %s", me.role, spec.Role).At("spec.role")
	}
	if spec.Hash != "" {
		return nil, api.Errorf(api.CodeInvalid, "the server makes the secret").At("spec.hash").WithHint("leave it out")
	}
	m, err := h.place(ctx, api.KindAPIKey, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	if err := api.ValidateAPIKey(m, spec, h.opts.Now()); err != nil {
		return nil, err
	}
	cmd, token := NewAPIKey(m, spec)
	out, err := h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: []api.Command{cmd}})
	if err != nil {
		return nil, named(err, api.KindAPIKey, m.Name)
	}
	key, err := decode[api.APIKey](out[0])
	key.Secret = token
	return CreateAPIKey201JSONResponse(key), err
}

// ListAPIKeys pages through what the caller sees.
func (h *handlers) ListAPIKeys(ctx context.Context, r ListAPIKeysRequestObject) (ListAPIKeysResponseObject, error) {
	p, err := list[api.APIKey](ctx, h, api.KindAPIKey, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name,
		organization: r.Params.Organization, project: r.Params.Project})
	return ListAPIKeys200JSONResponse(p), err
}

// GetAPIKey by id or name.
func (h *handlers) GetAPIKey(ctx context.Context, r GetAPIKeyRequestObject) (GetAPIKeyResponseObject, error) {
	o, err := get[api.APIKey](ctx, h, api.KindAPIKey, r.ID, r.Params.Organization, r.Params.Project)
	return GetAPIKey200JSONResponse(o), err
}

// UpdateAPIKey changes name, labels and spec.
func (h *handlers) UpdateAPIKey(ctx context.Context, r UpdateAPIKeyRequestObject) (UpdateAPIKeyResponseObject, error) {
	o, err := update(ctx, h, api.KindAPIKey, r.ID, r.Body.Meta, func(old api.APIKey) (any, error) {
		s := r.Body.Spec
		if s.Role != old.Spec.Role {
			return nil, api.Errorf(api.CodeInvalid, "a key keeps its role").At("spec.role").WithHint("make another key")
		}
		s.Hash = old.Spec.Hash
		return s, api.ValidateAPIKey(old.Meta, s, h.opts.Now())
	})
	return UpdateAPIKey200JSONResponse(o), err
}

// DeleteAPIKey deletes one that nothing uses.
func (h *handlers) DeleteAPIKey(ctx context.Context, r DeleteAPIKeyRequestObject) (DeleteAPIKeyResponseObject, error) {
	o, err := remove[api.APIKey](ctx, h, api.KindAPIKey, r.ID)
	return DeleteAPIKey200JSONResponse(o), err
}
