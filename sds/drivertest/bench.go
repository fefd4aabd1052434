package drivertest

import (
	"fmt"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/sds"
)

// Bench is a driver and the means to read and write its disks.
type Bench struct {
	Driver sds.Driver
	Disk   Disk
	// Start starts a machine that has the volume open until it is stopped.
	Start func(t *testing.T, v sds.Volume, key *sds.Encryption) Machine
	// Steady means that a volume's source does not change until the volume is
	// recreated, and a snapshot's while the snapshot exists. A source that was
	// opened for reading once is then read directly later: over a real cluster
	// each operation takes several commands.
	Steady bool
}

// Disk does what a hypervisor does with a disk that nothing else writes to.
// key is nil for one that is not encrypted.
type Disk interface {
	// Write fills bytes starting at the offset with the pattern.
	Write(src sds.Source, key *sds.Encryption, pattern byte, at, bytes int64) error
	// Holds returns an error unless the given number of bytes from the offset
	// have the first pattern, those after them the second, and so on.
	Holds(src sds.Source, key *sds.Encryption, patterns []byte, at, bytes int64) error
}

// Machine is a machine that has a volume open.
type Machine interface {
	sds.Live
	Write(pattern byte, at, bytes int64) error
	Stop(t *testing.T)
}

// picture is the content of a disk: a pattern in each of its first areas. A
// zero was never written.
type picture [4]byte

const areaBytes = 128 << 10

// canvas is a volume under test and its expected content.
type canvas struct {
	Bench
	t      *testing.T
	id     api.VolumeID
	key    *sds.Encryption
	now    picture
	kept   map[api.SnapshotID]picture
	others int        // snapshots whose content is not checked
	made   sds.Volume // as last returned by the driver
	bytes  int64      // its size
	// looked are the sources that were opened before, for a steady bench; "" is
	// the volume itself.
	looked map[api.SnapshotID]sds.Source
	listed int // number of snapshots when last listed; -1: changed since
}

func newCanvas(t *testing.T, b Bench, create sds.VolumeCreate) *canvas {
	t.Helper()
	c := &canvas{
		Bench: b, t: t, id: create.ID, key: create.Encryption,
		kept: map[api.SnapshotID]picture{}, looked: map[api.SnapshotID]sds.Source{}, listed: -1,
	}
	v, err := b.Driver.CreateVolume(t.Context(), create)
	if err != nil {
		t.Fatalf("CreateVolume %s: %v", create.ID, err)
	}
	c.bytes, c.made = v.SizeBytes, v
	return c
}

// blank returns a canvas of 4 MiB.
func blank(t *testing.T, b Bench, id api.VolumeID) *canvas {
	t.Helper()
	return newCanvas(t, b, sds.VolumeCreate{ID: id, SizeBytes: 4 * mib})
}

func (c *canvas) access() sds.Access { return sds.Access{Encryption: c.key} }

