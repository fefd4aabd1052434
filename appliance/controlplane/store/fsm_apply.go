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

// program is what applies entries; zero values are this program's own.
type program struct {
	level  int    // that it supports; 0: Level
	events uint64 // for webhooks that are kept; 0: api.MaxWebhookEvents
}

// outcome is what entries of the log have come to.
type outcome struct {
	answers  []answer        // one for each entry
	revision int64           // of the tables now
	skipped  int             // entries that the tables had already
	touched  []api.TouchNote // what has changed of whom
}

// apply applies entries in tx, and stores the index of the last: an entry that
// stands in the tables is never applied again. Batches that are refused leave no
// trace; after an error the transaction must be rolled back.
func apply(tx *bbolt.Tx, p program, entries []entry) (outcome, error) {
	g := &group{names: interned{}, most: cmp.Or(p.events, api.MaxWebhookEvents), level: cmp.Or(p.level, Level)}
	v := view{tx, g}
	out := outcome{answers: make([]answer, len(entries))}
	applied := v.applied()
	for i, e := range entries {
		if e.index <= applied {
			// Nobody waits for it but after a commit that failed and yet took hold.
			out.answers[i] = answer{refused: unknownOutcome()}
			out.skipped++
			continue
		}
		a, err := v.applyEntry(e)
		if err != nil {
			return outcome{}, fmt.Errorf("apply log entry %d: %w", e.index, err)
		}
		out.answers[i] = a
		applied = e.index
	}
	if err := v.flush(); err != nil {
		return outcome{}, fmt.Errorf("apply usage records: %w", err)
	}
	out.revision, out.touched = v.revision(), g.touched
	return out, tx.Bucket(bucketMeta).Put(metaApplied, be64(applied))
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

// unknownOutcome is what a batch is answered of which nobody knows whether it was
// applied.
func unknownOutcome() *api.Error {
	return api.Errorf(api.CodeUnavailable, "it is not known whether the change was made").
		WithHint("send the same batch with the same id again: it is applied once")
}
