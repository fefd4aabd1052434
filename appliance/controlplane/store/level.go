package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// Settled is the cluster's level and id, as this node's tables say.
func (s *Store) Settled() (level int, id string, err error) {
	err = s.tables.read(func(v state.View) error { level, id = v.Level(), v.ClusterID(); return nil })
	return level, id, err
}

// Raise gives the cluster the level, which every one of the members supports;
// members are all that Raft has, and all Node objects. On the leader only.
func (s *Store) Raise(ctx context.Context, term uint64, level int, members []string) error {
	if level > state.Level {
		return state.BeyondLevel(level)
	}
	for _, m := range s.Members() {
		if !slices.Contains(members, m.ID) {
			return api.Errorf(api.CodeConflict, "feature level supported by node %s is unknown", m.ID).WithHint("try again")
		}
	}
	raw, err := state.EncodeSettlement(state.Settlement{Level: level, ID: newClusterID(), Members: members, AuditKey: newAuditKey()})
	if err != nil {
		return err
	}
	select {
	case s.inflight <- struct{}{}:
	case <-ctx.Done():
		return gaveUp(ctx.Err())
	case <-s.closing:
		return closed()
	}
	_, err = s.propose(ctx, termed(withTerm(ctx, term), raw))
	return err
}

func newClusterID() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails: it ends the process instead
	return hex.EncodeToString(b)
}

func newAuditKey() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: it ends the process instead
	return b
}

// begin makes the level and the id the first command of a new cluster. Of one
// that has any, or other members, it leaves that to Raise.
func (s *Store) begin() error {
	var isNew bool
	if err := s.tables.read(func(v state.View) error {
		isNew = v.Untouched()
		return nil
	}); err != nil || !isNew || len(s.Members()) > 1 {
		return err
	}
	raw, err := state.EncodeSettlement(state.Settlement{Level: state.Level, ID: newClusterID(), Members: []string{s.options.NodeID}, AuditKey: newAuditKey()})
	if err != nil {
		return err
	}
	return s.answer(context.Background(), func() raft.Future { return s.raft.ApplyLog(raft.Log{Data: raw}, 0) })
}
