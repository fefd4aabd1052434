package ceph

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

var errKilled = errors.New("killed")

// TestKilledAnywhere kills the process before each command in turn of each
// operation that changes something; in the long tests also before each
// read-only one, which leaves the same in the pool. The node's next process
// sweeps, repeats the operation, and finds everything as it should be. A line
// that was just sent to a log arrives after the sweep.
func TestKilledAnywhere(t *testing.T) {
	need(t)
	t.Parallel()
	wantNoLogs(t)
	d := empty(t)
	ctx := t.Context()
	key := &sds.Encryption{Passphrase: []byte("0f2ad6b1c9e84c3f9d6ba1e2f3041526")}
	space, err := d.Space(ctx)
	if err != nil {
		t.Fatal(err)
	}
	only := func(_ any, err error) error { return err }
	lates := 0
	for _, v := range []struct {
		name string
		do   func(d *Driver) error
	}{
		{"import", func(d *Driver) error {
			return only(d.ImportImage(ctx, sds.ImageImport{ID: "img-1", Format: sds.QCOW2, Content: bytes.NewReader(drivertest.QCOW2(2 * mib))}))
		}},
		{"create", func(d *Driver) error {
			return only(d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: 4 * mib}))
		}},
		{"create encrypted", func(d *Driver) error {
			return only(d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-3", SizeBytes: mib, Encryption: key}))
		}},
		{"make anew", func(d *Driver) error {
			return only(d.RecreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: 4 * mib, Epoch: 1}))
		}},
		{"snapshot", func(d *Driver) error {
			return only(d.CreateSnapshot(ctx, sds.SnapshotCreate{ID: "snap-1", Volume: "vol-1"}, sds.Access{}))
		}},
		{"clone", func(d *Driver) error {
			return only(d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-2", Snapshot: sds.SnapshotRef{Volume: "vol-1", ID: "snap-1"}, SizeBytes: 8 * mib}))
		}},
		{"resize", func(d *Driver) error { return only(d.ResizeVolume(ctx, "vol-1", 6*mib, sds.Access{})) }},
		{"claim", func(d *Driver) error { return d.ClaimVolume(ctx, "vol-1", sds.Owner{Node: "node-a", Epoch: 1}) }},
		{"take over", func(d *Driver) error { return d.ClaimVolume(ctx, "vol-1", sds.Owner{Node: "node-b", Epoch: 2}) }},
		{"roll back", func(d *Driver) error { return only(d.RollbackVolume(ctx, "vol-1", "snap-1", 1, sds.Access{})) }},
		{"delete the clone", func(d *Driver) error { return d.DeleteVolume(ctx, "vol-2") }},
		{"delete the snapshot", func(d *Driver) error { return d.DeleteSnapshot(ctx, "vol-1", "snap-1", sds.Access{}) }},
		{"delete", func(d *Driver) error { return errors.Join(d.DeleteVolume(ctx, "vol-1"), d.DeleteVolume(ctx, "vol-3")) }},
		{"delete the image", func(d *Driver) error { return d.DeleteImage(ctx, "img-1") }},
	} {
		steps := 0
		for ; ; steps++ {
			dying := openDriverQuietly(t, d.opt)
			dying.session = nodeMark(d.opt.Node) + "dying"
			dying.space, dying.asked = space, d.opt.Now() // so that the operation does not query it
			left := steps
			var late []byte // the line that arrives late
			var log []string
			dying.before = func(program string, stdin io.Reader, args []string) (err error) {
				if left < 0 {
					return errKilled // the process is dead
				}
				if !layer.Long() && command.ReadOnly(program, args, "") {
					return nil
				}
				if left--; left >= 0 {
					return nil
				}
				if slices.Contains(args, "append") {
					log = args
					if late, err = io.ReadAll(stdin); err != nil {
						t.Errorf("read the line for the log: %v", err)
					}
				}
				return errKilled
			}
			err := v.do(dying)
			if left >= 0 { // the operation was not killed
				if err != nil {
					t.Fatalf("%s without a kill: %v", v.name, err)
				}
				break
			}
			if !errors.Is(err, errKilled) && err != nil {
				t.Fatalf("%s, killed at step %d: %v, want the error of the kill", v.name, steps, err)
			}
			if late != nil {
				next := openDriver(t, d.opt) // sweeps
				if _, err := next.rados(ctx, bytes.NewReader(late), log[2:]...); err != nil {
					t.Fatal(err)
				}
				lates++
				name := strings.Split(log[3], ".")
				whole(t, next, kind(name[1]), name[2])
			}
		}
		if err := v.do(openDriver(t, d.opt)); err != nil {
			t.Errorf("%s, repeated after a kill: %v", v.name, err)
		}
		t.Logf("%s: killed at each of %d steps", v.name, steps)
		if v.name != "roll back" {
			continue
		}
		got, err := d.Volume(ctx, "vol-1")
		if err != nil || got.SizeBytes != 6*mib || got.Rollbacks != 1 || got.Epoch != 1 {
			t.Errorf("Volume of vol-1 = %+v, %v, want %d bytes, one rollback and epoch 1", got, err, 6*mib)
		}
		if o, err := d.Owner(ctx, "vol-1"); err != nil || o != (sds.Owner{Node: "node-b", Epoch: 2}) {
			t.Errorf("Owner of vol-1 = %+v, %v, want node-b with epoch 2", o, err)
		}
		all, err := d.Volumes(ctx)
		if err != nil || len(all) != 3 || all[0].ID != api.VolumeID("vol-1") {
			t.Errorf("Volumes = %+v, %v, want three, vol-1 first", all, err)
		}
	}
	if lates < 10 {
		t.Errorf("%d lines arrived late, want at least 10", lates)
	}
	openDriver(t, d.opt) // sweeps
	if left, err := d.disks(ctx); err != nil || len(left) != 0 {
		t.Errorf("disks at the end = %v, %v, want none", left, err)
	}
}

// whole checks that the disks named in a log exist.
func whole(t *testing.T, d *Driver, k kind, id string) {
	t.Helper()
	s, err := d.read(t.Context(), k, id)
	if err != nil || s.made == nil {
		if err != nil {
			t.Errorf("read the log of %s %s: %v", k, id, err)
		}
		return
	}
	there, err := d.disks(t.Context())
	for _, disk := range s.made.disks() {
		if err != nil || !slices.Contains(there, disk) {
			t.Errorf("%s %s names disk %s, which is not among %v, %v", k, id, disk, there, err)
		}
	}
}
