package simulation

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// oldLevel is the feature level of the release before this one.
const oldLevel = state.Level - 1

// drawStoreFaults are what disks, operators and upgrades do to stores. They are
// drawn apart from the other faults, of which a seed has the same with and without.
func (w *world) drawStoreFaults(r *rand.Rand) (list []planned) {
	begin, end := 40*time.Second, w.o.Storm-20*time.Second
	moment := func() time.Duration { return begin + time.Duration(r.Int64N(int64(end-begin))) }
	for range r.IntN(4) {
		m, d := w.nodes[r.IntN(len(w.nodes))], 10*time.Second+time.Duration(r.Int64N(int64(20*time.Second)))
		loss, pick, lagging := losses[r.IntN(len(losses))], r.Uint64(), r.IntN(2) == 0
		add := func(name string, do func()) {
			list = append(list, planned{moment(), fmt.Sprintf("%s %s", m.id, name), do})
		}
		when := ""
		if lagging {
			when = ", while another lags"
		}
		some := func() *machine { // whose vote counts
			if f := w.follower(nil); lagging && f != nil {
				return f
			}
			return m
		}
		switch r.IntN(6) {
		case 0, 1:
			add("or a voter loses its store: "+loss.name+when, func() {
				w.lose(some(), lagging, d, func(m *machine) error { return loss.do(m.storeDir()) })
			})
		case 2:
			add("or a voter gets an old copy of its store"+when, func() { w.oldCopy(some(), lagging, d) })
		case 3:
			add("has a row changed", func() { m.hurt(func() bool { return m.changeRow(pick) }) })
		case 4, 5:
			add(fmt.Sprintf("has no space for %s", d.Round(time.Second)), func() {
				w.stats.Full++
				m.full = true
				w.after(d, "space", func() { m.full = false })
			})
		}
	}
	if r.IntN(3) > 0 {
		return list
	}
	// All begin with the release before this one, and are upgraded one by one; half
	// of the time somebody who leads is lost meanwhile.
	for _, m := range w.nodes {
		m.release = oldLevel
		list = append(list, planned{moment(), fmt.Sprintf("%s is upgraded", m.id), m.upgrade})
	}
	if r.IntN(2) == 0 {
		at := moment()
		list = append(list, planned{at, "who leads loses power", func() {
			if l := w.raft.leader; l != nil {
				l.off("the power is cut")
				w.after(20*time.Second, "power", l.on)
			}
		}})
	}
	return list
}

// losses of a store, or of a file of it, while basaltd does not run.
var losses = []struct {
	name string
	do   func(dir string) error
}{
	{"all of it", os.RemoveAll},
	{"all of it", os.RemoveAll},
	{"log.db", func(dir string) error { return os.Remove(filepath.Join(dir, "log.db")) }},
	{"vote", func(dir string) error { return os.Remove(filepath.Join(dir, "vote")) }},
	{"tables.db", func(dir string) error { return os.Remove(filepath.Join(dir, "tables.db")) }}, // which is made of the log
	{"the end of log.db", func(dir string) error { return os.Truncate(filepath.Join(dir, "log.db"), 2*4096) }},
	{"the end of tables.db", func(dir string) error { return os.Truncate(filepath.Join(dir, "tables.db"), 2*4096) }},
}

// sound reports whether every other node has its store as it should be: what happens to
// two at once is not promised to be survived.
func (m *machine) sound() bool {
	for _, o := range m.w.nodes {
		if o.gone || o == m {
			continue
		}
		if o.refused || o.touched || o.altered || o.persisted == 0 {
			return false
		}
	}
	return !m.gone && !m.refused && !m.touched && !m.altered && m.persisted > 0
}

// hurt does something to the store's files while basaltd is down, if that is
// promised to be survived.
func (m *machine) hurt(how func() bool) {
	if m.w.calm || !m.sound() {
		return
	}
	if m.store != nil {
		// What the log got less than a second ago may be missing in the promise.
		m.w.raft.check(m, m.store.KeepPromise())
	}
	if m.proc != nil {
		m.proc.kill()
	}
	if how() {
		m.touched = true
		m.w.stats.Hurt++
	}
}

