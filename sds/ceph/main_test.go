package ceph

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/cephtest"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

// cluster is shared by all tests, because starting one takes most of the time;
// if it is nil, without is the reason.
var (
	cluster *cephtest.Cluster
	without string
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	switch missing := cephtest.Missing(); {
	case testing.Short():
		without = "a Ceph cluster takes long"
		return m.Run()
	case missing != "":
		without = "host: " + missing + " is not installed: installer/dev/setup.sh installs it"
		return m.Run()
	}
	ctx, cancel := patience.Context(context.Background(), 8*time.Minute)
	defer cancel()
	began := time.Now()
	var err error
	cluster, err = cephtest.Start(ctx, slices.Sorted(maps.Values(pools))...)
	defer func() { _ = cluster.Close() }() // also of one that has not started
	if err != nil {
		fmt.Println("the cluster does not start:", err)
		for _, log := range []string{"ceph-mon", "ceph-mgr", "ceph-osd-0"} {
			raw, _ := os.ReadFile(filepath.Join(cluster.Dir, log+".log"))
			fmt.Printf("%s: …%s\n", log, raw[max(0, len(raw)-2000):])
		}
		return 1
	}
	fmt.Printf("Ceph is healthy after %v\n", time.Since(began).Round(time.Second))
	return m.Run()
}

// pools of tests that run in parallel; the others use cephtest.Pool.
var pools = map[string]string{"TestShared": "basalt-2", "TestSnapshots": "basalt-3", "TestKilledAnywhere": "basalt-4"}

func poolOf(t *testing.T) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return cmp.Or(pools[name], cephtest.Pool)
}

// long returns the tests of the suites that run hundreds of commands each:
// make test-long.
func long() []string {
	if layer.Long() {
		return nil
	}
	return []string{"ManySnapshots", "DeleteInAnyOrder", "SameVolumeAtOnce"}
}

func need(t *testing.T) {
	t.Helper()
	if without != "" {
		t.Skip(without)
	}
	failed.Keep(t, cluster.Explain)
}

func options(t *testing.T, node api.NodeID) Options {
	return Options{
		FSID: cluster.Intent.FSID, Conf: cluster.Node.Conf(), User: deploy.Client, Pool: poolOf(t), Monitors: cluster.Intent.Monitors(),
		Node: node, Staging: t.TempDir(), Limits: drivertest.Limits, Timeout: 3 * time.Minute,
	}
}

func openDriver(t *testing.T, o Options) *Driver {
	t.Helper()
	d, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// empty returns a driver of an empty pool, and checks that the test leaves
// nothing that the driver does not know.
func empty(t *testing.T) *Driver {
	need(t)
	return emptied(t, options(t, "node-a"))
}

func emptied(t *testing.T, o Options) *Driver {
	d := openDriver(t, o)
	t.Cleanup(func() { tidy(t, d) })
	return d
}

// tidied returns a driver of a pool that a suite's tests share, each of which
// finds it empty and leaves it empty.
func tidied(t *testing.T, d *Driver) *Driver {
	need(t)
	t.Cleanup(func() { tidy(t, d) })
	return d
}

// tidy deletes everything and fails if something remains.
func tidy(t *testing.T, d *Driver) {
	ctx, cancel := patience.Context(context.Background(), 5*time.Minute)
	defer cancel()
	disks, err := d.disks(ctx)
	for range 10 { // objects with clones can only be deleted after the clones
		if len(disks) == 0 {
			break
		}
		if err = deleteAll(ctx, d, disks); err == nil {
			if disks, err = d.disks(ctx); err == nil && len(disks) > 0 {
				// Disks that were in use for a moment when they were removed are swept.
				err = d.Sweep(ctx)
			}
		}
		var listErr error
		disks, listErr = d.disks(ctx)
		err = errors.Join(err, listErr)
	}
	trash, trashErr := d.trash(ctx)
	if err := errors.Join(err, trashErr); err != nil || len(disks)+len(trash) != 0 {
		t.Errorf("disks left behind: %v, in the trash %v, %v, want none", disks, trash, err)
	}
}

// deleteAll deletes the volumes and images of the disks.
func deleteAll(ctx context.Context, d *Driver, disks []string) error {
	all := map[kind]map[string]bool{volumes: {}, images: {}}
	for _, disk := range disks {
		if k, id, _, ok := ownerOf(disk); ok {
			all[k][id] = true
		}
	}
	var errs []error
	for id := range all[volumes] {
		snaps, err := d.Snapshots(ctx, api.VolumeID(id))
		if api.CodeOf(err) != api.CodeNotFound {
			errs = append(errs, err)
		}
		for _, s := range snaps {
			errs = append(errs, d.DeleteSnapshot(ctx, s.Volume, s.ID, sds.Access{}))
		}
		errs = append(errs, d.DeleteVolume(ctx, api.VolumeID(id)))
	}
	for id := range all[images] {
		errs = append(errs, d.DeleteImage(ctx, api.ImageID(id)))
	}
	return errors.Join(errs...)
}

// wantNoLogs checks that nothing remains of a test's objects in its pool after
// a long time. Call it before empty.
func wantNoLogs(t *testing.T) {
	t.Cleanup(func() {
		ctx, cancel := patience.Context(context.Background(), 5*time.Minute)
		defer cancel()
		o := options(t, "node-a")
		later := openDriverQuietly(t, o)
		later.opt.Now = func() time.Time { return time.Now().Add(abandoned + time.Hour) }
		if err := later.removeOldLogs(ctx); err != nil {
			t.Errorf("forget: %v", err)
		}
		marks, err := later.rados(ctx, nil, "listomapkeys", deleted)
		if len(marks) > 0 || err != nil && !command.Is(err, syscall.ENOENT) {
			t.Errorf("marks of deleted logs = %s, %v, want none", marks, err)
		}
		raw, err := later.rados(ctx, nil, "ls")
		for _, object := range strings.Fields(string(raw)) {
			// The OSDs trim the data of deleted snapshots later.
			if strings.HasPrefix(object, "basalt.") && object != deleted || strings.HasPrefix(object, "rbd_header") {
				t.Errorf("object left behind: %s, want none", object)
			}
		}
		if err != nil {
			t.Errorf("list the objects: %v", err)
		}
	})
}

func TestConformance(t *testing.T) {
	need(t)
	t.Parallel()
	wantNoLogs(t)
	d := empty(t)
	drivertest.Run(t, func(t *testing.T) sds.Driver { return tidied(t, d) })
}

func TestShared(t *testing.T) {
	need(t)
	t.Parallel()
	wantNoLogs(t)
	o := options(t, "node-a")
	// The other node's commands have a volume open for a moment, which is long on
	// a busy machine.
	o.Patience = time.Minute
	a := emptied(t, o)
	o.Node, o.Staging = "node-b", t.TempDir()
	b := openDriver(t, o)
	drivertest.RunShared(t, func(t *testing.T) (sds.Driver, sds.Driver) { return tidied(t, a), b }, long()...)
}

func TestSnapshots(t *testing.T) {
	need(t)
	t.Parallel()
	wantNoLogs(t)
	d := empty(t)
	drivertest.RunSnapshots(t, func(t *testing.T) drivertest.Bench { return bench(t, tidied(t, d)) }, long()...)
}
