// Package webhook tells webhooks what happened, on the leader. Events stand in
// the store (api.EventsOf); a webhook's status says how far it is. Each has a
// worker of its own, so that a slow receiver delays nobody else:
//
//	first event after the cursor ─► send ─► taken: the cursor moves on
//	          ▲                        └──► not: wait, longer each time; after a day the cursor moves on
//	          └── new events, changes of the webhook
//
// The cursor is written after an event was taken, so that one is sent twice
// when a leader goes in between: with the same id.
package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
)

// Store is what is needed of the cluster's state; writes hold in the leader's
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
	// Open unseals a secret; nil: they are not sealed.
	Open func(ctx context.Context, sealed string) (string, error)
	// URLs defines which addresses may be reached.
	URLs outbound.Policy
	Log  *slog.Logger
	// For tests. Now and Wait are the clock: Wait returns when d is over, or
	// wake rings; d < 0: only then.
	Now   func() time.Time
	Wait  func(ctx context.Context, d time.Duration, wake <-chan struct{})
	Limit time.Duration // of one request; 0: 15 s
	Look  time.Duration // between looks for news; 0: 250 ms
}

// Deliverer runs while this node leads.
type Deliverer struct {
	o       Options
	client  *http.Client
	workers map[string]*worker
	running sync.WaitGroup
	seen    int64 // revision of the last look
	tail    int64 // sequence of the last event of it
}

// New deliverer.
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
		if err := d.look(ctx); err != nil && ctx.Err() == nil {
			d.o.Log.Warn("webhooks", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// look starts workers of new webhooks, ends those of webhooks that are gone,
// and wakes those whose webhook or events are new.
func (d *Deliverer) look(ctx context.Context) error {
	revision := d.o.Store.Revision()
	if revision == d.seen {
		return nil
	}
	there := map[string]bool{}
	for q := (api.ListQuery{Kind: api.KindWebhook, Limit: 1000}); ; {
		p, err := d.o.Store.List(ctx, q)
		if err != nil {
			return err
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
		q := api.EventQuery{After: d.tail, Limit: 1000}
		if d.tail == 0 { // workers that have begun just now see for themselves
			q.Newest, q.Limit = true, 1
		}
		p, err := d.o.Store.Events(ctx, q)
		if err != nil {
			return err
		}
		for _, e := range p.Items {
			d.tail = e.Seq
			for _, w := range d.workers {
				if e.WantedBy(w.id, w.organization, nil) {
					w.wake()
				}
			}
		}
		if !p.More || q.Newest {
			d.seen = revision
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
