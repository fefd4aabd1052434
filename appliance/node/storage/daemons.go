package storage

import (
	"slices"

	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// Daemons is what a node runs of Ceph, or is about to run.
type Daemons struct {
	OSDs             int
	Monitor, Manager bool
}

// daemonsOf is a node's part of an intent.
func daemonsOf(in deploy.Intent, node string) (d Daemons) {
	for _, o := range in.Disks {
		if o.Node == node { // one that leaves runs until its data has moved away
			d.OSDs++
		}
	}
	d.Monitor = slices.ContainsFunc(in.Mons, func(m deploy.Mon) bool { return m.Node == node })
	d.Manager = slices.Contains(in.Mgrs, node)
	return d
}

func (n *Node) noteDaemons(in deploy.Intent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs = daemonsOf(in, string(n.Self))
}

// Daemons returns what this node runs of Ceph, as it was last decided.
func (n *Node) Daemons() Daemons {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.runs
}
