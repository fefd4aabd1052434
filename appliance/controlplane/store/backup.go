package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// A backup is what the tables say, not how they say it: objects, remembered
// batches, the audit trail, usage records, their sums and histories of one moment, without
// indexes and the change log, so that any later version can read it and nothing
// of it is ever mapped into memory.
//
//	0  magic "BASALTBK"      8 bytes
//	8  version               uint32, little-endian = 1
//	12 size of the info      uint32, little-endian, bytes
//	16 info                  JSON: BackupInfo
//	   records               kind (1 byte), size (uvarint), JSON; of usage, sums and histories:
//	                         size of the key (uvarint), key, value, as in the tables
//	   end                   recordEnd, size (uvarint), JSON: backupEnd
//	   SHA-256 of all before 32 bytes
const (
	backupMagic   = "BASALTBK"
	backupVersion = 1

	recordObject = 'o' // api.Object
	recordBatch  = 'b' // backupBatch
	recordEvent  = 'a' // api.AuditEvent
	recordUsage  = 'u' // usage record (fsm_row.go)
	recordSum    = 's' // sum of usage records (fsm_use.go)
	recordPast   = 'h' // change of an instance's state (fsm_history.go)
	recordEnd    = 'e'

	maxInfo   = 1 << 20          // bytes
	maxRecord = 32 << 20         // bytes: more than an answer of the largest batch
	maxBackup = 256 << 30        // bytes
	maxCount  = 2_000_000_000    // records
	backupMax = 30 * time.Minute // the tables' file cannot reuse pages while a backup reads them
)

// BackupInfo stands in front of a backup.
type BackupInfo struct {
	Format   int             `json:"format"` // Level of the program that made it
	MadeAt   time.Time       `json:"madeAt"`
	MadeBy   string          `json:"madeBy"`            // node
	Revision int64           `json:"revision"`          // of the store at that moment
	Cluster  json.RawMessage `json:"cluster,omitempty"` // the caller's: whatever it needs besides the tables
	Horizon  time.Time       `json:"horizon,omitzero"`  // usage records that ended before it were let go of
}

// backupBatch is a batch that was answered, oldest first.
type backupBatch struct {
	ID     string       `json:"id"`
	Answer []api.Object `json:"answer"`
}

// backupEnd says that nothing is missing.
type backupEnd struct {
	Objects int64 `json:"objects"`
	Batches int64 `json:"batches"`
	Events  int64 `json:"events,omitempty"`
	Usage   int64 `json:"usage,omitempty"`
	Sums    int64 `json:"sums,omitempty"`
	Past    int64 `json:"past,omitempty"`
}

func (e backupEnd) count() int64 { return e.Objects + e.Batches + e.Events + e.Usage + e.Sums + e.Past }

