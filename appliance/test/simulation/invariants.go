package simulation

import (
	"reflect"

	"github.com/basalt-gpu/basalt/api"
)

// committed takes in a change of the store.
func (w *world) committed(e api.Event) {
	if _, _, err := w.all.Apply(e); err != nil {
		w.broken("the store holds what cannot be read: %v", err)
	}
	w.trackNode(e)
	w.trackAssignment(e)
}

// rootSerial is by what an instance finds its root volume; others by their ids.
const rootSerial = "root"

// check everything that must hold at every moment.
func (w *world) check() {
	if w.err != nil {
		return
	}
	defer func(was map[string]string) {
		for v, by := range w.open {
			if was[v] != by {
				w.stats.Attached++
			}
		}
	}(w.open)
	at := map[api.InstanceID]*machine{}
	open := map[string]string{} // data volume → who has it open
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
				w.broken("%s runs on %s (%s) and on %s (%s)", id, other.id, other.domains[id], m.id, s)
				return
			}
			at[id] = m
			_, d, _ := m.machines.Domain(id)
			for _, k := range d.Disks {
				if k.Serial == rootSerial {
					continue
				}
				if open[k.Serial] != "" {
					w.broken("%s is open in %s and in %s on %s", k.Serial, open[k.Serial], id, m.id)
					return
				}
				open[k.Serial] = string(id) + " on " + string(m.id)
			}
			vcpus += int64(d.VCPUs)
			memory += d.MemoryBytes
			if w.isLost(m) && w.movable(id) {
				w.broken("%s is declared lost, and %s runs there", m.id, id)
				return
			}
		}
		if vcpus > m.vcpus || memory > m.memory {
			w.broken("%s has %d vCPUs and %d MiB, and runs %d and %d", m.id, m.vcpus, m.memory>>20, vcpus, memory>>20)
		}
	}
}

// isLost: what may run elsewhere must not run there, until it has given up what
// is not its own.
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
		w.say("cluster", "%s is %s, epoch %d: %s", n.Meta.ID, n.Assignment.State, n.Assignment.Epoch, n.Assignment.Reason)
		if n.Assignment.State == api.NodeLost {
			w.stats.Lost++
		}
		w.states[e.Object.Meta.ID] = n.Assignment.State
	}
}

// trackAssignment: what is given out is never more than there is.
func (w *world) trackAssignment(e api.Event) {
	if e.Object.Kind != api.KindInstance {
		return
	}
	in := w.truth.Instances[e.Object.Meta.ID]
	id := api.InstanceID(e.Object.Meta.ID)
	if a := in.Assignment; !reflect.DeepEqual(a, w.assigned[id]) {
		w.say("cluster", "%s: node %q epoch %d vCPUs %d moveTo %q release %t lost %t %s", id, a.Node, a.Epoch, a.Vcpus, a.MigrateTo, a.Release, a.NodeLost, a.Reason)
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
			w.broken("%s is given out beyond what it has: %+v", m.id, s)
		}
	}
}
