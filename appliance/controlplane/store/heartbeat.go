package store

import (
	"sync/atomic"
	"time"
)

// heartbeat detects that this process was stalled: stopped by a signal, or starved.
//
// Raft's VerifyLeader accepts any answer of a follower that arrives after the request,
// also to messages sent before it. While the leader runs that is sound: it steps down
// LeaderLeaseTimeout after the last answer, and nobody else is elected before the
// longer ElectionTimeout is over. A leader that was stalled for longer than the
// difference may find earlier answers, and would believe that it still leads. It must
// use a request that cannot have been answered before: a barrier (askLeads).
type heartbeat struct {
	start    time.Time
	election time.Duration
	last     atomic.Int64 // time of the last beat, in nanoseconds since start
	doubt    atomic.Int64 // until then, in nanoseconds since start, VerifyLeader is not trusted
}

func newHeartbeat(election time.Duration) *heartbeat {
	return &heartbeat{start: time.Now(), election: election}
}

// maxGap is the longest time between two beats that does not count as a stall: somewhat
// less than the difference between the time-outs.
func (p *heartbeat) maxGap() time.Duration { return p.election / 6 }

// beat must be called several times within maxGap.
func (p *heartbeat) beat() {
	now := time.Since(p.start).Nanoseconds()
	if now-p.last.Swap(now) > p.maxGap().Nanoseconds() {
		p.doubt.Store(now + 2*p.election.Nanoseconds())
	}
}

// stalled reports whether the process was stalled recently.
func (p *heartbeat) stalled() bool {
	now := time.Since(p.start).Nanoseconds()
	return now-p.last.Load() > p.maxGap().Nanoseconds() || now < p.doubt.Load()
}

// runHeartbeat calls beat until the store closes. A node that is alone beats rarely, as
// nobody else can be elected (mayHaveLost); when others join, the first beat finds the
// one before it too long ago, and assumes a stall.
func (s *Store) runHeartbeat() {
	for {
		every := s.heartbeat.maxGap() / 3
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

// mayHaveLost reports whether another node may have been elected without Raft knowing
// of it yet.
func (s *Store) mayHaveLost() bool { return s.heartbeat.stalled() && !s.alone() }
