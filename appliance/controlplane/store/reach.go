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

// reachTimeout is how long another node may take to answer.
const reachTimeout = time.Second

// reachability is how many of the voters answer, including this one.
type reachability struct{ voters, answer int }

// whyNoLeader returns the error of a caller that waited for a leader in vain. On
// the minority side of a partition the error reports how many voters answer.
func (s *Store) whyNoLeader(ctx context.Context) error {
	if s.options.Remote == nil {
		return noLeader()
	}
	r, err := s.reach.call(ctx)
	if err != nil || 2*r.answer > r.voters {
		return noLeader()
	}
	return minority(r)
}

func minority(r reachability) *api.Error {
	return api.Errorf(api.CodeUnavailable, "this node cannot reach most of the cluster: %d of %d voters answer", r.answer, r.voters).
		WithHint("stale reads work here; writes and other reads work on the side with the majority of nodes")
}

// askReach contacts all other voters at once. Any answer of their stores counts.
func (s *Store) askReach(ctx context.Context) (reachability, error) {
	var r reachability
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
