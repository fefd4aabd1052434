package store

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// Recover makes nodeID the only member of its cluster, after most voters were lost
// permanently: everything in this node's log is kept, also what was never acknowledged.
// The store must not be open. Recover can be repeated, and a crash in the middle leaves
// the store as before or after it. Other nodes of the old cluster must not return with
// their old files. watermark is Options.Watermark: what the node has acknowledged to the
// others is discarded.
func Recover(dir, watermark, nodeID string) error {
	if err := recoverAlone(Options{Dir: dir, Watermark: watermark, NodeID: nodeID}); err != nil {
		return fmt.Errorf("recover the store in %s: %w", dir, err)
	}
	return nil
}

func recoverAlone(o Options) (err error) {
	o.setDefaults()
	if o.Dir == "" || o.NodeID == "" {
		return errors.New("dir and nodeID are required")
	}
	for _, name := range []string{"log.db", "vote"} { // the tables can be rebuilt from them
		if _, err := os.Stat(o.path(name)); err != nil {
			return errNothing(err)
		}
	}
	s := &Store{options: o}
	defer func() { err = errors.Join(err, s.closeFiles()) }()
	if err := NewWatermark(o.watermarkPath(), o.NodeID, ""); err != nil {
		return err
	}
	if s.watermark, err = openWatermark(o.watermarkPath()); err != nil {
		return err
	}
	s.closers = append(s.closers, closer(s.watermark.close))
	if err := s.openFiles(); err != nil {
		return err
	}
	if err := s.votes.Set(keyDamaged, nil); err != nil { // the remaining files must suffice
		return err
	}
	s.log.cut = func(uint64) error { return nil } // the snapshot contains everything
	votes := votes{s.votes, s.watermark}
	logger := raftLogger(slog.New(slog.DiscardHandler))
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(o.Dir, 2, logger)
	if err != nil {
		return err
	}
	tablesCurrent, _, err := s.checkFiles(snapshots)
	if err != nil {
		return err
	}
	_, trans := raft.NewInmemTransport(raft.ServerAddress(o.NodeID))
	conf := o.raftConfig(logger)
	conf.NoSnapshotRestoreOnStart = tablesCurrent
	machine := &recoveringFSM{fsm: s.fsm, tablesCurrent: tablesCurrent}
	if err := machine.readApplied(); err != nil {
		return err
	}
	before, err := raft.GetConfiguration(conf, machine, s.log, votes, snapshots, trans)
	if err != nil {
		return err
	}
	if len(before.Servers) == 0 {
		return errNothing(nil)
	}
	if !slices.ContainsFunc(before.Servers, func(m raft.Server) bool { return string(m.ID) == o.NodeID }) {
		return api.Errorf(api.CodeState, "%s is not a member of the cluster that its files belong to", o.NodeID)
	}
	conf = o.raftConfig(logger)
	alone := raft.Configuration{Servers: []raft.Server{member(o.NodeID)}}
	if err := raft.RecoverCluster(conf, machine, s.log, votes, snapshots, trans, alone); err != nil {
		return err
	}
	return atomicfile.Sync(filepath.Join(o.Dir, "snapshots"))
}

func errNothing(cause error) error {
	e := api.Errorf(api.CodeState, "nothing to recover: this node was never a member of a cluster")
	return errors.Join(e, cause)
}

// recoveringFSM applies the entries that the tables lack, and keeps the first failure:
// RecoverCluster ignores the results of Apply, but not an error of Snapshot.
type recoveringFSM struct {
	*fsm
	tablesCurrent bool // the tables include the newest snapshot
	applied       uint64
	err           error
}

// Restore replaces the tables, unless they are newer than the snapshot.
func (f *recoveringFSM) Restore(r io.ReadCloser) error {
	if f.tablesCurrent {
		return nil
	}
	if err := f.fsm.Restore(r); err != nil {
		return err
	}
	return f.readApplied()
}

// readApplied reads the applied index of the tables.
func (f *recoveringFSM) readApplied() error {
	var err error
	f.applied, err = f.tables.appliedIndex()
	return err
}

// Apply is called in the order of the log.
func (f *recoveringFSM) Apply(l *raft.Log) any {
	if raw, holds := state.OfTerm(l.Data, l.Term); holds && l.Index > f.applied && f.err == nil {
		_, f.err = f.tables.apply([]state.Entry{{Index: l.Index, Data: raw}})
	}
	return nil
}

// Snapshot fails if an entry was not applied.
func (f *recoveringFSM) Snapshot() (raft.FSMSnapshot, error) {
	if f.err != nil {
		return nil, f.err
	}
	s, err := f.fsm.Snapshot()
	return releasing{s}, err
}

// releasing is a snapshot that is released by Persist: RecoverCluster uses it once, and
// does not release it.
type releasing struct{ raft.FSMSnapshot }

func (r releasing) Persist(sink raft.SnapshotSink) error {
	defer r.Release()
	return r.FSMSnapshot.Persist(sink)
}
