package simulation

import (
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// disks tracks the content of every volume as a generation number: each run of an instance
// writes a new generation to its root volume, and an instance that opens a data volume one to
// that. An instance must not start from an older generation, nor from an empty disk unless it
// is ephemeral, and no data volume must be opened with an older one.
type disks struct {
	w       *world
	content map[string]int64 // by path: the generation; 0: as created
	latest  map[api.InstanceID]int64
	data    map[string]int64 // by data volume: the latest generation
	roots   map[api.InstanceID]api.VolumeID
}

func newDisks(w *world) *disks {
	return &disks{w: w, content: map[string]int64{}, latest: map[api.InstanceID]int64{}, data: map[string]int64{}, roots: map[api.InstanceID]api.VolumeID{}}
}

func (d *disks) path(m *machine, id api.InstanceID) string {
	_, running, ok := m.machines.Domain(id)
	if !ok || len(running.Disks) == 0 {
		return ""
	}
	return running.Disks[0].Path
}

// opened records that the instance begins to write on m, or continues after a migration.
func (d *disks) opened(m *machine, id api.InstanceID) {
	path := d.path(m, id)
	have, last := d.content[path], d.latest[id]
	ephemeral := d.w.truth.Instances[string(id)].Spec.Ephemeral
	switch {
	case have == last:
	case have == 0 && ephemeral:
	case have == 0:
		d.w.failf("%s starts on %s from the empty disk %s, and is not ephemeral", id, m.id, path)
	default:
		d.w.failf("%s starts on %s from disk %s of generation %d, want %d: written data is lost", id, m.id, path, have, last)
	}
	d.latest[id] = last + 1
	d.content[path] = last + 1
}

// wrote records that an instance has opened a data volume, and writes to it.
func (d *disks) wrote(volume, path, by string) {
	if have, last := d.content[path], d.data[volume]; have != last {
		d.w.failf("%s opens %s from disk %s of generation %d, want %d: written data is lost", by, volume, path, have, last)
	}
	d.data[volume]++
	d.content[path] = d.data[volume]
}

// locked returns the machine whose QEMU holds the lock on the root disk of the instance, or
// nil. QEMU's image locks are effective between nodes (sds refuses pools where they are not).
func (d *disks) locked(m *machine, id api.InstanceID) *machine {
	defined, _, _ := m.machines.Domain(id)
	if len(defined.Disks) == 0 || !strings.HasPrefix(defined.Disks[0].Path, "/"+api.PoolShared+"/") {
		return nil
	}
	for _, o := range d.w.nodes {
		if o != m && runs(o.domains[id]) && d.path(o, id) == defined.Disks[0].Path {
			return o
		}
	}
	return nil
}

// copied records that a migration has copied the whole disk, at the moment when the source is
// paused.
func (d *disks) copied(from, to *machine, id api.InstanceID, o hypervisor.MigrateOptions) {
	if len(o.CopyDisks) > 0 && len(o.Target.Disks) > 0 {
		d.content[o.Target.Disks[0].Path] = d.content[d.path(from, id)]
	}
}

// created records that the pool has created a volume.
func (d *disks) created(s pool, path string) {
	d.content[path] = 0
	d.w.logf(s.m.name(), "creates %s", path)
}

// deleted fails the run if the store still assigns the deleted volume to this node and pool.
func (d *disks) deleted(s pool, id api.VolumeID) {
	d.w.logf(s.m.name(), "deletes %s of pool %s", id, s.name)
	v, ok := d.w.truth.Volumes[string(id)]
	if !ok || v.Meta.DeletedAt != nil {
		return
	}
	shared := s.name == api.PoolShared
	if shared && v.Assignment.Pool == api.PoolShared || !shared && v.Assignment.Pool != api.PoolShared && v.Assignment.Node == s.m.id {
		d.w.failf("%s deletes volume %s, which the store still assigns there", s.m.id, id)
	}
}

// markUsed tells the pools whether the root volume of the instance is open.
func (d *disks) markUsed(m *machine, id api.InstanceID) {
	root := d.roots[id]
	if root == "" {
		return
	}
	m.local.SetUsed(root, m.domains[id].Active())
	used := false
	for _, o := range d.w.nodes {
		used = used || o.domains[id].Active()
	}
	d.w.shared.SetUsed(root, used)
}
