package store

import (
	"sync/atomic"
	"time"
)

// pulse notices that this process stood still: stopped by a signal, or starved.
//
// Raft's VerifyLeader takes any answer of a follower that comes in after the
// question, also to what was sent before it. While the leader runs that is
// sound: it steps down LeaderLeaseTimeout after the last answer, and nobody
// else is elected before the longer ElectionTimeout is over. A leader that
// stood still for longer than the difference may find answers of before, and
// would believe that it still leads. It must ask something that cannot have
// been answered before: a barrier (askLeads).
type pulse struct {
	start    time.Time
	election time.Duration
	last     atomic.Int64 // nanoseconds since start: the last beat
	doubt    atomic.Int64 // until then what the past seems to say is not believed
}

func newPulse(election time.Duration) *pulse { return &pulse{start: time.Now(), election: election} }

// most is the longest time between two beats that is none of standing still:
// what lies between the time-outs, with some to spare.
func (p *pulse) most() time.Duration { return p.election / 6 }

// beat is called a few times in most.
func (p *pulse) beat() {
	now := time.Since(p.start).Nanoseconds()
	if now-p.last.Swap(now) > p.most().Nanoseconds() {
		p.doubt.Store(now + 2*p.election.Nanoseconds())
	}
}

// stoodStill says whether it did lately.
func (p *pulse) stoodStill() bool {
	now := time.Since(p.start).Nanoseconds()
	return now-p.last.Load() > p.most().Nanoseconds() || now < p.doubt.Load()
}

// beats is the pulse. A node that is alone has next to none, as nobody can be elected
// beside it (mayHaveLost); when others join, the first beat finds the one before it
// too long ago, and doubts.
func (s *Store) beats() {
	for {
		every := s.pulse.most() / 3
		if s.alone() {
			every = s.pulse.election
		}
		select {
		case <-time.After(every):
			s.pulse.beat()
		case <-s.closing:
			return
		}
	}
}

// mayHaveLost reports whether another node may have been elected that Raft does not
// know of yet.
func (s *Store) mayHaveLost() bool { return s.pulse.stoodStill() && !s.alone() }
