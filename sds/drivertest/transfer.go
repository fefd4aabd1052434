package drivertest

import (
	"bytes"
	"crypto/rand"
	"io"
	"maps"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// RunMoves runs the suite for two drivers of different nodes' own pools, which
// implement sds.Mover; open creates a pair of empty ones.
func RunMoves(t *testing.T, open func(t *testing.T) (from, to Bench)) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, from, to Bench)
	}{
		{"Move", testMove}, {"MoveSparse", testMoveSparse}, {"MoveEncrypted", testMoveEncrypted}, {"MoveState", testMoveState},
		{"MoveInterrupted", testMoveInterrupted}, {"MoveRefused", testMoveRefused}, {"MoveClone", testMoveClone}, {"MoveEncryptedClone", testMoveEncryptedClone}, {"Discard", testDiscard},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, to := open(t)
			c.test(t, from, to)
		})
	}
}

func mover(t *testing.T, d sds.Driver) sds.Mover {
	t.Helper()
	m, ok := d.(sds.Mover)
	if !ok {
		t.Fatalf("driver %s does not implement sds.Mover", d.Capabilities().Name)
	}
	return m
}

// moved copies the volume to another node's pool, and returns the canvas of the copy.
func (c *canvas) moved(to Bench) *canvas {
	c.t.Helper()
	var content bytes.Buffer
	if err := mover(c.t, c.Driver).ExportVolume(c.t.Context(), c.id, &content); err != nil {
		c.t.Fatalf("ExportVolume %s: %v", c.id, err)
	}
	var told int64
	v, err := mover(c.t, to.Driver).ImportVolume(c.t.Context(), sds.VolumeImport{ID: c.id, Content: &content, Progress: func(n int64) { told = n }})
	if err != nil || v.ID != c.id || v.SizeBytes != c.bytes || told == 0 {
		c.t.Fatalf("ImportVolume %s = %+v, %v, with progress %d; want %d bytes and progress", c.id, v, err, told, c.bytes)
	}
	copied := *c
	copied.Bench, copied.made, copied.listed, copied.looked, copied.kept = to, v, -1, map[api.SnapshotID]sds.Source{}, maps.Clone(c.kept)
	return &copied
}

// testMove checks that the copy has the content, the snapshots and the history of the
// volume, and does not depend on it.
func testMove(t *testing.T, from, to Bench) {
	ctx := t.Context()
	raw := Raw(2 * mib)
	clear(raw[4096:])
	for _, d := range []sds.Driver{from.Driver, to.Driver} {
		if _, err := d.ImportImage(ctx, sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(raw)}); err != nil {
			t.Fatal(err)
		}
	}
	c := newCanvas(t, from, sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: 4 * mib, Epoch: 3})
	c.paint(0, 0x11)
	c.snap("snap-1", nil)
	c.paint(1, 0x22)
	c.snap("snap-2", nil)
	c.rollback("snap-1", 1)
	c.paint(2, 0x33)
	there := c.moved(to)
	there.check("of the copy", false)
	if was, is := c.volume(), there.volume(); is.Image != was.Image || is.Epoch != 3 || is.Rollbacks != 1 || is.SizeBytes != was.SizeBytes {
		t.Errorf("copied volume = %+v, want it as %+v", is, was)
	}
	// The agent's next request is for the volume that exists.
	if _, err := to.Driver.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: 4 * mib, Epoch: 3}); err != nil {
		t.Errorf("CreateVolume of the copied volume: %v", err)
	}
	if err := mover(t, from.Driver).DiscardVolume(ctx, "vol-1"); err != nil {
		t.Fatalf("DiscardVolume: %v", err)
	}
	there.paint(3, 0x44)
	there.snap("snap-3", nil)
	there.check("after the source's was discarded", false)
	there.rollback("snap-2", 2)
	there.check("after a rollback of the copy", false)
	wantCode(t, "delete of the copy's image", to.Driver.DeleteImage(ctx, "img-1"), api.CodeInUse)
	if err := from.Driver.DeleteImage(ctx, "img-1"); err != nil {
		t.Errorf("DeleteImage on the source: %v", err)
	}
}

