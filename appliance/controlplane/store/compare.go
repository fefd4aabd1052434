package store

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/broadcast"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// Nodes compare their tables part by part: a disk that has changed stored data, or a
// program that applied the log differently, would otherwise go undetected. A log entry
// names where the next part begins. Each node opens a read transaction on its tables as
// they are at that entry, computes the digest of the part in the background, and keeps
// it for the leader to collect.

// keptParts is how many digests a node keeps.
const keptParts = 8

// parts holds the digests that a node has computed.
type parts struct {
	file string // holds next across restarts

	mu   sync.Mutex // guards made and next
	made []state.Part
	next state.Place            // the place after the newest part
	news *broadcast.Broadcaster // signals a new digest
}

// load reads how far the tables were compared. A missing or unreadable file is not an
// error: comparing then starts at the beginning of the tables.
func (p *parts) load() {
	if raw, err := os.ReadFile(p.file); err == nil {
		p.next, _ = state.DecodePlace(raw)
	}
}

func (p *parts) add(part state.Part) {
	p.save(part.Next)
	p.mu.Lock()
	p.made = append(p.made, part)
	p.made = p.made[max(0, len(p.made)-keptParts):]
	p.next = part.Next
	p.mu.Unlock()
	p.news.Broadcast()
}

// save writes the place to the file, without fsync: after a loss that part is compared
// again.
func (p *parts) save(next state.Place) {
	raw, err := json.Marshal(next)
	if err != nil {
		return
	}
	_ = atomicfile.WriteFileUnsynced(p.file, raw, 0o600)
}

func (p *parts) from() state.Place {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

func (p *parts) at(index uint64) (state.Part, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.made {
		if part.Index == index {
			return part, true
		}
	}
	return state.Part{}, false
}

// compares reports whether the entry requests a comparison, and where its part begins.
func compares(l *raft.Log) (from state.Place, ok bool) {
	if l.Type != raft.LogCommand || len(l.Data) == 0 {
		return from, false
	}
	raw, holds := state.OfTerm(l.Data, l.Term)
	if !holds {
		return from, false
	}
	return state.Comparison(raw)
}

// digestPart computes the part's digest in the background, on the tables as they are now.
func (f *fsm) digestPart(index uint64, from state.Place) {
	v, end, err := f.tables.begin()
	if err != nil {
		return // closed
	}
	same := false
	err = f.tables.guard(func() error { same = v.Applied() == index; return nil })
	if err != nil || !same { // applied before a restart, with later entries: the state differs
		end()
		return
	}
	go func() {
		defer end()
		_ = f.tables.guard(func() error { f.parts.add(v.Part(index, from, state.PartBytes)); return nil })
	}()
}

// Compare makes all nodes compute the digest of the part that begins at from, and
// returns the index of the log entry. It works only on the leader of the term.
func (s *Store) Compare(ctx context.Context, term uint64, from state.Place) (index uint64, err error) {
	raw, err := state.EncodeCompare(from)
	if err != nil {
		return 0, fmt.Errorf("encode the comparison from %v on: %w", from, err)
	}
	var f raft.ApplyFuture
	err = s.answer(ctx, func() raft.Future {
		f = s.raft.ApplyLog(raft.Log{Data: state.InTerm(term, raw)}, enqueueTimeout)
		return f
	})
	if err != nil {
		return 0, s.domainError(err)
	}
	if a, ok := f.Response().(state.Answer); ok && a.Refused != nil {
		return 0, a.Refused
	}
	return f.Index(), nil
}

// Part waits for this node's part at the entry and returns it. A node that applied the
// entry before a restart, or received it in a snapshot, never computes it: set a
// deadline on ctx.
func (s *Store) Part(ctx context.Context, index uint64) (state.Part, error) {
	for {
		wait := s.fsm.parts.news.Next()
		if p, ok := s.fsm.parts.at(index); ok {
			return p, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return state.Part{}, api.Errorf(api.CodeUnavailable, "this node has not compared its tables at entry %d", index)
		case <-s.closing:
			return state.Part{}, closed()
		}
	}
}

// CompareFrom returns the place after the part that this node has digested last, also
// before a restart: a new leader continues there.
func (s *Store) CompareFrom() state.Place { return s.fsm.parts.from() }

// compareWithin is how long comparing all tables takes, whatever their size. It leaves
// time for rounds that fail: the goal is once a day. compareLeast is the shortest time
// between two parts, which bounds the cost; tables up to 112 GiB are still compared in
// time.
const (
	compareWithin = 20 * time.Hour
	compareLeast  = 5 * time.Second
)

// ComparePace returns the time from one part to the next for tables of a size in bytes,
// at most most.
func ComparePace(size int64, most time.Duration) time.Duration {
	parts := max(1, (size+state.PartBytes-1)/state.PartBytes)
	return min(most, max(compareLeast, compareWithin/time.Duration(parts)))
}

// TablesBytes returns the size of the tables' file, which is at least that of their
// content.
func (s *Store) TablesBytes() int64 {
	info, err := os.Stat(s.tables.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Differs records that this node's tables differ from those of most nodes: Open refuses
// them from now on.
func (s *Store) Differs(p state.Part) error {
	return s.noteDamage(&Damaged{s.tables.path, fmt.Errorf("its content from %v on differs from that of most nodes, at log entry %d", p.From, p.Index)})
}
