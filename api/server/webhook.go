package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/webhooksig"
)

// maxKeys limits the keys that sign at a time, since receivers check only a few.
const maxKeys = 4

// webhookKey returns a new secret and its sealed form.
func (h *handlers) webhookKey(ctx context.Context) (plain string, key api.WebhookKey, err error) {
	plain = webhooksig.NewSecret()
	key.Secret = plain
	if h.opts.Secrets != nil {
		key.Secret, err = h.opts.Secrets.Seal(ctx, plain)
	}
	if err != nil {
		return "", key, fmt.Errorf("encrypt the key of a webhook: %w", err)
	}
	return plain, key, nil
}

// CreateWebhook creates a webhook. The response contains the secret, which is not shown
// again, so there is no Idempotency-Key.
func (h *handlers) CreateWebhook(ctx context.Context, r in[none, api.Webhook]) (*api.Webhook, error) {
	m, err := h.place(ctx, api.KindWebhook, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	if !who(ctx).Reaches(m.Organization, "") {
		return nil, api.Errorf(api.CodeForbidden, "you may not manage webhooks of this organization").At("meta.organization")
	}
	spec := api.WebhookSpec{URL: r.Body.Spec.URL, Events: r.Body.Spec.Events, Paused: r.Body.Spec.Paused}
	if err := api.ValidateWebhook(spec); err != nil {
		return nil, err
	}
	plain, key, err := h.webhookKey(ctx)
	if err != nil {
		return nil, err
	}
	spec.Keys = []api.WebhookKey{key}
	spec.ReplayAfter = 2*h.opts.Store.Revision() + 1 // only later events are sent
	o, err := create[api.Webhook](ctx, h, api.KindWebhook, newID(api.KindWebhook), m, spec, "")
	o.Secret = onlyOnce(ctx, plain)
	return &o, err
}

// changedWebhook returns the spec with the fields that clients can change.
func changedWebhook(_ context.Context, _ api.Meta, old *api.Webhook, s api.WebhookSpec) (api.WebhookSpec, error) {
	now := old.Spec
	now.URL, now.Events, now.Paused = s.URL, s.Events, s.Paused
	return now, api.ValidateWebhook(now)
}

// ownWebhook returns a webhook that the caller may change.
func (h *handlers) ownWebhook(ctx context.Context, ref string) (api.Webhook, error) {
	o, err := h.own(ctx, api.KindWebhook, ref)
	if err != nil {
		return api.Webhook{}, err
	}
	return api.Decode[api.Webhook](o)
}

// putWebhook writes a spec at the revision that was read.
func (h *handlers) putWebhook(ctx context.Context, w api.Webhook, event *api.CommandEvent) (api.Webhook, error) {
	out, err := h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindWebhook, ID: w.Meta.ID,
		Expect: w.Meta.Revision, Labels: w.Meta.Labels, Data: api.Encode(w.Spec), Event: event}}})
	if err != nil {
		return w, fmt.Errorf("write webhook %s: %w", w.Meta.ID, err)
	}
	return decode[api.Webhook](out[0])
}

