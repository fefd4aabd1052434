package store

import (
	"sync/atomic"
	"time"
)

// heartbeat notices that this process stood still: stopped by a signal, or starved.
//
// Raft's VerifyLeader takes any answer of a follower that comes in after the
// question, also to what was sent before it. While the leader runs that is
// sound: it steps down LeaderLeaseTimeout after the last answer, and nobody
// else is elected before the longer ElectionTimeout is over. A leader that
// stood still for longer than the difference may find answers of before, and
// would believe that it still leads. It must ask something that cannot have
// been answered before: a barrier (askLeads).
type heartbeat struct {
	start    time.Time
	election time.Duration
	last     atomic.Int64 // nanoseconds since start: the last beat
	doubt    atomic.Int64 // until then what the past seems to say is not believed
}

func newHeartbeat(election time.Duration) *heartbeat {
	return &heartbeat{start: time.Now(), election: election}
}

// most is the longest time between two beats that is none of standing still:
// what lies between the time-outs, with some to spare.
func (p *heartbeat) most() time.Duration { return p.election / 6 }

// beat is called a few times in most.
func (p *heartbeat) beat() {
	now := time.Since(p.start).Nanoseconds()
	if now-p.last.Swap(now) > p.most().Nanoseconds() {
		p.doubt.Store(now + 2*p.election.Nanoseconds())
	}
}

// stoodStill reports whether it did lately.
func (p *heartbeat) stoodStill() bool {
	now := time.Since(p.start).Nanoseconds()
	return now-p.last.Load() > p.most().Nanoseconds() || now < p.doubt.Load()
}

// beats is the heartbeat. A node that is alone has next to none, as nobody can be elected
// beside it (mayHaveLost); when others join, the first beat finds the one before it
// too long ago, and doubts.
func (s *Store) beats() {
	for {
		every := s.heartbeat.most() / 3
		if s.alone() {
			every = s.heartbeat.election
		}
		select {
		case <-time.After(every):
			s.heartbeat.beat()
		case <-s.closing:
			return
		}
	}
}

// mayHaveLost reports whether another node may have been elected that Raft does not
// know of yet.
func (s *Store) mayHaveLost() bool { return s.heartbeat.stoodStill() && !s.alone() }
