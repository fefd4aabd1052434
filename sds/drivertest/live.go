package drivertest

import (
	"context"
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// testLive checks that a machine keeps writing while snapshots of its disk are
// created and deleted.
func testLive(t *testing.T, b Bench) {
	c := blank(t, b, "vol-1")
	c.paint(0, 0x11)
	m := c.start()
	c.by(m, 1, 0x12)
	c.snap("snap-1", m)
	c.by(m, 1, 0x22)
	c.check("one snapshot", true)
	c.snap("snap-2", m)
	c.by(m, 2, 0x32)
	c.snap("snap-3", m)
	c.by(m, 2, 0x42)
	c.check("three snapshots", true)
	clone := c.clone("vol-2", "snap-3", 0)
	clone.paint(3, 0x43)
	c.drop("snap-2", m) // between two others
	c.by(m, 3, 0x51)
	c.check("without the middle one", true)
	c.drop("snap-1", m)
	c.snap("snap-4", m)
	c.by(m, 0, 0x61)
	c.check("without the oldest", true)
	c.drop("snap-4", m) // its layer is directly below the one that the machine writes to
	c.by(m, 1, 0x71)
	c.snap("snap-5", m)
	c.by(m, 0, 0x81)
	c.check("at the end", true)
	clone.check("at the end", false)
	m.Stop(t)
	c.check("stopped", false)
	if err := b.Driver.DeleteVolume(t.Context(), "vol-2"); err != nil {
		t.Fatal(err)
	}
	c.drop("snap-3", nil)
	c.check("after merging", false)
	m = c.start()
	c.by(m, 2, 0x91)
	c.drop("snap-5", m)
	m.Stop(t)
	c.check("without snapshots", false)
}

// testLiveInUse checks that operations without the machine do not change its
// disk.
func testLiveInUse(t *testing.T, b Bench) {
	ctx, d := t.Context(), b.Driver
	c := blank(t, b, "vol-1")
	c.paint(0, 0x11)
	c.snap("snap-1", nil)
	m := c.start()
	_, err := d.CreateSnapshot(ctx, sds.SnapshotCreate{ID: "snap-2", Volume: "vol-1"}, sds.Access{})
	wantCode(t, "snapshot", err, api.CodeInUse)
	_, err = d.RollbackVolume(ctx, "vol-1", "snap-1", 1, sds.Access{})
	wantCode(t, "rollback", err, api.CodeInUse)
	_, err = d.RollbackVolume(ctx, "vol-1", "snap-1", 1, sds.Access{Live: m})
	wantCode(t, "rollback with the machine", err, api.CodeInUse)
	_, err = d.ResizeVolume(ctx, "vol-1", 8*mib, sds.Access{})
	wantCode(t, "resize", err, api.CodeInUse)
	_, err = d.OpenForReading(ctx, "vol-1", "")
	wantCode(t, "reading", err, api.CodeInUse)
	c.by(m, 0, 0x22)
	c.drop("snap-1", nil) // the machine never writes to it
	wantCode(t, "delete", d.DeleteVolume(ctx, "vol-1"), api.CodeInUse)
	c.by(m, 1, 0x33)
	m.Stop(t)
	c.check("stopped", false)
	if err := d.DeleteVolume(ctx, "vol-1"); err != nil {
		t.Errorf("DeleteVolume: %v", err)
	}
}

// failingMachine is a machine whose disk operations fail, before or after they
// are done.
type failingMachine struct {
	Machine
	before, after error
}

func (u *failingMachine) Overlay(ctx context.Context, path string) error {
	if u.before != nil {
		return u.before
	}
	return errors.Join(u.Machine.Overlay(ctx, path), u.after)
}

// testLiveFails checks that a snapshot that failed half-way is completed when
// it is requested again, reverted when it is deleted, and harmless in the
// meantime.
func testLiveFails(t *testing.T, b Bench) {
	if !b.Driver.Capabilities().LiveSnapshots {
		t.Fatal("the driver lacks the capability LiveSnapshots: exclude this test for it")
	}
	ctx, d := t.Context(), b.Driver
	broken := errors.New("no answer from the machine")
	for id, u := range map[api.VolumeID]failingMachine{"vol-1": {before: broken}, "vol-2": {after: broken}} {
		c := blank(t, b, id)
		c.paint(0, 0x11)
		m := c.start()
		u.Machine = m
		ask := sds.SnapshotCreate{ID: "snap-1", Volume: id}
		_, err := d.CreateSnapshot(ctx, ask, sds.Access{Live: &u})
		if err == nil { // it creates the snapshot without the machine
			m.Stop(t)
			continue
		}
		if s, err := d.Snapshot(ctx, id, "snap-1"); err == nil && s.Ready || err != nil && api.CodeOf(err) != api.CodeNotFound {
			t.Errorf("%s: incomplete Snapshot = %+v, %v, want not ready or not_found", id, s, err)
		}
		if _, err := d.OpenForReading(ctx, id, "snap-1"); err == nil {
			t.Errorf("%s: OpenForReading of an incomplete snapshot = nil, want an error", id)
		}
		if _, err := d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-9", Snapshot: sds.SnapshotRef{Volume: id, ID: "snap-1"}}); err == nil {
			t.Errorf("%s: CreateVolume from an incomplete snapshot = nil, want an error", id)
		}
		c.by(m, 1, 0x22)
		if u.after == nil {
			c.snap("snap-1", m) // completed later: it has the content of that time
		} else if _, err := d.CreateSnapshot(ctx, ask, sds.Access{Live: m}); err != nil {
			t.Errorf("%s: complete the snapshot: %v", id, err)
		} else {
			c.kept["snap-1"] = picture{0x11}
		}
		c.by(m, 1, 0x33)
		c.check("finished", true)
		c.drop("snap-1", m)

		_, err = d.CreateSnapshot(ctx, sds.SnapshotCreate{ID: "snap-2", Volume: id}, sds.Access{Live: &u})
		if !errors.Is(err, broken) {
			t.Errorf("%s: CreateSnapshot = %v, want %v", id, err, broken)
		}
		c.by(m, 2, 0x44)
		c.drop("snap-2", m)
		c.by(m, 3, 0x55)
		c.snap("snap-3", m)
		c.by(m, 3, 0x66)
		// Another one is still incomplete when the machine ends.
		if _, err := d.CreateSnapshot(ctx, sds.SnapshotCreate{ID: "snap-4", Volume: id}, sds.Access{Live: &u}); !errors.Is(err, broken) {
			t.Errorf("%s: CreateSnapshot = %v, want %v", id, err, broken)
		}
		m.Stop(t)
		m = c.start()
		c.by(m, 0, 0x77)
		c.drop("snap-4", m)
		m.Stop(t)
		c.check("at the end", false)
	}
}

func testLiveResize(t *testing.T, b Bench) {
	if !b.Driver.Capabilities().ResizeOnline {
		t.Fatal("the driver lacks the capability ResizeOnline: exclude this test for it")
	}
	ctx, d := t.Context(), b.Driver
	c := blank(t, b, "vol-1")
	m := c.start()
	c.snap("snap-1", m)
	for range 2 {
		c.grow(8*mib, m)
	}
	if err := m.Write(0x11, 8*mib-areaBytes, areaBytes); err != nil {
		t.Errorf("write to the new end of the machine's disk: %v", err)
	}
	if v, err := d.ResizeVolume(ctx, "vol-1", 6*mib, sds.Access{Live: m}); err != nil || v.SizeBytes != 8*mib {
		t.Errorf("ResizeVolume to less = %+v, %v, want %d bytes unchanged", v, err, 8*mib)
	}
	m.Stop(t)
	if err := b.Disk.Holds(c.volume().Source, nil, []byte{0x11}, 8*mib-areaBytes, areaBytes); err != nil {
		t.Errorf("content of the grown volume: %v", err)
	}
	c.check("grown", false)
}
