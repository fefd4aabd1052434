package simulation

import (
	"reflect"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// committed applies a committed change of the store to the truth.
func (w *world) committed(e api.Event) {
	if _, _, err := w.all.Apply(e); err != nil {
		w.failf("decode committed event: %v", err)
	}
	w.trackNode(e)
	w.trackAssignment(e)
}

// rootSerial is the disk serial of an instance's root volume; other volumes have their IDs.
const rootSerial = "root"

// check fails the run if an invariant is violated.
func (w *world) check() {
	if w.err != nil {
		return
	}
	paths := map[string]string{} // of the data volumes that are open
	defer func(was map[string]string) {
		for _, v := range slices.Sorted(keys(w.open)) {
			if was[v] != w.open[v] {
				w.stats.Attached++
				w.disks.wrote(v, paths[v], w.open[v])
			}
		}
	}(w.open)
	at := map[api.InstanceID]*machine{}
	open := map[string]string{} // by data volume: the instance and node that have it open
	w.open = open
	for _, m := range w.nodes {
		if len(m.domains) == 0 {
			continue
		}
		var vcpus, memory int64
		for _, id := range sortedIDs(m.domains) {
			s := m.domains[id]
			if !m.executes(id) {
				continue
			}
			if other := at[id]; other != nil {
				w.failf("%s runs on two nodes: %s (%s) and %s (%s)", id, other.id, other.domains[id], m.id, s)
				return
			}
			at[id] = m
			_, d, _ := m.machines.Domain(id)
			for _, k := range d.Disks {
				if k.Serial == rootSerial {
					continue
				}
				if open[k.Serial] != "" {
					w.failf("volume %s is open twice: in %s and in %s on %s", k.Serial, open[k.Serial], id, m.id)
					return
				}
				open[k.Serial], paths[k.Serial] = string(id)+" on "+string(m.id), k.Path
			}
			vcpus += int64(d.VCPUs)
			memory += d.MemoryBytes
			if w.isLost(m) && w.movable(id) {
				w.failf("node %s is declared lost, and movable instance %s still runs there", m.id, id)
				return
			}
		}
		if vcpus > m.vcpus || memory > m.memory {
			w.failf("%s has %d vCPUs and %d MiB, and runs instances with %d vCPUs and %d MiB", m.id, m.vcpus, m.memory>>20, vcpus, memory>>20)
		}
	}
}

// isLost reports whether m is declared lost and has not yet adopted the new epoch. Movable
// instances must not run there until it has.
func (w *world) isLost(m *machine) bool {
	n, ok := w.truth.Nodes[string(m.id)]
	if !ok {
		return m.gone
	}
	return n.Assignment.State == api.NodeLost && n.Status.ObservedEpoch < n.Assignment.Epoch
}

func (w *world) movable(id api.InstanceID) bool {
	in, ok := w.truth.Instances[string(id)]
	return ok && api.Movable(in, w.truth.Volumes[string(w.disks.roots[id])])
}

func (w *world) trackNode(e api.Event) {
	if e.Object.Kind != api.KindNode {
		return
	}
	n := w.truth.Nodes[e.Object.Meta.ID]
	if e.Type == api.EventPut && n.Assignment.State != w.states[e.Object.Meta.ID] {
		w.logf("cluster", "%s is %s, epoch %d: %s", n.Meta.ID, n.Assignment.State, n.Assignment.Epoch, n.Assignment.Reason)
		if n.Assignment.State == api.NodeLost {
			w.stats.Lost++
		}
		w.states[e.Object.Meta.ID] = n.Assignment.State
	}
}

// trackAssignment logs a changed assignment and fails the run if a node's capacity is
// over-allocated.
func (w *world) trackAssignment(e api.Event) {
	if e.Object.Kind != api.KindInstance {
		return
	}
	in := w.truth.Instances[e.Object.Meta.ID]
	id := api.InstanceID(e.Object.Meta.ID)
	if a := in.Assignment; !reflect.DeepEqual(a, w.assigned[id]) {
		w.logf("cluster", "%s: node %q epoch %d vCPUs %d moveTo %q release %t lost %t %s", id, a.Node, a.Epoch, a.Vcpus, a.MigrateTo, a.Release, a.NodeLost, a.Reason)
		w.assigned[id] = a
	} else {
		return
	}
	type sum struct{ vcpus, memory, vram, share int64 }
	given := map[api.NodeID]sum{}
	for _, in := range w.truth.Instances {
		a := in.Assignment
		s := given[a.Node]
		s.vcpus += a.Vcpus
		s.memory += a.MemoryBytes
		s.vram += a.VgpuVramBytes
		s.share += a.VgpuSharePercent
		given[a.Node] = s
	}
	for _, m := range w.nodes {
		if s := given[m.id]; s.vcpus > m.vcpus || s.memory > m.memory || s.vram > vramBytes || s.share > 100 {
			w.failf("%s is over-allocated: %+v", m.id, s)
		}
	}
}
