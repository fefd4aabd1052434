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
)

const (
	// revisionGap lies between a backup's revision and that of the cluster made
	// of it: more than the old cluster can have counted after the backup. So a
	// watch's place of before is never a place in the new one, and begins anew.
	revisionGap = 1_000_000_000
	// maxRevision of a backup: what follows it still is exact in a float64, as
	// which some readers of JSON take it.
	maxRevision = 1<<53 - 1 - 2*revisionGap
	// restoredIndex and restoredTerm are the place in the log of what was
	// restored. Raft gives it to nodes that join as a snapshot.
	restoredIndex, restoredTerm = 1, 1
)

// RestoreInto makes dir the store of nodeID, the only member of a new cluster
// with the backup's content. All of the backup is checked before dir is
// touched, which must be empty or not be there; it appears whole, by one
// rename. What an interrupted call leaves is removed by the next one.
func RestoreInto(dir, nodeID string, r io.Reader) (BackupInfo, error) {
	var info BackupInfo
	if dir == "" || nodeID == "" {
		return info, errors.New("restore a backup: dir and nodeID are needed")
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
		err = appear(work, dir)
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
		return api.Errorf(api.CodeState, "there is a store on this node already").
			WithHint("a backup is restored on a node that belongs to no cluster")
	}
	return nil
}

// appear gives work, complete and synced, its place.
func appear(work, dir string) error {
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(work, dir); err != nil {
		return err
	}
	return atomicfile.Sync(filepath.Dir(dir))
}

// restoreFiles makes the files of a store in dir.
func restoreFiles(dir, nodeID string, r io.Reader) (info BackupInfo, err error) {
	t, err := openTables(filepath.Join(dir, "tables.db"))
	if err != nil {
		return info, err
	}
	t.db.NoSync = true // until it is complete
	if info, err = t.fill(r); err == nil {
		err = t.update(func(tx *bbolt.Tx) error { // a cluster of its own, of this node alone
			return view{tx: tx}.settle(settlement{Level: Level, ID: newClusterID(), AuditKey: newAuditKey()})
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

// firstSnapshot is the beginning of the new cluster's log.
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
	v, end, err := t.begin()
	if err != nil {
		return errors.Join(err, sink.Cancel())
	}
	s := snapshot{t, v, end}
	defer s.Release()
	return s.Persist(sink)
}

// restoreBatch is how many records one transaction takes.
const restoreBatch = 1000

// fill writes a backup into new tables. They are good only if there is no error.
func (t *tables) fill(r io.Reader) (BackupInfo, error) {
	b := newBackupReader(r)
	info, err := b.info()
	if err != nil {
		return info, err
	}
	var last key
	rows := rowRestorer{format: info.Format}
	for ended := false; !ended; {
		err := t.update(func(tx *bbolt.Tx) error {
			v := view{tx: tx, group: &group{names: interned{}}}
			for range restoreBatch {
				kind, raw, err := b.next()
				if err != nil {
					return err
				}
				switch kind {
				case recordEnd:
					ended = true
					if err := errors.Join(v.flush(), v.countSums(), rows.done(), v.begun(info.Revision+revisionGap)); err != nil || info.Horizon.IsZero() {
						return err
					}
					return v.raise(info.Horizon)
				case recordObject:
					if b.found.count() > b.found.Objects {
						return badBackup("an object follows the batches")
					}
					o, err := backupObject(raw, last, info.Revision)
					if err != nil {
						return err
					}
					last = key{o.Kind, o.Meta.ID}
					if err := v.placeNew(o); err != nil {
						return err
					}
				case recordBatch:
					if err := v.placeBatch(raw); err != nil {
						return err
					}
				case recordEvent:
					if err := v.placeEvent(raw); err != nil {
						return err
					}
				case recordPast:
					if err := v.placeHistory(raw, info.Revision); err != nil {
						return err
					}
				case recordUsage, recordSum:
					if err := rows.place(v, kind, raw); err != nil {
						return err
					}
				}
			}
			return v.flush()
		})
		if err != nil {
			return info, err
		}
	}
	return info, nil
}

// begun says where the restored tables stand.
func (v view) begun(revision int64) error {
	meta := v.tx.Bucket(bucketMeta)
	if err := meta.Put(metaRevision, be64(uint64(revision))); err != nil {
		return err
	}
	return meta.Put(metaApplied, be64(restoredIndex))
}
