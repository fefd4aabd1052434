package watchcache

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// Interest says which changes a subscriber wants to hear of.
type Interest struct {
	kind    api.Kind
	matters func(was, now any) bool // nil: all; both are there
}

// Every returns an interest in all changes of these kinds.
func Every(kinds ...objects.Kind) (out []Interest) {
	for _, k := range kinds {
		out = append(out, Interest{kind: k.Kind})
	}
	return out
}

// When returns an interest in the objects of a type that come and go, and in those
// changes that matters says yes to. It must not keep or change what it gets.
func When[T any](kind objects.Kind, matters func(was, now T) bool) Interest {
	return Interest{kind.Kind, func(was, now any) bool { return matters(was.(T), now.(T)) }}
}

// Subscription hears of changes. The first is that all objects have come.
type Subscription struct {
	cache     *Cache
	interests map[api.Kind]Interest
	ready     chan struct{}
	pending   *pending // nil: changes are not asked for, only that there are some
}

// Subscribe returns a subscription that says when something has changed. Close it.
func (c *Cache) Subscribe(interests ...Interest) *Subscription {
	return c.subscribe(nil, interests)
}

func (c *Cache) subscribe(p *pending, interests []Interest) *Subscription {
	s := &Subscription{cache: c, interests: map[api.Kind]Interest{}, ready: make(chan struct{}, 1), pending: p}
	for _, i := range interests {
		s.interests[i.kind] = i
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscriptions[s] = struct{}{}
	if c.set != nil {
		s.note(nil, true)
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

// Ready returns a channel that holds a value while View would show something new.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// View is the cache's.
func (s *Subscription) View() *objects.Set { return s.cache.View() }

// View returns the objects as they are now; nil while not all have come yet.
func (c *Cache) View() *objects.Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set == nil {
		return nil
	}
	return c.set.Snapshot()
}

// note changes; the cache's mu is held. First: all objects have come for the first
// time, which is news though there be none.
func (s *Subscription) note(changes []objects.Change, first bool) {
	news := first
	for _, c := range changes {
		i, ok := s.interests[c.Kind]
		if !ok || i.matters != nil && c.Was != nil && c.Now != nil && !i.matters(c.Was, c.Now) {
			continue
		}
		news = true
		if s.pending != nil {
			s.pending.add(c)
		}
	}
	if news {
		s.wake()
	}
}

func (s *Subscription) wake() {
	select {
	case s.ready <- struct{}{}:
	default: // it has not looked since the last
	}
}

// begin anew with all objects, for who follows changes; the cache's mu is held.
func (s *Subscription) begin(all *objects.Set) {
	if s.pending == nil {
		return
	}
	*s.pending = pending{all: true, at: map[object]int{}}
	for _, c := range all.All() {
		if _, ok := s.interests[c.Kind]; ok {
			s.pending.add(c)
		}
	}
	s.wake()
}

// News is what has changed since a follower last looked.
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
	s := c.subscribe(&pending{at: map[object]int{}}, Every(kinds...))
	defer s.Close()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ready:
			if n := s.take(); n.All || len(n.Changes) > 0 {
				take(n)
			}
		}
	}
}

func (s *Subscription) take() News {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	out := News{Changes: s.pending.changes, All: s.pending.all}
	*s.pending = pending{at: map[object]int{}}
	return out
}

// pending is what a follower has not heard of.
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
	p.at[key] = len(p.changes)
	p.changes = append(p.changes, c)
}

// settle is how long a change waits for others: they come in groups.
const settle = 20 * time.Millisecond

// Run calls step with the objects as they are until ctx ends, and returns its error:
// when all have come, a moment after a change of interest, and after as long as step
// said last.
func Run(ctx context.Context, c *Cache, interests []Interest, step func(context.Context, *objects.Set) time.Duration) error {
	s := c.Subscribe(interests...)
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
