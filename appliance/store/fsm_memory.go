package store

import (
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// Bounds of what the tables remember. rememberBatches is part of the state
// machine: nodes that disagreed about it would answer a retry differently.
const (
	keepChanges     = 4096 // changes over which a watch can resume
	rememberBatches = 4096
	rememberBytes   = 64 << 20 // of the answers together
)

// addChange appends to the change log and drops what is too old.
func (v view) addChange(e api.Event, object []byte) error {
	b := v.tx.Bucket(bucketChanges)
	kind := byte('p')
	if e.Type == api.EventRemove {
		kind = 'r'
	}
	if err := b.Put(be64(uint64(e.Revision)), append([]byte{kind}, object...)); err != nil {
		return err
	}
	// Every revision is one change, so the keys are without gaps.
	if e.Revision > keepChanges {
		return b.Delete(be64(uint64(e.Revision - keepChanges)))
	}
	return nil
}

// oldest is the first revision in the change log, or one past the last.
func (v view) oldest() int64 {
	k, _ := v.tx.Bucket(bucketChanges).Cursor().First()
	if k == nil {
		return v.revision() + 1
	}
	return int64(number(k))
}

// changes are at most limit events after since.
func (v view) changes(since int64, limit int) ([]api.Event, error) {
	var events []api.Event
	c := v.tx.Bucket(bucketChanges).Cursor()
	for k, raw := c.Seek(be64(uint64(since + 1))); k != nil && len(events) < limit; k, raw = c.Next() {
		o, err := decodeObject(raw[1:])
		if err != nil {
			return nil, fmt.Errorf("change %d: %w", number(k), err)
		}
		e := api.Event{Revision: int64(number(k)), Type: api.EventPut, Object: o}
		if raw[0] == 'r' {
			e.Type = api.EventRemove
		}
		events = append(events, e)
	}
	return events, nil
}

// answered is the answer that a batch of this id got, if it is remembered.
func (v view) answered(id string) (answer []api.Object, ok bool, err error) {
	raw := v.tx.Bucket(bucketBatches).Get([]byte(id))
	if raw == nil {
		return nil, false, nil
	}
	if err := json.Unmarshal(raw[8:], &answer); err != nil {
		return nil, false, fmt.Errorf("the answer of batch %q cannot be decoded: %w", id, err)
	}
	return answer, true, nil
}

// remember keeps a batch's answer and forgets the oldest over the bounds. The
// bucket's sequence counts batches, batch-seq's own counts bytes.
func (v view) remember(id string, answer []api.Object) error {
	batches, order := v.tx.Bucket(bucketBatches), v.tx.Bucket(bucketBatchSeq)
	raw, err := encodeJSON(answer)
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
	bytes := order.Sequence() + uint64(len(raw))
	bytes, err = forgetBatches(batches, order, seq, bytes)
	if err != nil {
		return err
	}
	return order.SetSequence(bytes)
}

// forgetBatches drops the oldest answers until the rest, which ends with seq
// and has so many bytes, is within the bounds; the last one always stays.
func forgetBatches(batches, order *bbolt.Bucket, seq, bytes uint64) (uint64, error) {
	for {
		first, id := order.Cursor().First()
		if n := number(first); n == seq || (seq-n < rememberBatches && bytes <= rememberBytes) {
			return bytes, nil
		}
		first, id = append([]byte(nil), first...), append([]byte(nil), id...) // bbolt's until the next write
		bytes -= uint64(len(batches.Get(id)) - 8)
		if err := batches.Delete(id); err != nil {
			return 0, err
		}
		if err := order.Delete(first); err != nil {
			return 0, err
		}
	}
}
