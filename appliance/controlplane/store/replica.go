package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// Replica is a node's store without Raft, for simulations: the files, the watermark and
// the state machine are those of Store, and the caller decides which entries the log
// has and when they are committed. Its methods must not be called concurrently.
type Replica struct {
	store     *Store
	snapshots *raft.FileSnapshotStore
	last      uint64 // last entry of the log, or of the snapshot that it begins with
	next      uint64 // next entry to apply

	ended  sync.Once
	failed error // why the store cannot go on
}

// LogEntry is an entry of the replicated log. One without Data is Raft's own, as at the
// beginning of each term, and changes nothing.
type LogEntry struct {
	Index, Term uint64
	Data        []byte
}

// OpenReplica opens or creates the store in o.Dir with all the checks of Open, and
// fails with Damaged where Open does. level is the feature level that the simulated
// release supports; 0 means Level. Of the options it uses Dir, NodeID, Watermark and Log.
// It writes nothing to o.Dir if a store is missing that was used according to the
// watermark.
func OpenReplica(o Options, level int) (*Replica, error) {
	o.setDefaults()
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{options: o, closing: make(chan struct{})}
	r := &Replica{store: s}
	var err error
	var tablesCurrent bool
	r.snapshots, tablesCurrent, r.last, err = s.openStore(raftLogger(o.Log))
	if err == nil {
		s.tables.program.Level = level
		s.tables.onDamage, s.log.onDamage, s.fsm.fail = r.fail, r.fail, r.fail
		if !tablesCurrent {
			err = r.restoreNewest()
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the store in %s: %w", o.Dir, err), s.closeFiles())
	}
	r.next = s.fsm.applied.Load() + 1
	return r, nil
}

// fail stops the store, as Store.fail does.
func (r *Replica) fail(why error) {
	r.ended.Do(func() {
		var d *Damaged
		if errors.As(why, &d) {
			why = errors.Join(why, r.store.noteDamage(d))
		}
		r.failed = why
		close(r.store.fsm.closing)
	})
}

// Close closes the files without writing anything, like the end of the process.
func (r *Replica) Close() error { return r.store.closeFiles() }

// Last returns the index of the last entry of the log, or of the snapshot before it.
func (r *Replica) Last() uint64 { return r.last }

// Append writes entries to the log. The first must follow the log's last entry.
func (r *Replica) Append(entries ...LogEntry) error {
	logs := make([]*raft.Log, len(entries))
	for i, e := range entries {
		if e.Index != r.last+1+uint64(i) {
			return fmt.Errorf("entry %d does not follow entry %d", e.Index, r.last+uint64(i))
		}
		logs[i] = &raft.Log{Index: e.Index, Term: e.Term, Type: raft.LogCommand, Data: e.Data}
		if len(e.Data) == 0 {
			logs[i].Type = raft.LogNoop
		}
	}
	if err := r.store.log.StoreLogs(logs); err != nil {
		return err
	}
	r.last += uint64(len(entries))
	return nil
}

// Apply applies the log's entries up to the index to, in one transaction, and returns
// the answer to the last one: objects, or the domain error that refused it. Entries
// that have been applied are not applied again.
func (r *Replica) Apply(to uint64) (objects []api.Object, refused *api.Error, err error) {
	var logs []*raft.Log
	for i := r.next; i <= to; i++ {
		l := new(raft.Log)
		if err := r.store.log.GetLog(i, l); err != nil {
			return nil, nil, err
		}
		logs = append(logs, l)
	}
	if len(logs) == 0 || r.failed != nil {
		return nil, nil, r.failed
	}
	responses := r.store.fsm.ApplyBatch(logs)
	if r.failed != nil {
		return nil, nil, r.failed
	}
	r.next = to + 1
	a, _ := responses[len(responses)-1].(state.Answer) // none of an entry without data
	return a.Objects, a.Refused, nil
}

// Applied returns the index up to which the log is applied.
func (r *Replica) Applied() uint64 { return r.next - 1 }

// Vote records, durably and in the watermark, that the node has voted in the term.
func (r *Replica) Vote(term uint64) error {
	return votes{r.store.votes, r.store.watermark}.SetUint64(keyLastVoteTerm, term)
}

// UpdateWatermark updates the watermark from the log, as Store does every second.
func (r *Replica) UpdateWatermark() error {
	if r.last == 0 {
		return nil
	}
	_, id, err := r.store.Settled()
	if err != nil {
		return err
	}
	return r.store.watermark.update(func(m *acknowledged) {
		m.Used, m.Last = true, max(m.Last, r.last)
		if m.ID == "" {
			m.ID = id
		}
	})
}

// EncodeBatch checks a batch, as the leader does, and returns the data of its entry.
// The batch is valid in the given term only, or in any if it is 0. It must have a time.
func (r *Replica) EncodeBatch(term uint64, b api.Batch) ([]byte, error) {
	if b.At.IsZero() {
		return nil, errors.New("batch of a simulation has no time")
	}
	if err := state.CheckBatch(b); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if term != 0 {
		ctx = withTerm(ctx, term)
	}
	return r.store.encode(ctx, b)
}

// Part calls Store.Part. The entry must be applied.
func (r *Replica) Part(ctx context.Context, index uint64) (state.Part, error) {
	return r.store.Part(ctx, index)
}

// Differs calls Store.Differs.
func (r *Replica) Differs(p state.Part) error { return r.store.Differs(p) }

// Settled calls Store.Settled.
func (r *Replica) Settled() (level int, id string, err error) { return r.store.Settled() }

// Revision returns the revision of the last applied change.
func (r *Replica) Revision() int64 { return r.store.Revision() }

// Get returns an object from the tables, or an error with CodeNotFound.
func (r *Replica) Get(kind api.Kind, id string) (api.Object, error) { return r.store.get(kind, id) }

// List returns a page of a kind's objects from the tables.
func (r *Replica) List(q api.ListQuery) (api.ListPage, error) {
	return query(r.store, state.View.List, q, "list objects of kind %s", q.Kind)
}

// Records returns a page of usage records from the tables.
func (r *Replica) Records(q api.RecordQuery) (page api.RecordPage, err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	return query(r.store, state.View.Records, q, "list usage records of organization %q", q.Organization)
}

// Changes returns the changes after a revision, among those that the tables remember.
func (r *Replica) Changes(since int64) (events []api.Event, err error) {
	err = r.store.view(func(v state.View) error {
		var err error
		if events, _, err = v.Changes(since, state.KeepChanges, func(api.Kind) bool { return true }); err != nil {
			return fmt.Errorf("read the changes after revision %d: %w", since, err)
		}
		return nil
	})
	return events, err
}

// Install initializes an empty replica with a snapshot of another one's tables, as Raft
// does for a node that lags behind the log.
func (r *Replica) Install(from *Replica, term uint64) error {
	if r.last != 0 {
		return fmt.Errorf("the log ends at entry %d; only an empty store begins with a snapshot", r.last)
	}
	index := from.Applied()
	taken, err := from.store.fsm.Snapshot()
	if err != nil {
		return err
	}
	defer taken.Release()
	_, transport := raft.NewInmemTransport("")
	sink, err := r.snapshots.Create(1, index, term, raft.Configuration{}, 0, transport)
	if err != nil {
		return err
	}
	if err := taken.Persist(sink); err != nil {
		return err
	}
	if err := r.restoreNewest(); err != nil {
		return err
	}
	r.last, r.next = index, index+1
	return r.store.wrote(index)
}

// restoreNewest replaces the tables with the newest snapshot.
func (r *Replica) restoreNewest() error {
	list, err := r.snapshots.List()
	if err != nil || len(list) == 0 {
		return errors.Join(err, errors.New("there is no snapshot"))
	}
	_, content, err := r.snapshots.Open(list[0].ID)
	if err != nil {
		return err
	}
	return errors.Join(r.store.fsm.Restore(content), content.Close())
}

// Sums returns the digests of the contents of the tables' buckets, by the buckets' names.
func (r *Replica) Sums() (sums map[string][sha256.Size]byte, err error) {
	err = r.store.tables.read(func(v state.View) error {
		var err error
		if sums, err = v.Digests(); err != nil {
			return fmt.Errorf("digest the tables: %w", err)
		}
		return nil
	})
	return sums, err
}
