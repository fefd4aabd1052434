package storage

import (
	"maps"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// Table returns the table on the disk, or nil.
func (f Bootstrap) Table(disk api.DiskID) *Table {
	for i := range f.Tables {
		if f.Tables[i].Disk == disk {
			return &f.Tables[i]
		}
	}
	return nil
}

// tables returns the disks for databases that are to follow f's. One that is released
// stays as long as an OSD has its database on it.
func (f Bootstrap) tables(s observation, on bool, from source) []Table {
	var out []Table
	for _, t := range f.Tables {
		d, there := s.disks[string(t.Disk)]
		wanted := there && on && d.Spec.Use == api.DiskCephDB && d.Meta.DeletedAt == nil
		t.Taken = t.Taken || there && d.Status.State == api.DiskReady
		t.Leaving = !wanted
		t.Wipe = t.Wipe || wanted && !t.Taken && d.Spec.Wipe
		used := slices.ContainsFunc(f.OSDs, func(o OSD) bool { return o.DB != nil && o.DB.Table == t.UUID })
		if t.Leaving && !used && released(d, there) {
			continue
		}
		out = append(out, t)
	}
	for _, id := range slices.Sorted(maps.Keys(s.disks)) {
		d := s.disks[id]
		_, member := s.nodes[string(d.Status.Node)]
		if on && member && d.Spec.Use == api.DiskCephDB && d.Meta.DeletedAt == nil && f.Table(api.DiskID(id)) == nil && acceptable(d) {
			out = append(out, Table{Disk: api.DiskID(id), Node: d.Status.Node, UUID: from.uuid(), Wipe: d.Spec.Wipe})
		}
	}
	slices.SortFunc(out, func(a, b Table) int { return strings.Compare(string(a.Disk), string(b.Disk)) })
	return out
}

// database returns the place of a new OSD's database. ok is false while the disk that
// it is to be stored on is not one for databases.
func (f Bootstrap) database(d api.Disk) (db *deploy.DB, ok bool) {
	if d.Spec.DBDisk == "" {
		return nil, true
	}
	t := f.Table(d.Spec.DBDisk)
	if t == nil || t.Leaving || t.Node != d.Status.Node {
		return nil, false
	}
	return &deploy.DB{Table: t.UUID, Bytes: d.Spec.DBBytes}, true
}
