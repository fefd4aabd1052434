package lease

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Reach provides the paths to the other members, each of which is pinged every
// second. transport.Prober implements it.
type Reach interface {
	// Paths returns the paths of each other member ("host:port").
	Paths() map[api.NodeID][]string
	// LastAnswer returns when a member last answered on the path, or the zero time.
	LastAnswer(node api.NodeID, path string) time.Time
}

// Prober makes this node a witness: once a second it checks which paths have
// answered since the previous check.
type Prober struct {
	reach Reach
	now   func() Instant
	after func([]PathReport)

	mu       sync.Mutex // guards what follows
	opinions PathOpinions
	last     map[way]time.Time
	nodes    []api.NodeID
}

// NewProber returns the Prober of a node. after, if not nil, is called with the
// opinions after every check (Server.Reports). If now is nil, the boot clock is
// used.
func NewProber(reach Reach, after func([]PathReport), now func() Instant) *Prober {
	if now == nil {
		now = Now
	}
	if after == nil {
		after = func([]PathReport) {}
	}
	return &Prober{reach: reach, now: now, after: after, last: map[way]time.Time{}}
}

// Run checks the paths until ctx ends. Checks that were missed while this process
// was stopped are not repeated: they contain nothing about the other members.
func (p *Prober) Run(ctx context.Context) error {
	tick := time.NewTicker(ProbeEvery)
	defer tick.Stop()
	for {
		p.check()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (p *Prober) check() {
	paths := p.reach.Paths()
	p.mu.Lock()
	now := p.now()
	p.nodes = p.nodes[:0]
	for node, list := range paths {
		p.nodes = append(p.nodes, node)
		for _, path := range list {
			w, answered := way{node, path}, p.reach.LastAnswer(node, path)
			// These times are compared only with each other, never with a clock.
			p.opinions.Probed(now, node, path, answered.After(p.last[w]))
			p.last[w] = answered
		}
	}
	known := func(n api.NodeID, path string) bool { return slices.Contains(paths[n], path) }
	p.opinions.Retain(known)
	for w := range p.last {
		if !known(w.node, w.path) {
			delete(p.last, w)
		}
	}
	slices.Sort(p.nodes)
	reports := p.opinions.Reports(now)
	p.mu.Unlock()
	p.after(reports)
}

// Reports returns the current opinions.
func (p *Prober) Reports() []PathReport {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opinions.Reports(p.now())
}

// Relays returns the other members, those that this node reaches first.
func (p *Prober) Relays() []api.NodeID {
	p.mu.Lock()
	defer p.mu.Unlock()
	var near, far []api.NodeID
	for _, n := range p.nodes {
		if p.opinions.Reaches(n) {
			near = append(near, n)
		} else {
			far = append(far, n)
		}
	}
	return append(near, far...)
}
