package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// Webhooks are the collection of kind Webhook.
func (a *API) Webhooks() Collection[api.Webhook] {
	return Collection[api.Webhook]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListWebhooks(ctx, &api.ListWebhooksParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetWebhook(ctx, ref, &api.GetWebhookParams{Organization: q.Organization})
		},
		create: func(ctx context.Context, o api.Webhook) (*http.Response, error) { return a.gen.CreateWebhook(ctx, o) },
		update: func(ctx context.Context, id string, o api.Webhook) (*http.Response, error) {
			return a.gen.UpdateWebhook(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteWebhook(ctx, id) },
	}
}

// RotateWebhook makes a new secret, which is in the answer; the old one signs
// too for keepSeconds.
func (a *API) RotateWebhook(ctx context.Context, id string, keepSeconds int64) (api.Webhook, error) {
	return decode[api.Webhook](a.gen.RotateWebhook(ctx, id, api.WebhookRotation{KeepSeconds: &keepSeconds})) //nolint:bodyclose // decode closes it
}

// RotateAPIKey makes a new secret, which is in the answer; the old one is good
// for keepSeconds.
func (a *API) RotateAPIKey(ctx context.Context, id string, keepSeconds int64) (api.APIKey, error) {
	return decode[api.APIKey](a.gen.RotateAPIKey(ctx, id, api.APIKeyRotation{KeepSeconds: &keepSeconds})) //nolint:bodyclose // decode closes it
}

// ReplayWebhook sends again from an event's id or a time on.
func (a *API) ReplayWebhook(ctx context.Context, id, from string) (api.Webhook, error) {
	return decode[api.Webhook](a.gen.ReplayWebhook(ctx, id, api.WebhookReplay{From: from})) //nolint:bodyclose // decode closes it
}

// TestWebhook sends it an event.
func (a *API) TestWebhook(ctx context.Context, id string) (api.Webhook, error) {
	return decode[api.Webhook](a.gen.TestWebhook(ctx, id)) //nolint:bodyclose // decode closes it
}

// Deliveries of a webhook from the newest event, page by page; an error ends it.
func (a *API) Deliveries(ctx context.Context, id string) iter.Seq2[api.WebhookDelivery, error] {
	return func(yield func(api.WebhookDelivery, error) bool) {
		var p api.ListWebhookDeliveriesParams
		for {
			page, err := decode[api.WebhookDeliveryList](a.gen.ListWebhookDeliveries(ctx, id, &p)) //nolint:bodyclose // decode closes it
			if err != nil {
				yield(api.WebhookDelivery{}, err)
				return
			}
			for _, d := range page.Items {
				if !yield(d, nil) {
					return
				}
			}
			if p.Continue = page.Continue; p.Continue == "" {
				return
			}
		}
	}
}
