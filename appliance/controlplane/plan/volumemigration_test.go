package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// alone returns three nodes of which n2 has volume data, which no instance has, in its own
// pool.
func alone(t *testing.T) *State {
	t.Helper()
	s := three().data("data", api.PoolLocal, "n2", "")
	s.ready("data", 2*gib)
	settle(t, s)
	return s
}

// ready makes a volume one that was created, with its size and as much data.
func (s *State) ready(id string, bytes int64) {
	v := s.Volumes[id]
	v.Spec.SizeBytes, v.Status.SizeBytes, v.Status.AllocatedBytes, v.Status.Phase = bytes, bytes, bytes, api.VolumeReady
	s.Volumes[id] = v
}

func (s *State) migrateVolume(target api.NodeID) {
	s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Volume: "data", Target: target, Offline: true}}
}

func (s *State) drain(id string) {
	n := s.Nodes[id]
	n.Spec.Drain, n.Meta.Generation = true, 5
	s.Nodes[id] = n
}

// clone makes a volume on n2 a clone of a snapshot of another one.
func (s *State) clone(id, of string) {
	s.data(id, api.PoolLocal, "n2", "")
	s.ready(id, gib)
	snap := "snap-" + id
	s.Snapshots[snap] = api.Snapshot{Meta: api.Meta{ID: snap}, Spec: api.SnapshotSpec{Volume: api.VolumeID(of)}, Assignment: api.SnapshotAssignment{Node: "n2", Pool: api.PoolLocal}}
	v := s.Volumes[id]
	v.Spec.Snapshot = api.SnapshotID(snap)
	s.Volumes[id] = v
}

// A volume is assigned to the target when the source has reported that the target has it,
// and only then.
func TestVolumeIsHandedOver(t *testing.T) {
	s := alone(t)
	s.migrateVolume("n3")
	settle(t, s)
	m := s.Migrations["m"].Assignment
	if m.Phase != api.MigrationPreparing || m.Source != "n2" || m.Target != "n3" || !slices.Equal(m.Volumes, []api.VolumeID{"data"}) {
		t.Fatalf("assignment of the migration = %+v, want data from n2 to n3", m)
	}
	s.reportMigration("m", api.MigrationCopying)
	settle(t, s)
	if v := s.Volumes["data"].Assignment; v.Node != "n2" {
		t.Fatalf("assignment of data while it is copied = %+v, want it on n2", v)
	}
	s.reportMigration("m", api.MigrationSucceeded)
	settle(t, s)
	if v := s.Volumes["data"].Assignment; v.Node != "n3" || v.Pool != api.PoolLocal || v.Epoch != 4 {
		t.Errorf("assignment of data = %+v, want node n3, pool local and epoch 4", v)
	}
	if p := s.Migrations["m"].Assignment.Phase; p != api.MigrationSucceeded {
		t.Errorf("phase of the migration = %s, want %s", p, api.MigrationSucceeded)
	}
}

// What happens during the copy leaves the volume where it was.
func TestVolumeStays(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *State)
		phase  api.MigrationPhase
		reason string
	}{
		"attached":                {func(s *State) { s.requestInstance("data", "a") }, api.MigrationFailed, "is attached to an instance"},
		"attached, and copied":    {func(s *State) { s.attached("data", "a"); s.reportMigration("m", api.MigrationSucceeded) }, api.MigrationFailed, "is attached to an instance"},
		"deleted":                 {func(s *State) { v := s.Volumes["data"]; v.Meta.DeletedAt = &now; s.Volumes["data"] = v }, api.MigrationFailed, "does not exist any more"},
		"the source is lost":      {func(s *State) { s.fence("n2") }, api.MigrationFailed, "node n2 was lost"},
		"the target is lost":      {func(s *State) { s.fence("n3") }, api.MigrationFailed, "node n3 was lost"},
		"the source failed":       {func(s *State) { s.reportMigration("m", api.MigrationFailed) }, api.MigrationFailed, ""},
		"aborted by the operator": {func(s *State) { s.reportMigration("m", api.MigrationAborted) }, api.MigrationAborted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := alone(t)
			s.migrateVolume("n3")
			settle(t, s)
			s.reportMigration("m", api.MigrationCopying)
			c.change(s)
			settle(t, s)
			if v := s.Volumes["data"].Assignment; v.Node != "n2" {
				t.Errorf("assignment of data = %+v, want n2", v)
			}
			if m := s.Migrations["m"].Assignment; m.Phase != c.phase || !strings.Contains(m.Reason, c.reason) {
				t.Errorf("assignment of the migration = %+v, want phase %s and reason %q", m, c.phase, c.reason)
			}
		})
	}
}

