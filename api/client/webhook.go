package client

import (
	"context"
	"iter"

	"github.com/basalt-gpu/basalt/api"
)

// RotateWebhook makes a new secret, which is in the answer; the old one signs
// too for keepSeconds.
func (a *API) RotateWebhook(ctx context.Context, id string, keepSeconds int64) (api.Webhook, error) {
	return post[api.Webhook](ctx, a, api.WebhookRotation{KeepSeconds: &keepSeconds}, "webhooks", id, "rotate")
}

// RotateAPIKey makes a new secret, which is in the answer; the old one is good
// for keepSeconds.
func (a *API) RotateAPIKey(ctx context.Context, id string, keepSeconds int64) (api.APIKey, error) {
	return post[api.APIKey](ctx, a, api.APIKeyRotation{KeepSeconds: &keepSeconds}, "api-keys", id, "rotate")
}

// ReplayWebhook sends again from an event's id or a time on.
func (a *API) ReplayWebhook(ctx context.Context, id, from string) (api.Webhook, error) {
	return post[api.Webhook](ctx, a, api.WebhookReplay{From: from}, "webhooks", id, "replay")
}

// TestWebhook sends it an event.
func (a *API) TestWebhook(ctx context.Context, id string) (api.Webhook, error) {
	return post[api.Webhook](ctx, a, nil, "webhooks", id, "test")
}

// Deliveries of a webhook from the newest event, page by page; an error ends it.
func (a *API) Deliveries(ctx context.Context, id string) iter.Seq2[api.WebhookDelivery, error] {
	return pages(func(from string) (Page[api.WebhookDelivery], error) {
		return get[Page[api.WebhookDelivery]](ctx, a, api.ListWebhookDeliveriesParams{Continue: from}, "webhooks", id, "deliveries")
	})
}
