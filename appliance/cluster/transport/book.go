package transport

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// maxPaths is how many addresses of one node are looked at.
const maxPaths = 8

// retreat is how long a path that failed is tried after the others.
const retreat = 10 * time.Second

// PathHealth is what is known of one way to a node.
type PathHealth struct {
	Address     string        // host:port
	LastOK      time.Time     // it last answered; zero: never
	RTT         time.Duration // of the last answer to a ping, else of the handshake
	LastFailure time.Time
	LastError   string // of the last failure
}

// Up reports whether the last that was seen of the path was an answer.
func (h PathHealth) Up() bool { return h.LastOK.After(h.LastFailure) }

// Book says on which paths, best first, each node is reached. The zero Book is
// empty and ready. Its methods may be called from any goroutine.
type Book struct {
	mu      sync.Mutex
	nodes   map[api.NodeID][]PathHealth
	changed chan struct{}
}

// Replace makes all the book's content. What is known of paths that stay is
// kept.
func (b *Book) Replace(all map[api.NodeID][]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := make(map[api.NodeID][]PathHealth, len(all))
	for node, addresses := range all {
		next[node] = merge(b.nodes[node], addresses)
	}
	b.put(next)
}

// Set one node's paths; none: the node is taken out.
func (b *Book) Set(node api.NodeID, addresses ...string) {
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

// put rings only when an address changed: the Prober listens. The caller holds mu.
func (b *Book) put(next map[api.NodeID][]PathHealth) {
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

// Nodes that are in the book, sorted.
func (b *Book) Nodes() []api.NodeID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.nodes))
}

// Paths to a node, in the book's order, with what is known of each.
func (b *Book) Paths(node api.NodeID) []PathHealth {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.nodes[node])
}

// Changed is closed when an address changes next.
func (b *Book) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

// answered notes that a path works.
func (b *Book) answered(node api.NodeID, address string, now time.Time, rtt time.Duration) {
	b.note(node, address, func(h *PathHealth) { h.LastOK, h.RTT = now, rtt })
}

// failed notes that a path does not.
func (b *Book) failed(node api.NodeID, address string, now time.Time, err error) {
	b.note(node, address, func(h *PathHealth) { h.LastFailure, h.LastError = now, err.Error() })
}

func (b *Book) note(node api.NodeID, address string, change func(*PathHealth)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.nodes[node] {
		if h := &b.nodes[node][i]; h.Address == address {
			change(h)
		}
	}
}

// order in which paths are tried: the book's, but those that failed a moment
// ago, and have not answered since, last. A path that comes back gets its
// place back, by a ping or when retreat has passed.
func order(paths []PathHealth, now time.Time) []string {
	var good, bad []string
	for _, h := range paths {
		if !h.LastFailure.IsZero() && !h.Up() && now.Sub(h.LastFailure) < retreat {
			bad = append(bad, h.Address)
		} else {
			good = append(good, h.Address)
		}
	}
	return append(good, bad...)
}
