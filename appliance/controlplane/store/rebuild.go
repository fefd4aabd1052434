package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// Raft never drops a committed entry, unless most voters have lost theirs. If it drops
// one that the tables contain, the tables are wrong: they are rebuilt from the last
// snapshot before that entry, and from the log.

// keyCut is, in the vote file, the first entry that the cluster has dropped although the
// tables, or a snapshot, contain it.
var keyCut = []byte("Cut")

// errRebuild keeps Raft from continuing until the store has been opened again.
var errRebuild = errors.New("the tables must be rebuilt first")

// cut is called before the entries from there to the end of the log are deleted.
func (s *Store) cut(from uint64) error {
	if err := s.watermark.ends(from - 1); err != nil {
		return err
	}
	if s.fsm.applied.Load() < from {
		return nil
	}
	if err := s.votes.SetUint64(keyCut, from); err != nil {
		return err
	}
	why := fmt.Errorf("the cluster has dropped log entries from %d on that this node has applied: its tables are rebuilt", from)
	s.fail(why)
	return errRebuild
}

// rebuildTables removes the tables and the snapshots that contain dropped entries.
func (s *Store) rebuildTables(snapshots raft.SnapshotStore) error {
	from, err := s.votes.GetUint64(keyCut)
	if errors.Is(err, errNotFound) || err == nil && from == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	kept, err := s.dropSnapshots(snapshots, from)
	if err != nil {
		return err
	}
	for i := kept + 1; i < from; i++ {
		if err := s.log.GetLog(i, new(raft.Log)); err != nil {
			return &Damaged{s.options.path("snapshots"),
				fmt.Errorf("the cluster has dropped log entries from %d on that this node had applied, and entry %d is neither in a snapshot nor in the log: %w", from, i, err)}
		}
	}
	if s.fsm.applied.Load() >= from {
		if err := s.tables.empty(); err != nil {
			return err
		}
		if s.fsm, err = newFSM(s.tables); err != nil {
			return err
		}
	}
	return s.votes.SetUint64(keyCut, 0)
}

// dropSnapshots removes the snapshots that contain the entry, and returns the last
// entry of the newest remaining one, or 0.
func (s *Store) dropSnapshots(snapshots raft.SnapshotStore, from uint64) (kept uint64, err error) {
	list, err := snapshots.List()
	if err != nil {
		return 0, s.options.badSnapshots(err)
	}
	for _, m := range list {
		if m.Index < from {
			kept = max(kept, m.Index)
			continue
		}
		if err := os.RemoveAll(s.options.path(filepath.Join("snapshots", m.ID))); err != nil {
			return 0, err
		}
	}
	return kept, atomicfile.Sync(s.options.path("snapshots"))
}