// testMoveSparse checks that parts that were never written are not sent.
func testMoveSparse(t *testing.T, from, to Bench) {
	c := newCanvas(t, from, sds.VolumeCreate{ID: "vol-1", SizeBytes: 1 << 30})
	c.paint(1, 0x55)
	var n counter
	if err := mover(t, from.Driver).ExportVolume(t.Context(), "vol-1", &n); err != nil || n > 8*mib {
		t.Errorf("ExportVolume of a volume of 1 GiB with %d bytes written: %d bytes, %v, want at most 8 MiB", areaBytes, n, err)
	}
	c.moved(to).check("of the copy", false)
}

type counter int64

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

func testMoveEncrypted(t *testing.T, from, to Bench) {
	key := &sds.Encryption{Passphrase: []byte(rand.Text())}
	c := newCanvas(t, from, sds.VolumeCreate{ID: "vol-1", SizeBytes: 4 * mib, Encryption: key})
	c.paint(0, 0x11)
	c.snap("snap-1", nil)
	c.paint(1, 0x12)
	there := c.moved(to)
	there.check("of the copy", false)
	if v := there.volume(); !v.Source.Encrypted {
		t.Error("the copy is not encrypted")
	}
	_, err := to.Driver.ResizeVolume(t.Context(), "vol-1", 8*mib, sds.Access{Encryption: &sds.Encryption{Passphrase: []byte(rand.Text())}})
	wantCode(t, "another key", err, api.CodeInvalid)
}

// testMoveState checks that the states of the machine come with the volume.
func testMoveState(t *testing.T, from, to Bench) {
	ctx := t.Context()
	c := blank(t, from, "vol-1")
	c.paint(0, 1)
	here, there := keeper(t, from.Driver), keeper(t, to.Driver)
	ref := sds.SnapshotRef{Volume: "vol-1", ID: "snap-1"}
	if err := here.KeepState(ctx, "vol-1", 7, []byte("state")); err != nil {
		t.Fatal(err)
	}
	if err := here.KeepSnapshotState(ctx, ref, []byte("then")); err != nil {
		t.Fatal(err)
	}
	c.snap("snap-1", nil)
	c.moved(to)
	if state, epoch, err := there.KeptState(ctx, "vol-1"); string(state) != "state" || epoch != 7 || err != nil {
		t.Errorf("KeptState of the copy = %q of epoch %d, %v, want state of epoch 7", state, epoch, err)
	}
	if state, err := there.SnapshotState(ctx, ref); string(state) != "then" || err != nil {
		t.Errorf("SnapshotState of the copy = %q, %v, want then", state, err)
	}
}

// testMoveInterrupted checks that content that ends anywhere leaves nothing, and that
// the next attempt succeeds.
func testMoveInterrupted(t *testing.T, from, to Bench) {
	ctx, m := t.Context(), mover(t, to.Driver)
	c := blank(t, from, "vol-1")
	c.paint(0, 0x11)
	c.snap("snap-1", nil)
	var content bytes.Buffer
	if err := mover(t, from.Driver).ExportVolume(ctx, "vol-1", &content); err != nil {
		t.Fatal(err)
	}
	all := content.Bytes()
	for _, n := range []int{0, 1, 20, len(all) / 3, len(all) / 2, len(all) - 2} {
		_, err := m.ImportVolume(ctx, sds.VolumeImport{ID: "vol-1", Content: bytes.NewReader(all[:n])})
		wantCode(t, "content that ends early", err, api.CodeUnavailable)
		_, err = to.Driver.Volume(ctx, "vol-1")
		wantCode(t, "volume after an interrupted copy", err, api.CodeNotFound)
	}
	_, err := m.ImportVolume(ctx, sds.VolumeImport{ID: "vol-1", Content: io.MultiReader(bytes.NewReader(make([]byte, 64)), bytes.NewReader(all))})
	wantCode(t, "something else", err, api.CodeUnavailable)
	if _, err := m.ImportVolume(ctx, sds.VolumeImport{ID: "../x", Content: bytes.NewReader(all)}); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("ImportVolume of a path = %v, want code %s", err, api.CodeInvalid)
	}
	there := c.moved(to)
	there.check("of the copy after interrupted attempts", false)
	_, err = m.ImportVolume(ctx, sds.VolumeImport{ID: "vol-1", Content: bytes.NewReader(all)})
	wantCode(t, "a volume that exists", err, api.CodeExists)
	there.check("after an import that was refused", false)
}

