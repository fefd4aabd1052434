package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

const (
	magic         = "BASALTBK"
	formatVersion = 1

	recordEnd = 'e' // besides the sections of the state machine (state.Section)

	maxInfo   = 1 << 20       // bytes
	maxRecord = 32 << 20      // bytes: more than an answer of the largest batch
	maxBackup = 256 << 30     // bytes
	maxCount  = 2_000_000_000 // records
)

// Info is the header of a backup.
type Info struct {
	Format   int             `json:"format"` // Level of the program that made it
	MadeAt   time.Time       `json:"madeAt"`
	MadeBy   string          `json:"madeBy"`            // node
	Revision int64           `json:"revision"`          // of the store at that moment
	Cluster  json.RawMessage `json:"cluster,omitempty"` // of the caller: what it needs besides the tables
	Horizon  time.Time       `json:"horizon,omitzero"`  // usage records that ended before it were deleted
}

// ending is the last record, which shows that nothing is missing.
type ending struct {
	Objects int64 `json:"objects"`
	Batches int64 `json:"batches"`
	Events  int64 `json:"events,omitempty"`
	Usage   int64 `json:"usage,omitempty"`
	Sums    int64 `json:"sums,omitempty"`
	Past    int64 `json:"past,omitempty"`
}

// of returns the counter of a section, or nil if the section does not exist.
func (e *ending) of(s state.Section) *int64 {
	switch s {
	case state.SectionObjects:
		return &e.Objects
	case state.SectionBatches:
		return &e.Batches
	case state.SectionAudit:
		return &e.Events
	case state.SectionRecords:
		return &e.Usage
	case state.SectionUse:
		return &e.Sums
	case state.SectionHistories:
		return &e.Past
	}
	return nil
}

func (e ending) count() int64 { return e.Objects + e.Batches + e.Events + e.Usage + e.Sums + e.Past }

// Write writes the content of the view, until ctx ends. Reading damaged tables may
// panic: the caller guards the view.
func Write(ctx context.Context, w io.Writer, v state.View, info Info) error {
	return newWriter(ctx, w).write(v, info)
}

// writer computes the checksum of what it writes, and stops when its context ends.
type writer struct {
	ctx context.Context
	out *bufio.Writer
	sum interface {
		io.Writer
		Sum([]byte) []byte
	}
	end  ending
	size int64 // approximate, in bytes
}

func newWriter(ctx context.Context, w io.Writer) *writer {
	sum := sha256.New()
	return &writer{ctx: ctx, sum: sum, out: bufio.NewWriterSize(io.MultiWriter(w, sum), 64<<10)}
}

func (b *writer) write(v state.View, info Info) error {
	if err := b.begin(info); err != nil {
		return err
	}
	err := v.Dump(func(of state.Section, raw []byte) error {
		if err := b.record(byte(of), raw); err != nil {
			return err
		}
		*b.end.of(of)++
		return nil
	})
	if err != nil {
		return fmt.Errorf("dump the tables: %w", err)
	}
	return b.finish()
}

func (b *writer) begin(info Info) error {
	raw, err := state.EncodeJSON(info)
	if err != nil {
		return fmt.Errorf("encode the description of the backup: %w", err)
	}
	if len(raw) > maxInfo {
		return api.Errorf(api.CodeTooLarge, "the cluster's part of a backup must have at most %d bytes", maxInfo)
	}
	head := append([]byte(magic), make([]byte, 8)...)
	binary.LittleEndian.PutUint32(head[8:], formatVersion)
	binary.LittleEndian.PutUint32(head[12:], uint32(len(raw)))
	_, err = b.out.Write(append(head, raw...))
	return err
}

func (b *writer) finish() error {
	raw, err := state.EncodeJSON(b.end)
	if err != nil {
		return fmt.Errorf("encode the end of the backup: %w", err)
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

func (b *writer) record(kind byte, raw []byte) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	// A backup that could not be restored must not be written.
	if b.size += int64(len(raw)) + 2*binary.MaxVarintLen64; b.size > maxBackup || b.end.count() > maxCount {
		return api.Errorf(api.CodeTooLarge, "a backup must have at most %d bytes and %d records", int64(maxBackup), int64(maxCount)).
			WithHint("keep usage records for a shorter time: basaltd --record-days")
	}
	head := binary.AppendUvarint([]byte{kind}, uint64(len(raw)))
	if _, err := b.out.Write(head); err != nil {
		return err
	}
	_, err := b.out.Write(raw)
	return err
}
