package lease

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Reach knows the ways to the other members.
type Reach interface {
	// Paths of each other member ("host:port").
	Paths() map[api.NodeID][]string
	// Probe tries one path; nil: a member answered on it.
	Probe(ctx context.Context, node api.NodeID, path string) error
}

// maxProbes bounds the probes under way at a time.
const maxProbes = 128

// Prober is this node as a witness: it probes every other on each path once a
// second.
type Prober struct {
	reach Reach
	now   func() Instant
	after func([]Sight) // after each round

	mu       sync.Mutex // guards what follows
	opinions Opinions
	nodes    []api.NodeID
}

// NewProber of a node. after, if not nil, hears the opinions after every round
// (Server.Sights); now nil: the boot clock.
func NewProber(reach Reach, after func([]Sight), now func() Instant) *Prober {
	if now == nil {
		now = Now
	}
	if after == nil {
		after = func([]Sight) {}
	}
	return &Prober{reach: reach, now: now, after: after}
}

// Run probes until ctx ends.
func (p *Prober) Run(ctx context.Context) error {
	tick := time.NewTicker(ProbeEvery)
	defer tick.Stop()
	for {
		p.round(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// round probes every path once. A probe has a second, so that three misses are
// three seconds.
func (p *Prober) round(ctx context.Context) {
	paths := p.reach.Paths()
	ctx, cancel := context.WithTimeout(ctx, ProbeEvery)
	defer cancel()
	limit := make(chan struct{}, maxProbes)
	var wg sync.WaitGroup
	for node, list := range paths {
		for _, path := range list {
			limit <- struct{}{}
			wg.Go(func() {
				err := p.reach.Probe(ctx, node, path)
				p.mu.Lock()
				p.opinions.Probed(p.now(), node, path, err == nil)
				p.mu.Unlock()
				<-limit
			})
		}
	}
	wg.Wait()
	p.mu.Lock()
	p.opinions.Retain(func(n api.NodeID, path string) bool { return slices.Contains(paths[n], path) })
	p.nodes = p.nodes[:0]
	for n := range paths {
		p.nodes = append(p.nodes, n)
	}
	slices.Sort(p.nodes)
	sights := p.opinions.Sights(p.now())
	p.mu.Unlock()
	p.after(sights)
}

// Sights are the present opinions.
func (p *Prober) Sights() []Sight {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opinions.Sights(p.now())
}

// Relays are the other members, those that this node reaches first.
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
