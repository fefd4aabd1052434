package state

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// Bounds of what the tables remember. rememberBatches is part of the state machine:
// nodes with different values would answer a retry differently.
const (
	KeepChanges     = 4096     // changes over which a watch can resume
	rememberBatches = 16384    // more than a cluster writes while a client still retries
	rememberBytes   = 64 << 20 // of the answers together
)

// addChange appends to the change log and removes the entry that is too old.
func (v View) addChange(e api.Event, object []byte) error {
	b := v.tx.Bucket(bucketChanges)
	// The kind comes first, so that a watcher of other kinds need not decode the object.
	value := join(map[api.EventType]string{api.EventPut: "p", api.EventRemove: "r"}[e.Type], string(e.Object.Kind), string(object))
	if err := b.Put(be64(uint64(e.Revision)), value); err != nil {
		return err
	}
	// Every revision is one change, so the keys have no gaps.
	if e.Revision > KeepChanges {
		return b.Delete(be64(uint64(e.Revision - KeepChanges)))
	}
	return nil
}

// Oldest returns the first revision in the change log, or the one after the last if the
// log is empty.
func (v View) Oldest() int64 {
	k, _ := v.tx.Bucket(bucketChanges).Cursor().First()
	if k == nil {
		return v.Revision() + 1
	}
	return int64(number(k))
}

// Changes returns the wanted events among the next limit ones after since; last is the
// revision of the last one that was examined.
func (v View) Changes(since int64, limit int, want func(api.Kind) bool) (events []api.Event, last int64, err error) {
	c := v.tx.Bucket(bucketChanges).Cursor()
	last = since
	for k, raw := c.Seek(be64(uint64(since + 1))); k != nil && limit > 0; k, raw = c.Next() {
		limit--
		last = int64(number(k))
		parts := bytes.SplitN(raw, []byte{0}, 3)
		if len(parts) != 3 {
			return nil, 0, fmt.Errorf("change %d cannot be decoded", last)
		}
		if !want(api.Kind(parts[1])) {
			continue
		}
		o, err := decodeObject(parts[2])
		if err != nil {
			return nil, 0, fmt.Errorf("change %d: %w", last, err)
		}
		e := api.Event{Revision: last, Type: api.EventPut, Object: o}
		if string(parts[0]) == "r" {
			e.Type = api.EventRemove
		}
		events = append(events, e)
	}
	return events, last, nil
}

// answered returns the answer that a batch with this ID got, if it is remembered.
func (v View) answered(id string) (answer []api.Object, ok bool, err error) {
	raw := v.tx.Bucket(bucketBatches).Get([]byte(id))
	if raw == nil {
		return nil, false, nil
	}
	if err := json.Unmarshal(raw[8:], &answer); err != nil {
		return nil, false, fmt.Errorf("decode result of batch %q: %w", id, err)
	}
	return answer, true, nil
}

// saveIdempotentAnswer stores a batch's answer and removes the oldest ones that exceed
// the bounds. The bucket's sequence counts batches, batch-seq's own counts bytes.
func (v View) saveIdempotentAnswer(id string, answer []api.Object) error {
	batches, order := v.tx.Bucket(bucketBatches), v.tx.Bucket(bucketBatchSeq)
	raw, err := EncodeJSON(answer)
	if err != nil {
		return err
	}
	seq, err := batches.NextSequence()
	if err != nil {
		return err
	}
	if err := batches.Put([]byte(id), append(be64(seq), raw...)); err != nil {
		return err
	}
	if err := order.Put(be64(seq), []byte(id)); err != nil {
		return err
	}
	size, err := forgetBatches(batches, order, seq, order.Sequence()+uint64(len(raw)))
	if err != nil {
		return err
	}
	return order.SetSequence(size)
}

// forgetBatches removes the oldest answers until the rest, which ends with seq and has
// size bytes, is within the bounds; the last one is always kept.
func forgetBatches(batches, order *bbolt.Bucket, seq, size uint64) (uint64, error) {
	for {
		first, id := order.Cursor().First()
		if n := number(first); n == seq || (seq-n < rememberBatches && size <= rememberBytes) {
			return size, nil
		}
		first, id = append([]byte(nil), first...), append([]byte(nil), id...) // bbolt owns them, and changes them with the next write
		size -= uint64(len(batches.Get(id)) - 8)
		if err := batches.Delete(id); err != nil {
			return 0, err
		}
		if err := order.Delete(first); err != nil {
			return 0, err
		}
	}
}
