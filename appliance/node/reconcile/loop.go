// Package reconcile runs a function for keys until their state is as wanted: a key
// is run when it is triggered because something changed, and again later when the
// function asks for it or fails. The function gets a key, never event data, so a
// lost or duplicate trigger changes nothing.
//
//	Trigger(key) ─► queued ─► running ─► idle
//	                  ▲          │ triggered meanwhile, error, Again
//	                  └──────────┘
package reconcile

import (
	"context"
	"sync"
	"time"
)

// Func reconciles one key. again is when it is to be called next without a trigger;
// zero means only when triggered.
type Func func(ctx context.Context, key string) (again time.Duration, err error)

// Options configures a loop.
type Options struct {
	Reconcile Func
	// OnError is called for every failure; the key is retried with backoff.
	OnError func(key string, err error)
	Workers int           // 0: 4
	MinWait time.Duration // first wait after a failure, 0: 200 ms; doubled up to MaxWait
	MaxWait time.Duration // 0: 30 s
}

// Loop runs the keys with a set of workers. A key is never run by two workers at
// once.
type Loop struct {
	opts  Options
	ready chan string

	mu   sync.Mutex
	keys map[string]*state
	ctx  context.Context
	wg   sync.WaitGroup
}

type state struct {
	queued, running, again bool
	failures               int
	notBefore              time.Time // a key that has just failed is not run before, even if triggered
	timer                  *time.Timer
}

// triggerWait is the shortest interval between attempts of a failing key. What an
// attempt does causes events that trigger it again, so that without it a failing key
// would spin; with a longer one a user's change would be delayed.
const triggerWait = time.Second

// maxKeys bounds the ready queue; Trigger blocks while it is full.
const maxKeys = 1 << 16

// New returns a loop; Run starts it.
func New(o Options) *Loop {
	if o.Workers == 0 {
		o.Workers = 4
	}
	if o.MinWait == 0 {
		o.MinWait = 200 * time.Millisecond
	}
	if o.MaxWait == 0 {
		o.MaxWait = 30 * time.Second
	}
	return &Loop{opts: o, ready: make(chan string, maxKeys), keys: map[string]*state{}}
}

// Run runs keys until ctx ends, then waits for the running ones.
func (l *Loop) Run(ctx context.Context) {
	l.mu.Lock()
	l.ctx = ctx
	l.mu.Unlock()
	for range l.opts.Workers {
		l.wg.Add(1)
		go func() {
			defer l.wg.Done()
			for {
				select {
				case <-ctx.Done():
					return
				case key := <-l.ready:
					l.serve(ctx, key)
				}
			}
		}()
	}
	l.wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.keys {
		if s.timer != nil {
			s.timer.Stop()
		}
	}
}

// Trigger requests that the key is run soon. It blocks while the ready queue is full.
func (l *Loop) Trigger(key string) {
	l.mu.Lock()
	s := l.keys[key]
	if s == nil {
		s = &state{}
		l.keys[key] = s
	}
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	wait := time.Until(s.notBefore)
	switch {
	case s.running:
		s.again = true
	case !s.queued && wait > 0:
		s.timer = time.AfterFunc(wait, func() { l.Trigger(key) })
	case !s.queued:
		s.queued = true
		l.mu.Unlock()
		l.ready <- key
		return
	}
	l.mu.Unlock()
}

func (l *Loop) serve(ctx context.Context, key string) {
	l.mu.Lock()
	s := l.keys[key]
	s.queued, s.running = false, true
	l.mu.Unlock()

	wait, err := l.opts.Reconcile(ctx, key)
	if err != nil && ctx.Err() == nil && l.opts.OnError != nil {
		l.opts.OnError(key, err)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	s.running = false
	if err != nil {
		wait = min(l.opts.MinWait<<min(s.failures, 16), l.opts.MaxWait)
		s.failures++
		s.notBefore = time.Now().Add(min(wait, triggerWait))
	} else {
		s.failures = 0
		s.notBefore = time.Time{}
	}
	switch {
	case ctx.Err() != nil:
	case s.again && err != nil:
		s.again = false
		s.timer = time.AfterFunc(min(wait, triggerWait), func() { l.Trigger(key) })
	case s.again:
		s.again, s.queued = false, true
		go func() { l.ready <- key }() // never block on the queue with the lock held
	case wait > 0:
		s.timer = time.AfterFunc(wait, func() { l.Trigger(key) })
	default:
		delete(l.keys, key)
	}
}
