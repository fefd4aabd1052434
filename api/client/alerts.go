package client

import (
	"context"
	"iter"

	"github.com/basalt-gpu/basalt/api"
)

// Alerts are what is wrong now, page by page; an error ends it.
func (a *API) Alerts(ctx context.Context) iter.Seq2[api.Alert, error] {
	return func(yield func(api.Alert, error) bool) {
		p := api.ListAlertsParams{}
		for {
			page, err := decode[api.AlertList](a.gen.ListAlerts(ctx, &p)) //nolint:bodyclose // decode closes it
			if err != nil {
				yield(api.Alert{}, err)
				return
			}
			for _, x := range page.Items {
				if !yield(x, nil) {
					return
				}
			}
			if p.Continue = page.Continue; p.Continue == "" {
				return
			}
		}
	}
}