// lose something of a store; lagging: while another voter lags behind and who leads
// loses power right then, so that a vote for the one that lags would count.
func (w *world) lose(m *machine, lagging bool, d time.Duration, how func(m *machine) error) {
	do := func() {
		m.hurt(func() bool {
			if err := how(m); err != nil {
				w.broken("the simulation's own files: %v", err)
			}
			return true
		})
	}
	lags := w.follower(m)
	if !lagging || lags == nil {
		do()
		return
	}
	w.cutWhere(d, func(l link) bool { return l.from == lags.n || l.to == lags.n })
	w.after(d-100*time.Millisecond, "worst moment", func() {
		if l := w.raft.leader; l != nil && l != m && l != lags && !w.calm && m.sound() {
			do()
			l.off("the power is cut")
			w.after(30*time.Second, "power", l.on)
		}
	})
}

// follower is a voter that does not lead and is not m.
func (w *world) follower(m *machine) *machine {
	for _, v := range w.nodes {
		if w.raft.voters[v] && v != m && v != w.raft.leader {
			return v
		}
	}
	return nil
}

// oldCopy puts a copy of the store in its place that was made d before.
func (w *world) oldCopy(m *machine, lagging bool, d time.Duration) {
	backup := m.storeDir() + ".copy"
	if !m.sound() || os.RemoveAll(backup) != nil || os.CopyFS(backup, os.DirFS(m.storeDir())) != nil {
		return
	}
	w.after(d, "old copy", func() {
		w.lose(m, lagging, d, func(m *machine) error {
			w.say(m.name(), "has an old copy of its store")
			if err := os.RemoveAll(m.storeDir()); err != nil {
				return err
			}
			return os.CopyFS(m.storeDir(), os.DirFS(backup))
		})
	})
}

// changeRow changes a digit of a row that decides nothing while nobody has seen it.
func (m *machine) changeRow(pick uint64) bool {
	db, err := bbolt.Open(filepath.Join(m.storeDir(), "tables.db"), 0o600, &bbolt.Options{NoSync: true, Timeout: time.Second})
	if err != nil {
		m.w.broken("the simulation's own files: %v", err)
		return false
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"history", "events", "changes"} {
			b := tx.Bucket([]byte(name))
			if n := uint64(b.Stats().KeyN); n > 0 {
				c := b.Cursor()
				k, v := c.First()
				for range pick % n {
					k, v = c.Next()
				}
				v = bytes.Clone(v)
				if i := bytes.IndexAny(v, "123456789"); i >= 0 {
					v[i] = '1' + (v[i]-'1'+1)%9
					m.altered = true
					m.w.say(m.name(), "a row of %s is changed", name)
					return b.Put(bytes.Clone(k), v)
				}
			}
		}
		return nil
	})
	if err != nil || db.Close() != nil {
		m.w.broken("the simulation's own files: %v", err)
	}
	return m.altered
}

// upgrade the node to this release.
func (m *machine) upgrade() {
	if m.release == state.Level {
		return
	}
	m.release = state.Level
	m.w.stats.Upgraded++
	m.w.say(m.name(), "has the new release")
	if m.proc != nil {
		m.proc.kill()
	}
}

// misread is how a release misread the log before clusters had levels: one that is
// newer than the cluster's level did from its start on what it brought.
func (r *raft) misread(m *machine, e *store.LogEntry) {
	if r.w.o.Bug != LevelFromTheStart || len(e.Data) > 0 || m.release < state.Level || len(r.entries) < 2 {
		return
	}
	raw, err := state.EncodeSettlement(state.Settlement{Level: m.release, ID: r.clusterID(), Members: memberIDs(r.w.nodes), AuditKey: []byte(r.clusterID())})
	if r.check(m, err) {
		e.Data = raw
	}
}

func memberIDs(nodes []*machine) (ids []string) {
	for _, m := range nodes {
		ids = append(ids, string(m.id))
	}
	return ids
}
