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

// daemonsOf returns a node's daemons in an intent.
func daemonsOf(in deploy.Intent, node string) (d Daemons) {
	for _, o := range in.Disks {
		if o.Node == node { // a leaving OSD runs until its data has been moved
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

// Daemons returns what this node runs of Ceph, by the last intent.
func (n *Node) Daemons() Daemons {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.runs
}