// The source may be lost once it has reported that the target has the volume.
func TestVolumeOfLostSourceIsHandedOver(t *testing.T) {
	s := alone(t)
	s.migrateVolume("n3")
	settle(t, s)
	s.reportMigration("m", api.MigrationSucceeded)
	s.fence("n2")
	settle(t, s)
	if v := s.Volumes["data"].Assignment; v.Node != "n3" {
		t.Errorf("assignment of data = %+v, want n3", v)
	}
}

// TestVolumeMigrationTarget checks what is predicted about the migration of a volume.
func TestVolumeMigrationTarget(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *State)
		target api.NodeID
		want   api.NodeID
		code   api.Code
		text   string
	}{
		"any":           {nil, "", "n1", "", ""},
		"the requested": {nil, "n3", "n3", "", ""},
		"its own":       {nil, "n2", "", api.CodeNoCapacity, "no other node can store it"},
		"attached":      {func(s *State) { s.attached("data", "a") }, "", "", api.CodeState, "attached to an instance"},
		"shared": {func(s *State) { v := s.Volumes["data"]; v.Assignment.Pool = api.PoolShared; s.Volumes["data"] = v }, "", "",
			api.CodeState, "does not belong to a node"},
		"no room":      {func(s *State) { s.limitDisk("n1", gib); s.limitDisk("n3", gib) }, "", "", api.CodeNoCapacity, "n1: 2 GiB of local storage requested"},
		"no free room": {func(s *State) { s.limitDisk("n1", 90*gib); s.limitDisk("n3", 90*gib) }, "", "", api.CodeNoCapacity, "2 GiB of data, 1 GiB free"},
		"no such pool": {func(s *State) { v := s.Volumes["data"]; v.Assignment.Pool = "nvme"; s.Volumes["data"] = v }, "", "", api.CodeNoCapacity, "n1: has no storage pool nvme"},
		"a lost node":  {func(s *State) { s.fence("n2"); settle(t, s) }, "", "", api.CodeNoCapacity, "node n2 is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			s := alone(t)
			if c.change != nil {
				c.change(s)
			}
			got, err := VolumeMigrationTarget(s, s.Volumes["data"], api.MigrationSpec{Volume: "data", Target: c.target, Offline: true}, now)
			if got != c.want || api.CodeOf(err) != c.code && err != nil || (err != nil) != (c.code != "") || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("VolumeMigrationTarget() = %q, %v; want %q, code %q and %q", got, err, c.want, c.code, c.text)
			}
		})
	}
}

// The room of a copy is counted while it is made, and that of a clone with what it shares.
func TestVolumeCopiesCount(t *testing.T) {
	s := alone(t)
	s.limitDisk("n3", 90*gib)
	n := s.Nodes["n3"]
	n.Status.Pools[0].FreeBytes = 90 * gib
	s.Nodes["n3"] = n
	s.migrateVolume("n3")
	settle(t, s)
	if _, why := usage(s).OnDisk(s.Nodes["n3"], api.PoolLocal, 89*gib); why == "" {
		t.Error("n3 has room for 89 GiB beside a copy of 2 GiB, want the copy counted")
	}
	s.clone("c", "data")
	s.clone("d", "c")
	if got := dataOf(s, s.Volumes["d"]); got != 4*gib {
		t.Errorf("dataOf a clone of a clone = %d, want 4 GiB", got)
	}
}

