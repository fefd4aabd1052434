package backup

import (
	"errors"
	"io"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

const (
	// RevisionGap is added to a backup's revision in the restored cluster: it is more
	// than the old cluster can have counted after the backup. So no position of an old
	// watch is valid in the new cluster, and watches start over.
	RevisionGap = 1_000_000_000
	// maxRevision is the largest revision of a backup: with the gap added it is still
	// exact in a float64, which some readers of JSON use.
	maxRevision = 1<<53 - 1 - 2*RevisionGap
)

// restoreBatch is how many records one transaction writes.
const restoreBatch = 1000

// Fill writes a backup into new tables, whose transactions update runs. They are
// complete only if it returns no error. applied is the log entry that they then
// contain.
func Fill(update func(func(*bbolt.Tx) error) error, r io.Reader, applied uint64) (Info, error) {
	b := newReader(r)
	info, err := b.info()
	if err != nil {
		return info, err
	}
	l := state.NewLoader(info.Format, info.Revision)
	for ended := false; !ended; {
		err := update(func(tx *bbolt.Tx) error {
			l.Begin(tx)
			for range restoreBatch {
				kind, raw, err := b.next()
				if err != nil {
					return err
				}
				if kind == recordEnd {
					ended = true
					return refusal(l.Finish(applied, info.Revision+RevisionGap, info.Horizon))
				}
				if state.Section(kind) == state.SectionObjects && b.found.count() > b.found.Objects {
					return badBackup("an object follows the batches")
				}
				if err := refusal(l.Place(state.Section(kind), raw)); err != nil {
					return err
				}
			}
			return refusal(l.Flush())
		})
		if err != nil {
			return info, err
		}
	}
	return info, nil
}

// refusal returns the domain error for content that cannot be loaded; other errors are
// the disk's and returned unchanged.
func refusal(err error) error {
	var bad *state.DumpError
	if errors.As(err, &bad) {
		return badBackup("%s", bad.Why)
	}
	return err
}
