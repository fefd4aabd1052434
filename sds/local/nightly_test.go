package local

import (
	"fmt"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

// TestHundredNightlyBackups backs up a volume with clones every night while
// its machine runs: a snapshot is created, read, and deleted. Regardless of
// the number of nights and clones, the volume must have few layers, and every
// volume its own content.
func TestHundredNightlyBackups(t *testing.T) {
	if testing.Short() {
		t.Skip("runs qemu-img some hundred times")
	}
	const block = 64 << 10
	s, q, ctx := open(t, Options{Limits: drivertest.Limits, MaxLayers: 8}), drivertest.QEMU{}, t.Context()
	v, err := s.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", SizeBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	m := q.Start(t, v, nil)
	clone := func(id api.VolumeID, from api.SnapshotID) sds.Volume {
		t.Helper()
		if _, err := s.CreateSnapshot(ctx, sds.SnapshotCreate{ID: from, Volume: "vol-1"}, sds.Access{Live: m}); err != nil {
			t.Fatal(err)
		}
		c, err := s.CreateVolume(ctx, sds.VolumeCreate{ID: id, Snapshot: sds.SnapshotRef{Volume: "vol-1", ID: from}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	clone("vol-2", "snap-first")
	var running drivertest.Machine
	for night := range 100 {
		if night == 50 { // a clone whose machine runs
			running = q.Start(t, clone("vol-3", "snap-later"), nil)
		}
		if err := m.Write(byte(night+1), int64(night%8)*block, block); err != nil {
			t.Fatal(err)
		}
		id := api.SnapshotID(fmt.Sprintf("bak-%d", night))
		if _, err := s.CreateSnapshot(ctx, sds.SnapshotCreate{ID: id, Volume: "vol-1"}, sds.Access{Live: m}); err != nil {
			t.Fatalf("CreateSnapshot in night %d: %v", night, err)
		}
		r, err := s.OpenForReading(ctx, "vol-1", id)
		if err != nil {
			t.Fatalf("OpenForReading in night %d: %v", night, err)
		}
		if night%10 == 9 { // only one in ten is read, because that takes a process
			if err := q.Holds(r.Source, nil, []byte{byte(night + 1)}, int64(night%8)*block, block); err != nil {
				t.Errorf("content of the backup of night %d: %v", night, err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteSnapshot(ctx, "vol-1", id, sds.Access{Live: m}); err != nil {
			t.Fatalf("DeleteSnapshot in night %d: %v", night, err)
		}
	}
	meta, err := s.meta("vol-1")
	if err != nil || len(meta.Layers) > 5 {
		t.Errorf("layers of vol-1 after 100 nights = %+v, %v, want at most 5 (two snapshots, the layers above them, the disk)", meta.Layers, err)
	}
	m.Stop(t)
	if running != nil {
		running.Stop(t)
	}
	for id, written := range map[api.VolumeID][]byte{"vol-1": {97, 98, 99, 100, 93, 94, 95, 96}, "vol-2": make([]byte, 8), "vol-3": {49, 50, 43, 44, 45, 46, 47, 48}} {
		v, err := s.Volume(ctx, id)
		if err == nil {
			err = q.Holds(v.Source, nil, written, 0, block)
		}
		if err != nil {
			t.Errorf("content of %s: %v", id, err)
		}
	}
}