// A drained node is emptied of volumes without an instance, clones first, and its note
// names those that cannot leave.
func TestDrainOfVolumes(t *testing.T) {
	note := func(s *State) string { return s.Nodes["n2"].Assignment.Reason }
	s := alone(t)
	s.clone("c", "data")
	s.drain("n2")
	settle(t, s)
	const first, second = "mig-c-3-0-5", "mig-data-3-0-5"
	if m, ok := s.Migrations[first]; !ok || m.Spec.Volume != "c" || len(s.Migrations) != 1 {
		t.Fatalf("migrations = %+v, want %s of the clone only", s.Migrations, first)
	}
	if r := note(s); !strings.Contains(r, "2 to move") || !strings.Contains(r, "volume c: is being migrated") || !strings.Contains(r, "volume data: waits until volume c, a clone of volume data, has left") {
		t.Errorf("note of n2 = %q, want both volumes", r)
	}
	s.reportMigration(first, api.MigrationSucceeded)
	settle(t, s)
	if m, ok := s.Migrations[second]; !ok || m.Spec.Volume != "data" {
		t.Fatalf("migrations = %+v, want %s", s.Migrations, second)
	}
	s.reportMigration(second, api.MigrationSucceeded)
	settle(t, s)
	if a := s.Nodes["n2"].Assignment; a.State != api.NodeDrained {
		t.Errorf("assignment of n2 = %+v, want it drained", a)
	}

	for name, c := range map[string]struct {
		change func(s *State)
		want   string
	}{
		"no room": {func(s *State) { s.limitDisk("n1", gib); s.limitDisk("n3", gib) }, "volume data: no other node can store it: n1: 2 GiB of local storage requested"},
		"no pool": {func(s *State) { v := s.Volumes["data"]; v.Assignment.Pool = "nvme"; s.Volumes["data"] = v }, "has no storage pool nvme: make room for it, or back it up and delete it"},
		"an instance elsewhere": {func(s *State) { s.instance("b", "flv-1", 0, 0); s.requestInstance("data", "b"); s.spec("b", nothing) },
			"volume data: belongs to instance b, which is not on this node: detach it"},
		"not ready": {func(s *State) {
			v := s.Volumes["data"]
			v.Status.Phase, v.Status.LastError = api.VolumeFailed, "no key"
			s.Volumes["data"] = v
		},
			"volume data: the volume is not ready: no key"},
	} {
		t.Run(name, func(t *testing.T) {
			s := alone(t)
			c.change(s)
			s.drain("n2")
			for _, id := range []string{"n1", "n3"} { // instances have no room, and stay without a node
				if n := s.Nodes[id]; name == "an instance elsewhere" {
					n.Spec.Unschedulable = true
					s.Nodes[id] = n
				}
			}
			settle(t, s)
			if a := s.Nodes["n2"].Assignment; a.State != api.NodeDraining || !strings.Contains(a.Reason, c.want) {
				t.Errorf("assignment of n2 = %+v, want it draining with %q", a, c.want)
			}
			if len(s.Migrations) > 0 {
				t.Errorf("migrations = %+v, want none", s.Migrations)
			}
		})
	}

	s = alone(t)
	s.limitDisk("n1", gib)
	s.limitDisk("n3", gib)
	s.drain("n2")
	settle(t, s)
	n := s.Nodes["n3"]
	n.Status.Pools = []api.StoragePool{{Name: api.PoolLocal}}
	s.Nodes["n3"] = n
	settle(t, s)
	if m := s.Migrations[second].Assignment; m.Target != "n3" {
		t.Errorf("assignment of the migration after n3 has got room = %+v, want target n3", m)
	}

	s = alone(t)
	s.Upgrades = map[string]api.Upgrade{"u": {Status: api.UpgradeStatus{Nodes: []api.UpgradeNode{{Node: "n2", Drains: true}}}}}
	s.drain("n2")
	settle(t, s)
	if a := s.Nodes["n2"].Assignment; len(s.Migrations) > 0 || a.State != api.NodeDrained {
		t.Errorf("drained by an upgrade: migrations %+v, assignment %+v; want the volume left and the node drained", s.Migrations, a)
	}
}

func nothing(*api.InstanceSpec) {}

// A stopped instance leaves after the clones of its volumes, unless they leave with it.
func TestClonesLeaveFirst(t *testing.T) {
	s := atRest(t, 0)
	s.ready("data", gib)
	s.clone("c", "data")
	s.drain("n2")
	settle(t, s)
	if r := s.Nodes["n2"].Assignment.Reason; !strings.Contains(r, "a: waits until volume c, a clone of volume data, has left") || len(s.Migrations) != 1 {
		t.Fatalf("note of n2 = %q, migrations %+v; want the clone to leave first", r, s.Migrations)
	}
	s = atRest(t, 0)
	s.ready("data", gib)
	s.clone("c", "data")
	s.requestInstance("c", "a")
	s.attached("c", "a")
	s.drain("n2")
	settle(t, s)
	if m := s.Migrations["mig-a-0-5"].Assignment; !slices.Equal(m.Volumes, []api.VolumeID{"vol-a", "c", "data"}) {
		t.Errorf("assignment of the migration = %+v, want vol-a, c and data", m)
	}
}
