package storage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// observation is the state of the cluster that the leader's decisions are based on.
type observation struct {
	cluster *api.CephCluster // nil if none exists
	nodes   map[string]api.Node
	disks   map[string]api.Disk
	survey  *deploy.Survey // nil if the monitors did not respond
	// images is the number of images in each pool that may be deleted, by the pool's
	// name in Ceph: 0 also if the pool does not exist. A pool whose number is unknown is
	// missing.
	images map[string]int
}

// empty reports whether it is known that no pool contains an image.
func (s observation) empty(f Bootstrap) bool {
	return !slices.ContainsFunc(f.AllPools(), func(p PoolInCeph) bool {
		n, known := s.images[p.Pool.Name]
		return !known || n != 0
	})
}

// contents returns the number of images in all pools, as far as it is known.
func (s observation) contents() (n int) {
	for _, images := range s.images {
		n += images
	}
	return n
}

// source generates the values that are random instead of decided.
type source struct {
	keys func() (deploy.Keys, error)
	uuid func() string
	// osdKey returns the sealed key of a new encrypted OSD.
	osdKey func(uuid string) (string, error)
	port   uint16
	// storageNetwork is set if all members of the cluster support Bootstrap.Addresses.
	storageNetwork bool
}

const maxRetired = 32

// decide returns the Bootstrap that is to follow f.
func decide(f Bootstrap, s observation, from source) (Bootstrap, error) {
	on := s.cluster != nil && s.cluster.Spec.Enabled && s.cluster.Meta.DeletedAt == nil
	if f.FSID == "" {
		if !on || s.cluster.Assignment.Fsid == "" || len(s.cluster.Assignment.Mons) == 0 {
			return f, nil
		}
		keys, err := from.keys()
		if err != nil {
			return f, err
		}
		f = Bootstrap{Generation: f.Generation + 1, Retired: f.Retired, FSID: s.cluster.Assignment.Fsid, Keys: keys, Port: cmp.Or(from.port, deploy.MonPort)}
		if from.storageNetwork && onStorage(s.nodes) {
			_, f.Addresses = f.addressed(s.cluster.Assignment.Mons, s.nodes)
		}
	}
	f.OSDs = slices.Clone(f.OSDs)
	f.Exists = f.Exists || s.survey != nil
	if on {
		spec := api.DefaultCephCluster(s.cluster.Spec)
		f.Replicas, f.FailureDomain = int(spec.Replicas), string(spec.FailureDomain)
		f.Class, f.Pools = string(spec.DeviceClass), f.classPools(s)
		f.Pools = f.dropped(s)
		f.Mons, f.Mgrs = f.monitors(s), s.cluster.Assignment.Mgrs
		if mons, addresses := f.addressed(f.Mons, s.nodes); len(f.Addresses) > 0 && len(mons) > 0 {
			f.Mons, f.Addresses = mons, addresses
		}
	}
	f.Dismantle = !on && (f.Dismantle || s.empty(f))
	f.Tables = f.tables(s, on, from)
	var err error
	if f.OSDs, err = f.osds(s, on, from); err != nil {
		return f, err
	}
	if !on && len(f.OSDs) == 0 && len(f.Tables) == 0 && (f.Dismantle || !f.Exists) {
		retired := append(slices.Clone(f.Retired), f.Incarnation())
		return Bootstrap{Generation: f.Generation, Retired: retired[max(0, len(retired)-maxRetired):]}, nil
	}
	return f, nil
}

// monitors returns the monitors' nodes in their order in the Bootstrap. Until there was
// a quorum, the bootstrap monitor stays the first: otherwise two nodes would found a
// cluster.
func (f Bootstrap) monitors(s observation) []api.NodeID {
	mons := s.cluster.Assignment.Mons
	if f.Exists || len(f.Mons) == 0 || !slices.Contains(mons, f.Mons[0]) {
		return mons
	}
	first := f.Mons[0]
	return append([]api.NodeID{first}, slices.DeleteFunc(slices.Clone(mons), func(m api.NodeID) bool { return m == first })...)
}

func (f Bootstrap) osds(s observation, on bool, from source) ([]OSD, error) {
	out := f.present(s, on)
	for _, id := range slices.Sorted(maps.Keys(s.disks)) {
		d := s.disks[id]
		_, member := s.nodes[string(d.Status.Node)]
		if !on || !member || d.Spec.Use != api.DiskCeph || d.Meta.DeletedAt != nil || f.OSD(api.DiskID(id)) != nil || !acceptable(d) {
			continue
		}
		db, ok := f.database(d)
		if !ok {
			continue
		}
		o := OSD{Disk: api.DiskID(id), Node: d.Status.Node, UUID: from.uuid(), Wipe: d.Spec.Wipe, Class: string(d.Spec.DeviceClass), DB: db}
		if s.cluster.Spec.EncryptDisks {
			var err error
			if o.Key, err = from.osdKey(o.UUID); err != nil {
				return nil, fmt.Errorf("create the key of disk %s: %w", d.Meta.Name, err)
			}
		}
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b OSD) int { return strings.Compare(string(a.Disk), string(b.Disk)) })
	return out, nil
}

// present returns the OSDs of f that stay. They keep their encryption.
func (f Bootstrap) present(s observation, on bool) []OSD {
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
		case o.Leaving && known: // the decision to remove it was reverted
			o.Leaving = false
		}
		o.Wipe = o.Wipe || wanted && !o.Taken && d.Spec.Wipe
		if wanted {
			o.Class = string(d.Spec.DeviceClass)
		}
		if o.Leaving && (s.survey != nil && !known || !f.Exists) && released(d, there) {
			continue
		}
		out = append(out, o)
	}
	return out
}

// acceptable reports whether the node is likely to accept the disk. The node checks
// again and makes the final decision.
func acceptable(d api.Disk) bool {
	return d.Status.State == api.DiskFree || d.Status.State == api.DiskInUse && d.Spec.Wipe
}

// released reports whether the node uses the disk no longer and has reported so since
// its release was requested.
func released(d api.Disk, there bool) bool {
	if !there {
		return true // its node was removed
	}
	st := d.Status
	return st.ObservedGeneration >= d.Meta.Generation && (st.State == api.DiskFree || st.State == api.DiskInUse || st.State == api.DiskFailed && st.Osd < 0)
}

// OSDOf returns the state of the OSD with that UUID as the monitors report it, or nil.
func OSDOf(c deploy.Cluster, uuid string) *deploy.OSDState {
	for i := range c.OSDs {
		if c.OSDs[i].UUID == uuid {
			return &c.OSDs[i]
		}
	}
	return nil
}
