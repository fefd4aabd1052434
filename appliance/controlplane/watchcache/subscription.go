package watchcache

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// Filter defines which changes wake a subscriber.
type Filter struct {
	kind  api.Kind
	wakes func(objects.Change) bool
}

func always(objects.Change) bool { return true }
func never(objects.Change) bool  { return false }

// Every returns a filter for all changes of these kinds.
func Every(kinds ...objects.Kind) (out []Filter) {
	for _, k := range kinds {
		out = append(out, Filter{k.Kind, always})
	}
	return out
}

// When returns a filter for the creation and removal of objects of type T, and in
// those changes for which matters returns true. Matters must not keep or change its
// arguments.
func When[T any](kind objects.Kind, matters func(was, now T) bool) Filter {
	return Filter{kind.Kind, func(c objects.Change) bool {
		return c.Was == nil || c.Now == nil || matters(c.Was.(T), c.Now.(T))
	}}
}

// Subscription is one subscriber's view of the objects.
type Subscription struct {
	cache   *Cache
	filters map[api.Kind]Filter
	ready   chan struct{}

	pending pending      // changes since the last call; guarded by the cache's mu
	view    *objects.Set // owned by the subscriber; nil for one that receives only changes
}

// Subscribe returns a subscription to the objects of these kinds. Changes that match
// the filters wake it; without filters all changes do. The caller must Close it.
func (c *Cache) Subscribe(kinds []objects.Kind, filters ...Filter) *Subscription {
	return c.subscribe(objects.NewSet(kinds...), kinds, filters)
}

func (c *Cache) subscribe(view *objects.Set, kinds []objects.Kind, filters []Filter) *Subscription {
	if len(filters) == 0 {
		filters = Every(kinds...)
	}
	s := &Subscription{cache: c, filters: map[api.Kind]Filter{}, ready: make(chan struct{}, 1), view: view}
	for _, k := range kinds {
		s.filters[k.Kind] = Filter{k.Kind, never}
	}
	for _, i := range filters {
		s.filters[i.kind] = i
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscriptions[s] = struct{}{}
	if c.set != nil {
		s.reset(c.set)
	}
	return s
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	delete(s.cache.subscriptions, s)
}

// Ready returns a channel that holds a value while there is a relevant change. The
// first value means that all objects were received, even if there are none.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// View returns the current objects of the subscription's kinds, or nil until all were
// received. The result does not change until the next call.
func (s *Subscription) View() *objects.Set {
	n, ok := s.collect()
	if !ok {
		return nil
	}
	if n.All {
		s.view = s.view.Empty()
	}
	for _, c := range n.Changes {
		s.view.Accept(c)
	}
	return s.view
}

// collect returns the changes since the last call. It is not ok until all objects were
// received.
func (s *Subscription) collect() (n Update, ok bool) {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	n = Update{Changes: s.pending.changes, All: s.pending.all}
	s.pending = pending{}
	return n, s.cache.set != nil
}

// record adds a change; the caller holds the cache's mu.
func (s *Subscription) record(c objects.Change) {
	i, ok := s.filters[c.Kind]
	if !ok {
		return
	}
	s.pending.add(c)
	if i.wakes(c) {
		s.wake()
	}
}

// reset starts over with all objects; the caller holds the cache's mu.
func (s *Subscription) reset(all *objects.Set) {
	s.pending = pending{all: true}
	for _, c := range all.All() {
		if _, ok := s.filters[c.Kind]; ok {
			s.pending.add(c)
		}
	}
	s.wake()
}

func (s *Subscription) wake() {
	select {
	case s.ready <- struct{}{}:
	default: // the last value was not received yet
	}
}

// Update is what has changed since a subscriber's last call.
type Update struct {
	// Changes has one entry for each object, however often it changed, in the order of
	// the first change. An object that was created and removed since the last call has
	// neither Was nor Now.
	Changes []objects.Change
	// All reports that Changes contains every existing object; objects not in it were
	// removed.
	All bool
}

// Follow calls take with the changes of these kinds until ctx ends, and returns ctx's
// error. The first call has All set, even if there are no objects, and so does the call
// after the cache was filled again. A slow take costs no more memory than the number of
// objects.
func (c *Cache) Follow(ctx context.Context, kinds []objects.Kind, take func(Update)) error {
	s := c.subscribe(nil, kinds, nil)
	defer s.Close()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ready:
			if n, ok := s.collect(); ok && (n.All || len(n.Changes) > 0) {
				take(n)
			}
		}
	}
}

// pending holds the changes that a subscriber has not received.
type pending struct {
	all     bool
	changes []objects.Change
	at      map[object]int // each object's index in changes
}

type object struct {
	kind api.Kind
	id   string
}

func (p *pending) add(c objects.Change) {
	key := object{c.Kind, c.ID}
	if i, ok := p.at[key]; ok {
		p.changes[i].Now = c.Now
		return
	}
	if p.at == nil {
		p.at = map[object]int{}
	}
	p.at[key] = len(p.changes)
	p.changes = append(p.changes, c)
}

// settle is how long a change waits for others, because changes come in groups.
const settle = 20 * time.Millisecond

// Run calls step with the current objects of these kinds until ctx ends, and returns
// ctx's error. It calls step once all objects were received, shortly after a change
// that matches the filters (without filters, after any change), and when the
// duration that step returned last has passed, or that which it took if that is longer: on a
// slow machine work that is repeated would leave no time for other work. Step must not keep
// the Set.
func Run(ctx context.Context, c *Cache, kinds []objects.Kind, step func(context.Context, *objects.Set) time.Duration, filters ...Filter) error {
	s := c.Subscribe(kinds, filters...)
	defer s.Close()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	due := false // the timer runs for a change; further changes do not postpone it
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.Ready():
			if !due {
				due = true
				timer.Reset(settle)
			}
		case <-timer.C:
			due = false
			if v := s.View(); v != nil {
				began := time.Now()
				next := step(ctx, v)
				timer.Reset(max(next, time.Since(began)))
			}
		}
	}
}
