package simulation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/lease"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// Every node has a store of its own: the real one, without Raft. A follower applies the entries
// of its log in groups, with an arbitrary delay. When it opens its store again, it continues
// from the entry that its tables have reached.
const (
	mostWaiting   = 32 // the most entries that a follower may have unapplied
	snapshotAfter = 40 // beyond this many entries an empty store may be filled by a snapshot

	watermarkInterval = time.Second
	levelEvery        = 5 * time.Second
	compareEvery      = 20 * time.Second // 2 min in production
)

func (m *machine) storeDir() string { return filepath.Join(m.dir("."), "store") }

func (m *machine) watermark() string { return filepath.Join(m.dir("cluster"), "promise") }

// join makes the node a new member, which has acknowledged nothing yet.
func (m *machine) join() {
	if err := store.NewWatermark(m.watermark(), string(m.id), ""); err != nil {
		m.w.failf("the simulation's own files: %v", err)
	}
}

// open opens the store when basaltd starts. If the store is refused as damaged, the node has
// none.
func (m *machine) open() {
	o := store.Options{Dir: m.storeDir(), NodeID: string(m.id), Watermark: m.watermark()}
	s, err := store.OpenReplica(o, m.release)
	var d *store.Damaged
	if errors.As(err, &d) && m.w.o.Bug == LostStoreVotes {
		m.join()
		s, err = store.OpenReplica(o, m.release)
	}
	switch {
	case errors.As(err, &d):
		m.refused = true
		m.w.stats.Refused++
		m.w.logf(m.name(), "the store is refused: %s", filepath.Base(d.File))
	case err != nil:
		m.w.failf("%s: %v", m.id, err)
	default:
		m.refused, m.touched, m.store, m.persisted = false, false, s, int(s.Last())
	}
}

// close closes the store as the end of the process does.
func (m *machine) close() {
	if m.store != nil {
		m.w.raft.check(m, m.store.Close())
		m.store = nil
	}
}

// check handles an error of m's store and reports whether there was none. A store that finds
// itself damaged ends its process; any other error fails the run.
func (r *raft) check(m *machine, err error) bool {
	var d *store.Damaged
	switch {
	case err == nil:
		return true
	case errors.As(err, &d):
		r.w.after(0, "damaged", func() {
			if m.proc != nil {
				m.proc.kill()
			}
		})
	default:
		r.w.failf("store of %s failed: %v", m.id, err)
	}
	return false
}

// logged returns the number of changes in a node's log.
func (r *raft) logged(m *machine) int {
	if m.persisted == 0 {
		return 0
	}
	return r.ends[m.persisted-1]
}

// persist appends the leader's log to a node's, and reports whether it succeeded.
func (r *raft) persist(m *machine) bool {
	if m.store == nil || m.full {
		return false
	}
	if l := r.leader; m.persisted == 0 && l != m && l != nil && l.store != nil && l.store.Applied() > snapshotAfter && !l.altered && r.rng.IntN(2) == 0 {
		if !r.check(m, m.store.Install(l.store, r.term)) {
			return false
		}
		m.persisted = int(m.store.Last())
		r.w.logf("raft", "%s gets a snapshot", m.id)
	}
	if m.persisted < len(r.entries) {
		entries := slices.Clone(r.entries[m.persisted:])
		for i := range entries {
			r.misread(m, &entries[i])
		}
		if !r.check(m, m.store.Append(entries...)) {
			return false
		}
		m.persisted = len(r.entries)
	}
	if m.persisted-int(m.store.Applied()) > m.waiting {
		m.waiting = r.rng.IntN(mostWaiting)
		return r.apply(m)
	}
	return true
}

// apply applies all entries of a node's log and reports whether it succeeded.
func (r *raft) apply(m *machine) bool {
	if m.store == nil {
		return false
	}
	_, _, err := m.store.Apply(uint64(m.persisted))
	return r.check(m, err)
}