// Backup writes a consistent copy of the tables with all that was acknowledged
// before the call, while writes go on; with a Stale context, what this node
// has. cluster is any JSON, up to 1 MiB: it comes back from ReadBackupInfo and
// RestoreInto. w should not be slow: the tables' file grows meanwhile.
func (s *Store) Backup(ctx context.Context, w io.Writer, cluster json.RawMessage) error {
	if err := s.current(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, backupMax)
	defer cancel()
	v, end, err := s.tables.begin()
	if err != nil {
		return s.public(err)
	}
	defer end()
	b := newBackupWriter(ctx, w)
	info := BackupInfo{Format: Level, MadeAt: time.Now().UTC().Round(0), MadeBy: s.options.NodeID, Cluster: cluster}
	err = s.tables.guard(func() (err error) {
		info.Revision = v.revision()
		info.Horizon, err = v.horizon()
		return err
	})
	if err != nil {
		return s.public(err)
	}
	if err := s.tables.guard(func() error { return b.write(v, info) }); err != nil {
		if ctx.Err() != nil {
			return gaveUp(ctx.Err())
		}
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

// backupWriter sums what it writes, and stops when its context ends.
type backupWriter struct {
	ctx context.Context
	out *bufio.Writer
	sum interface {
		io.Writer
		Sum([]byte) []byte
	}
	end  backupEnd
	size int64 // bytes, about
}

func newBackupWriter(ctx context.Context, w io.Writer) *backupWriter {
	sum := sha256.New()
	return &backupWriter{ctx: ctx, sum: sum, out: bufio.NewWriterSize(io.MultiWriter(w, sum), 64<<10)}
}

func (b *backupWriter) write(v view, info BackupInfo) error {
	if err := b.begin(info); err != nil {
		return err
	}
	if err := b.objects(v); err != nil {
		return err
	}
	if err := b.batches(v); err != nil {
		return err
	}
	if err := b.events(v); err != nil {
		return err
	}
	if err := b.rows(v.tx.Bucket(bucketRecords), recordUsage, &b.end.Usage); err != nil {
		return err
	}
	if err := b.rows(v.tx.Bucket(bucketUse), recordSum, &b.end.Sums); err != nil {
		return err
	}
	if err := b.rows(v.tx.Bucket(bucketHistory), recordPast, &b.end.Past); err != nil {
		return err
	}
	return b.finish()
}

func (b *backupWriter) begin(info BackupInfo) error {
	raw, err := encodeJSON(info)
	if err != nil {
		return err
	}
	if len(raw) > maxInfo {
		return api.Errorf(api.CodeTooLarge, "the cluster's part of a backup may have %d bytes", maxInfo)
	}
	head := append([]byte(backupMagic), make([]byte, 8)...)
	binary.LittleEndian.PutUint32(head[8:], backupVersion)
	binary.LittleEndian.PutUint32(head[12:], uint32(len(raw)))
	_, err = b.out.Write(append(head, raw...))
	return err
}

func (b *backupWriter) finish() error {
	raw, err := encodeJSON(b.end)
	if err != nil {
		return err
	}
	if err := b.record(recordEnd, raw); err != nil {
		return err
	}
	if err := b.out.Flush(); err != nil {
		return err
	}
	if _, err := b.out.Write(b.sum.Sum(nil)); err != nil {
		return err
	}
	return b.out.Flush()
}

func (b *backupWriter) objects(v view) error {
	c := v.tx.Bucket(bucketObjects).Cursor()
	for k, raw := c.First(); k != nil; k, raw = c.Next() {
		if err := b.record(recordObject, raw); err != nil {
			return err
		}
		b.end.Objects++
	}
	return nil
}

func (b *backupWriter) batches(v view) error {
	answers := v.tx.Bucket(bucketBatches)
	c := v.tx.Bucket(bucketBatchSeq).Cursor()
	for k, id := c.First(); k != nil; k, id = c.Next() {
		answer := answers.Get(id)
		if len(answer) < 8 {
			return fmt.Errorf("the answer of batch %q is lost", id)
		}
		name, err := encodeJSON(string(id))
		if err != nil {
			return err
		}
		raw := bytes.Join([][]byte{[]byte(`{"id":`), name, []byte(`,"answer":`), answer[8:], []byte(`}`)}, nil)
		if err := b.record(recordBatch, raw); err != nil {
			return err
		}
		b.end.Batches++
	}
	return nil
}

func (b *backupWriter) events(v view) error {
	c := v.tx.Bucket(bucketAudit).Cursor()
	for k, raw := c.First(); k != nil; k, raw = c.Next() {
		if err := b.record(recordEvent, raw); err != nil {
			return err
		}
		b.end.Events++
	}
	return nil
}

// rows writes a bucket as it is, counting.
func (b *backupWriter) rows(bucket *bbolt.Bucket, kind byte, n *int64) error {
	var raw []byte
	c := bucket.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		raw = append(binary.AppendUvarint(raw[:0], uint64(len(k))), k...)
		if err := b.record(kind, append(raw, v...)); err != nil {
			return err
		}
		*n++
	}
	return nil
}

func (b *backupWriter) record(kind byte, raw []byte) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	// What could not be restored is no backup.
	if b.size += int64(len(raw)) + 2*binary.MaxVarintLen64; b.size > maxBackup || b.end.count() > maxCount {
		return api.Errorf(api.CodeTooLarge, "a backup may have %d bytes and %d records", int64(maxBackup), int64(maxCount)).
			WithHint("keep usage records for a shorter time: basaltd --record-days")
	}
	head := binary.AppendUvarint([]byte{kind}, uint64(len(raw)))
	if _, err := b.out.Write(head); err != nil {
		return err
	}
	_, err := b.out.Write(raw)
	return err
}
