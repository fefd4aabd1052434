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

// Machines are a node's, as hypervisor.Driver has them.
type Machines interface {
	List(ctx context.Context) ([]hypervisor.Status, error)
	Shutdown(ctx context.Context, id api.InstanceID) error
	Destroy(ctx context.Context, id api.InstanceID) error
}

// Options of Stop.
type Options struct {
	Machines Machines
	Run      string        // folder of the node's sockets
	Grace    time.Duration // from the power button to the plug; at most MaxGrace
	// Note says, where it outlives this process and the node's agent, that the node
	// ends the run of an instance, and not the instance's guest.
	Note func(id api.InstanceID) error
	Log  *slog.Logger

	now   func() time.Time                           // nil: time.Now
	sleep func(ctx context.Context, d time.Duration) // nil: a timer
}

const (
	// MaxGrace bounds the wait for guests: the unit's TimeoutStopSec is longer.
	MaxGrace = 15 * time.Minute

	lookEvery = 500 * time.Millisecond
	callTime  = 10 * time.Second // for one question to the hypervisor
	pullTime  = 30 * time.Second // for machines to be gone after the grace time
	awayTime  = 30 * time.Second // without an answer of the hypervisor
)

// stopper is one shutdown of all guests.
type stopper struct {
	Options
	began   time.Time
	pressed map[api.InstanceID]time.Duration // since began
	noted   map[api.InstanceID]bool
	heard   time.Duration // when the hypervisor last answered
	failure error         // of the last round
}

// Stop shuts every guest down, all at the same time, and returns when all are off. It
// may be killed at any moment: another Stop goes on where it was. An error names what
// is not off after the grace time; its power goes with the node's.
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

// since is how long ago the shutdown began. A clock that was set back does not make
// the wait longer than it may be.
func (s *stopper) since() time.Duration { return max(s.now().Sub(s.began), 0) }

// late returns an error when waiting longer is no use.
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

// round looks at all machines and does what is due. It returns which are not off.
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
			if err := s.do(ctx, m.ID, do); err != nil {
				s.Log.Warn(string(do)+" failed", "instance", m.ID, "error", err)
				mu.Lock()
				defer mu.Unlock()
				s.failure = errors.Join(s.failure, err)
			}
		})
	}
	wg.Wait()
	return left, len(left) == 0
}

// note the end of a run before it is brought about.
func (s *stopper) note(id api.InstanceID) {
	if s.noted[id] || s.Note == nil {
		return
	}
	if err := s.Note(id); err != nil { // the machine must go off all the same
		s.Log.Warn("note that the node ends the run failed", "instance", id, "error", err)
		return
	}
	s.noted[id] = true
}

func (s *stopper) do(ctx context.Context, id api.InstanceID, a act) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err := error(nil)
	if a == actPull {
		err = s.Machines.Destroy(ctx, id)
	} else {
		err = s.Machines.Shutdown(ctx, id)
	}
	if api.CodeOf(err) == api.CodeNotFound { // gone meanwhile
		return nil
	}
	return err
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
