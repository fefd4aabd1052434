// Package webhook delivers events to webhooks, on the leader. Events are stored in the
// store (api.EventsOf); a webhook's status contains its progress. Each webhook has its
// own worker, so that a slow receiver delays no other:
//
//	first event after the cursor ─► send ─► accepted: the cursor advances
//	          ▲                        └──► failed: wait, longer each time; after a day the cursor advances
//	          └── new events, changes of the webhook
//
// The cursor is written after an event was accepted, so that an event is sent twice,
// with the same ID, when the leader changes in between.
package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
)

// Store is the required part of the cluster's state; it accepts writes in the leader's
// term only.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
	Events(ctx context.Context, q api.EventQuery) (api.EventPage, error)
	Revision() int64
}

// Options of a Deliverer.
type Options struct {
	Store Store
	// Open decrypts a secret; if nil, secrets are not encrypted.
	Open func(ctx context.Context, sealed string) (string, error)
	// URLs defines which addresses may be reached.
	URLs outbound.Policy
	Log  *slog.Logger
	// The rest is for tests. Now and Wait are the clock: Wait returns after d, or when
	// wake receives a value; for d < 0 only the latter.
	Now   func() time.Time
	Wait  func(ctx context.Context, d time.Duration, wake <-chan struct{})
	Limit time.Duration // of one request; 0 means 15 s
	Look  time.Duration // between checks for changes; 0 means 250 ms
}

// Deliverer delivers events while this node leads.
type Deliverer struct {
	o         Options
	client    *http.Client
	workers   map[string]*worker
	running   sync.WaitGroup
	revision  int64 // revision of the store at the last refresh
	lastEvent int64 // sequence number of the last event at the last refresh
}

// New returns a Deliverer; Run starts it.
func New(o Options) *Deliverer {
	if o.Open == nil {
		o.Open = func(_ context.Context, s string) (string, error) { return s, nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	if o.Limit == 0 {
		o.Limit = sendTime
	}
	if o.Look == 0 {
		o.Look = 250 * time.Millisecond
	}
	client := outbound.NewClient(outbound.Options{Policy: o.URLs, Connect: o.Limit, Header: o.Limit, Silence: o.Limit, Total: o.Limit, Keep: true, Log: o.Log})
	return &Deliverer{o: o, client: client, workers: map[string]*worker{}}
}

func wait(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	var over <-chan time.Time
	if d >= 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-ctx.Done():
	case <-wake:
	case <-over:
	}
}

// Run delivers until ctx ends.
func (d *Deliverer) Run(ctx context.Context) error {
	defer d.client.CloseIdleConnections()
	defer d.running.Wait()
	tick := time.NewTicker(d.o.Look)
	defer tick.Stop()
	for {
		if err := d.refresh(ctx); err != nil && ctx.Err() == nil {
			d.o.Log.Warn("read webhooks failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// refresh starts the workers of new webhooks, stops those of removed webhooks, and
// wakes those whose webhook changed or has new events.
func (d *Deliverer) refresh(ctx context.Context) error {
	revision := d.o.Store.Revision()
	if revision == d.revision {
		return nil
	}
	there := map[string]bool{}
	for q := (api.ListQuery{Kind: api.KindWebhook, Limit: 1000}); ; {
		p, err := d.o.Store.List(ctx, q)
		if err != nil {
			return fmt.Errorf("list webhooks: %w", err)
		}
		for _, o := range p.Items {
			there[o.Meta.ID] = true
			d.follow(ctx, o)
		}
		if q.Continue = p.Continue; p.Continue == "" {
			break
		}
	}
	for id, w := range d.workers {
		if !there[id] {
			w.cancel()
			delete(d.workers, id)
		}
	}
	for {
		q := api.EventQuery{After: d.lastEvent, Limit: 1000}
		if d.lastEvent == 0 { // workers that were started just now read the events themselves
			q.Newest, q.Limit = true, 1
		}
		p, err := d.o.Store.Events(ctx, q)
		if err != nil {
			return fmt.Errorf("read the events after %d: %w", q.After, err)
		}
		for _, e := range p.Items {
			d.lastEvent = e.Seq
			for _, w := range d.workers {
				if e.WantedBy(w.id, w.organization, nil) {
					w.wake()
				}
			}
		}
		if !p.More || q.Newest {
			d.revision = revision
			return nil
		}
	}
}

func (d *Deliverer) follow(ctx context.Context, o api.Object) {
	w := d.workers[o.Meta.ID]
	if w == nil {
		ctx, cancel := context.WithCancel(ctx)
		w = &worker{d: d, id: o.Meta.ID, organization: o.Meta.Organization, cancel: cancel, woken: make(chan struct{}, 1)}
		d.workers[w.id] = w
		d.running.Go(func() { w.run(ctx) })
	}
	if w.generation != o.Meta.Generation {
		w.generation = o.Meta.Generation
		w.wake()
	}
}
