package client

import (
	"context"
	"iter"

	"github.com/basalt-gpu/basalt/api"
)

// Alerts returns the current alerts, page by page; an error ends it.
func (a *API) Alerts(ctx context.Context) iter.Seq2[api.Alert, error] {
	return pages(func(from string) (Page[api.Alert], error) {
		return get[Page[api.Alert]](ctx, a, api.ListAlertsParams{Continue: from}, "alerts")
	})
}
