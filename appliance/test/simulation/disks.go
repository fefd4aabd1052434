package simulation

import (
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// disks knows what is written on every volume, by number: each run of an
// instance writes something new. Nobody may start from something older, or from
// nothing, who was not declared ephemeral.
type disks struct {
	w       *world
	content map[string]int64 // path → what is on it; 0: as it was made
	latest  map[api.InstanceID]int64
	roots   map[api.InstanceID]api.VolumeID
}

func newDisks(w *world) *disks {
	return &disks{w: w, content: map[string]int64{}, latest: map[api.InstanceID]int64{}, roots: map[api.InstanceID]api.VolumeID{}}
}

func (d *disks) path(m *machine, id api.InstanceID) string {
	_, running, ok := m.machines.Domain(id)
	if !ok || len(running.Disks) == 0 {
		return ""
	}
	return running.Disks[0].Path
}

// opened: the instance begins to write, or goes on after a move.
func (d *disks) opened(m *machine, id api.InstanceID) {
	path := d.path(m, id)
	have, last := d.content[path], d.latest[id]
	ephemeral := d.w.truth.Instances[string(id)].Spec.Ephemeral
	switch {
	case have == last:
	case have == 0 && ephemeral:
	case have == 0:
		d.w.broken("%s starts on %s from an empty disk %s, and was not declared ephemeral", id, m.id, path)
	default:
		d.w.broken("%s starts on %s from an old disk %s: what was written is lost", id, m.id, path)
	}
	d.latest[id] = last + 1
	d.content[path] = last + 1
}

// locked by another node's QEMU: the locks of QEMU on its images hold between
// nodes (sds refuses pools where they do not).
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

// copied by a migration: all of it, at the moment when the source stands still.
func (d *disks) copied(from, to *machine, id api.InstanceID, o hypervisor.MigrateOptions) {
	if len(o.CopyDisks) > 0 && len(o.Target.Disks) > 0 {
		d.content[o.Target.Disks[0].Path] = d.content[d.path(from, id)]
	}
}

func (d *disks) made(s pool, path string) {
	d.content[path] = 0
	d.w.say(s.m.name(), "makes %s", path)
}

// deleted: what the store still has on that node must not be.
func (d *disks) deleted(s pool, id api.VolumeID) {
	d.w.say(s.m.name(), "deletes %s of pool %s", id, s.name)
	v, ok := d.w.truth.Volumes[string(id)]
	if !ok || v.Meta.DeletedAt != nil {
		return
	}
	shared := s.name == api.PoolShared
	if shared && v.Assignment.Pool == api.PoolShared || !shared && v.Assignment.Pool != api.PoolShared && v.Assignment.Node == s.m.id {
		d.w.broken("%s deletes volume %s, which the store still has", s.m.id, id)
	}
}

// use tells the pools who has what open.
func (d *disks) use(m *machine, id api.InstanceID) {
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
