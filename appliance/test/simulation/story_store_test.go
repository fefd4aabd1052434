package simulation

import (
	"os"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// storeLost: one voter lags behind, another one's store is lost, and who leads, which
// alone has all that was acknowledged, loses power. The one without a store has no
// vote to give: nobody leads until the leader is back. Then its store is made anew.
func storeLost(w *storyCluster) {
	l := w.leads()
	m, lags := w.nodes[l.n%3], w.nodes[(l.n+1)%3]
	w.cutWhere(20*time.Second, func(k link) bool { return k.from == lags.n || k.to == lags.n })
	w.pass(time.Second)
	w.operator(func() { w.acts.volume(true, false) })
	w.expect(lags.persisted < len(w.raft.entries) && m.persisted == len(w.raft.entries), "it is not as it should be")
	w.pass(2 * time.Second)
	m.hurt(func() bool { return os.RemoveAll(m.storeDir()) == nil })
	l.off("the power is cut")
	w.until("the store is refused", func() bool { return m.refused })
	w.pass(30 * time.Second)
	w.expect(w.raft.leader == nil, "somebody leads who has not all that was acknowledged")
	l.on()
	w.leads()
	w.until("the store is made anew", func() bool {
		return !m.refused && m.store != nil && m.persisted == len(w.raft.entries) && w.raft.voters[m]
	})
}

// rowChanged: one digit changes on the disk of a node. It is found, and that node's
// store is made anew; nobody's machines notice.
func rowChanged(w *storyCluster) {
	before := w.runsNow(nil)
	m := w.nodes[w.leads().n%3]
	m.hurt(func() bool { return m.changeRow(1) })
	w.until("it is seen", func() bool { return m.refused })
	w.until("the store is made anew", func() bool { return !m.refused && m.store != nil && m.persisted == len(w.raft.entries) })
	w.expect(len(w.raft.unequal()) == 0, "%v", w.raft.unequal())
	w.unchanged(before)
}

// upgraded: the nodes get the new release one by one, and who leads loses power in the
// middle. The cluster has the new level when all have the release, not before.
func upgraded(w *storyCluster) {
	level := func() int {
		level, _, err := w.leads().store.Settled()
		w.expect(err == nil, "%v", err)
		return level
	}
	w.expect(level() == oldLevel, "it begins with level %d", level())
	for i, m := range w.nodes {
		w.expect(level() == oldLevel, "it has level %d with %d new releases", level(), i)
		m.upgrade()
		if i == 1 {
			l := w.leads()
			l.off("the power is cut")
			w.leads(l)
			w.create(api.InstanceSpec{StoragePool: api.PoolShared})
			l.on()
		}
		w.until("all answer", func() bool { return len(w.raft.unequal()) == 0 })
		w.pass(2 * levelEvery)
	}
	w.until("the level is raised", func() bool { return level() == oldLevel+1 })
}