// RotateWebhook generates a new secret; the former one also signs for a limited time.
func (h *handlers) RotateWebhook(ctx context.Context, r in[none, api.WebhookRotation]) (*api.Webhook, error) {
	w, err := h.ownWebhook(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	keep, err := keptFor(r.Body.KeepSeconds)
	if err != nil {
		return nil, err
	}
	plain, key, err := h.webhookKey(ctx)
	if err != nil {
		return nil, err
	}
	w.Spec.Keys = append([]api.WebhookKey{key}, keptKeys(w.Spec.Keys, h.opts.Now().UTC(), keep)...)
	o, err := h.putWebhook(ctx, w, nil)
	o.Secret = plain
	return &o, err
}

// keptKeys returns the keys that stay valid beside a new one, none longer than before.
func keptKeys(keys []api.WebhookKey, now time.Time, keep time.Duration) []api.WebhookKey {
	end := now.Add(keep).Truncate(time.Second)
	var out []api.WebhookKey
	for _, k := range keys {
		if k.ExpiresAt == nil || k.ExpiresAt.After(end) {
			k.ExpiresAt = &end
		}
		if k.ExpiresAt.After(now) && len(out) < maxKeys-1 {
			out = append(out, k)
		}
	}
	return out
}

// ReplayWebhook sends events again, starting with an event or a time.
func (h *handlers) ReplayWebhook(ctx context.Context, r in[none, api.WebhookReplay]) (*api.Webhook, error) {
	w, err := h.ownWebhook(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	if w.Spec.ReplayAfter, err = h.replayAfter(ctx, w.Meta.Organization, r.Body.From); err != nil {
		return nil, err
	}
	w.Spec.Replays++
	o, err := h.putWebhook(ctx, w, nil)
	return &o, err
}

// replayAfter returns the sequence before an event, or before the first event since a
// time.
func (h *handlers) replayAfter(ctx context.Context, organization, from string) (int64, error) {
	if seq, ok := api.EventSeq(from); ok {
		return seq - 1, nil
	}
	at, err := time.Parse(time.RFC3339, from)
	if err != nil {
		return 0, api.Errorf(api.CodeInvalid, "%.64q is neither an event ID nor a time", from).At("from").WithHint("e.g. evt-00000000002a or 2026-11-22T00:00:00Z")
	}
	q := api.EventQuery{Organization: organization, Limit: maxLimit}
	for {
		p, err := h.opts.Store.Events(ctx, q)
		if err != nil {
			return 0, fmt.Errorf("read the events of organization %s: %w", organization, err)
		}
		for _, e := range p.Items {
			if !e.Timestamp.Before(at) {
				return e.Seq - 1, nil
			}
			q.After = e.Seq
		}
		if !p.More {
			return q.After, nil
		}
	}
}

// TestWebhook sends a test event to this webhook only.
func (h *handlers) TestWebhook(ctx context.Context, r in[none, none]) (*api.Webhook, error) {
	w, err := h.ownWebhook(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	w.Spec.Tests++
	o, err := h.putWebhook(ctx, w, &api.CommandEvent{Type: api.EventTest, Webhook: w.Meta.ID, Data: api.Encode(map[string]any{"webhook": w.Meta.ID, "test": w.Spec.Tests})})
	return &o, err
}

// ListWebhookDeliveries returns the delivery states of the stored events.
func (h *handlers) ListWebhookDeliveries(ctx context.Context, r in[api.ListWebhookDeliveriesParams, none]) (*api.WebhookDeliveryList, error) {
	w, err := h.ownWebhook(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	limit := r.Params.Limit
	if limit == 0 {
		limit = 100
	}
	if limit < 1 || limit > maxLimit {
		return nil, api.Errorf(api.CodeInvalid, "must be between 1 and %d", maxLimit).At("limit")
	}
	q := api.EventQuery{Organization: w.Meta.Organization, Newest: true, Limit: maxLimit}
	if c := r.Params.Continue; c != "" {
		if q.After, err = strconv.ParseInt(c, 10, 64); err != nil || q.After < 1 {
			return nil, api.Errorf(api.CodeInvalid, "is not a token from a previous page").At("continue")
		}
	}
	out := api.WebhookDeliveryList{Items: []api.WebhookDelivery{}}
	for {
		p, err := h.opts.Store.Events(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		out.Dropped = p.Dropped
		for _, e := range p.Items {
			q.After = e.Seq
			if !e.WantedBy(w.Meta.ID, w.Meta.Organization, w.Spec.Events) {
				continue
			}
			if len(out.Items) == limit {
				out.Continue = strconv.FormatInt(out.Items[limit-1].Event.Seq, 10)
				return nextIsRetried(w, &out), nil
			}
			out.Items = append(out.Items, delivery(w, e))
		}
		if !p.More {
			return nextIsRetried(w, &out), nil
		}
	}
}

// delivery returns the delivery state of an event according to the webhook's status.
func delivery(w api.Webhook, e api.WebhookEvent) api.WebhookDelivery {
	d := api.WebhookDelivery{Event: e, State: api.DeliveryDelivered}
	given := slices.IndexFunc(w.Status.GivenUpEvents, func(g api.WebhookGivenUp) bool { return g.Seq == e.Seq })
	switch {
	case e.Seq > w.Status.Cursor:
		d.State = api.DeliveryWaiting
	case given >= 0:
		d.State, d.LastError, d.Cause = api.DeliveryGivenUp, w.Status.GivenUpEvents[given].Error, w.Status.GivenUpEvents[given].Cause
	case w.Status.GivenUp > int64(len(w.Status.GivenUpEvents)) && (len(w.Status.GivenUpEvents) == 0 || e.Seq < w.Status.GivenUpEvents[0].Seq):
		d.State = api.DeliveryPast
	}
	return d
}

// nextIsRetried marks the oldest waiting event as retrying, if an attempt has failed.
func nextIsRetried(w api.Webhook, l *api.WebhookDeliveryList) *api.WebhookDeliveryList {
	for i := range l.Items {
		d := &l.Items[i]
		next := i+1 == len(l.Items) && l.Continue == "" || i+1 < len(l.Items) && l.Items[i+1].State != api.DeliveryWaiting
		if d.State == api.DeliveryWaiting && next && w.Status.Attempts > 0 {
			d.State, d.Attempts, d.NextAt = api.DeliveryRetrying, w.Status.Attempts, w.Status.NextAt
			d.LastError, d.Cause = w.Status.LastError, w.Status.Cause
		}
	}
	return l
}
