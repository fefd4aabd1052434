package drivertest

import (
	"context"
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// A machine goes on writing while its disk's snapshots come and go.
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
	c.drop("snap-4", m) // what the machine writes lies right above
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
	c.check("tidied", false)
	m = c.start()
	c.by(m, 2, 0x91)
	c.drop("snap-5", m)
	m.Stop(t)
	c.check("without snapshots", false)
}

// Whoever does not bring the machine leaves its disk alone.
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
	c.drop("snap-1", nil) // which the machine never writes to
	wantCode(t, "delete", d.DeleteVolume(ctx, "vol-1"), api.CodeInUse)
	c.by(m, 1, 0x33)
	m.Stop(t)
	c.check("stopped", false)
	if err := d.DeleteVolume(ctx, "vol-1"); err != nil {
		t.Error(err)
	}
}

// failing is a machine whose disk does not do what it is told, before or after
// it was done.
type unruly struct {
	Machine
	before, after error
}

func (u *unruly) Overlay(ctx context.Context, path string) error {
	if u.before != nil {
		return u.before
	}
	return errors.Join(u.Machine.Overlay(ctx, path), u.after)
}

// A snapshot that failed half-way is finished when it is asked for again,
// taken back when it is deleted, and harms nothing in the meantime.
func testLiveFails(t *testing.T, b Bench) {
	if !b.Driver.Capabilities().LiveSnapshots {
		t.Fatal("the driver says that it cannot: its tests leave this one out")
	}
	ctx, d := t.Context(), b.Driver
	broken := errors.New("no answer from the machine")
	for id, u := range map[api.VolumeID]unruly{"vol-1": {before: broken}, "vol-2": {after: broken}} {
		c := blank(t, b, id)
		c.paint(0, 0x11)
		m := c.start()
		u.Machine = m
		ask := sds.SnapshotCreate{ID: "snap-1", Volume: id}
		_, err := d.CreateSnapshot(ctx, ask, sds.Access{Live: &u})
		if err == nil { // it takes the snapshot without the machine's help
			m.Stop(t)
			continue
		}
		if s, err := d.Snapshot(ctx, id, "snap-1"); err == nil && s.Ready || err != nil && api.CodeOf(err) != api.CodeNotFound {
			t.Errorf("%s: %+v, %v", id, s, err)
		}
		if _, err := d.OpenForReading(ctx, id, "snap-1"); err == nil {
			t.Errorf("%s: an unfinished snapshot can be read", id)
		}
		if _, err := d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-9", Snapshot: sds.SnapshotRef{Volume: id, ID: "snap-1"}}); err == nil {
			t.Errorf("%s: an unfinished snapshot can be cloned", id)
		}
		c.by(m, 1, 0x22)
		if u.after == nil {
			c.snap("snap-1", m) // finished later: it keeps what is there then
		} else if _, err := d.CreateSnapshot(ctx, ask, sds.Access{Live: m}); err != nil {
			t.Error(err)
		} else {
			c.kept["snap-1"] = picture{0x11}
		}
		c.by(m, 1, 0x33)
		c.check("finished", true)
		c.drop("snap-1", m)

		_, err = d.CreateSnapshot(ctx, sds.SnapshotCreate{ID: "snap-2", Volume: id}, sds.Access{Live: &u})
		if !errors.Is(err, broken) {
			t.Errorf("%s: %v", id, err)
		}
		c.by(m, 2, 0x44)
		c.drop("snap-2", m)
		c.by(m, 3, 0x55)
		c.snap("snap-3", m)
		c.by(m, 3, 0x66)
		// And one that nobody finished before the machine ended.
		if _, err := d.CreateSnapshot(ctx, sds.SnapshotCreate{ID: "snap-4", Volume: id}, sds.Access{Live: &u}); !errors.Is(err, broken) {
			t.Errorf("%s: %v", id, err)
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
		t.Fatal("the driver says that it cannot: its tests leave this one out")
	}
	ctx, d := t.Context(), b.Driver
	c := blank(t, b, "vol-1")
	m := c.start()
	c.snap("snap-1", m)
	for range 2 {
		c.grow(8*mib, m)
	}
	if err := m.Write(0x11, 8*mib-areaBytes, areaBytes); err != nil {
		t.Errorf("the machine's disk did not grow: %v", err)
	}
	if v, err := d.ResizeVolume(ctx, "vol-1", 6*mib, sds.Access{Live: m}); err != nil || v.SizeBytes != 8*mib {
		t.Errorf("shrunk: %+v, %v", v, err)
	}
	m.Stop(t)
	if err := b.Disk.Holds(c.volume().Source, nil, []byte{0x11}, 8*mib-areaBytes, areaBytes); err != nil {
		t.Error(err)
	}
	c.check("grown", false)
}
