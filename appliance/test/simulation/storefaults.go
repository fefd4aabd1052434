package simulation

import (
	"bytes"
	"errors"
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

// drawStoreFaults draws faults of the stores and upgrades of the nodes. They have a random
// source of their own, so that the other faults of a seed are the same with and without them.
func (w *world) drawStoreFaults(r *rand.Rand) (list []planned) {
	begin, end := 40*time.Second, w.o.Storm-20*time.Second
	moment := func() time.Duration { return begin + time.Duration(r.Int64N(int64(end-begin))) }
	for range r.IntN(4) {
		m, d := w.nodes[r.IntN(len(w.nodes))], 10*time.Second+time.Duration(r.Int64N(int64(20*time.Second)))
		loss, pick, lagging := losses[r.IntN(len(losses))], r.Uint64(), r.IntN(2) == 0
		add := func(name string, run func()) {
			list = append(list, planned{moment(), fmt.Sprintf("%s %s", m.id, name), run})
		}
		when := ""
		if lagging {
			when = ", while another lags"
		}
		some := func() *machine { // a node whose vote counts
			if f := w.follower(nil); lagging && f != nil {
				return f
			}
			return m
		}
		switch r.IntN(6) {
		case 0, 1:
			add("or a voter loses its store: "+loss.name+when, func() {
				w.lose(some(), lagging, d, func(m *machine) error { return loss.apply(m.storeDir()) })
			})
		case 2:
			add("or a voter gets an old copy of its store"+when, func() { w.oldCopy(some(), lagging, d) })
		case 3:
			add("has a row changed", func() { m.damage(func() bool { return m.changeRow(pick) }) })
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
	// All nodes begin with the previous release and are upgraded one by one. In half of the
	// runs the leader loses power during the upgrade.
	for _, m := range w.nodes {
		m.release = oldLevel
		list = append(list, planned{moment(), fmt.Sprintf("%s is upgraded", m.id), m.upgrade})
	}
	if r.IntN(2) == 0 {
		at := moment()
		list = append(list, planned{at, "the leader loses power", func() {
			if l := w.raft.leader; l != nil {
				l.off("the power is cut")
				w.after(20*time.Second, "power", l.on)
			}
		}})
	}
	return list
}

// losses lists losses of a store, or of one of its files, while basaltd does not run.
var losses = []struct {
	name  string
	apply func(dir string) error
}{
	{"all of it", os.RemoveAll},
	{"all of it", os.RemoveAll},
	{"log.db", func(dir string) error { return os.Remove(filepath.Join(dir, "log.db")) }},
	{"vote", func(dir string) error { return os.Remove(filepath.Join(dir, "vote")) }},
	{"tables.db", func(dir string) error { return os.Remove(filepath.Join(dir, "tables.db")) }}, // rebuilt from the log
	{"the end of log.db", func(dir string) error { return os.Truncate(filepath.Join(dir, "log.db"), 2*4096) }},
	{"the end of tables.db", func(dir string) error { return os.Truncate(filepath.Join(dir, "tables.db"), 2*4096) }},
}

// sound reports whether this and every other node has an intact store: surviving damage to two
// stores at once is not guaranteed.
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

// damage applies how to the store's files while basaltd is down, if the product guarantees to
// survive it.
func (m *machine) damage(how func() bool) {
	if m.w.calm || !m.sound() {
		return
	}
	if m.store != nil {
		// Entries appended less than a second ago may be missing in the watermark.
		m.w.raft.check(m, m.store.UpdateWatermark())
	}
	if m.proc != nil {
		m.proc.kill()
	}
	if how() {
		m.touched = true
		m.w.stats.Hurt++
	}
}

// lose applies how to a store. With lagging, another voter lags behind and the leader loses
// power at the same moment, so that a vote for the lagging node would count.
func (w *world) lose(m *machine, lagging bool, d time.Duration, how func(m *machine) error) {
	lose := func() {
		m.damage(func() bool {
			if err := how(m); err != nil {
				w.failf("the simulation's own files: %v", err)
			}
			return true
		})
	}
	lags := w.follower(m)
	if !lagging || lags == nil {
		lose()
		return
	}
	w.cutWhere(d, func(l link) bool { return l.from == lags.n || l.to == lags.n })
	w.after(d-100*time.Millisecond, "worst moment", func() {
		if l := w.raft.leader; l != nil && l != m && l != lags && !w.calm && m.sound() {
			lose()
			l.off("the power is cut")
			w.after(30*time.Second, "power", l.on)
		}
	})
}

// follower returns a voter that is neither the leader nor m, or nil.
func (w *world) follower(m *machine) *machine {
	for _, v := range w.nodes {
		if w.raft.voters[v] && v != m && v != w.raft.leader {
			return v
		}
	}
	return nil
}

// oldCopy replaces the store with a copy of it that was made d before.
func (w *world) oldCopy(m *machine, lagging bool, d time.Duration) {
	backup := m.storeDir() + ".copy"
	if !m.sound() || os.RemoveAll(backup) != nil || os.CopyFS(backup, os.DirFS(m.storeDir())) != nil {
		return
	}
	w.after(d, "old copy", func() {
		w.lose(m, lagging, d, func(m *machine) error {
			w.logf(m.name(), "gets an old copy of its store")
			if err := os.RemoveAll(m.storeDir()); err != nil {
				return err
			}
			return os.CopyFS(m.storeDir(), os.DirFS(backup))
		})
	})
}

// changeRow changes a digit in a row on which no decision depends, and which no node has
// compared yet.
func (m *machine) changeRow(pick uint64) bool {
	db, err := bbolt.Open(filepath.Join(m.storeDir(), "tables.db"), 0o600, &bbolt.Options{NoSync: true, Timeout: time.Second})
	if err != nil {
		m.w.failf("the simulation's own files: %v", err)
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
					m.w.logf(m.name(), "a row of %s is changed", name)
					return b.Put(bytes.Clone(k), v)
				}
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		m.w.failf("the simulation's own files: %v", err)
	}
	return m.altered
}

// upgrade upgrades the node to the new release.
func (m *machine) upgrade() {
	if m.release == state.Level {
		return
	}
	m.release = state.Level
	m.w.stats.Upgraded++
	m.w.logf(m.name(), "has the new release")
	if m.proc != nil {
		m.proc.kill()
	}
}

// misread simulates a release from before feature levels existed: one that is newer than the
// cluster's level applied its new behavior from its start on.
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
