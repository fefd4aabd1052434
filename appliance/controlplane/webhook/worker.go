package webhook

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	// saveEvery is how often the cursor is written while events are accepted.
	saveEvery = time.Second
	// errorPause is the pause after an error of the store.
	errorPause = time.Second
)

// worker delivers the events of one webhook.
type worker struct {
	d                *Deliverer
	id, organization string
	generation       int64 // at the last refresh; owned by the Deliverer
	cancel           context.CancelFunc
	woken            chan struct{}

	// The other fields are owned by run.
	status  *api.WebhookStatus // may be newer than the stored one
	saved   []byte             // the status as last written
	savedAt time.Time
	spec    int64             // the generation that was last processed
	secrets map[string]string // by their encrypted form
}

func (w *worker) wake() {
	select {
	case w.woken <- struct{}{}:
	default: // it will check anyway
	}
}

func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		again, err := w.step(ctx)
		if api.CodeOf(err) == api.CodeNotFound && err != nil {
			return
		}
		if err != nil && ctx.Err() == nil {
			w.d.o.Log.Warn("deliver events failed", "webhook", w.id, "error", err)
			again = errorPause
		}
		if again != 0 && ctx.Err() == nil {
			w.d.o.Wait(ctx, again, w.woken)
		}
	}
}

// step sends one event. If there is nothing to send now, it returns how long to wait; a
// negative duration means until the worker is woken.
func (w *worker) step(ctx context.Context) (time.Duration, error) {
	o, err := w.d.o.Store.Get(ctx, api.KindWebhook, w.id)
	if err != nil {
		return 0, fmt.Errorf("read webhook %s: %w", w.id, err)
	}
	h, err := api.Decode[api.Webhook](o)
	if err != nil {
		return 0, err
	}
	now := w.d.o.Now().UTC()
	if w.status == nil {
		w.status, w.saved = &h.Status, api.Encode(h.Status)
		w.spec = o.Meta.Generation
	}
	st := resumed(h, *w.status, now)
	if w.spec != o.Meta.Generation { // the change may have fixed the problem
		w.spec, st.NextAt = o.Meta.Generation, nil
	}
	w.status = &st
	switch {
	case h.Spec.Paused:
		return -1, w.saveStatus(ctx)
	case st.NextAt != nil && st.NextAt.After(now):
		return st.NextAt.Sub(now), w.saveStatus(ctx)
	}
	e, ok, err := w.next(ctx, h)
	if err != nil {
		return 0, err
	}
	if !ok {
		return -1, w.saveStatus(ctx)
	}
	failed := w.send(ctx, h, e)
	if ctx.Err() != nil {
		return 0, ctx.Err() // the next leader sends the event again
	}
	now = w.d.o.Now().UTC()
	st = afterAttempt(w.id, st, e, failed, now)
	if failed == (api.Reason{}) && now.Sub(w.savedAt) < saveEvery {
		return 0, nil
	}
	return 0, w.saveStatus(ctx)
}

// next returns the first event after the cursor that the webhook subscribes to. The
// cursor moves past the others.
func (w *worker) next(ctx context.Context, h api.Webhook) (api.WebhookEvent, bool, error) {
	for {
		p, err := w.d.o.Store.Events(ctx, api.EventQuery{Organization: w.organization, After: w.status.Cursor, Limit: 100})
		if err != nil {
			return api.WebhookEvent{}, false, fmt.Errorf("read the events of organization %q after %d: %w", w.organization, w.status.Cursor, err)
		}
		for _, e := range p.Items {
			if e.WantedBy(w.id, w.organization, h.Spec.Events) {
				return e, true, nil
			}
			w.status.Cursor = e.Seq
		}
		if !p.More {
			return api.WebhookEvent{}, false, nil
		}
	}
}

func (w *worker) send(ctx context.Context, h api.Webhook, e api.WebhookEvent) api.Reason {
	now := w.d.o.Now()
	known := map[string]string{}
	var secrets []string
	for _, k := range h.Spec.Keys {
		if k.ExpiresAt != nil && !now.Before(*k.ExpiresAt) {
			continue
		}
		plain, ok := w.secrets[k.Secret]
		if !ok {
			var err error
			if plain, err = w.d.o.Open(ctx, k.Secret); err != nil {
				w.d.o.Log.Error("decrypt secret of webhook failed", "id", w.id, "error", err)
				return api.PlainReason("the secret of the webhook cannot be decrypted: rotate it", api.CauseReceiverSecret, "")
			}
		}
		known[k.Secret] = plain
		secrets = append(secrets, plain)
	}
	w.secrets = known
	return send(ctx, w.d.client, h.Spec.URL, secrets, e, now)
}

// saveStatus writes the status if it has changed.
func (w *worker) saveStatus(ctx context.Context) error {
	data := api.Encode(*w.status)
	if bytes.Equal(data, w.saved) {
		return nil
	}
	now := w.d.o.Now().UTC()
	_, err := w.d.o.Store.Apply(ctx, api.Batch{At: now, Commands: []api.Command{
		{Op: api.OpReport, Kind: api.KindWebhook, ID: w.id, Expect: api.AnyRevision, Data: data}}})
	if err != nil {
		return fmt.Errorf("report the status of webhook %s: %w", w.id, err)
	}
	w.saved, w.savedAt = data, now
	return nil
}
