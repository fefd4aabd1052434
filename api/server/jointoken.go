package server

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// CreateJoinToken creates a token. The response contains the secret, which is not
// stored, so there is no Idempotency-Key: a repeated response could not contain it.
func (h *handlers) CreateJoinToken(ctx context.Context, r in[none, api.JoinToken]) (*api.JoinToken, error) {
	if h.opts.Cluster == nil {
		return nil, noCluster()
	}
	id := newID(api.KindJoinToken)
	if r.Body.Meta.Name == "" {
		r.Body.Meta.Name = nameOf(id)
	}
	m, err := h.place(ctx, api.KindJoinToken, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec := api.DefaultJoinToken(r.Body.Spec, h.opts.Now())
	if err := api.ValidateJoinToken(spec, h.opts.Now()); err != nil {
		return nil, err
	}
	var token string
	if !dryRun(ctx) {
		if token, spec.Hash, err = h.opts.Cluster.NewJoinToken(ctx, api.JoinTokenID(id)); err != nil {
			return nil, fmt.Errorf("create the secret of join token %s: %w", id, err)
		}
	}
	out, err := create[api.JoinToken](ctx, h, api.KindJoinToken, id, m, spec, "")
	out.Token = token
	return &out, err
}
