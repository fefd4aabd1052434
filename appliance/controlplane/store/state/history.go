package state

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// The history of an instance is its last changes of state, written where a batch takes
// effect, and removed with the instance. It is read on request only
// (docs/decisions/0023).

// appendHistory stores what one change of a batch adds to a history.
func (v View) appendHistory(change api.Event, before *api.Object, t *txn) error {
	if change.Object.Kind != api.KindInstance {
		return nil
	}
	if change.Type == api.EventRemove {
		return v.forgetHistory(change.Object.Meta.ID)
	}
	e := api.HistoryOf(before, change, t.asked, t.at, t.causes)
	if e == nil {
		return nil
	}
	raw, err := EncodeJSON(e)
	if err != nil {
		return err
	}
	id := change.Object.Meta.ID
	b := v.tx.Bucket(bucketHistory)
	if err := b.Put(historyKey(id, e.Revision), raw); err != nil {
		return err
	}
	keys := historyKeys(b, id)
	for ; len(keys) > api.MaxHistory; keys = keys[1:] {
		if err := b.Delete(keys[0]); err != nil {
			return err
		}
	}
	return nil
}

func (v View) forgetHistory(id string) error {
	b := v.tx.Bucket(bucketHistory)
	for _, k := range historyKeys(b, id) {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

func historyKey(id string, revision int64) []byte {
	return append(join(id, ""), be64(uint64(revision))...)
}

// historyKeys returns the keys of an instance, oldest first; at most one more than are
// kept.
func historyKeys(b *bbolt.Bucket, id string) (keys [][]byte) {
	prefix := join(id, "")
	c := b.Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	return keys
}

// History returns the history of an instance, newest first: at most api.MaxHistory.
func (v View) History(id api.InstanceID) (events []api.InstanceEvent, err error) {
	b := v.tx.Bucket(bucketHistory)
	keys := historyKeys(b, string(id))
	for i := len(keys) - 1; i >= 0; i-- {
		e, err := decodeHistory(b.Get(keys[i]))
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

func decodeHistory(raw []byte) (e api.InstanceEvent, err error) {
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, fmt.Errorf("decode change of a history: %w", err)
	}
	return e, nil
}
