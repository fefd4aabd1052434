package store

import (
	"errors"
	"io"

	"go.etcd.io/bbolt"
)

const (
	// revisionGap lies between a backup's revision and that of the cluster made
	// of it: more than the old cluster can have counted after the backup. So a
	// watch's place of before is never a place in the new one, and begins anew.
	revisionGap = 1_000_000_000
	// maxRevision of a backup: what follows it still is exact in a float64, as
	// which some readers of JSON take it.
	maxRevision = 1<<53 - 1 - 2*revisionGap
)

// restoreBatch is how many records one transaction takes.
const restoreBatch = 1000

// fill writes a backup into new tables, whose transactions update runs. They are
// good only if there is no error. applied is the entry of the log that they then
// contain.
func fill(update func(func(*bbolt.Tx) error) error, r io.Reader, applied uint64) (BackupInfo, error) {
	b := newBackupReader(r)
	info, err := b.info()
	if err != nil {
		return info, err
	}
	l := newLoader(info.Format, info.Revision)
	for ended := false; !ended; {
		err := update(func(tx *bbolt.Tx) error {
			l.begin(tx)
			for range restoreBatch {
				kind, raw, err := b.next()
				if err != nil {
					return err
				}
				if kind == recordEnd {
					ended = true
					return refusal(l.finish(applied, info.Revision+revisionGap, info.Horizon))
				}
				if section(kind) == sectionObjects && b.found.count() > b.found.Objects {
					return badBackup("an object follows the batches")
				}
				if err := refusal(l.place(section(kind), raw)); err != nil {
					return err
				}
			}
			return refusal(l.flush())
		})
		if err != nil {
			return info, err
		}
	}
	return info, nil
}

// refusal is the domain error for content that cannot be loaded; other errors are
// the disk's.
func refusal(err error) error {
	var bad *badContent
	if errors.As(err, &bad) {
		return badBackup("%s", bad.why)
	}
	return err
}
