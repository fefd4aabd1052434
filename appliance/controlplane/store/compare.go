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

// Nodes compare their tables part by part: a disk that has changed what it was
// given, or a program that made something else of the log, would go on unseen. An
// entry of the log names where the next part begins. Each node takes hold of its
// tables as they are at that entry, sums the part up beside its other work, and
// remembers the sum for whoever compares.

// keptParts is how many sums a node remembers.
const keptParts = 8

// parts are the sums that a node has made.
type parts struct {
	file string // holds next, for another life

	mu   sync.Mutex // guards made and next
	made []state.Part
	next state.Place            // follows the newest
	news *broadcast.Broadcaster // when there is another
}

// recall how far the tables were compared. A file that is not there, or that cannot
// be read, is no reason to stop: they are compared from their beginning.
func (p *parts) recall() {
	if raw, err := os.ReadFile(p.file); err == nil {
		p.next, _ = state.DecodePlace(raw)
	}
}

func (p *parts) add(part state.Part) {
	p.keep(part.Next)
	p.mu.Lock()
	p.made = append(p.made, part)
	p.made = p.made[max(0, len(p.made)-keptParts):]
	p.next = part.Next
	p.mu.Unlock()
	p.news.Broadcast()
}

// keep writes the place down, without fsync: what is lost is compared again.
func (p *parts) keep(next state.Place) {
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

// compares reports whether the entry asks for a part, and where it begins.
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

// sumUp makes the part's sum beside other work, of the tables as they are now.
func (f *fsm) sumUp(index uint64, from state.Place) {
	v, end, err := f.tables.begin()
	if err != nil {
		return // closed
	}
	same := false
	err = f.tables.guard(func() error { same = v.Applied() == index; return nil })
	if err != nil || !same { // applied in another life, and more since: it is another state
		end()
		return
	}
	go func() {
		defer end()
		_ = f.tables.guard(func() error { f.parts.add(v.Part(index, from, state.PartBytes)); return nil })
	}()
}

// Compare has all nodes sum up the part from a place on, and answers at which
// entry of the log. On the leader of the term only.
func (s *Store) Compare(ctx context.Context, term uint64, from state.Place) (index uint64, err error) {
	raw, err := state.EncodeCompare(from)
	if err != nil {
		return 0, err
	}
	var f raft.ApplyFuture
	err = s.answer(ctx, func() raft.Future {
		f = s.raft.ApplyLog(raft.Log{Data: state.InTerm(term, raw)}, enqueueTimeout)
		return f
	})
	if err != nil {
		return 0, s.public(err)
	}
	if a, ok := f.Response().(state.Answer); ok && a.Refused != nil {
		return 0, a.Refused
	}
	return f.Index(), nil
}

// Part is this node's part at the entry, as soon as it is made; a node that has
// applied the entry in another life, or got it in a snapshot, never makes it.
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

// CompareFrom is the place that follows the part which this node has summed up
// last, in this life or the one before: a new leader goes on there.
func (s *Store) CompareFrom() state.Place { return s.fsm.parts.from() }

// compareWithin is how long it takes to compare all tables, of whatever size, and
// leaves room for rounds that fail: it is to be done once a day. compareLeast is
// the least time between two parts, which bounds the cost; all tables up to 112 GiB
// are compared in time nonetheless.
const (
	compareWithin = 20 * time.Hour
	compareLeast  = 5 * time.Second
)

// ComparePace is the time from one part to the next for tables of a size in bytes;
// most is the longest.
func ComparePace(size int64, most time.Duration) time.Duration {
	parts := max(1, (size+state.PartBytes-1)/state.PartBytes)
	return min(most, max(compareLeast, compareWithin/time.Duration(parts)))
}

// TablesBytes is the size of the tables' file: at least that of what is in it.
func (s *Store) TablesBytes() int64 {
	info, err := os.Stat(s.tables.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Differs notes that this node's tables are not what most nodes have: Open
// refuses them from now on.
func (s *Store) Differs(p state.Part) error {
	return s.noteDamage(&Damaged{s.tables.path, fmt.Errorf("its content from %v on differs from that of most nodes, at log entry %d", p.From, p.Index)})
}