func testMoveRefused(t *testing.T, from, to Bench) {
	ctx, m := t.Context(), mover(t, from.Driver)
	importImage(t, from.Driver, "img-1")
	refused := func(what string, id api.VolumeID, code api.Code) {
		t.Helper()
		var n counter
		wantCode(t, what, m.Exportable(ctx, id), code)
		wantCode(t, what, m.ExportVolume(ctx, id, &n), code)
		if n != 0 {
			t.Errorf("%s: ExportVolume wrote %d bytes before the error, want none", what, n)
		}
	}
	refused("a missing volume", "vol-9", api.CodeNotFound)
	c := newCanvas(t, from, sds.VolumeCreate{ID: "vol-1", Image: "img-1"})
	machine := from.Start(t, c.volume(), nil)
	refused("an open volume", "vol-1", api.CodeInUse)
	machine.Stop(t)
	c.snap("snap-1", nil)
	if _, err := from.Driver.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-2", Snapshot: sds.SnapshotRef{Volume: "vol-1", ID: "snap-1"}}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a volume with a clone", m.Exportable(ctx, "vol-1"), api.CodeState)
	if err := m.Exportable(ctx, "vol-1", "vol-2"); err != nil {
		t.Errorf("Exportable of a volume together with its clone: %v", err)
	}
	wantCode(t, "discard of a volume with a clone", m.DiscardVolume(ctx, "vol-1"), api.CodeInUse)
	if err := m.DiscardVolume(ctx, "vol-2"); err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	if err := m.ExportVolume(ctx, "vol-1", &content); err != nil {
		t.Fatal(err)
	}
	_, err := mover(t, to.Driver).ImportVolume(ctx, sds.VolumeImport{ID: "vol-1", Content: &content})
	wantCode(t, "without its image", err, api.CodeNotFound)
	_, err = to.Driver.Volume(ctx, "vol-1")
	wantCode(t, "volume after a refused copy", err, api.CodeNotFound)
}

