package auth

import (
	"sync"
	"time"
)

// maxBuckets limits a limiter's memory; beyond it, the least recently used buckets are
// dropped.
const maxBuckets = 10000

// makeRoom removes an entry of a full map: the least recently used of eight random
// ones.
func makeRoom[V any](m map[string]V, used func(V) time.Time) {
	if len(m) < maxBuckets {
		return
	}
	oldest, n := "", 0
	for k, v := range m { // iteration starts at a random entry
		if n == 0 || used(v).Before(used(m[oldest])) {
			oldest = k
		}
		if n++; n == 8 {
			break
		}
	}
	delete(m, oldest)
}

// limiter is a token bucket per key: rate tokens per second, at most burst.
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

// take takes one token, or returns false if there is none.
func (l *limiter) take(key string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.buckets[key]
	if !ok {
		makeRoom(l.buckets, func(b bucket) time.Time { return b.at })
		b = bucket{l.burst, now}
	}
	if d := now.Sub(b.at).Seconds(); d > 0 {
		b.tokens = min(l.burst, b.tokens+d*l.rate)
	}
	b.at = now
	ok = b.tokens >= 1
	if ok {
		b.tokens--
	}
	l.buckets[key] = b
	return ok
}

// give returns one token to the bucket.
func (l *limiter) give(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.buckets[key]; ok {
		b.tokens = min(l.burst, b.tokens+1)
		l.buckets[key] = b
	}
}
