package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// RunSnapshots runs the suite for a driver with snapshots, clones and
// encryption, except the tests named in except; for open see Run.
func RunSnapshots(t *testing.T, open func(t *testing.T) Bench, except ...string) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Bench)
	}{
		{"Snapshots", testSnapshots}, {"DeleteInAnyOrder", testDeleteOrders}, {"Rollback", testRollback},
		{"RollbackRefused", testRollbackRefused}, {"ManySnapshots", testMany}, {"KeepsVolume", testKeepsVolume},
		{"Reading", testReading}, {"Fill", testFill},
		{"Clones", testClones}, {"ClonesRefused", testClonesRefused},
		{"Live", testLive}, {"LiveInUse", testLiveInUse}, {"LiveFails", testLiveFails}, {"LiveResize", testLiveResize},
		{"Encryption", testEncryption}, {"EncryptionRefused", testEncryptionRefused}, {"EncryptedImage", testEncryptedImage},
	} {
		if slices.Contains(except, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func testSnapshots(t *testing.T, b Bench) {
	ctx, d := t.Context(), b.Driver
	raw := Raw(2 * mib)
	clear(raw[4096:]) // areas read as zeros, except the boot sector in the first
	if _, err := d.ImportImage(ctx, sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(raw)}); err != nil {
		t.Fatal(err)
	}
	c := newCanvas(t, b, sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: 4 * mib})
	c.paint(0, 0x11)
	c.paint(1, 0x12)
	c.snap("snap-1", nil)
	c.paint(1, 0x21)
	c.snap("snap-2", nil)
	c.paint(2, 0x31)
	c.snap("snap-2", nil) // it exists: its content does not change
	c.kept["snap-2"] = picture{0x11, 0x21}
	c.check("after two snapshots", false)
	all, err := d.Snapshots(ctx, "vol-1")
	if err != nil || len(all) != 2 || all[0].ID != "snap-1" || all[1].ID != "snap-2" || all[1].CreatedAt.Before(all[0].CreatedAt) {
		t.Errorf("Snapshots = %+v, %v, want snap-1 and snap-2 in the order of their times", all, err)
	}
	one, err := d.Snapshot(ctx, "vol-1", "snap-1")
	if err != nil || one != all[0] || one.SizeBytes != 4*mib || one.CreatedAt.Location().String() != "UTC" {
		t.Errorf("Snapshot of snap-1 = %+v, %v, want %+v with %d bytes and a time in UTC", one, err, all[0], 4*mib)
	}
	// A snapshot has the size of the volume at its creation.
	c.grow(8*mib, nil)
	c.snap("snap-3", nil)
	if got, err := d.Snapshot(ctx, "vol-1", "snap-2"); err != nil || got.SizeBytes != 4*mib {
		t.Errorf("Snapshot of snap-2 after the volume has grown = %+v, %v, want %d bytes", got, err, 4*mib)
	}
	c.check("after growing", false)

	_, err = d.CreateSnapshot(ctx, sds.SnapshotCreate{ID: "snap-4", Volume: "vol-9"}, sds.Access{})
	wantCode(t, "snapshot of a missing volume", err, api.CodeNotFound)
	_, err = d.CreateSnapshot(ctx, sds.SnapshotCreate{ID: "../x", Volume: "vol-1"}, sds.Access{})
	wantCode(t, "a path as id", err, api.CodeInvalid)
	_, err = d.Snapshots(ctx, "vol-9")
	wantCode(t, "snapshots of a missing volume", err, api.CodeNotFound)
	for _, v := range []api.VolumeID{"vol-1", "vol-9"} {
		if err := d.DeleteSnapshot(ctx, v, "snap-9", sds.Access{}); err != nil {
			t.Errorf("DeleteSnapshot of a missing snapshot of %s: %v", v, err)
		}
	}
	_, err = d.OpenForReading(ctx, "vol-1", "snap-9")
	wantCode(t, "reading of a missing volume", err, api.CodeNotFound)
}

// testDeleteOrders deletes snapshots in every order; the content of the others
// must not change.
func testDeleteOrders(t *testing.T, b Bench) {
	ids := []api.SnapshotID{"snap-0", "snap-1", "snap-2"}
	for i, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		c := blank(t, b, api.VolumeID(fmt.Sprintf("vol-%d", i)))
		for n, id := range ids {
			c.paint(n, byte(0x10+n)) // written once
			c.paint(3, byte(0x20+n)) // overwritten every time
			c.snap(id, nil)
		}
		c.paint(0, 0x50)
		for _, n := range order {
			c.drop(ids[n], nil)
			c.check(fmt.Sprintf("order %v, without %s", order, ids[n]), false)
			c.paint(n, byte(0x60+n))
		}
		c.check(fmt.Sprintf("order %v, at the end", order), false)
		if err := b.Driver.DeleteVolume(t.Context(), c.id); err != nil {
			t.Errorf("DeleteVolume of %s: %v", c.id, err)
		}
	}
}

