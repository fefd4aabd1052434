package vhostgpu

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// LimitLog wraps a handler so that a guest cannot fill the host's log: it passes
// burst records at once, and then perSecond. The first record after a gap has the
// number of dropped ones.
func LimitLog(h slog.Handler, burst, perSecond float64) slog.Handler {
	return &limitLog{Handler: h, bucket: &bucket{burst: burst, rate: perSecond, level: burst}}
}

type limitLog struct {
	slog.Handler
	bucket *bucket
}

type bucket struct {
	mu          sync.Mutex // guards the following
	burst, rate float64
	level       float64
	last        time.Time
	dropped     int
}

// allow reports whether a record at time t may pass, and how many were dropped
// since the last one that passed.
func (b *bucket) allow(t time.Time) (ok bool, dropped int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.last.IsZero() && t.After(b.last) {
		b.level = min(b.burst, b.level+b.rate*t.Sub(b.last).Seconds())
	}
	b.last = t
	if b.level < 1 {
		b.dropped++
		return false, 0
	}
	b.level--
	dropped, b.dropped = b.dropped, 0
	return true, dropped
}

// Handle implements slog.Handler.
func (l *limitLog) Handle(ctx context.Context, r slog.Record) error {
	ok, dropped := l.bucket.allow(r.Time)
	if !ok {
		return nil
	}
	if dropped > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("leftOut", dropped))
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler; the limit is shared with l.
func (l *limitLog) WithAttrs(a []slog.Attr) slog.Handler {
	return &limitLog{l.Handler.WithAttrs(a), l.bucket}
}

// WithGroup implements slog.Handler.
func (l *limitLog) WithGroup(name string) slog.Handler {
	return &limitLog{l.Handler.WithGroup(name), l.bucket}
}
