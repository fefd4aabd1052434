package agent

import "sync"

// observedEpoch is the epoch up to which this node has removed what was assigned
// to other nodes.
type observedEpoch struct {
	cache *cache

	mu       sync.Mutex
	observed int64
}

// raise records that everything of earlier epochs has been
// removed from this node.
func (e *observedEpoch) raise(epoch int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observed = max(e.observed, epoch)
}

// get returns the observed epoch; it starts from the one that the node reported
// last.
func (e *observedEpoch) get() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, ok := e.cache.self(); ok {
		e.observed = max(e.observed, n.Status.ObservedEpoch)
	}
	return e.observed
}