// testMoveClone checks that the copy of a clone has all content and reads from no other
// volume, and that it leaves what it was cloned from as it was.
func testMoveClone(t *testing.T, from, to Bench) {
	ctx := t.Context()
	raw := Raw(2 * mib)
	clear(raw[4096:])
	for _, d := range []sds.Driver{from.Driver, to.Driver} {
		if _, err := d.ImportImage(ctx, sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(raw)}); err != nil {
			t.Fatal(err)
		}
	}
	c := newCanvas(t, from, sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: 4 * mib})
	c.paint(0, 0x11)
	c.snap("snap-0", nil)
	c.paint(1, 0x12)
	c.snap("snap-1", nil)
	c.paint(1, 0x13)
	one := c.clone("vol-2", "snap-1", 8*mib)
	one.paint(2, 0x21)
	one.snap("snap-1", nil) // IDs are per volume
	one.paint(0, 0x22)
	two := one.clone("vol-3", "snap-1", 0)
	two.paint(3, 0x31)
	two.snap("snap-2", nil)
	two.rollback("snap-2", 1)
	two.paint(1, 0x32)
	machine := c.start() // what is below a clone is not written to
	there := two.moved(to)
	machine.Stop(t)
	there.check("of the copied clone", false)
	if v, was := there.volume(), two.volume(); v.Reads != "img-1" || was.Reads != "img-1" || !v.Standalone || v.Snapshot != was.Snapshot || v.AllocatedBytes < was.AllocatedBytes {
		t.Errorf("copied clone = %+v, want a standalone one that reads img-1, from %+v", v, was)
	}
	wantCode(t, "delete of the image of a copied clone", to.Driver.DeleteImage(ctx, "img-1"), api.CodeInUse)
	// The agent's next request is for the volume that exists.
	if _, err := to.Driver.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-3", Snapshot: two.volume().Snapshot, SizeBytes: 8 * mib}); err != nil {
		t.Errorf("CreateVolume of the copied clone: %v", err)
	}
	m := mover(t, from.Driver)
	for _, id := range []api.VolumeID{"vol-3", "vol-2"} {
		if err := m.Exportable(ctx, id); err != nil {
			t.Errorf("Exportable of %s: %v", id, err)
		}
		if err := m.DiscardVolume(ctx, id); err != nil {
			t.Fatalf("DiscardVolume of %s: %v", id, err)
		}
	}
	c.check("after its clones have left", false)
	if err := m.Exportable(ctx, "vol-1"); err != nil {
		t.Errorf("Exportable of a volume whose clones have left: %v", err)
	}
	there.paint(0, 0x41)
	there.snap("snap-3", nil)
	there.drop("snap-2", nil) // merges layers that were the other volumes'
	there.check("after a merge", false)
	there.moved(from).check("back on its first node", false)
	if err := to.Driver.DeleteSnapshot(ctx, "vol-3", "snap-3", sds.Access{}); err != nil {
		t.Errorf("DeleteSnapshot: %v", err)
	}
	if err := to.Driver.DeleteVolume(ctx, "vol-3"); err != nil {
		t.Errorf("DeleteVolume: %v", err)
	}
	if err := to.Driver.DeleteImage(ctx, "img-1"); err != nil {
		t.Errorf("DeleteImage without volumes: %v", err)
	}
}

func testMoveEncryptedClone(t *testing.T, from, to Bench) {
	key := &sds.Encryption{Passphrase: []byte(rand.Text())}
	c := newCanvas(t, from, sds.VolumeCreate{ID: "vol-1", SizeBytes: 4 * mib, Encryption: key})
	c.paint(0, 0x11)
	c.snap("snap-1", nil)
	c.paint(0, 0x12)
	clone := c.clone("vol-2", "snap-1", 0)
	clone.paint(1, 0x21)
	there := clone.moved(to)
	there.check("of the copied clone", false)
	there.snap("snap-2", nil)
	there.paint(0, 0x22)
	there.drop("snap-2", nil)
	there.check("after a merge", false)
}

// testDiscard checks that nothing that is being read is discarded.
func testDiscard(t *testing.T, from, _ Bench) {
	ctx, m := t.Context(), mover(t, from.Driver)
	c := blank(t, from, "vol-1")
	c.paint(0, 1)
	c.snap("snap-1", nil)
	for _, id := range []api.SnapshotID{"", "snap-1"} {
		r, err := from.Driver.OpenForReading(ctx, "vol-1", id)
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, "discard of what is being read", m.DiscardVolume(ctx, "vol-1"), api.CodeInUse)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// While it is sent it cannot be deleted.
	pr, pw := io.Pipe()
	sent := make(chan error, 1)
	go func() { sent <- m.ExportVolume(ctx, "vol-1", pw) }()
	if _, err := io.ReadFull(pr, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "discard of what is being sent", m.DiscardVolume(ctx, "vol-1"), api.CodeInUse)
	_ = pr.Close()
	if err := <-sent; err == nil {
		t.Error("ExportVolume to a closed pipe returned nil")
	}
	for range 2 {
		if err := m.DiscardVolume(ctx, "vol-1"); err != nil {
			t.Errorf("DiscardVolume: %v", err)
		}
	}
	_, err := from.Driver.Volume(ctx, "vol-1")
	wantCode(t, "a discarded volume", err, api.CodeNotFound)
}
