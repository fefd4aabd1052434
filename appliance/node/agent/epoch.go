package agent

import "sync"

// observedEpoch is the epoch up to which this node has given up what was given
// to others.
type observedEpoch struct {
	cache *cache

	mu       sync.Mutex
	observed int64
}

// raise notes that everything is given up of before the epoch.
func (e *observedEpoch) raise(epoch int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observed = max(e.observed, epoch)
}

// get is the epoch after which this node has given up what was given to
// others; it starts from what the node said last.
func (e *observedEpoch) get() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, ok := e.cache.self(); ok {
		e.observed = max(e.observed, n.Status.ObservedEpoch)
	}
	return e.observed
}
