package backup

import (
	"errors"
	"io"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

const (
	// RevisionGap lies between a backup's revision and that of the cluster made
	// of it: more than the old cluster can have counted after the backup. So a
	// watch's place of before is never a place in the new one, and begins anew.
	RevisionGap = 1_000_000_000
	// maxRevision of a backup: what follows it still is exact in a float64, as
	// which some readers of JSON take it.
	maxRevision = 1<<53 - 1 - 2*RevisionGap
)

// restoreBatch is how many records one transaction takes.
const restoreBatch = 1000

// Fill writes a backup into new tables, whose transactions update runs. They are
// good only if there is no error. applied is the entry of the log that they then
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

// refusal is the domain error for content that cannot be loaded; other errors are
// the disk's.
func refusal(err error) error {
	var bad *state.BadContent
	if errors.As(err, &bad) {
		return badBackup("%s", bad.Why)
	}
	return err
}
