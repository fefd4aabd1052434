package store

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/backup"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// restoredIndex and restoredTerm are the position in the log of restored content. Raft
// sends it to nodes that join as a snapshot.
const restoredIndex, restoredTerm = 1, 1

// RestoreInto makes dir the store of nodeID, the only member of a new cluster with the
// backup's content. All of the backup is checked before dir, which must be empty or
// missing, is changed; the store is moved there complete, by one rename. The next call
// removes what an interrupted one leaves.
func RestoreInto(dir, nodeID string, r io.Reader) (backup.Info, error) {
	var info backup.Info
	if dir == "" || nodeID == "" {
		return info, errors.New("restore backup: dir and nodeID are required")
	}
	dir = filepath.Clean(dir)
	if err := checkEmpty(dir); err != nil {
		return info, err
	}
	work := dir + ".restoring"
	if err := os.RemoveAll(work); err != nil {
		return info, err
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return info, err
	}
	info, err := restoreFiles(work, nodeID, r)
	if err == nil {
		err = moveInPlace(work, dir)
	}
	if err != nil {
		return info, errors.Join(err, os.RemoveAll(work))
	}
	return info, nil
}

func checkEmpty(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(names) > 0 {
		return api.Errorf(api.CodeState, "this node already has a store").
			WithHint("restore the backup on a node that is not part of a cluster")
	}
	return nil
}

// moveInPlace renames work, which is complete and synced, to dir.
func moveInPlace(work, dir string) error {
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(work, dir); err != nil {
		return err
	}
	return atomicfile.Sync(filepath.Dir(dir))
}

// restoreFiles creates the files of a store in dir.
func restoreFiles(dir, nodeID string, r io.Reader) (info backup.Info, err error) {
	t, err := openTables(filepath.Join(dir, "tables.db"))
	if err != nil {
		return info, err
	}
	t.db.NoSync = true // until it is complete
	if info, err = backup.Fill(t.update, r, restoredIndex); err == nil {
		err = t.update(func(tx *bbolt.Tx) error { // a cluster of its own, of this node alone
			return state.ViewOf(tx).Settle(state.Settlement{Level: state.Level, ID: newClusterID(), AuditKey: newAuditKey()})
		})
	}
	if err == nil {
		err = t.db.Sync()
	}
	if err == nil {
		err = firstSnapshot(dir, nodeID, t)
	}
	if err = errors.Join(err, t.close()); err != nil {
		return info, err
	}
	votes, err := openStable(filepath.Join(dir, "vote"))
	if err != nil {
		return info, err
	}
	err = votes.SetUint64([]byte("CurrentTerm"), restoredTerm) // Raft's key for it
	if err = errors.Join(err, votes.Close()); err != nil {
		return info, err
	}
	return info, atomicfile.Sync(dir)
}

// firstSnapshot writes the snapshot that the new cluster's log begins with.
func firstSnapshot(dir, nodeID string, t *tables) error {
	snapshots, err := raft.NewFileSnapshotStore(dir, 2, io.Discard)
	if err != nil {
		return err
	}
	_, trans := raft.NewInmemTransport(raft.ServerAddress(nodeID))
	members := raft.Configuration{Servers: []raft.Server{member(nodeID)}}
	sink, err := snapshots.Create(raft.SnapshotVersionMax, restoredIndex, restoredTerm, members, restoredIndex, trans)
	if err != nil {
		return err
	}
	tx, end, err := t.beginTx()
	if err != nil {
		return errors.Join(err, sink.Cancel())
	}
	s := snapshot{t, tx, end}
	defer s.Release()
	return s.Persist(sink)
}
