package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// atRest returns three nodes with the stopped instance a on n2, whose root volume, and
// volume data, are in that node's own pool.
func atRest(t *testing.T, vram int64) *State {
	t.Helper()
	s := three().instance("a", "flv-1", vram, 0).spec("a", func(i *api.InstanceSpec) { i.StoragePool = api.PoolLocal })
	if vram > 0 {
		for _, n := range []string{"n1", "n2", "n3"} {
			s.gpu("gpu-"+n, api.NodeID(n), 4*gib)
		}
	}
	s.on(t, "n2")
	s.data("data", api.PoolLocal, "n2", "a").attached("data", "a")
	in := s.Instances["a"]
	in.Status.Phase = api.InstanceStopped
	s.Instances["a"] = in
	settle(t, s)
	return s
}

func (s *State) migrate(target api.NodeID) {
	s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a", Target: target, Offline: true}}
}

// A stopped instance and the volumes that were copied are assigned to the target in one
// batch, when the source has reported that the target has them.
func TestStoppedInstanceIsHandedOver(t *testing.T) {
	s := atRest(t, gib)
	s.migrate("n3")
	settle(t, s)
	a, m := s.Instances["a"].Assignment, s.Migrations["m"].Assignment
	if m.Phase != api.MigrationPreparing || m.Source != "n2" || m.Target != "n3" || !slices.Equal(m.Volumes, []api.VolumeID{"vol-a", "data"}) {
		t.Fatalf("assignment of the migration = %+v, want vol-a and data from n2 to n3", m)
	}
	if a.Node != "n2" || a.Gpu != "gpu-n2" || a.MigrateTo != "n3" || a.MigrateGpu != "gpu-n3" {
		t.Fatalf("assignment of a = %+v, want it on n2 and gpu-n2, to n3 and gpu-n3", a)
	}
	s.reportMigration("m", api.MigrationCopying)
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "n2" {
		t.Fatalf("assignment of a while it is copied = %+v, want it on n2", a)
	}
	s.reportMigration("m", api.MigrationSucceeded)
	batch := Groups(next(t, s, now))[0]
	if len(batch) != 3 || batch[2].Kind != api.KindInstance {
		t.Fatalf("the batch has %d commands, want those of vol-a, data and a", len(batch))
	}
	settle(t, s)
	a = s.Instances["a"].Assignment
	if a.Node != "n3" || a.Epoch != 1 || a.Gpu != "gpu-n3" || a.MigrateTo != "" || a.MigrateGpu != "" {
		t.Errorf("assignment of a = %+v, want node n3, gpu-n3 and epoch 1", a)
	}
	for _, id := range m.Volumes {
		if v := s.Volumes[string(id)].Assignment; v.Node != "n3" || v.Pool != api.PoolLocal || v.Recreate != 0 {
			t.Errorf("assignment of %s = %+v, want node n3 and pool local", id, v)
		}
	}
	if p := s.Migrations["m"].Assignment.Phase; p != api.MigrationSucceeded {
		t.Errorf("phase of the migration = %s, want %s", p, api.MigrationSucceeded)
	}
}

// What happens during the copy leaves the instance where it was, at once: nobody has to
// report where it is.
func TestStoppedInstanceStays(t *testing.T) {
	for name, change := range map[string]func(s *State){
		"the target is lost": func(s *State) { s.fence("n3") },
		"the source failed":  func(s *State) { s.reportMigration("m", api.MigrationFailed) },
		"a volume was detached": func(s *State) {
			s.attached("data", "")
			s.reportMigration("m", api.MigrationSucceeded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := atRest(t, gib)
			s.migrate("n3")
			settle(t, s)
			s.reportMigration("m", api.MigrationCopying)
			change(s)
			settle(t, s)
			a := s.Instances["a"].Assignment
			if a.Node != "n2" || a.Epoch != 0 || a.MigrateTo != "" || a.MigrateGpu != "" || a.Gpu != "gpu-n2" {
				t.Errorf("assignment of a = %+v, want n2, gpu-n2 and epoch 0", a)
			}
			if v := s.Volumes["data"].Assignment; v.Node != "n2" {
				t.Errorf("assignment of data = %+v, want n2", v)
			}
			if m := s.Migrations["m"].Assignment; m.Phase != api.MigrationFailed || m.Reason == "" && name != "the source failed" {
				t.Errorf("assignment of the migration = %+v, want it failed with a reason", m)
			}
		})
	}
	t.Run("the source is lost", func(t *testing.T) {
		s := atRest(t, 0)
		s.migrate("n3")
		settle(t, s)
		s.reportMigration("m", api.MigrationCopying)
		s.fence("n2")
		settle(t, s)
		if a := s.Instances["a"].Assignment; a.Node != "n2" || a.MigrateTo != "" || !a.NodeLost {
			t.Errorf("assignment of a = %+v, want it to wait for n2", a)
		}
	})
}

