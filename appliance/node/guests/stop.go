package guests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Machines is the part of hypervisor.Driver that Stop uses.
type Machines interface {
	List(ctx context.Context) ([]hypervisor.Status, error)
	Shutdown(ctx context.Context, id api.InstanceID) error
	Destroy(ctx context.Context, id api.InstanceID) error
}

// Options configures Stop.
type Options struct {
	Machines Machines
	Run      string        // directory of the node's sockets
	Grace    time.Duration // from the power button to the destroy; at most MaxGrace
	// Note records, in a place that outlives this process and the node's agent,
	// that the node ends the run of an instance, and not the instance's guest.
	Note func(id api.InstanceID) error
	Log  *slog.Logger

	now   func() time.Time                           // time.Now if nil
	sleep func(ctx context.Context, d time.Duration) // a timer if nil
}

const (
	// MaxGrace is the longest wait for guests: the unit's TimeoutStopSec is longer.
	MaxGrace = 15 * time.Minute

	lookEvery = 500 * time.Millisecond
	callTime  = 10 * time.Second // timeout of one call of the hypervisor
	pullTime  = 30 * time.Second // how long machines may take to end after the grace time
	awayTime  = 30 * time.Second // how long the hypervisor may not answer
)

// stopper runs one shutdown of all guests.
type stopper struct {
	Options
	began   time.Time
	pressed map[api.InstanceID]time.Duration // since began
	noted   map[api.InstanceID]bool
	heard   time.Duration // when the hypervisor last answered, since began
	failure error         // of the last round
}

// Stop shuts down all guests concurrently, and returns when all are off. It may be
// killed at any moment: another Stop continues where it was. An error names the
// instances that are not off after the grace time; they end with the node.
func Stop(ctx context.Context, o Options) error {
	if o.Grace <= 0 || o.Grace > MaxGrace {
		return fmt.Errorf("a grace time of %s: want more than 0 and at most %s", o.Grace, MaxGrace)
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.sleep == nil {
		o.sleep = wait
	}
	began, err := begin(o.Run)
	if err != nil {
		return fmt.Errorf("mark the node as shutting down: %w", err)
	}
	s := &stopper{Options: o, began: began, pressed: map[api.InstanceID]time.Duration{}, noted: map[api.InstanceID]bool{}}
	s.heard = s.since()
	for ctx.Err() == nil {
		left, done := s.round(ctx)
		if done {
			s.Log.Info("all guests are off")
			return nil
		}
		if err := s.late(left); err != nil {
			return err
		}
		s.sleep(ctx, lookEvery)
	}
	return ctx.Err()
}

// since returns how long ago the shutdown began. A clock that was set back does not
// extend the wait.
func (s *stopper) since() time.Duration { return max(s.now().Sub(s.began), 0) }

// late returns an error when waiting longer is pointless.
func (s *stopper) late(left []string) error {
	since := s.since()
	switch {
	case since-s.heard >= awayTime:
		return fmt.Errorf("the hypervisor has not answered for %s: guests that run lose their power: %w", awayTime, s.failure)
	case since >= s.Grace+pullTime:
		return errors.Join(fmt.Errorf("%d guests are not off %s after they were asked to shut down: %s", len(left), since.Round(time.Second), strings.Join(left, ", ")), s.failure)
	}
	return nil
}

// round observes all machines and performs what is due. It returns those that are
// not off.
func (s *stopper) round(ctx context.Context) (left []string, done bool) {
	within, cancel := context.WithTimeout(ctx, callTime)
	all, err := s.Machines.List(within)
	cancel()
	if err != nil {
		s.failure = err
		return nil, false
	}
	since := s.since()
	s.heard, s.failure = since, nil
	var wg sync.WaitGroup
	var mu sync.Mutex // guards failure in the round
	for _, m := range all {
		if !m.State.Active() {
			continue
		}
		left = append(left, string(m.ID))
		s.note(m.ID)
		pressed, ever := s.pressed[m.ID]
		if !ever {
			pressed = -1
		}
		do := next(m.State, pressed, since, s.Grace)
		if do == actNone {
			continue
		}
		s.Log.Info("shutting down", "instance", m.ID, "step", string(do))
		s.pressed[m.ID] = since
		wg.Go(func() {
			if err := s.perform(ctx, m.ID, do); err != nil {
				s.Log.Warn("stop guest failed, will try again", "instance", m.ID, "error", err)
				mu.Lock()
				defer mu.Unlock()
				s.failure = errors.Join(s.failure, err)
			}
		})
	}
	wg.Wait()
	return left, len(left) == 0
}

// note records the end of a run before it is caused.
func (s *stopper) note(id api.InstanceID) {
	if s.noted[id] || s.Note == nil {
		return
	}
	if err := s.Note(id); err != nil { // the machine must be switched off nevertheless
		s.Log.Warn("note that the node ends the run failed", "instance", id, "error", err)
		return
	}
	s.noted[id] = true
}

func (s *stopper) perform(ctx context.Context, id api.InstanceID, a act) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err := error(nil)
	if a == actPull {
		err = s.Machines.Destroy(ctx, id)
	} else {
		err = s.Machines.Shutdown(ctx, id)
	}
	if api.CodeOf(err) == api.CodeNotFound { // it was removed meanwhile
		return nil
	}
	if err != nil {
		return fmt.Errorf("instance %s: %s: %w", id, a, err)
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
