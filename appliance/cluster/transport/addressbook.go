package transport

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// maxPaths is the maximum number of addresses of one node that are used.
const maxPaths = 8

// failureDelay is how long a path that failed is tried only after the others.
const failureDelay = 10 * time.Second

// PathHealth is the state of one path to a node.
type PathHealth struct {
	Address     string        // host:port
	LastOK      time.Time     // when it last answered; zero if never
	RTT         time.Duration // of the last answer to a ping, or of the handshake
	LastFailure time.Time
	LastError   string // of the last failure
}

// Up reports whether the path has answered since its last failure.
func (h PathHealth) Up() bool { return h.LastOK.After(h.LastFailure) }

// AddressBook stores the paths to each node, best first. The zero AddressBook is empty and ready
// to use. It is safe for concurrent use.
type AddressBook struct {
	mu      sync.Mutex
	nodes   map[api.NodeID][]PathHealth
	changed chan struct{}
}

// Replace replaces the book's content. The state of paths that remain is kept.
func (b *AddressBook) Replace(all map[api.NodeID][]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := make(map[api.NodeID][]PathHealth, len(all))
	for node, addresses := range all {
		next[node] = merge(b.nodes[node], addresses)
	}
	b.put(next)
}

// Set replaces one node's paths. Without addresses the node is removed.
func (b *AddressBook) Set(node api.NodeID, addresses ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := maps.Clone(b.nodes)
	if next == nil {
		next = map[api.NodeID][]PathHealth{}
	}
	if next[node] = merge(b.nodes[node], addresses); len(addresses) == 0 {
		delete(next, node)
	}
	b.put(next)
}

// put replaces the nodes and closes changed, which the Prober waits for, if an
// address changed. The caller holds mu.
func (b *AddressBook) put(next map[api.NodeID][]PathHealth) {
	same := maps.EqualFunc(b.nodes, next, func(x, y []PathHealth) bool {
		return slices.EqualFunc(x, y, func(p, q PathHealth) bool { return p.Address == q.Address })
	})
	b.nodes = next
	if !same && b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

func merge(old []PathHealth, addresses []string) []PathHealth {
	var paths []PathHealth
	for _, a := range addresses {
		same := func(h PathHealth) bool { return h.Address == a }
		if slices.ContainsFunc(paths, same) || len(paths) == maxPaths {
			continue
		}
		h := PathHealth{Address: a}
		if i := slices.IndexFunc(old, same); i >= 0 {
			h = old[i]
		}
		paths = append(paths, h)
	}
	return paths
}

// Nodes returns the nodes in the book, sorted.
func (b *AddressBook) Nodes() []api.NodeID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.nodes))
}

// Paths returns the paths to a node in the book's order, with their state.
func (b *AddressBook) Paths(node api.NodeID) []PathHealth {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.nodes[node])
}

// Changed returns a channel that is closed at the next change of an address.
func (b *AddressBook) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

// answered records that a path works.
func (b *AddressBook) answered(node api.NodeID, address string, now time.Time, rtt time.Duration) {
	b.note(node, address, func(h *PathHealth) { h.LastOK, h.RTT = now, rtt })
}

// failed records that a path does not work.
func (b *AddressBook) failed(node api.NodeID, address string, now time.Time, err error) {
	b.note(node, address, func(h *PathHealth) { h.LastFailure, h.LastError = now, err.Error() })
}

func (b *AddressBook) note(node api.NodeID, address string, change func(*PathHealth)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.nodes[node] {
		if h := &b.nodes[node][i]; h.Address == address {
			change(h)
		}
	}
}

// order returns the order in which paths are tried: the book's order, but paths
// that failed recently and have not answered since come last. Such a path returns
// to its place after an answer to a ping or after failureDelay.
func order(paths []PathHealth, now time.Time) []string {
	var good, bad []string
	for _, h := range paths {
		if !h.LastFailure.IsZero() && !h.Up() && now.Sub(h.LastFailure) < failureDelay {
			bad = append(bad, h.Address)
		} else {
			good = append(good, h.Address)
		}
	}
	return append(good, bad...)
}
