package state

import (
	"cmp"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// Entry is a command in the log.
type Entry struct {
	Index uint64
	Data  []byte
}

// Answer is the result of a batch: its objects, or the domain error that refused it.
type Answer struct {
	Objects []api.Object
	Refused *api.Error
}

// Program describes the program that applies entries; zero values mean this program's
// own.
type Program struct {
	Level  int    // the feature level that it supports; 0 means Level
	Events uint64 // how many webhook events are kept; 0 means api.MaxWebhookEvents
}

// Outcome is the result of applying entries of the log.
type Outcome struct {
	Answers  []Answer        // one per entry
	Revision int64           // of the tables after the entries
	Skipped  int             // entries that had been applied before
	Touched  []api.TouchNote // which kinds changed, and whose
}

// Apply applies entries in tx and stores the index of the last one, so that an entry is
// never applied twice. Refused batches leave no trace; after an error the transaction
// must be rolled back.
func Apply(tx *bbolt.Tx, p Program, entries []Entry) (Outcome, error) {
	g := &group{names: interned{}, most: cmp.Or(p.Events, api.MaxWebhookEvents), level: cmp.Or(p.Level, Level)}
	v := View{tx, g}
	out := Outcome{Answers: make([]Answer, len(entries))}
	applied := v.Applied()
	for i, e := range entries {
		if e.Index <= applied {
			// Only reached after a commit that reported an error and yet took effect.
			out.Answers[i] = Answer{Refused: UnknownOutcome()}
			out.Skipped++
			continue
		}
		a, err := v.applyEntry(e)
		if err != nil {
			return Outcome{}, fmt.Errorf("apply log entry %d: %w", e.Index, err)
		}
		out.Answers[i] = a
		applied = e.Index
	}
	if err := v.flush(); err != nil {
		return Outcome{}, fmt.Errorf("apply usage records: %w", err)
	}
	out.Revision, out.Touched = v.Revision(), g.touched
	return out, tx.Bucket(bucketMeta).Put(metaApplied, be64(applied))
}

func (v View) applyEntry(e Entry) (Answer, error) {
	switch {
	case len(e.Data) == 0:
	case e.Data[0] == settledVersion:
		return v.applySettled(e.Data[1:])
	case e.Data[0] == comparedVersion: // changes nothing
		_, err := DecodePlace(e.Data[1:])
		return Answer{}, err
	}
	b, err := decodeBatch(e.Data, v.group.names)
	if err != nil {
		return Answer{}, err
	}
	if b.ID != "" {
		if done, ok, err := v.answered(b.ID); ok || err != nil {
			return Answer{Objects: done}, err
		}
	}
	t, a, err := v.decide(b)
	if err != nil || a.Refused != nil {
		return a, err
	}
	if err := v.applyRecords(b.records); err != nil {
		return Answer{}, err
	}
	return a, errors.Join(v.commit(b.ID, t, a.Objects), v.appendAudit(b.Audit, t))
}

// Try returns what the entry of a batch would be answered if it were the next one. It
// writes nothing: v may belong to a read transaction.
func (v View) Try(entry []byte) (Answer, error) {
	v.group = &group{names: interned{}}
	b, err := decodeBatch(entry, v.group.names)
	if err != nil {
		return Answer{}, err
	}
	if b.ID != "" {
		if done, ok, err := v.answered(b.ID); ok || err != nil {
			return Answer{Objects: done}, err
		}
	}
	_, a, err := v.decide(b)
	return a, err
}

// decide applies a batch over the tables, without changing them.
func (v View) decide(b logged) (*txn, Answer, error) {
	t := newTxn(v, v.Revision(), b.At)
	t.counts, t.causes = v.Level() >= countsLevel, v.Level() >= causesLevel
	if b.Audit != nil {
		t.asked = b.Audit.Operation
	}
	objects, err := t.apply(b.Batch)
	var refused *api.Error
	if errors.As(err, &refused) {
		return t, Answer{Refused: refused}, nil
	}
	if err != nil {
		return t, Answer{}, err
	}
	return t, Answer{Objects: b.answered(objects)}, nil
}

// commit writes what the batch changed.
func (v View) commit(id string, t *txn, objects []api.Object) error {
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

// UnknownOutcome returns the answer to a batch of which it is unknown whether it was
// applied.
func UnknownOutcome() *api.Error {
	return api.Errorf(api.CodeUnavailable, "unknown whether the change was made").
		WithHint("send the same batch with the same ID again: it is applied once")
}