func (c *canvas) volume() sds.Volume {
	c.t.Helper()
	v, err := c.Driver.Volume(c.t.Context(), c.id)
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

// disk returns the volume's present source.
func (c *canvas) disk() sds.Source {
	c.t.Helper()
	if !c.Steady {
		c.made = c.volume()
	}
	return c.made.Source
}

func (c *canvas) grow(bytes int64, live sds.Live) {
	c.t.Helper()
	v, err := c.Driver.ResizeVolume(c.t.Context(), c.id, bytes, sds.Access{Live: live, Encryption: c.key})
	if err != nil || v.SizeBytes != bytes {
		c.t.Fatalf("ResizeVolume to %d = %+v, %v", bytes, v, err)
	}
	c.bytes = bytes
}

// anew recreates the volume.
func (c *canvas) anew(create sds.VolumeCreate) {
	c.t.Helper()
	v, err := c.Driver.RecreateVolume(c.t.Context(), create)
	if err != nil {
		c.t.Fatalf("RecreateVolume %s: %v", c.id, err)
	}
	c.made, c.looked = v, map[api.SnapshotID]sds.Source{}
}

func (c *canvas) paint(area int, pattern byte) {
	c.t.Helper()
	if err := c.Disk.Write(c.disk(), c.key, pattern, int64(area)*areaBytes, areaBytes); err != nil {
		c.t.Fatalf("write to %s: %v", c.id, err)
	}
	c.now[area] = pattern
}

// by lets a machine paint.
func (c *canvas) by(m Machine, area int, pattern byte) {
	c.t.Helper()
	if err := m.Write(pattern, int64(area)*areaBytes, areaBytes); err != nil {
		c.t.Fatalf("write to %s by its machine: %v", c.id, err)
	}
	c.now[area] = pattern
}

func (c *canvas) start() Machine {
	c.t.Helper()
	c.disk()
	return c.Start(c.t, c.made, c.key)
}

func (c *canvas) snap(id api.SnapshotID, live sds.Live) {
	c.t.Helper()
	s, err := c.Driver.CreateSnapshot(c.t.Context(), sds.SnapshotCreate{ID: id, Volume: c.id}, sds.Access{Live: live, Encryption: c.key})
	if err != nil || !s.Ready || s.ID != id || s.Volume != c.id || s.CreatedAt.IsZero() || s.SizeBytes != c.bytes {
		c.t.Fatalf("CreateSnapshot %s = %+v, %v, want it ready with %d bytes", id, s, err, c.bytes)
	}
	c.kept[id], c.listed = c.now, -1
}

func (c *canvas) drop(id api.SnapshotID, live sds.Live) {
	c.t.Helper()
	if err := c.Driver.DeleteSnapshot(c.t.Context(), c.id, id, sds.Access{Live: live, Encryption: c.key}); err != nil {
		c.t.Fatalf("DeleteSnapshot %s: %v", id, err)
	}
	delete(c.kept, id)
	delete(c.looked, id)
	c.listed = -1
	_, err := c.Driver.Snapshot(c.t.Context(), c.id, id)
	wantCode(c.t, "a deleted snapshot", err, api.CodeNotFound)
}

func (c *canvas) rollback(id api.SnapshotID, count int64) sds.Volume {
	c.t.Helper()
	v, err := c.Driver.RollbackVolume(c.t.Context(), c.id, id, count, c.access())
	if err != nil || v.Rollbacks != count {
		c.t.Fatalf("RollbackVolume to %s = %+v, %v, want count %d", id, v, err, count)
	}
	c.now, c.listed = c.kept[id], -1
	return v
}

// check checks all snapshots of the volume, and its own content only if no
// machine has it open.
func (c *canvas) check(when string, open bool) {
	c.t.Helper()
	for id, p := range c.kept {
		c.checkReading(fmt.Sprintf("%s: snapshot %s of %s", when, id, c.id), id, p)
	}
	if !open {
		c.checkReading(fmt.Sprintf("%s: volume %s", when, c.id), "", c.now)
	}
	if c.Steady && c.listed == len(c.kept)+c.others && !layer.Long() {
		return
	}
	all, err := c.Driver.Snapshots(c.t.Context(), c.id)
	c.listed = len(all)
	if err != nil || len(all) != len(c.kept)+c.others {
		c.t.Errorf("%s: snapshots = %+v, %v, want %d", when, all, err, len(c.kept)+c.others)
	}
}

func (c *canvas) checkReading(what string, id api.SnapshotID, want picture) {
	c.t.Helper()
	if src, ok := c.looked[id]; ok && !layer.Long() {
		if err := c.Disk.Holds(src, c.key, want[:], 0, areaBytes); err != nil {
			c.t.Errorf("content of %s differs from %#x: %v", what, want, err)
		}
		return
	}
	r, err := c.Driver.OpenForReading(c.t.Context(), c.id, id)
	if err != nil {
		c.t.Errorf("OpenForReading of %s: %v", what, err)
		return
	}
	if err := c.Disk.Holds(r.Source, c.key, want[:], 0, areaBytes); err != nil {
		c.t.Errorf("content of %s differs from %#x: %v", what, want, err)
	}
	if err := r.Close(); err != nil {
		c.t.Errorf("close the reading of %s: %v", what, err)
	}
	switch {
	case !c.Steady:
	case id == "":
		c.looked[id] = c.disk()
	default:
		c.looked[id] = r.Source
	}
}