func testRollback(t *testing.T, b Bench) {
	ctx, d := t.Context(), b.Driver
	c := blank(t, b, "vol-1")
	c.paint(0, 0x11)
	c.snap("snap-1", nil)
	c.paint(0, 0x21)
	c.paint(1, 0x22)
	c.snap("snap-2", nil)
	c.paint(2, 0x33)
	c.grow(8*mib, nil)
	if v := c.rollback("snap-1", 1); v.SizeBytes != 8*mib {
		t.Errorf("volume after the rollback = %d bytes, want %d", v.SizeBytes, 8*mib)
	}
	c.check("rolled back", false)
	c.paint(3, 0x44)
	// The same count has no effect again.
	if v, err := d.RollbackVolume(ctx, "vol-1", "snap-1", 1, sds.Access{}); err != nil || v.Rollbacks != 1 {
		t.Errorf("RollbackVolume with the same count = %+v, %v, want count 1", v, err)
	}
	c.check("repeated", false)
	c.snap("snap-3", nil)
	c.paint(3, 0x55)
	c.rollback("snap-2", 2) // forward, on another branch
	c.check("forward", false)
	c.paint(1, 0x66)
	c.rollback("snap-3", 5)
	c.check("to the other branch", false)
	_, err := d.RollbackVolume(ctx, "vol-1", "snap-1", 4, sds.Access{})
	wantCode(t, "a lower count", err, api.CodeState)
	for _, id := range []api.SnapshotID{"snap-1", "snap-3", "snap-2"} {
		c.drop(id, nil)
		c.check("without "+string(id), false)
	}
	if again, err := d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", SizeBytes: 4 * mib}); err != nil || again.Rollbacks != 5 {
		t.Errorf("CreateVolume of an existing volume = %+v, %v, want 5 rollbacks", again, err)
	}
}

func testRollbackRefused(t *testing.T, b Bench) {
	ctx, d := t.Context(), b.Driver
	c := blank(t, b, "vol-1")
	c.paint(0, 0x11)
	c.snap("snap-1", nil)
	c.paint(0, 0x21)
	_, err := d.RollbackVolume(ctx, "vol-1", "snap-9", 1, sds.Access{})
	wantCode(t, "rollback to a missing snapshot", err, api.CodeNotFound)
	_, err = d.RollbackVolume(ctx, "vol-9", "snap-1", 1, sds.Access{})
	wantCode(t, "rollback of a missing volume", err, api.CodeNotFound)
	_, err = d.RollbackVolume(ctx, "vol-1", "snap-1", 0, sds.Access{})
	wantCode(t, "no count", err, api.CodeInvalid)
	c.check("after rejected rollbacks", false)
	if v := c.volume(); v.Rollbacks != 0 {
		t.Errorf("volume after rejected rollbacks = %+v, want none", v)
	}
}

// testMany checks that at a driver's limit of snapshots, if it has one,
// everything still works.
func testMany(t *testing.T, b Bench) {
	c := blank(t, b, "vol-1")
	for n := range 40 {
		id := api.SnapshotID(fmt.Sprintf("snap-%d", n))
		_, err := b.Driver.CreateSnapshot(t.Context(), sds.SnapshotCreate{ID: id, Volume: "vol-1"}, sds.Access{})
		if api.CodeOf(err) == api.CodeState && n >= 8 {
			c.drop("snap-3", nil)
			c.paint(1, 0x77)
			c.snap(id, nil)
			break
		}
		if err != nil {
			t.Fatalf("CreateSnapshot %d: %v", n, err)
		}
		c.kept[id] = c.now
		c.paint(n%4, byte(n+1))
	}
	for id := range c.kept {
		if id != "snap-2" && id != "snap-4" { // the content of these is checked
			c.others++
			delete(c.kept, id)
		}
	}
	c.check("with many snapshots", false)
}

