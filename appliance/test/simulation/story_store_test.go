package simulation

import (
	"os"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// storeLost: one voter lags behind, another loses its store, and the leader, the only one with
// all acknowledged entries, loses power. The voter without a store must not vote, so there is
// no leader until the old one is back. Then the lost store is rebuilt.
func storeLost(w *storyCluster) {
	l := w.leads()
	m, lags := w.nodes[l.n%3], w.nodes[(l.n+1)%3]
	w.cutWhere(20*time.Second, func(k link) bool { return k.from == lags.n || k.to == lags.n })
	w.pass(time.Second)
	w.operator(func() { w.acts.volume(true, false) })
	w.expect(lags.persisted < len(w.raft.entries) && m.persisted == len(w.raft.entries), "before the fault: the lagging voter has %d of %d entries, and the other voter has %d, want fewer and all", lags.persisted, len(w.raft.entries), m.persisted)
	w.pass(2 * time.Second)
	m.damage(func() bool { return os.RemoveAll(m.storeDir()) == nil })
	l.off("the power is cut")
	w.until("the store is refused", func() bool { return m.refused })
	w.pass(30 * time.Second)
	w.expect(w.raft.leader == nil, "a node without all acknowledged entries is the leader")
	l.on()
	w.leads()
	w.until("the store is rebuilt", func() bool {
		return !m.refused && m.store != nil && m.persisted == len(w.raft.entries) && w.raft.voters[m]
	})
}

// rowChanged: one digit changes on the disk of a node. The difference is detected and that
// node's store is rebuilt; no instance is affected.
func rowChanged(w *storyCluster) {
	before := w.runsNow(nil)
	m := w.nodes[w.leads().n%3]
	m.damage(func() bool { return m.changeRow(1) })
	w.until("the difference is detected", func() bool { return m.refused })
	w.until("the store is rebuilt", func() bool { return !m.refused && m.store != nil && m.persisted == len(w.raft.entries) })
	w.expect(len(w.raft.unequal()) == 0, "stores differ: %v", w.raft.unequal())
	w.unchanged(before)
}

// upgraded: the nodes get the new release one by one, and the leader loses power in the middle.
// The cluster has the new level once all nodes have the release, and not before.
func upgraded(w *storyCluster) {
	level := func() int {
		level, _, err := w.leads().store.Settled()
		w.expect(err == nil, "read the feature level: %v", err)
		return level
	}
	w.expect(level() == oldLevel, "feature level at the beginning = %d, want %d", level(), oldLevel)
	for i, m := range w.nodes {
		w.expect(level() == oldLevel, "feature level with %d upgraded nodes = %d, want %d", i, level(), oldLevel)
		m.upgrade()
		if i == 1 {
			l := w.leads()
			l.off("the power is cut")
			w.leads(l)
			w.create(api.InstanceSpec{StoragePool: api.PoolShared})
			l.on()
		}
		w.until("all stores are equal", func() bool { return len(w.raft.unequal()) == 0 })
		w.pass(2 * levelEvery)
	}
	w.until("the level is raised", func() bool { return level() == oldLevel+1 })
}
