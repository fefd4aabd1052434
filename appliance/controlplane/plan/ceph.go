package plan

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

const wantManagers = 2 // one active, one standby

// planCeph assigns Ceph's daemons: monitors run on the nodes that vote, so that the
// majorities of Ceph and the cluster are the same.
func planCeph(s *State, c api.CephCluster) []api.Command {
	a := c.Assignment
	if c.Meta.DeletedAt != nil || !c.Spec.Enabled && a.Fsid == "" {
		return nil
	}
	if a.Fsid == "" {
		a.Fsid = fsid(c.Meta.ID)
	}
	a.Mons = monitors(s, a.Mons)
	a.Mgrs = a.Mons[:min(wantManagers, len(a.Mons))]
	if a.Fsid == c.Assignment.Fsid && slices.Equal(a.Mons, c.Assignment.Mons) && slices.Equal(a.Mgrs, c.Assignment.Mgrs) {
		return nil
	}
	return assign(api.KindCephCluster, c.Meta, a)
}

// monitors follows the voters one change at a time: Ceph needs a majority of the
// monitors that it had.
func monitors(s *State, had []api.NodeID) []api.NodeID {
	var voters []api.NodeID
	for _, n := range objects.Sorted(s.Nodes) {
		if n.Meta.DeletedAt == nil && (n.Assignment.Voter || s.Health == nil && len(voters) < wantVoters) {
			voters = append(voters, api.NodeID(n.Meta.ID))
		}
	}
	if len(had) == 0 || len(voters) == 0 {
		return slices.Concat(had, voters)
	}
	for _, v := range voters {
		if !slices.Contains(had, v) {
			return sortedIDs(append(slices.Clone(had), v))
		}
	}
	for i, m := range had {
		if !slices.Contains(voters, m) {
			return slices.Delete(slices.Clone(had), i, i+1)
		}
	}
	return had
}

func sortedIDs(ids []api.NodeID) []api.NodeID {
	slices.Sort(ids)
	return ids
}

// fsid returns Ceph's ID of the cluster: a UUID derived from the object's ID.
func fsid(id string) string {
	h := sha256.Sum256([]byte("ceph " + id))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // version 8 and variant of RFC 9562
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// cephReady reports whether new volumes are stored in Ceph by default.
func cephReady(s *State) bool {
	for _, c := range s.Ceph {
		if c.Spec.Enabled && c.Status.Phase == api.CephReady {
			return true
		}
	}
	return false
}

// planDisk deletes disks of nodes that do not exist any more.
func planDisk(s *State, d api.Disk) []api.Command {
	if _, there := s.Nodes[string(d.Status.Node)]; there || d.Status.Node == "" || d.Meta.DeletedAt != nil {
		return nil
	}
	return []api.Command{{Op: api.OpDelete, Kind: api.KindDisk, ID: d.Meta.ID, Expect: d.Meta.Revision}}
}
