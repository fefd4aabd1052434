package watchcache

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// Interest defines which changes wake a subscriber.
type Interest struct {
	kind  api.Kind
	wakes func(objects.Change) bool
}

func always(objects.Change) bool { return true }
func never(objects.Change) bool  { return false }

// Every returns an interest in all changes of these kinds.
func Every(kinds ...objects.Kind) (out []Interest) {
	for _, k := range kinds {
		out = append(out, Interest{k.Kind, always})
	}
	return out
}

// When returns an interest in the objects of a type that come and go, and in those
// changes that matters says yes to. It must not keep or change what it gets.
func When[T any](kind objects.Kind, matters func(was, now T) bool) Interest {
	return Interest{kind.Kind, func(c objects.Change) bool {
		return c.Was == nil || c.Now == nil || matters(c.Was.(T), c.Now.(T))
	}}
}

// Subscription is one subscriber's picture of the objects.
type Subscription struct {
	cache     *Cache
	interests map[api.Kind]Interest
	ready     chan struct{}

	pending pending      // since it last looked; guarded by the cache's mu
	view    *objects.Set // the subscriber's own; nil: it wants the changes only
}

// Subscribe returns a subscription to the objects of these kinds, which is woken by
// the changes of the interests (none: by all). Close it.
func (c *Cache) Subscribe(kinds []objects.Kind, interests ...Interest) *Subscription {
	return c.subscribe(objects.NewSet(kinds...), kinds, interests)
}

func (c *Cache) subscribe(view *objects.Set, kinds []objects.Kind, interests []Interest) *Subscription {
	if len(interests) == 0 {
		interests = Every(kinds...)
	}
	s := &Subscription{cache: c, interests: map[api.Kind]Interest{}, ready: make(chan struct{}, 1), view: view}
	for _, k := range kinds {
		s.interests[k.Kind] = Interest{k.Kind, never}
	}
	for _, i := range interests {
		s.interests[i.kind] = i
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscriptions[s] = struct{}{}
	if c.set != nil {
		s.begin(c.set)
	}
	return s
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	delete(s.cache.subscriptions, s)
}

// Ready returns a channel that holds a value while there is something new of
// interest. The first is that all objects have come, though there be none.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// View returns the objects of the subscription's kinds as they are now, or nil while
// not all have come yet. It stays as it is until the next call.
func (s *Subscription) View() *objects.Set {
	n, ok := s.take()
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

// take what has changed since the last call; not ok: not all objects have come yet.
func (s *Subscription) take() (n News, ok bool) {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	n = News{Changes: s.pending.changes, All: s.pending.all}
	s.pending = pending{}
	return n, s.cache.set != nil
}

// note a change; the cache's mu is held.
func (s *Subscription) note(c objects.Change) {
	i, ok := s.interests[c.Kind]
	if !ok {
		return
	}
	s.pending.add(c)
	if i.wakes(c) {
		s.wake()
	}
}

// begin anew with all objects; the cache's mu is held.
func (s *Subscription) begin(all *objects.Set) {
	s.pending = pending{all: true}
	for _, c := range all.All() {
		if _, ok := s.interests[c.Kind]; ok {
			s.pending.add(c)
		}
	}
	s.wake()
}

func (s *Subscription) wake() {
	select {
	case s.ready <- struct{}{}:
	default: // it has not looked since the last
	}
}

// News is what has changed since a subscriber last looked.
type News struct {
	// Changes has one for each object, however often it changed, in the order of
	// the first. One that came and went since the last look has neither Was nor Now.
	Changes []objects.Change
	// All: Changes has every object that there is; what is not in it is gone.
	All bool
}

// Follow calls take with what changes of these kinds until ctx ends, and returns its
// error. The first call has All, even when there is nothing, and so has one after
// the cache began anew. A slow take costs no more memory than there are objects.
func (c *Cache) Follow(ctx context.Context, kinds []objects.Kind, take func(News)) error {
	s := c.subscribe(nil, kinds, nil)
	defer s.Close()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ready:
			if n, ok := s.take(); ok && (n.All || len(n.Changes) > 0) {
				take(n)
			}
		}
	}
}

// pending is what a subscriber has not heard of.
type pending struct {
	all     bool
	changes []objects.Change
	at      map[object]int // each object's place in changes
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

// settle is how long a change waits for others: they come in groups.
const settle = 20 * time.Millisecond

// Run calls step with the objects of these kinds as they are until ctx ends, and
// returns its error: when all have come, a moment after a change of the interests
// (none: any change), and after as long as step said last. Step must not keep what
// it gets.
func Run(ctx context.Context, c *Cache, kinds []objects.Kind, step func(context.Context, *objects.Set) time.Duration, interests ...Interest) error {
	s := c.Subscribe(kinds, interests...)
	defer s.Close()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	due := false // the timer runs for a change: others do not put it off
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
				timer.Reset(step(ctx, v))
			}
		}
	}
}
