package store

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/appliance/broadcast"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// fsm applies the log's entries to the tables on behalf of Raft.
type fsm struct {
	tables   *tables
	revision atomic.Int64           // last committed revision
	applied  atomic.Uint64          // log index of the last command that it includes
	news     *broadcast.Broadcaster // signals a new revision
	closing  chan struct{}          // ends the wait for space
	full     atomic.Bool            // an entry waits for space on the disk
	halted   bool                   // closed while an entry waited: later ones must not overtake it
	fail     func(error)            // stops the store; nil: the process panics

	unrestored error // why a snapshot could not be restored; written by Restore, which Raft calls alone

	parts    parts        // digests of the tables, compared with other nodes'
	replayed atomic.Int64 // entries applied
	skipped  atomic.Int64 // entries that had been applied before
}

var _ raft.BatchingFSM = (*fsm)(nil)

func newFSM(t *tables) (*fsm, error) {
	f := &fsm{tables: t, closing: make(chan struct{}), news: broadcast.New(),
		parts: parts{file: filepath.Join(filepath.Dir(t.path), "compared"), news: broadcast.New()}}
	f.parts.load()
	return f, t.read(func(v state.View) error {
		f.moved(v.Revision(), v.Applied())
		return nil
	})
}

// Apply is for Raft versions that do not batch.
func (f *fsm) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch applies committed entries. They cannot be refused: on a full disk it waits
// for space; on any other failure, or on an entry that it does not understand, the
// store stops.
func (f *fsm) ApplyBatch(logs []*raft.Log) []any {
	responses := make([]any, len(logs))
	done := 0
	for i, l := range logs {
		if from, ok := compares(l); ok { // the tables as they are after it, and before the next
			f.applyPiece(logs[done:i+1], responses[done:])
			done = i + 1
			f.digestPart(l.Index, from)
		}
	}
	f.applyPiece(logs[done:], responses[done:])
	return responses
}

func (f *fsm) applyPiece(logs []*raft.Log, responses []any) {
	var entries []state.Entry
	var at []int
	for i, l := range logs {
		if l.Type != raft.LogCommand {
			continue
		}
		raw, holds := state.OfTerm(l.Data, l.Term)
		if !holds {
			responses[i] = state.Answer{Refused: state.PastTerm()}
			continue
		}
		entries, at = append(entries, state.Entry{Index: l.Index, Data: raw}), append(at, i)
	}
	if len(entries) == 0 {
		return
	}
	for i, a := range f.commit(entries) {
		responses[at[i]] = a
	}
}

func (f *fsm) commit(entries []state.Entry) []state.Answer {
	for !f.halted {
		out, err := f.tables.apply(entries)
		if err == nil {
			f.full.Store(false)
			f.skipped.Add(int64(out.Skipped))
			f.replayed.Add(int64(len(entries) - out.Skipped))
			f.moved(out.Revision, entries[len(entries)-1].Index)
			return out.Answers
		}
		if !isFull(err) {
			f.failApply(err)
			continue
		}
		f.full.Store(true)
		select {
		case <-f.closing:
			f.halted = true
		case <-time.After(fullRetry):
		}
	}
	return nil
}

// failApply stops the store because of an entry that the other nodes apply and this one
// cannot.
func (f *fsm) failApply(why error) {
	var known *state.TooOld
	var d *Damaged
	why = writeError(f.tables.path, why)
	if !errors.As(why, &known) && !errors.As(why, &d) {
		why = &Damaged{f.tables.path, why}
	}
	if f.fail == nil {
		panic(fmt.Sprintf("store: %v", why))
	}
	f.fail(why)
	<-f.closing
	f.halted = true
}

func (f *fsm) moved(revision int64, applied uint64) {
	f.revision.Store(revision)
	f.applied.Store(max(applied, f.applied.Load())) // replayed entries are skipped
	f.news.Broadcast()
}

// Snapshot opens a read transaction on the current state, which is copied while the
// tables change.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	tx, end, err := f.tables.beginTx()
	if err != nil {
		return nil, err
	}
	return &snapshot{f.tables, tx, end}, nil
}

// Restore replaces the tables with a snapshot of another node's.
func (f *fsm) Restore(r io.ReadCloser) error {
	if f.unrestored = restore(f.tables, r); f.unrestored != nil {
		return f.unrestored
	}
	return f.tables.read(func(v state.View) error {
		f.moved(v.Revision(), v.Applied())
		return nil
	})
}
