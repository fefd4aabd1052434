package storage

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// seen is what the leader decides on.
type seen struct {
	cluster *api.CephCluster // nil: there is none
	nodes   map[string]api.Node
	disks   map[string]api.Disk
	survey  *deploy.Survey // nil: the monitors do not answer
	// images in the pool; -1: it is not known, 0 also where there is no pool.
	images int
}

// source of what is not decided but drawn.
type source struct {
	keys func() (deploy.Keys, error)
	uuid func() string
	port uint16
}

const maxRetired = 32

// decide what the Founding is to be.
func decide(f Founding, s seen, from source) (Founding, error) {
	on := s.cluster != nil && s.cluster.Spec.Enabled && s.cluster.Meta.DeletedAt == nil
	if f.FSID == "" {
		if !on || s.cluster.Assignment.Fsid == "" || len(s.cluster.Assignment.Mons) == 0 {
			return f, nil
		}
		keys, err := from.keys()
		if err != nil {
			return f, err
		}
		f = Founding{Generation: f.Generation + 1, Retired: f.Retired, FSID: s.cluster.Assignment.Fsid, Keys: keys, Port: cmp.Or(from.port, deploy.MonPort)}
	}
	f.OSDs = slices.Clone(f.OSDs)
	f.Exists = f.Exists || s.survey != nil
	if on {
		spec := api.DefaultCephCluster(s.cluster.Spec)
		f.Replicas, f.FailureDomain = int(spec.Replicas), string(spec.FailureDomain)
		f.Mons, f.Mgrs = f.monitors(s), s.cluster.Assignment.Mgrs
	}
	f.Dismantle = !on && (f.Dismantle || s.images == 0)
	f.OSDs = f.osds(s, on, from)
	if !on && len(f.OSDs) == 0 && (f.Dismantle || !f.Exists) {
		gone := append(slices.Clone(f.Retired), f.Incarnation())
		return Founding{Generation: f.Generation, Retired: gone[max(0, len(gone)-maxRetired):]}, nil
	}
	return f, nil
}

// monitors in the order in which they are told: until there was a quorum the
// one that founds stays the first, or two would found.
func (f Founding) monitors(s seen) []api.NodeID {
	mons := s.cluster.Assignment.Mons
	if f.Exists || len(f.Mons) == 0 || !slices.Contains(mons, f.Mons[0]) {
		return mons
	}
	first := f.Mons[0]
	return append([]api.NodeID{first}, slices.DeleteFunc(slices.Clone(mons), func(m api.NodeID) bool { return m == first })...)
}

func (f Founding) osds(s seen, on bool, from source) []OSD {
	var out []OSD
	for _, o := range f.OSDs {
		d, there := s.disks[string(o.Disk)]
		known := s.survey != nil && OSDOf(s.survey.Cluster, o.UUID) != nil
		up := known && OSDOf(s.survey.Cluster, o.UUID).Up
		wanted := there && on && d.Spec.Use == api.DiskCeph && d.Meta.DeletedAt == nil
		o.Taken = o.Taken || up
		switch {
		case !wanted:
			o.Leaving = true
		case o.Leaving && known: // the decision is taken back
			o.Leaving = false
		}
		o.Wipe = o.Wipe || wanted && !o.Taken && d.Spec.Wipe
		if o.Leaving && (s.survey != nil && !known || !f.Exists) && released(d, there) {
			continue
		}
		out = append(out, o)
	}
	for _, id := range slices.Sorted(maps.Keys(s.disks)) {
		d := s.disks[id]
		_, member := s.nodes[string(d.Status.Node)]
		if on && member && d.Spec.Use == api.DiskCeph && d.Meta.DeletedAt == nil && f.OSD(api.DiskID(id)) == nil && takable(d) {
			out = append(out, OSD{Disk: api.DiskID(id), Node: d.Status.Node, UUID: from.uuid(), Wipe: d.Spec.Wipe})
		}
	}
	slices.SortFunc(out, func(a, b OSD) int { return strings.Compare(string(a.Disk), string(b.Disk)) })
	return out
}

// takable reports whether the node will take the disk: it looks again, and it has
// the last word.
func takable(d api.Disk) bool {
	return d.Status.State == api.DiskFree || d.Status.State == api.DiskInUse && d.Spec.Wipe
}

// released: the node has nothing of it any more, and has said so since it was
// told to give it back.
func released(d api.Disk, there bool) bool {
	if !there {
		return true // its node was removed
	}
	st := d.Status
	return st.ObservedGeneration >= d.Meta.Generation && (st.State == api.DiskFree || st.State == api.DiskInUse || st.State == api.DiskFailed && st.Osd < 0)
}

// OSDOf returns what the monitors know of the OSD with that UUID, or nil.
func OSDOf(c deploy.Cluster, uuid string) *deploy.OSDState {
	for i := range c.OSDs {
		if c.OSDs[i].UUID == uuid {
			return &c.OSDs[i]
		}
	}
	return nil
}
