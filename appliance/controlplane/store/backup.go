package store

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"io"
	"time"

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

	recordEnd = 'e' // beside the sections of the state machine (state.Section)

	maxInfo   = 1 << 20       // bytes
	maxRecord = 32 << 20      // bytes: more than an answer of the largest batch
	maxBackup = 256 << 30     // bytes
	maxCount  = 2_000_000_000 // records
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

// backupEnd says that nothing is missing.
type backupEnd struct {
	Objects int64 `json:"objects"`
	Batches int64 `json:"batches"`
	Events  int64 `json:"events,omitempty"`
	Usage   int64 `json:"usage,omitempty"`
	Sums    int64 `json:"sums,omitempty"`
	Past    int64 `json:"past,omitempty"`
}

// of is where things of a section are counted; nil: there is no such section.
func (e *backupEnd) of(s section) *int64 {
	switch s {
	case sectionObjects:
		return &e.Objects
	case sectionBatches:
		return &e.Batches
	case sectionAudit:
		return &e.Events
	case sectionRecords:
		return &e.Usage
	case sectionUse:
		return &e.Sums
	case sectionHistories:
		return &e.Past
	}
	return nil
}

func (e backupEnd) count() int64 { return e.Objects + e.Batches + e.Events + e.Usage + e.Sums + e.Past }

// writeBackup writes what the view has, until ctx ends. Reading it may show damage
// as a panic: the caller guards the view.
func writeBackup(ctx context.Context, w io.Writer, v view, info BackupInfo) error {
	return newBackupWriter(ctx, w).write(v, info)
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
	err := v.dump(func(of section, raw []byte) error {
		if err := b.record(byte(of), raw); err != nil {
			return err
		}
		*b.end.of(of)++
		return nil
	})
	if err != nil {
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