// testKeepsVolume checks that a volume with snapshots cannot be deleted, or
// moved without them.
func testKeepsVolume(t *testing.T, b Bench) {
	ctx, d := t.Context(), b.Driver
	c := blank(t, b, "vol-1")
	if err := d.Movable(ctx, "vol-1"); err != nil {
		t.Errorf("Movable without snapshots: %v", err)
	}
	c.snap("snap-1", nil)
	wantCode(t, "delete of a volume with a snapshot", d.DeleteVolume(ctx, "vol-1"), api.CodeInUse)
	_, err := d.RecreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", SizeBytes: 4 * mib, Epoch: 1})
	wantCode(t, "recreate with a snapshot", err, api.CodeInUse)
	if err := d.Movable(ctx, "vol-1"); d.Capabilities().Shared != (err == nil) || err != nil && api.CodeOf(err) != api.CodeState {
		t.Errorf("Movable with a snapshot = %v, want nil if shared, otherwise wrong_state", err)
	}
	wantCode(t, "Movable of a missing volume", d.Movable(ctx, "vol-9"), api.CodeNotFound)
	c.drop("snap-1", nil)
	if err := d.Movable(ctx, "vol-1"); err != nil {
		t.Errorf("Movable after the snapshot was deleted: %v", err)
	}
	if _, err := d.RecreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", SizeBytes: 4 * mib, Epoch: 1}); err != nil {
		t.Errorf("RecreateVolume after the snapshot was deleted: %v", err)
	}
	if err := d.DeleteVolume(ctx, "vol-1"); err != nil {
		t.Errorf("DeleteVolume: %v", err)
	}
}

func testReading(t *testing.T, b Bench) {
	ctx, d := t.Context(), b.Driver
	c := blank(t, b, "vol-1")
	c.paint(0, 0x11)
	c.snap("snap-1", nil)
	c.paint(0, 0x22)
	first, err := d.OpenForReading(ctx, "vol-1", "snap-1")
	if err != nil || first.SizeBytes != 4*mib {
		t.Fatalf("OpenForReading of snap-1 = %+v, %v, want %d bytes", first, err, 4*mib)
	}
	second, err := d.OpenForReading(ctx, "vol-1", "snap-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Errorf("close the first reading: %v", err)
	}
	wantCode(t, "delete of a snapshot that is being read", d.DeleteSnapshot(ctx, "vol-1", "snap-1", sds.Access{}), api.CodeInUse)
	if err := b.Disk.Holds(second.Source, nil, []byte{0x11}, 0, areaBytes); err != nil {
		t.Errorf("content of the second reading: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Errorf("close the second reading: %v", err)
	}
	own, err := d.OpenForReading(ctx, "vol-1", "")
	if err != nil || own.SizeBytes != 4*mib {
		t.Fatalf("OpenForReading of the volume = %+v, %v, want %d bytes", own, err, 4*mib)
	}
	if err := b.Disk.Holds(own.Source, nil, []byte{0x22}, 0, areaBytes); err != nil {
		t.Errorf("content of the volume's reading: %v", err)
	}
	wantCode(t, "delete of a volume that is being read", d.DeleteVolume(ctx, "vol-1"), api.CodeInUse)
	_, err = d.RollbackVolume(ctx, "vol-1", "snap-1", 1, sds.Access{})
	wantCode(t, "rollback of a volume that is being read", err, api.CodeInUse)
	_, err = d.ResizeVolume(ctx, "vol-1", 8*mib, sds.Access{})
	wantCode(t, "resize of a volume that is being read", err, api.CodeInUse)
	if err := own.Close(); err != nil {
		t.Errorf("close the volume's reading: %v", err)
	}
	c.drop("snap-1", nil)
	c.check("after reading", false)
}

func testFill(t *testing.T, b Bench) {
	ctx, d := t.Context(), b.Driver
	broken := errors.New("the backup ended early")
	ask := sds.VolumeCreate{ID: "vol-1", SizeBytes: 4 * mib, Fill: func(_ context.Context, into sds.Source) error {
		if err := b.Disk.Write(into, nil, 0x11, 0, areaBytes); err != nil {
			return err
		}
		return broken
	}}
	if _, err := d.CreateVolume(ctx, ask); !errors.Is(err, broken) {
		t.Errorf("CreateVolume with a failing Fill = %v, want %v", err, broken)
	}
	wantNothing(t, d)
	called := 0
	ask.Fill = func(_ context.Context, into sds.Source) error {
		called++
		if _, err := d.Volume(ctx, "vol-1"); api.CodeOf(err) != api.CodeNotFound {
			t.Errorf("Volume during Fill = %v, want not_found", err)
		}
		return b.Disk.Write(into, nil, 0x22, 0, areaBytes)
	}
	c := newCanvas(t, b, ask)
	c.now[0] = 0x22
	c.check("filled", false)
	if _, err := d.CreateVolume(ctx, ask); err != nil || called != 1 {
		t.Errorf("CreateVolume of a filled volume: Fill called %d times, %v, want once", called, err)
	}
}