// add commits an entry on the leader and applies it there.
func (r *raft) add(data []byte) (objects []api.Object, changed []api.Event, err error) {
	l := r.leader
	if !r.apply(l) {
		return nil, nil, errUnavailable
	}
	before := l.store.Revision()
	e := store.LogEntry{Index: uint64(len(r.entries)) + 1, Term: r.term, Data: data}
	r.entries, r.ends = append(r.entries, e), append(r.ends, len(r.log))
	r.misread(l, &e)
	if !r.check(l, l.store.Append(e)) {
		return nil, nil, errUnavailable
	}
	l.persisted = len(r.entries)
	objects, refused, err := l.store.Apply(e.Index)
	if !r.check(l, err) {
		return nil, nil, errUnavailable
	}
	if refused != nil {
		err = refused
	}
	changed, failed := l.store.Changes(before)
	r.check(l, failed)
	for _, c := range changed {
		r.w.committed(c)
	}
	r.log = append(r.log, changed...)
	r.ends[len(r.ends)-1] = len(r.log)
	for _, m := range r.w.nodes {
		if r.voters[m] && r.linked(l, m) {
			r.persist(m)
		}
	}
	return objects, changed, err
}

// commit commits a batch on the leader. The batch is valid only in term; 0: in any.
func (r *raft) commit(term uint64, b api.Batch) ([]api.Object, error) {
	raw, err := r.leader.store.EncodeBatch(term, b)
	if err != nil {
		return nil, err
	}
	objects, changed, err := r.add(raw)
	for _, c := range b.Commands {
		if c.Op == api.OpRecord && err == nil {
			r.w.bill.recorded(c)
		}
	}
	if len(changed) == 0 {
		return objects, err
	}
	r.w.stats.Commits++
	if p := r.leader.proc; p != nil {
		p.pump()
	}
	r.w.after(r.w.between(time.Millisecond, 30*time.Millisecond), "replicate", func() {
		for _, m := range r.w.nodes {
			r.replicate(m)
		}
	})
	return objects, nil
}

// openTerm begins a term with an entry of Raft's own. The first leader has founded the cluster,
// and sets its level.
func (r *raft) openTerm() {
	first := len(r.entries) == 0
	if _, _, err := r.add(nil); err != nil || !first {
		return
	}
	r.level(r.leader.release)
}

// clusterID returns the cluster's ID, which is derived from the seed. It also serves as the
// audit log's key.
func (r *raft) clusterID() string { return fmt.Sprintf("%016x", r.w.o.Seed) }

// level sets the feature level of the cluster. Its members are all nodes.
func (r *raft) level(to int) {
	raw, err := state.EncodeSettlement(state.Settlement{Level: to, ID: r.clusterID(), Members: memberIDs(r.w.nodes), AuditKey: []byte(r.clusterID())})
	if err == nil {
		_, _, err = r.add(raw)
	}
	if err != nil {
		r.w.logf("raft", "raise the feature level failed: %v", err)
		return
	}
	r.w.stats.Raised++
	r.w.logf("raft", "the cluster has feature level %d", to)
}

// maintainStores runs the periodic work on the stores: the watermarks of all nodes, and the
// raising and comparing that the leader's basaltd does.
func (r *raft) maintainStores() {
	now := r.w.now
	if now >= r.updatedWatermarks {
		r.updatedWatermarks = now + watermarkInterval
		for _, m := range r.w.nodes {
			if m.alive() && m.store != nil {
				r.check(m, m.store.UpdateWatermark())
			}
		}
	}
	if !r.leads(r.leader) {
		return
	}
	if now >= r.asked {
		r.asked = now + levelEvery
		r.raise()
	}
	if now >= r.compared && r.w.o.Bug != DifferenceUnseen && r.leads(r.leader) {
		r.compared = now + compareEvery
		r.compare()
	}
}

// raise raises the cluster's level as soon as all members support it. An unreachable member
// prevents it.
func (r *raft) raise() {
	level, _, err := r.leader.store.Settled()
	if !r.check(r.leader, err) {
		return
	}
	to := r.leader.release
	for _, m := range r.w.nodes {
		if _, is := r.w.truth.Nodes[string(m.id)]; (is || r.voters[m]) && r.w.o.Bug != LevelUnasked {
			if !r.linked(r.leader, m) {
				return
			}
			to = min(to, m.release)
		}
	}
	if to > level {
		r.level(to)
	}
}

