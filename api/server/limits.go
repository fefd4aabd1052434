package server

import (
	"sync"
	"time"
)

// maxBuckets bounds a limiter's memory; beyond it everybody shares one bucket.
const maxBuckets = 10000

// limiter is a token bucket per key: rate tokens a second, at most burst.
type limiter struct {
	rate, burst float64

	mu      sync.Mutex // guards buckets
	buckets map[string]bucket
}

type bucket struct {
	tokens float64
	at     time.Time
}

func newLimiter(rate, burst float64) *limiter {
	return &limiter{rate: rate, burst: burst, buckets: map[string]bucket{}}
}

// take takes one token; false: there is none.
func (l *limiter) take(key string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, key := l.bucket(key, now)
	ok := b.tokens >= 1
	if ok {
		b.tokens--
	}
	l.buckets[key] = b
	return ok
}

// give gives one back.
func (l *limiter) give(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.buckets[key]; ok {
		b.tokens = min(l.burst, b.tokens+1)
		l.buckets[key] = b
	}
}

// empty says whether take would fail, taking nothing.
func (l *limiter) empty(key string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, _ := l.bucket(key, now)
	return b.tokens < 1
}

func (l *limiter) bucket(key string, now time.Time) (bucket, string) {
	b, ok := l.buckets[key]
	if !ok {
		if len(l.buckets) >= maxBuckets {
			l.dropFull(now)
		}
		if len(l.buckets) >= maxBuckets {
			key = ""
			b, ok = l.buckets[key]
		}
		if !ok {
			return bucket{l.burst, now}, key
		}
	}
	if d := now.Sub(b.at).Seconds(); d > 0 {
		b.tokens = min(l.burst, b.tokens+d*l.rate)
	}
	b.at = now
	return b, key
}

// dropFull forgets who has all of its tokens again.
func (l *limiter) dropFull(now time.Time) {
	for k, b := range l.buckets {
		if b.tokens+now.Sub(b.at).Seconds()*l.rate >= l.burst {
			delete(l.buckets, k)
		}
	}
}
