package ceph

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// loop attaches a loop device to a sparse file, as a disk whose partitions the kernel
// knows.
func loop(t *testing.T, bytes int64) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("host: loop devices need root")
	}
	path := filepath.Join(cluster.Dir, fmt.Sprintf("table%d", time.Now().UnixNano()))
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, bytes); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", "--partscan", path).CombinedOutput()
	if err != nil {
		t.Skipf("host: no loop devices: %v: %s", err, out)
	}
	dev := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", dev).CombinedOutput(); err != nil {
			t.Errorf("detach %s: %v: %s", dev, err, out)
		}
	})
	return dev
}

// TestDeviceClassAndDB checks that an OSD gets its device class and stores its database
// on another disk, that a pool of the class stores its data on that OSD only, that the
// class can be changed, and that all of it can be removed.
func TestDeviceClassAndDB(t *testing.T) {
	need(t)
	ctx := within(t)
	const (
		table = "dddddddd-0000-4000-8000-000000000000"
		pool  = "basalt-nvme"
	)
	dev := loop(t, 3<<30)
	in := &cluster.Intent
	before := *in
	in.Tables = []deploy.Table{{Node: cluster.Node.ID, Path: dev, UUID: table}}
	disk, err := cluster.AddDisk(fmt.Sprintf("disk%d", time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	added := &in.Disks[len(in.Disks)-1]
	added.Class, added.DB = "nvme", &deploy.DB{Table: table, Bytes: 1 << 30}
	in.Pools = append(in.Pools[:len(in.Pools):len(in.Pools)], deploy.Pool{Name: pool, Replicas: 1, FailureDomain: "osd", Class: "nvme", PGs: 1})
	var survey deploy.Survey
	until(ctx, t, "the pool is created, when the OSD has reported its class", func() (bool, error) {
		if err := cluster.Settle(ctx); err != nil {
			return false, err
		}
		survey, err = cluster.Node.Survey(ctx)
		return survey.Usage[pool].FreeBytes > 0, err
	})
	osd := osdOf(t, survey, disk.UUID)
	if osd.Class != "nvme" {
		t.Errorf("device class of the OSD = %q, want nvme", osd.Class)
	}
	var meta struct {
		DedicatedDB string `json:"bluefs_dedicated_db"`
		DBPath      string `json:"bluefs_db_partition_path"`
	}
	ask(t, &meta, "osd", "metadata", fmt.Sprint(osd.ID))
	if meta.DedicatedDB != "1" || !strings.HasPrefix(meta.DBPath, dev) {
		t.Errorf("metadata of the OSD = %+v, want a dedicated database on a partition of %s", meta, dev)
	}
	if u, ok := survey.Usage[pool]; !ok || u.FreeBytes <= 0 || u.FreeBytes > 5<<30 {
		t.Errorf("usage of %s = %+v, want the free space of one disk", pool, u)
	}
	acting := func() []int {
		var m struct{ Acting []int }
		ask(t, &m, "osd", "map", pool, "object")
		return m.Acting
	}
	until(ctx, t, "the pool stores its data on the OSD of its class", func() (bool, error) {
		got := acting()
		return len(got) == 1 && got[0] == osd.ID, nil
	})

	// The disk gets another class: the pool has no OSD left, and is deleted.
	added.Class = "ssd"
	in.Pools, in.Drop = before.Pools, []string{pool}
	if err := cluster.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if survey, err = cluster.Node.Survey(ctx); err != nil {
		t.Fatal(err)
	}
	if got := osdOf(t, survey, disk.UUID).Class; got != "ssd" {
		t.Errorf("device class after the change = %q, want ssd", got)
	}
	for _, p := range survey.Cluster.Pools {
		if p.Name == pool {
			t.Errorf("pool %s exists, want it deleted", pool)
		}
	}

	added.Leave, in.Tables[0].Leave = true, true
	until(ctx, t, "the disk and its database are released", func() (bool, error) {
		r, err := cluster.Node.Round(ctx, *in, cluster.Keys, true)
		if err != nil {
			return false, err
		}
		d, tables := r.Seen.Disks[len(r.Seen.Disks)-1], r.Seen.Tables
		return d.Content == deploy.Blank && !d.Made && len(tables) == 1 && tables[0].Content == deploy.Blank, nil
	})
	in.Disks, in.Tables, in.Drop = before.Disks, nil, nil
	if err := cluster.WaitHealthy(ctx); err != nil {
		t.Errorf("wait for a healthy cluster: %v", err)
	}
}

func osdOf(t *testing.T, s deploy.Survey, uuid string) deploy.OSDState {
	t.Helper()
	for _, o := range s.Cluster.OSDs {
		if o.UUID == uuid {
			return o
		}
	}
	t.Fatalf("OSDs = %+v, want one with UUID %s", s.Cluster.OSDs, uuid)
	return deploy.OSDState{}
}

func ask(t *testing.T, into any, args ...string) {
	t.Helper()
	raw, err := cluster.Ceph(t.Context(), append(args, "--format", "json")...)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatalf("ceph %s: %v", strings.Join(args, " "), err)
	}
}
