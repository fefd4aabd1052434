package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// Settled returns the cluster's level and ID from this node's tables.
func (s *Store) Settled() (level int, id string, err error) {
	err = s.tables.read(func(v state.View) error { level, id = v.Level(), v.ClusterID(); return nil })
	return level, id, err
}

// RaiseLevel raises the cluster's feature level to one that every one of the members
// supports; members must include all members of Raft, and all Node objects. It works
// only on the leader.
func (s *Store) RaiseLevel(ctx context.Context, term uint64, level int, members []string) error {
	if level > state.Level {
		return fmt.Errorf("raise the feature level: %w", state.UnsupportedLevel(level))
	}
	for _, m := range s.Members() {
		if !slices.Contains(members, m.ID) {
			return api.Errorf(api.CodeConflict, "feature level supported by node %s is unknown", m.ID).WithHint("try again")
		}
	}
	raw, err := state.EncodeSettlement(state.Settlement{Level: level, ID: newClusterID(), Members: members, AuditKey: newAuditKey()})
	if err != nil {
		return fmt.Errorf("encode the entry for feature level %d: %w", level, err)
	}
	select {
	case s.inflight <- struct{}{}:
	case <-ctx.Done():
		return canceled(ctx.Err())
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

// begin writes the level and the ID as the first command of a new cluster. If the
// tables are not new, or there are other members, that is left to RaiseLevel.
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
		return fmt.Errorf("encode the entry that begins the cluster: %w", err)
	}
	return s.answer(context.Background(), func() raft.Future { return s.raft.ApplyLog(raft.Log{Data: raw}, 0) })
}
