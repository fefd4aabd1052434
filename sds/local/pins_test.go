package local

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

// TestReadersOnOtherNodes checks that a node neither deletes nor merges what
// another one reads.
func TestReadersOnOtherNodes(t *testing.T) {
	a, b := pair(t, Options{Limits: drivertest.Limits})
	ctx, q := t.Context(), drivertest.QEMU{}
	v, err := a.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", SizeBytes: 4 << 20})
	if err == nil {
		err = q.Write(v.Source, nil, 0x11, 0, 65536)
	}
	for _, id := range []api.SnapshotID{"snap-1", "snap-2"} {
		if err == nil {
			_, err = a.CreateSnapshot(ctx, sds.SnapshotCreate{ID: id, Volume: "vol-1"}, sds.Access{})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.OpenForReading(ctx, "vol-1", "snap-2")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.DeleteSnapshot(ctx, "vol-1", "snap-2", sds.Access{}); api.CodeOf(err) != api.CodeInUse {
		t.Errorf("DeleteSnapshot of a snapshot that another node reads = %v, want %s", err, api.CodeInUse)
	}
	// The layer of snap-1 is not named any more, and must stay, because the
	// reader needs it.
	if err := b.DeleteSnapshot(ctx, "vol-1", "snap-1", sds.Access{}); err != nil {
		t.Fatal(err)
	}
	for at := &r.Source; at != nil; at = at.Backing {
		if _, err := os.Stat(at.Path); err != nil {
			t.Errorf("a layer that is being read was merged by another node: %v", err)
		}
	}
	if err := q.Holds(r.Source, nil, []byte{0x11}, 0, 65536); err != nil {
		t.Errorf("content of the reading: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.DeleteSnapshot(ctx, "vol-1", "snap-2", sds.Access{}); err != nil {
		t.Errorf("DeleteSnapshot after reading: %v", err)
	}
	if m, err := b.meta("vol-1"); err != nil || len(m.Layers) != 1 {
		t.Errorf("layers after the last snapshot was deleted = %+v, %v, want one", m.Layers, err)
	}
}

// holdCommit makes every `qemu-img commit` wait at its start: it creates the
// file started, and continues when the file proceed exists.
func holdCommit(t *testing.T) (started, proceed string) {
	t.Helper()
	real, err := exec.LookPath("qemu-img")
	if err != nil {
		t.Skip("host: qemu-img is not installed")
	}
	dir := t.TempDir()
	started, proceed = filepath.Join(dir, "started"), filepath.Join(dir, "go")
	script := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = commit ]; then : > %q; while [ ! -e %q ]; do sleep 0.02; done; fi\nexec %q \"$@\"\n", started, proceed, real)
	if err := os.WriteFile(filepath.Join(dir, "qemu-img"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return started, proceed
}

// mergeUnderAClone deletes snap-1 of a volume whose snap-2 has a clone, and
// calls during while qemu-img merges.
func mergeUnderAClone(t *testing.T, during func(clone sds.Volume)) (s *Store) {
	t.Helper()
	s, ctx, q := open(t, Options{Limits: drivertest.Limits}), t.Context(), drivertest.QEMU{}
	v, err := s.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", SizeBytes: 4 << 20})
	for n, id := range []api.SnapshotID{"snap-1", "snap-2"} {
		if err == nil {
			err = q.Write(v.Source, nil, byte(0x11+n), int64(n)*65536, 65536)
		}
		if err == nil {
			_, err = s.CreateSnapshot(ctx, sds.SnapshotCreate{ID: id, Volume: "vol-1"}, sds.Access{})
		}
		if err == nil {
			v, err = s.Volume(ctx, "vol-1")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	clone, err := s.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-2", Snapshot: sds.SnapshotRef{Volume: "vol-1", ID: "snap-2"}})
	if err != nil {
		t.Fatal(err)
	}
	started, proceed := holdCommit(t)
	deleted := make(chan error, 1)
	go func() { deleted <- s.DeleteSnapshot(ctx, "vol-1", "snap-1", sds.Access{}) }()
	patience.Until(t, 30*time.Second, "qemu-img merges", func() bool { _, err := os.Stat(started); return err == nil })
	during(clone)
	if err := os.WriteFile(proceed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-deleted; err != nil {
		t.Errorf("DeleteSnapshot below a clone: %v", err)
	}
	return s
}

// TestCloneStartsWhileItsParentMerges checks that a clone can start while its
// parent's layers are being merged.
func TestCloneStartsWhileItsParentMerges(t *testing.T) {
	q := drivertest.QEMU{}
	var m drivertest.Machine
	s := mergeUnderAClone(t, func(clone sds.Volume) { m = q.Start(t, clone, nil) })
	if err := m.Write(0x22, 2*65536, 65536); err != nil {
		t.Errorf("write of the clone's machine: %v", err)
	}
	m.Stop(t)
	clone, err := s.Volume(t.Context(), "vol-2")
	if err == nil {
		err = q.Holds(clone.Source, nil, []byte{0x11, 0x12, 0x22}, 0, 65536)
	}
	if err != nil {
		t.Errorf("content of the clone: %v", err)
	}
}

// TestMergeUnderAClone checks that the layers below a clone that is not open
// are merged, and that no file that the clone reads is open for writing
// meanwhile.
func TestMergeUnderAClone(t *testing.T) {
	q := drivertest.QEMU{}
	s := mergeUnderAClone(t, func(clone sds.Volume) {
		if err := q.Holds(clone.Source, nil, []byte{0x11, 0x12}, 0, 65536); err != nil {
			t.Errorf("content of the clone while its parent is being merged: %v", err)
		}
	})
	m, err := s.meta("vol-1")
	if err != nil || len(m.Layers) != 2 {
		t.Errorf("layers = %+v, %v, want that of snap-2 and the disk", m.Layers, err)
	}
	left, err := filepath.Glob(s.file("vol-1", "disk*"))
	if err != nil || len(left) != 2 {
		t.Errorf("files = %v, %v, want two", left, err)
	}
	for id, want := range map[api.VolumeID][]byte{"vol-1": {0x11, 0x12}, "vol-2": {0x11, 0x12}} {
		v, err := s.Volume(t.Context(), id)
		if err == nil {
			err = q.Holds(v.Source, nil, want, 0, 65536)
		}
		if err != nil {
			t.Errorf("content of %s: %v", id, err)
		}
	}
}
