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
	"github.com/basalt-gpu/basalt/installer/dev/failed"
	"github.com/basalt-gpu/basalt/installer/dev/layer"
	"github.com/basalt-gpu/basalt/installer/dev/patience"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/cephtest"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

// cluster that all tests have in common; starting one takes most of the time.
// nil: there is none, and why.
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

// pools of tests that run at the same time; the others have cephtest.Pool.
var pools = map[string]string{"TestShared": "basalt-2", "TestSnapshots": "basalt-3", "TestKilledAnywhere": "basalt-4"}

func poolOf(t *testing.T) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return cmp.Or(pools[name], cephtest.Pool)
}

// long tests of the suites run hundreds of commands each: make test-long.
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

// empty gives a driver on a pool with nothing in it, and sees that the test
// leaves nothing that the driver does not know.
func empty(t *testing.T) *Driver {
	need(t)
	return emptied(t, options(t, "node-a"))
}

func emptied(t *testing.T, o Options) *Driver {
	d := openDriver(t, o)
	t.Cleanup(func() { tidy(t, d) })
	return d
}

// tidy deletes everything, in what order it goes, and fails when that leaves
// something behind.
func tidy(t *testing.T, d *Driver) {
	ctx, cancel := patience.Context(context.Background(), 5*time.Minute)
	defer cancel()
	for round := 0; ; round++ {
		vs, err := d.Volumes(ctx)
		if err != nil {
			t.Fatalf("tidying: %v", err)
		}
		if len(vs) == 0 {
			break
		}
		for _, v := range vs {
			snaps, err := d.Snapshots(ctx, v.ID)
			for _, s := range snaps {
				err = d.DeleteSnapshot(ctx, v.ID, s.ID, sds.Access{})
			}
			if err == nil {
				err = d.DeleteVolume(ctx, v.ID)
			}
			if err != nil && round > 10 {
				t.Fatalf("tidying: %v", err)
			}
		}
	}
	is, err := d.Images(ctx)
	if err != nil {
		t.Fatalf("tidying: %v", err)
	}
	for _, i := range is {
		if err := d.DeleteImage(ctx, i.ID); err != nil {
			t.Errorf("tidying: %v", err)
		}
	}
	// What was in use for a moment when it was removed is swept.
	if disks, err := d.disks(ctx); err == nil && len(disks) > 0 {
		if err := d.Sweep(ctx); err != nil {
			t.Errorf("tidying: %v", err)
		}
	}
	disks, err := d.disks(ctx)
	trash, trashErr := d.trash(ctx)
	if err := errors.Join(err, trashErr); err != nil || len(disks)+len(trash) != 0 {
		t.Errorf("left behind: %v, in the trash %v, %v", disks, trash, err)
	}
}

// forgotten sees that nothing is left of all that a test had in its pool when
// that is long ago. It is called before empty.
func forgotten(t *testing.T) {
	t.Cleanup(func() {
		ctx, cancel := patience.Context(context.Background(), 5*time.Minute)
		defer cancel()
		o := options(t, "node-a")
		later := openDriverQuietly(t, o)
		later.opt.Now = func() time.Time { return time.Now().Add(abandoned + time.Hour) }
		if err := later.forget(ctx); err != nil {
			t.Errorf("forgetting: %v", err)
		}
		marks, err := later.rados(ctx, nil, "listomapkeys", deleted)
		if len(marks) > 0 || err != nil && !command.Is(err, syscall.ENOENT) {
			t.Errorf("not forgotten: %s, %v", marks, err)
		}
		raw, err := later.rados(ctx, nil, "ls")
		for _, object := range strings.Fields(string(raw)) {
			// Data of deleted snapshots is trimmed later, by the OSDs.
			if strings.HasPrefix(object, "basalt.") && object != deleted || strings.HasPrefix(object, "rbd_header") {
				t.Errorf("left behind: %s", object)
			}
		}
		if err != nil {
			t.Errorf("forgetting: %v", err)
		}
	})
}

func TestConformance(t *testing.T) {
	need(t)
	t.Parallel()
	forgotten(t)
	drivertest.Run(t, func(t *testing.T) sds.Driver { return empty(t) })
}

func TestShared(t *testing.T) {
	need(t)
	t.Parallel()
	forgotten(t)
	drivertest.RunShared(t, func(t *testing.T) (a, b sds.Driver) {
		o := options(t, "node-a")
		// The other node's commands have a volume open for a moment, which is
		// long on a machine that is busy.
		o.Patience = time.Minute
		d := emptied(t, o)
		o.Node, o.Staging = "node-b", t.TempDir()
		return d, openDriver(t, o)
	}, long()...)
}

func TestSnapshots(t *testing.T) {
	need(t)
	t.Parallel()
	forgotten(t)
	drivertest.RunSnapshots(t, func(t *testing.T) drivertest.Bench { return bench(t, empty(t)) }, long()...)
}