// A target has a pool of the same name with room for all volumes, and the room is not
// given to others meanwhile.
func TestStoppedInstanceNeedsRoom(t *testing.T) {
	s := atRest(t, 0)
	v := s.Volumes["data"]
	v.Spec.SizeBytes, v.Status.SizeBytes = 20*gib, 20*gib
	s.Volumes["data"] = v
	for _, id := range []string{"n1", "n2", "n3"} {
		s.limitDisk(id, 15*gib)
	}
	s.migrate("")
	settle(t, s)
	if m := s.Migrations["m"].Assignment; m.Phase != api.MigrationFailed || !strings.Contains(m.Reason, "its volumes need room") {
		t.Fatalf("assignment of the migration = %+v, want it failed for want of room", m)
	}
	s.limitDisk("n3", 40*gib)
	s.migrate("")
	settle(t, s)
	if m := s.Migrations["m"].Assignment; m.Phase != api.MigrationPreparing || m.Target != "n3" {
		t.Fatalf("assignment of the migration = %+v, want target n3", m)
	}
	if _, why := usage(s).OnDisk(s.Nodes["n3"], api.PoolLocal, 21*gib); why == "" {
		t.Error("n3 has room for 21 GiB during the copy, want it counted")
	}
	s = atRest(t, 0)
	s.diskPool("n2", api.StoragePool{Name: "nvme", Disk: "disk-1"})
	v = s.Volumes["data"]
	v.Assignment.Pool = "nvme"
	s.Volumes["data"] = v
	s.migrate("n3")
	settle(t, s)
	if m := s.Migrations["m"].Assignment; !strings.Contains(m.Reason, "its volume data needs storage pool nvme, which the node does not have") {
		t.Errorf("assignment of the migration = %+v, want that n3 has no pool nvme", m)
	}
}

// A drained node is emptied of stopped instances too, except by an upgrade.
func TestDrainOfStoppedInstances(t *testing.T) {
	drain := func(s *State) {
		n := s.Nodes["n2"]
		n.Spec.Drain, n.Meta.Generation = true, 5
		s.Nodes["n2"] = n
	}
	s := atRest(t, 0)
	drain(s)
	settle(t, s)
	id := "mig-a-0-5"
	if m := s.Migrations[id]; !m.Spec.Offline || m.Assignment.Phase != api.MigrationPreparing {
		t.Fatalf("migrations = %+v, want %s of the stopped instance", s.Migrations, id)
	}
	s.reportMigration(id, api.MigrationSucceeded)
	settle(t, s)
	if n := s.Nodes["n2"].Assignment; n.State != api.NodeDrained {
		t.Errorf("assignment of n2 = %+v, want it drained", n)
	}

	s = atRest(t, 0)
	s.Upgrades = map[string]api.Upgrade{"u": {Status: api.UpgradeStatus{Nodes: []api.UpgradeNode{{Node: "n2", Drains: true}}}}}
	drain(s)
	settle(t, s)
	if n := s.Nodes["n2"].Assignment; len(s.Migrations) > 0 || !strings.Contains(n.Reason, "a: is stopped, and stays during the upgrade of its node") {
		t.Errorf("drained by an upgrade: migrations %+v, reason %q; want none", s.Migrations, n.Reason)
	}

	s = atRest(t, 0)
	drain(s)
	settle(t, s)
	s.reportMigration(id, api.MigrationFailed)
	m := s.Migrations[id]
	m.Status.LastError = "volume data is a clone"
	s.Migrations[id] = m
	settle(t, s)
	if n := s.Nodes["n2"].Assignment; n.State != api.NodeDraining || !strings.Contains(n.Reason, "a: was not migrated: volume data is a clone") {
		t.Errorf("assignment of n2 after a failed migration = %+v, want the reason", n)
	}
}
