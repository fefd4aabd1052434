package client

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// SetDefaultCard makes a saved card the default card of its organization.
func (a *API) SetDefaultCard(ctx context.Context, id string) (api.Card, error) {
	return post[api.Card](ctx, a, nil, "cards", id, "default")
}
