package store

import (
	"cmp"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// entry is a command in the log.
type entry struct {
	index uint64
	data  []byte
}

// answer is what a batch gets: its objects, or the domain error that refused it.
type answer struct {
	objects []api.Object
	refused *api.Error
}

// apply applies entries in one transaction, which also stores the index of the
// last: an entry that stands in the tables is never applied again. Batches
// that are refused leave no trace; an error means that nothing was applied.
func (t *tables) apply(entries []entry) (answers []answer, revision int64, skipped int, err error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := &group{names: interned{}, most: cmp.Or(t.most, api.MaxWebhookEvents), level: cmp.Or(t.level, Level)}
	write := func(tx *bbolt.Tx) error {
		answers, skipped = make([]answer, len(entries)), 0
		v := view{tx, g}
		applied := v.applied()
		for i, e := range entries {
			if e.index <= applied {
				// Nobody waits for it but after a commit that failed and yet took hold.
				answers[i] = answer{refused: unknownOutcome()}
				skipped++
				continue
			}
			a, err := v.applyEntry(e)
			if err != nil {
				return fmt.Errorf("apply log entry %d: %w", e.index, err)
			}
			answers[i] = a
			applied = e.index
		}
		if err := v.flush(); err != nil {
			return fmt.Errorf("apply usage records: %w", err)
		}
		revision = v.revision()
		return tx.Bucket(bucketMeta).Put(metaApplied, be64(applied))
	}
	err = t.held.grown(func() error { return t.update(write) })
	if err == nil {
		t.touches.Note(g.touched...)
	}
	return answers, revision, skipped, err
}

func (v view) applyEntry(e entry) (answer, error) {
	switch {
	case len(e.data) == 0:
	case e.data[0] == settledVersion:
		return v.applySettled(e.data[1:])
	case e.data[0] == comparedVersion: // changes nothing
		_, err := decodePlace(e.data[1:])
		return answer{}, err
	}
	b, err := decodeBatch(e.data, v.group.names)
	if err != nil {
		return answer{}, err
	}
	if b.ID != "" {
		if done, ok, err := v.answered(b.ID); ok || err != nil {
			return answer{objects: done}, err
		}
	}
	t := newTxn(v, v.revision(), b.At)
	t.counts = v.level() >= countsLevel
	if b.Audit != nil {
		t.asked = b.Audit.Operation
	}
	objects, err := t.apply(b.Batch)
	var refused *api.Error
	if errors.As(err, &refused) {
		return answer{refused: refused}, nil
	}
	if err != nil {
		return answer{}, err
	}
	objects = b.answered(objects)
	if err := v.applyRecords(b.records); err != nil {
		return answer{}, err
	}
	return answer{objects: objects}, errors.Join(v.commit(b.ID, t, objects), v.appendAudit(b.Audit, t))
}

// commit writes what the batch changed.
func (v view) commit(id string, t *txn, objects []api.Object) error {
	for _, e := range t.events {
		k := key{e.Object.Kind, e.Object.Meta.ID}
		if err := v.write(e, t.stored[k]); err != nil {
			return err
		}
		if err := v.emitWebhookEvents(t, e, t.stored[k]); err != nil {
			return err
		}
		if err := v.appendHistory(e, t.stored[k], t); err != nil {
			return err
		}
		t.stored[k] = &e.Object
		if e.Type == api.EventRemove {
			t.stored[k] = nil
		}
	}
	if err := v.refer(t.changes); err != nil {
		return err
	}
	for _, e := range t.expiries {
		if err := v.expire(e); err != nil {
			return err
		}
	}
	if err := v.putSums(t.sums); err != nil {
		return err
	}
	if id != "" {
		if err := v.saveIdempotentAnswer(id, objects); err != nil {
			return err
		}
	}
	return v.tx.Bucket(bucketMeta).Put(metaRevision, be64(uint64(t.revision)))
}
