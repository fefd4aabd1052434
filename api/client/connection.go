package client

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// InstanceConnection returns how to sign in to an instance by SSH.
func (a *API) InstanceConnection(ctx context.Context, id string) (api.InstanceConnection, error) {
	return get[api.InstanceConnection](ctx, a, nil, "instances", id, "connection")
}
