package drivertest

import (
	"bytes"
	"io"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// testExport checks that the exported file equals the received one, from any
// offset.
func testExport(t *testing.T, d sds.Driver) {
	content := Raw(2 * mib)
	clear(content[mib:]) // a hole
	put, err := d.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(content)})
	if err != nil {
		t.Fatal(err)
	}
	r, img, err := d.ExportImage(t.Context(), "img-1")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) || img != put {
		t.Errorf("exported %d bytes of %+v, %v, want %d of %+v", len(got), img, err, len(content), put)
	}
	if _, err := r.Seek(512, io.SeekStart); err != nil {
		t.Errorf("seek in the exported file: %v", err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content[512:]) {
		t.Errorf("exported %d bytes from offset 512, %v, want %d", len(got), err, len(content)-512)
	}
	_, _, err = d.ExportImage(t.Context(), "img-2")
	wantCode(t, "export of a missing image", err, api.CodeNotFound)

	// The next node knows the size: an early end is unavailable and not an
	// invalid image, and the next attempt succeeds.
	in := sds.ImageImport{ID: "img-2", Format: sds.Raw, SHA256: img.SHA256, SizeBytes: img.SizeBytes, Content: bytes.NewReader(content[:mib])}
	_, err = d.ImportImage(t.Context(), in)
	wantCode(t, "an interrupted transfer", err, api.CodeUnavailable)
	_, err = d.Image(t.Context(), "img-2")
	wantCode(t, "image after an interrupted transfer", err, api.CodeNotFound)
	in.Content = bytes.NewReader(content)
	if got, err := d.ImportImage(t.Context(), in); err != nil || got.SHA256 != img.SHA256 {
		t.Errorf("ImportImage after an early end = %+v, %v, want SHA-256 %s", got, err, img.SHA256)
	}
}

func testRecreate(t *testing.T, d sds.Driver) {
	ctx := t.Context()
	importImage(t, d, "img-1")
	importImage(t, d, "img-2")
	ask := sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: 3}
	first, err := d.RecreateVolume(ctx, ask) // it does not exist yet
	if err != nil || first.Epoch != 3 || first.SizeBytes != 2*mib {
		t.Fatalf("RecreateVolume of a missing volume = %+v, %v, want epoch 3 and %d bytes", first, err, 2*mib)
	}
	if grown, err := d.ResizeVolume(ctx, "vol-1", 8*mib, sds.Access{}); err != nil || grown.Epoch != 3 {
		t.Fatalf("ResizeVolume = %+v, %v, want epoch 3", grown, err)
	}
	for _, verb := range []func() (sds.Volume, error){
		func() (sds.Volume, error) { return d.RecreateVolume(ctx, ask) },
		func() (sds.Volume, error) {
			return d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: 9})
		},
	} {
		if same, err := verb(); err != nil || same.SizeBytes != 8*mib || same.Epoch != 3 {
			t.Errorf("volume after a call with the same epoch = %+v, %v, want %d bytes and epoch 3", same, err, 8*mib)
		}
	}
	ask.Epoch = 2
	_, err = d.RecreateVolume(ctx, ask)
	wantCode(t, "a lower epoch", err, api.CodeState)
	_, err = d.RecreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-2", Epoch: 4})
	wantCode(t, "another image", err, api.CodeExists)
	for _, epoch := range []int64{5, 6} {
		ask.Epoch = epoch
		for range 2 {
			v, err := d.RecreateVolume(ctx, ask)
			if err != nil || v.SizeBytes != 2*mib || v.Epoch != epoch || v.Image != "img-1" {
				t.Errorf("RecreateVolume = %+v, %v, want %d bytes, epoch %d and image img-1", v, err, 2*mib, epoch)
			}
			if got, err := d.Volume(ctx, "vol-1"); err != nil || got.Epoch != epoch || location(got.Source) != location(v.Source) {
				t.Errorf("Volume after RecreateVolume = %+v, %v, want epoch %d and the new source", got, err, epoch)
			}
		}
	}
	wantCode(t, "delete of its image", d.DeleteImage(ctx, "img-1"), api.CodeInUse)
	if err := d.DeleteVolume(ctx, "vol-1"); err != nil {
		t.Errorf("DeleteVolume: %v", err)
	}
	_, err = d.RecreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: -1})
	wantCode(t, "no epoch", err, api.CodeInvalid)
}

// testStandalone checks that a volume that is to receive another's content
// does not need its image.
func testStandalone(t *testing.T, d sds.Driver) {
	ctx := t.Context()
	v, err := d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: 4 * mib, Standalone: true})
	if err != nil || v.Image != "img-1" || !v.Standalone || v.SizeBytes != 4*mib || (v.Source.RBD == nil) != (v.Source.Format == sds.QCOW2) {
		t.Fatalf("standalone volume = %+v, %v, want image img-1, %d bytes and, in a file, format qcow2", v, err, 4*mib)
	}
	// The agent repeats this request every minute.
	if again, err := d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: 4 * mib}); err != nil || !again.Standalone {
		t.Errorf("CreateVolume of an existing standalone volume = %+v, %v, want it unchanged", again, err)
	}
	importImage(t, d, "img-1")
	if err := d.DeleteImage(ctx, "img-1"); err != nil {
		t.Errorf("DeleteImage with a standalone volume: %v", err)
	}
	_, err = d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-2", Image: "img-1", Standalone: true})
	wantCode(t, "no size", err, api.CodeInvalid)
}

// testOwners checks claims for a driver that may be shared or not; RunShared
// has the rest.
func testOwners(t *testing.T, d sds.Driver) {
	ctx := t.Context()
	shared := d.Capabilities().Shared
	if shared != (d.PoolID() != "") {
		t.Errorf("shared = %v with pool ID %q, want an ID exactly if shared", shared, d.PoolID())
	}
	if _, err := d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", SizeBytes: mib}); err != nil {
		t.Fatal(err)
	}
	want := sds.Owner{Node: "node-a", Epoch: 1}
	if err := d.ClaimVolume(ctx, "vol-1", want); err != nil {
		t.Fatal(err)
	}
	if !shared {
		want = sds.Owner{}
	}
	if got, err := d.Owner(ctx, "vol-1"); err != nil || got != want {
		t.Errorf("Owner = %+v, %v, want %+v", got, err, want)
	}
	if err := d.ReleaseVolume(ctx, "vol-1", sds.Owner{Node: "node-a", Epoch: 1}); err != nil {
		t.Errorf("ReleaseVolume: %v", err)
	}
	for _, o := range []sds.Owner{{Epoch: 1}, {Node: "../x", Epoch: 1}, {Node: "node-a", Epoch: -1}} {
		wantCode(t, "claim without an owner", d.ClaimVolume(ctx, "vol-1", o), api.CodeInvalid)
	}
}
