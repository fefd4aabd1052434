package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// ListRouters pages through what the caller sees.
func (h *handlers) ListRouters(ctx context.Context, r in[api.ListRoutersParams, none]) (*page[api.Router], error) {
	p, err := list[api.Router](ctx, h, api.KindRouter, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort, organization: r.Params.Organization, project: r.Params.Project})
	return &p, err
}

// GetRouter by id or name.
func (h *handlers) GetRouter(ctx context.Context, r in[api.GetRouterParams, none]) (*api.Router, error) {
	o, err := get[api.Router](ctx, h, api.KindRouter, r.ID, r.Params.Organization, r.Params.Project)
	return &o, err
}
