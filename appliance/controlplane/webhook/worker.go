package webhook

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	// keepEvery is how often the cursor is written while events are taken.
	keepEvery = time.Second
	// sulk is how long to wait after an error of the store's.
	sulk = time.Second
)

// worker serves one webhook.
type worker struct {
	d                *Deliverer
	id, organization string
	generation       int64 // of the last look: the deliverer's
	cancel           context.CancelFunc
	woken            chan struct{}

	// The rest is run's own.
	status  *api.WebhookStatus // ahead of the store's
	kept    []byte             // as written last
	keptAt  time.Time
	spec    int64             // generation that was served last
	secrets map[string]string // by their sealed form
}

func (w *worker) wake() {
	select {
	case w.woken <- struct{}{}:
	default: // it will look anyway
	}
}

func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		again, err := w.step(ctx)
		if api.CodeOf(err) == api.CodeNotFound && err != nil {
			return
		}
		if err != nil && ctx.Err() == nil {
			w.d.o.Log.Warn("webhook", "id", w.id, "error", err)
			again = sulk
		}
		if again != 0 && ctx.Err() == nil {
			w.d.o.Wait(ctx, again, w.woken)
		}
	}
}

// step sends one event, or finds that there is none to send now: then it says
// how long to wait; negative: for news.
func (w *worker) step(ctx context.Context) (time.Duration, error) {
	o, err := w.d.o.Store.Get(ctx, api.KindWebhook, w.id)
	if err != nil {
		return 0, err
	}
	h, err := api.Decode[api.Webhook](o)
	if err != nil {
		return 0, err
	}
	now := w.d.o.Now().UTC()
	if w.status == nil {
		w.status, w.kept = &h.Status, api.Encode(h.Status)
		w.spec = o.Meta.Generation
	}
	st := begun(h, *w.status, now)
	if w.spec != o.Meta.Generation { // what was wrong may be right now
		w.spec, st.NextAt = o.Meta.Generation, nil
	}
	w.status = &st
	switch {
	case h.Spec.Paused:
		return -1, w.keep(ctx)
	case st.NextAt != nil && st.NextAt.After(now):
		return st.NextAt.Sub(now), w.keep(ctx)
	}
	e, ok, err := w.next(ctx, h)
	if err != nil {
		return 0, err
	}
	if !ok {
		return -1, w.keep(ctx)
	}
	failed := w.send(ctx, h, e)
	if ctx.Err() != nil {
		return 0, ctx.Err() // whether it was taken, the next leader will hear
	}
	now = w.d.o.Now().UTC()
	st = after(w.id, st, e, failed, now)
	if failed == nil && now.Sub(w.keptAt) < keepEvery {
		return 0, nil
	}
	return 0, w.keep(ctx)
}

// next is the first event after the cursor that the webhook is told of. The
// cursor moves over the others.
func (w *worker) next(ctx context.Context, h api.Webhook) (api.WebhookEvent, bool, error) {
	for {
		p, err := w.d.o.Store.Events(ctx, api.EventQuery{Organization: w.organization, After: w.status.Cursor, Limit: 100})
		if err != nil {
			return api.WebhookEvent{}, false, err
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

func (w *worker) send(ctx context.Context, h api.Webhook, e api.WebhookEvent) error {
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
				return errors.New("the secret of the webhook cannot be decrypted: rotate it")
			}
		}
		known[k.Secret] = plain
		secrets = append(secrets, plain)
	}
	w.secrets = known
	return send(ctx, w.d.client, h.Spec.URL, secrets, e, now)
}

// keep writes the status, if it has changed.
func (w *worker) keep(ctx context.Context) error {
	data := api.Encode(*w.status)
	if bytes.Equal(data, w.kept) {
		return nil
	}
	now := w.d.o.Now().UTC()
	_, err := w.d.o.Store.Apply(ctx, api.Batch{At: now, Commands: []api.Command{
		{Op: api.OpReport, Kind: api.KindWebhook, ID: w.id, Expect: api.AnyRevision, Data: data}}})
	if err == nil {
		w.kept, w.keptAt = data, now
	}
	return err
}
