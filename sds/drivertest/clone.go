package drivertest

import (
	"fmt"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

func (c *canvas) clone(id api.VolumeID, of api.SnapshotID, bytes int64) *canvas {
	c.t.Helper()
	made := newCanvas(c.t, c.Bench, sds.VolumeCreate{
		ID: id, Snapshot: sds.SnapshotRef{Volume: c.id, ID: of}, SizeBytes: bytes, Encryption: c.key,
	})
	made.now = c.kept[of]
	if v := made.volume(); v.Snapshot != (sds.SnapshotRef{Volume: c.id, ID: of}) {
		c.t.Errorf("clone = %+v, want one of snapshot %s of %s", v, of, c.id)
	}
	return made
}

func testClones(t *testing.T, b Bench) {
	d := b.Driver
	c := blank(t, b, "vol-1")
	c.paint(0, 0x11)
	c.snap("snap-0", nil) // below the cloned one
	c.paint(1, 0x12)
	c.snap("snap-1", nil)
	c.paint(0, 0x21)
	one := c.clone("vol-2", "snap-1", 0)
	if v := one.volume(); v.SizeBytes != 4*mib {
		t.Errorf("clone without a size = %+v, want %d bytes", v, 4*mib)
	}
	two := c.clone("vol-3", "snap-1", 9*mib-1)
	if v := two.volume(); v.SizeBytes != 9*mib {
		t.Errorf("clone with a larger size = %+v, want %d bytes", v, 9*mib)
	}
	all := []*canvas{c, one, two}
	check := func(when string) {
		t.Helper()
		for _, c := range all {
			c.check(when, false)
		}
	}
	check("cloned")
	for i, c := range all {
		c.paint(2, byte(0x30+i))
		c.paint(0, byte(0x40+i))
	}
	check("after separate writes")
	// A clone has its own snapshots and clones.
	one.snap("snap-1", nil) // IDs are per volume
	one.paint(3, 0x51)
	three := one.clone("vol-4", "snap-1", 0)
	three.paint(1, 0x61)
	all = append(all, three)
	check("clone of a clone")
	c.drop("snap-0", nil)
	c.paint(3, 0x71)
	check("without a snapshot below")
	c.snap("snap-2", nil)
	c.rollback("snap-1", 1)
	check("rolled back beside the clones")

	ref := func(v api.VolumeID, s api.SnapshotID) string { return fmt.Sprintf("delete of %s of %s", s, v) }
	inUse := func(v api.VolumeID, s api.SnapshotID) {
		t.Helper()
		wantCode(t, ref(v, s), d.DeleteSnapshot(t.Context(), v, s, sds.Access{}), api.CodeInUse)
	}
	inUse("vol-1", "snap-1")
	inUse("vol-2", "snap-1")
	wantCode(t, "delete of a volume with clones", d.DeleteVolume(t.Context(), "vol-1"), api.CodeInUse)
	if err := d.DeleteVolume(t.Context(), "vol-4"); err != nil {
		t.Errorf("DeleteVolume of vol-4: %v", err)
	}
	all = all[:3]
	one.drop("snap-1", nil)
	check("without the clone's clone")
	inUse("vol-1", "snap-1")
	for _, v := range []api.VolumeID{"vol-2", "vol-3"} {
		if err := d.DeleteVolume(t.Context(), v); err != nil {
			t.Errorf("DeleteVolume of %s: %v", v, err)
		}
	}
	all = all[:1]
	c.drop("snap-1", nil)
	check("without clones")
}

func testClonesRefused(t *testing.T, b Bench) {
	ctx, d := t.Context(), b.Driver
	importImage(t, d, "img-1")
	c := blank(t, b, "vol-1")
	c.snap("snap-1", nil)
	c.snap("snap-2", nil)
	c.clone("vol-2", "snap-1", 0)
	from := func(v api.VolumeID, s api.SnapshotID) sds.SnapshotRef { return sds.SnapshotRef{Volume: v, ID: s} }
	for _, x := range []struct {
		create sds.VolumeCreate
		code   api.Code
	}{
		{sds.VolumeCreate{ID: "vol-3", Snapshot: from("vol-1", "snap-9")}, api.CodeNotFound},
		{sds.VolumeCreate{ID: "vol-3", Snapshot: from("vol-9", "snap-1")}, api.CodeNotFound},
		{sds.VolumeCreate{ID: "vol-3", Snapshot: from("vol-1", "")}, api.CodeInvalid},
		{sds.VolumeCreate{ID: "vol-3", Snapshot: from("../x", "snap-1")}, api.CodeInvalid},
		{sds.VolumeCreate{ID: "vol-3", Snapshot: from("vol-1", "snap-1"), SizeBytes: mib}, api.CodeInvalid},
		{sds.VolumeCreate{ID: "vol-3", Snapshot: from("vol-1", "snap-1"), Image: "img-1"}, api.CodeInvalid},
		{sds.VolumeCreate{ID: "vol-3", Snapshot: from("vol-1", "snap-1"), Encryption: &keyA}, api.CodeInvalid},
		{sds.VolumeCreate{ID: "vol-2", Snapshot: from("vol-1", "snap-2")}, api.CodeExists},
		{sds.VolumeCreate{ID: "vol-2", SizeBytes: 4 * mib}, api.CodeExists},
	} {
		_, err := d.CreateVolume(ctx, x.create)
		wantCode(t, fmt.Sprintf("%+v", x.create), err, x.code)
	}
	// A standalone volume, which is to receive a clone's content, does not read
	// from the snapshot.
	v, err := d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-4", Snapshot: from("vol-9", "snap-1"), SizeBytes: 4 * mib, Standalone: true})
	if err != nil || !v.Standalone || v.Snapshot != from("vol-9", "snap-1") {
		t.Errorf("standalone volume = %+v, %v, want it to name its snapshot", v, err)
	}
	if again, err := d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-4", SizeBytes: 4 * mib}); err != nil || !again.Standalone {
		t.Errorf("CreateVolume of an existing standalone volume = %+v, %v, want it unchanged", again, err)
	}
	if all, err := d.Volumes(ctx); err != nil || len(all) != 3 {
		t.Errorf("Volumes = %+v, %v, want 3: rejected volumes must not remain", all, err)
	}
}
