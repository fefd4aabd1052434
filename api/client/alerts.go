package client

import (
	"context"
	"iter"

	"github.com/basalt-gpu/basalt/api"
)

// Capacity returns how much of the GPUs is allocated, and when they are expected to be
// full.
func (a *API) Capacity(ctx context.Context) (api.Capacity, error) {
	return get[api.Capacity](ctx, a, nil, "capacity")
}

// Alerts returns the current alerts, page by page; an error ends it.
func (a *API) Alerts(ctx context.Context) iter.Seq2[api.Alert, error] {
	return pages(func(from string) (Page[api.Alert], error) {
		return get[Page[api.Alert]](ctx, a, api.ListAlertsParams{Continue: from}, "alerts")
	})
}
