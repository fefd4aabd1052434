package state

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// Section is the type of one part of a dump. A dump holds the tables' content, not
// their layout, without indexes and the change log, so that any later version can load
// it. Backups store these numbers.
type Section byte

// The sections, in the order in which Dump writes them and a Loader expects them.
const (
	SectionObjects   Section = 'o' // api.Object
	SectionBatches   Section = 'b' // answeredBatch, oldest first
	SectionAudit     Section = 'a' // api.AuditEvent
	SectionRecords   Section = 'u' // usage record (row.go)
	SectionUse       Section = 's' // sum of usage records (use.go)
	SectionHistories Section = 'h' // change of an instance's state (history.go)
)

// answeredBatch is a batch that was answered, with its answer.
type answeredBatch struct {
	ID     string       `json:"id"`
	Answer []api.Object `json:"answer"`
}

// Dump calls f with each item of the tables, until f returns an error. raw is valid
// until f returns: it is JSON, or for usage records, their sums and histories the size
// of the key (uvarint), the key and the value.
func (v View) Dump(f func(s Section, raw []byte) error) error {
	if err := v.dumpValues(bucketObjects, SectionObjects, f); err != nil {
		return err
	}
	if err := v.dumpBatches(f); err != nil {
		return err
	}
	if err := v.dumpValues(bucketAudit, SectionAudit, f); err != nil {
		return err
	}
	if err := dumpRows(v.tx.Bucket(bucketRecords), SectionRecords, f); err != nil {
		return err
	}
	if err := dumpRows(v.tx.Bucket(bucketUse), SectionUse, f); err != nil {
		return err
	}
	return dumpRows(v.tx.Bucket(bucketHistory), SectionHistories, f)
}

func (v View) dumpValues(bucket []byte, s Section, f func(Section, []byte) error) error {
	return v.tx.Bucket(bucket).ForEach(func(_, raw []byte) error { return f(s, raw) })
}

func (v View) dumpBatches(f func(Section, []byte) error) error {
	answers := v.tx.Bucket(bucketBatches)
	return v.tx.Bucket(bucketBatchSeq).ForEach(func(_, id []byte) error {
		answer := answers.Get(id)
		if len(answer) < 8 {
			return fmt.Errorf("the result of batch %q is missing", id)
		}
		name, err := EncodeJSON(string(id))
		if err != nil {
			return err
		}
		return f(SectionBatches, bytes.Join([][]byte{[]byte(`{"id":`), name, []byte(`,"answer":`), answer[8:], []byte(`}`)}, nil))
	})
}

// dumpRows calls f with every row of a bucket, as it is stored.
func dumpRows(bucket *bbolt.Bucket, s Section, f func(Section, []byte) error) error {
	var raw []byte
	return bucket.ForEach(func(k, value []byte) error {
		raw = append(binary.AppendUvarint(raw[:0], uint64(len(k))), k...)
		raw = append(raw, value...)
		return f(s, raw)
	})
}
