package client

import (
	"context"
	"iter"

	"github.com/basalt-gpu/basalt/api"
)

// RotateWebhook generates a new secret, which the response contains; the old one also
// signs for keepSeconds.
func (a *API) RotateWebhook(ctx context.Context, id string, keepSeconds int64) (api.Webhook, error) {
	return post[api.Webhook](ctx, a, api.WebhookRotation{KeepSeconds: &keepSeconds}, "webhooks", id, "rotate")
}

// RotateAPIKey generates a new secret, which the response contains; the old one stays
// valid for keepSeconds.
func (a *API) RotateAPIKey(ctx context.Context, id string, keepSeconds int64) (api.APIKey, error) {
	return post[api.APIKey](ctx, a, api.APIKeyRotation{KeepSeconds: &keepSeconds}, "api-keys", id, "rotate")
}

// ReplayWebhook sends events again, starting with an event's ID or a time.
func (a *API) ReplayWebhook(ctx context.Context, id, from string) (api.Webhook, error) {
	return post[api.Webhook](ctx, a, api.WebhookReplay{From: from}, "webhooks", id, "replay")
}

// TestWebhook sends a test event.
func (a *API) TestWebhook(ctx context.Context, id string) (api.Webhook, error) {
	return post[api.Webhook](ctx, a, nil, "webhooks", id, "test")
}

// Deliveries returns a webhook's deliveries from the newest event, page by page; an
// error ends it.
func (a *API) Deliveries(ctx context.Context, id string) iter.Seq2[api.WebhookDelivery, error] {
	return pages(func(from string) (Page[api.WebhookDelivery], error) {
		return get[Page[api.WebhookDelivery]](ctx, a, api.ListWebhookDeliveriesParams{Continue: from}, "webhooks", id, "deliveries")
	})
}