// compare compares the nodes' tables, as the leader's basaltd does.
func (r *raft) compare() {
	if level, _, err := r.leader.store.Settled(); err != nil || level < state.CompareLevel {
		return
	}
	raw, err := state.EncodeCompare(state.Place{})
	if err == nil {
		_, _, err = r.add(state.InTerm(r.term, raw))
	}
	if err != nil {
		return
	}
	index, parts := uint64(len(r.entries)), map[string]state.Part{}
	for _, m := range r.w.nodes {
		if !r.linked(r.leader, m) || !r.persist(m) || !r.apply(m) {
			continue // an unreachable node is compared the next time
		}
		p, err := m.store.Part(context.Background(), index)
		if !r.check(m, err) {
			return
		}
		parts[string(m.id)] = p
	}
	different, _ := state.Differing(parts)
	slices.Sort(different)
	for _, id := range different {
		m := r.w.machine(api.NodeID(id))
		if !m.altered {
			r.w.failf("%s has an unaltered store, but its tables differ from those of most nodes at entry %d: %s", id, index, r.different(m, r.other(m)))
			return
		}
		r.w.stats.Differing++
		r.w.logf(id, "its tables differ from those of most nodes at entry %d", index)
		if r.check(m, m.store.Differs(parts[id])) {
			m.proc.kill()
		}
	}
}

// other returns a node other than not that has the whole log and an unaltered store, or nil.
func (r *raft) other(not *machine) *machine {
	for _, m := range r.w.nodes {
		if m != not && m.store != nil && !m.altered && m.persisted == len(r.entries) && r.apply(m) {
			return m
		}
	}
	return nil
}

// different returns the names of the buckets in which two nodes' tables differ.
func (r *raft) different(a, b *machine) string {
	if a == nil || b == nil {
		return ""
	}
	x, err := a.store.Sums()
	y, err2 := b.store.Sums()
	if err := errors.Join(err, err2); err != nil {
		return err.Error()
	}
	var out []string
	for name := range x {
		if x[name] != y[name] {
			out = append(out, name)
		}
	}
	for name := range y {
		if _, ok := x[name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// unequal describes the stores that differ from what every node must have once all faults are
// healed.
func (r *raft) unequal() (out []string) {
	for _, m := range r.w.nodes {
		if r.leads(r.leader) && r.linked(r.leader, m) {
			r.persist(m)
		}
	}
	whole := r.other(nil)
	for _, m := range r.w.nodes {
		switch {
		case m.gone || m == whole:
		case m.store == nil || whole == nil:
			out = append(out, fmt.Sprintf("the store of %s is not in use", m.id))
		case m.persisted < len(r.entries) || !r.apply(m):
			out = append(out, fmt.Sprintf("the log of %s ends at entry %d of %d", m.id, m.persisted, len(r.entries)))
		default:
			if d := r.different(m, whole); d != "" {
				out = append(out, fmt.Sprintf("the tables of %s and %s differ at entry %d, which was not detected: %s", m.id, whole.id, len(r.entries), d))
			}
		}
	}
	return out
}

// runRefused runs basaltd on a node whose store was refused: it keeps its lease, by the leader
// hints of other members, and waits for the operator to have the store rebuilt.
func (p *proc) runRefused() {
	p.later(p.w.between(0, time.Second), "ask for its node", p.askSelf)
	p.later(p.w.between(5*time.Second, 20*time.Second), "rebuild", p.rebuild)
}

func (p *proc) askSelf() {
	n, ok := p.w.truth.Nodes[string(p.m.id)]
	if l := p.guide(); l == nil || !p.w.raft.leads(l) || p.w.net.way(p.m, l) < 0 || !ok {
		p.later(time.Second, "ask for its node", p.askSelf)
		return
	}
	p.holder = lease.NewHolder(n.Status.ObservedEpoch)
	p.heartbeat()
	p.probe()
}

// rebuild has the store rebuilt, as the operator's command does: the other members remove the
// node from Raft, and it restarts with an empty store.
func (p *proc) rebuild() {
	r := &p.w.raft
	if l := r.leader; !r.leads(l) || p.w.net.way(p.m, l) < 0 {
		p.later(time.Second, "rebuild", p.rebuild)
		return
	}
	if r.voters[p.m] {
		delete(r.voters, p.m)
		p.w.logf("raft", "%s is no longer a voter", p.m.id)
	}
	p.w.stats.Rebuilt++
	p.w.logf(p.m.name(), "the store is rebuilt")
	p.m.forget()
	p.m.join()
	p.kill()
}

// forget removes the store's files.
func (m *machine) forget() {
	m.touched, m.altered, m.persisted = false, false, 0
	if err := os.RemoveAll(m.storeDir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.w.failf("the simulation's own files: %v", err)
	}
}
