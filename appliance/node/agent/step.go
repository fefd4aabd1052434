package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Stepper drives an agent from outside, on one goroutine and in the time of
// Options.Now: a simulation calls what Run's goroutines would call. Options.Go
// should run its argument at once, or whenever the simulation decides.
type Stepper struct {
	a *Agent

	mu    sync.Mutex // guards the maps: calls of other nodes trigger keys, too
	due   map[string]time.Time
	fails map[string]int
}

// NewStepper returns an agent that is stepped instead of Run.
func NewStepper(o Options) *Stepper {
	s := &Stepper{a: New(o), due: map[string]time.Time{}, fails: map[string]int{}}
	s.a.trigger = func(k string) { s.at(k, s.a.o.Now()) }
	return s
}

// Agent returns the agent that is stepped.
func (s *Stepper) Agent() *Agent { return s.a }

func (s *Stepper) at(k string, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, ok := s.due[k]; !ok || t.Before(was) {
		s.due[k] = t
	}
}

// Deliver delivers changes of the store to the agent.
func (s *Stepper) Deliver(n watchcache.Update) { s.a.watcher.merge(n) }

// MachineEvent delivers an event of the hypervisor to the agent.
func (s *Stepper) MachineEvent(e hypervisor.Event) { s.a.watcher.machineEvent(e) }

// BackendExit tells the agent that the instance's vGPU backend has ended.
func (s *Stepper) BackendExit(id api.InstanceID) { s.a.watcher.backendExit(id) }

// Due returns the keys to reconcile at the given time, sorted.
func (s *Stepper) Due(now time.Time) (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, t := range s.due {
		if !t.After(now) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// Next returns the earliest time at which a key is due, or zero if none is.
func (s *Stepper) Next() (next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.due {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	return next
}

// minWait and maxWait are the retry delays of a failing key; they equal the loop's.
const (
	minWait = 200 * time.Millisecond
	maxWait = 30 * time.Second
)

// Reconcile reconciles one key, and records when it is due again.
func (s *Stepper) Reconcile(ctx context.Context, k string) (again time.Duration, err error) {
	s.mu.Lock()
	delete(s.due, k)
	s.mu.Unlock()
	again, err = s.a.reconcile(ctx, k)
	if err != nil {
		again = min(minWait<<min(s.fails[k], 16), maxWait)
		s.fails[k]++
	} else {
		delete(s.fails, k)
	}
	if again > 0 {
		s.at(k, s.a.o.Now().Add(again))
	}
	return again, err
}

// Report reports the state of the node; Run does this every Options.ReportEvery.
func (s *Stepper) Report(ctx context.Context) error { return s.a.reporter.reportAll(ctx) }

// Sweep removes what belongs to no object; Run does this every minute.
func (s *Stepper) Sweep(ctx context.Context) error { return s.a.sweeper.sweep(ctx) }

// Meter records the usage of everything; Run does this every Options.MeterEvery.
func (s *Stepper) Meter(ctx context.Context) error { return s.a.meter.recordAll(ctx) }

// Sample samples every source once; Run does this every few seconds, each source
// independently.
func (s *Stepper) Sample(ctx context.Context) (err error) {
	for _, read := range s.a.sampler.sources() {
		err = errors.Join(err, read(ctx))
	}
	return err
}
