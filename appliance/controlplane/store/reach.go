package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
)

// reachTimeout is how long another node may take to show that it is there.
const reachTimeout = time.Second

// reached is how many voters of how many answer, this one counted.
type reached struct{ voters, answer int }

// whyNoLeader is the error of who waited for a leader in vain: the minority
// side of a partition says that it is one.
func (s *Store) whyNoLeader(ctx context.Context) error {
	if s.options.Remote == nil {
		return noLeader()
	}
	r, err := s.reach.ask(ctx)
	if err != nil || 2*r.answer > r.voters {
		return noLeader()
	}
	return minority(r)
}

func minority(r reached) *api.Error {
	return api.Errorf(api.CodeUnavailable, "this node cannot reach most of the cluster: %d of %d voters answer", r.answer, r.voters).
		WithHint("stale reads work here; writes and other reads work on the side with the majority of nodes")
}

// askReach asks all other voters at once. Any answer of the store will do.
func (s *Store) askReach(ctx context.Context) (reached, error) {
	var r reached
	var answer atomic.Int64
	var all sync.WaitGroup
	for _, m := range s.raft.GetConfiguration().Configuration().Servers {
		if m.Suffrage != raft.Voter {
			continue
		}
		r.voters++
		if string(m.ID) == s.options.NodeID {
			answer.Add(1)
			continue
		}
		all.Go(func() {
			if _, err := s.options.Remote.ReadIndex(ctx, string(m.ID)); err == nil || errors.Is(err, ErrNotLeader) {
				answer.Add(1)
			}
		})
	}
	all.Wait()
	r.answer = int(answer.Load())
	return r, nil
}
