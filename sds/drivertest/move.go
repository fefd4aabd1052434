package drivertest

import (
	"bytes"
	"io"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// What is exported is what was sent, from any place on.
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
		t.Errorf("exported %d bytes of %+v, %v", len(got), img, err)
	}
	if _, err := r.Seek(512, io.SeekStart); err != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content[512:]) {
		t.Errorf("from byte 512: %d bytes, %v", len(got), err)
	}
	_, _, err = d.ExportImage(t.Context(), "img-2")
	wantCode(t, "export of nothing", err, api.CodeNotFound)

	// The next node knows what is to come: an end that is early is no image
	// that is wrong, and the next try works.
	in := sds.ImageImport{ID: "img-2", Format: sds.Raw, SHA256: img.SHA256, SizeBytes: img.SizeBytes, Content: bytes.NewReader(content[:mib])}
	_, err = d.ImportImage(t.Context(), in)
	wantCode(t, "a transfer that broke off", err, api.CodeUnavailable)
	_, err = d.Image(t.Context(), "img-2")
	wantCode(t, "after a transfer that broke off", err, api.CodeNotFound)
	in.Content = bytes.NewReader(content)
	if got, err := d.ImportImage(t.Context(), in); err != nil || got.SHA256 != img.SHA256 {
		t.Errorf("again: %+v, %v", got, err)
	}
}

func testRecreate(t *testing.T, d sds.Driver) {
	ctx := t.Context()
	importImage(t, d, "img-1")
	importImage(t, d, "img-2")
	ask := sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: 3}
	first, err := d.RecreateVolume(ctx, ask) // of nothing: it is made
	if err != nil || first.Epoch != 3 || first.SizeBytes != 2*mib {
		t.Fatalf("%+v, %v", first, err)
	}
	if grown, err := d.ResizeVolume(ctx, "vol-1", 8*mib, sds.Access{}); err != nil || grown.Epoch != 3 {
		t.Fatalf("%+v, %v", grown, err)
	}
	for _, verb := range []func() (sds.Volume, error){
		func() (sds.Volume, error) { return d.RecreateVolume(ctx, ask) },
		func() (sds.Volume, error) {
			return d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: 9})
		},
	} {
		if same, err := verb(); err != nil || same.SizeBytes != 8*mib || same.Epoch != 3 {
			t.Errorf("of the same epoch: %+v, %v", same, err)
		}
	}
	ask.Epoch = 2
	_, err = d.RecreateVolume(ctx, ask)
	wantCode(t, "an epoch of the past", err, api.CodeState)
	_, err = d.RecreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-2", Epoch: 4})
	wantCode(t, "another image", err, api.CodeExists)
	for _, epoch := range []int64{5, 6} {
		ask.Epoch = epoch
		for range 2 {
			v, err := d.RecreateVolume(ctx, ask)
			if err != nil || v.SizeBytes != 2*mib || v.Epoch != epoch || v.Image != "img-1" {
				t.Errorf("anew: %+v, %v", v, err)
			}
			if got, err := d.Volume(ctx, "vol-1"); err != nil || got.Epoch != epoch || place(got.Source) != place(v.Source) {
				t.Errorf("after it: %+v, %v", got, err)
			}
		}
	}
	wantCode(t, "delete of its image", d.DeleteImage(ctx, "img-1"), api.CodeInUse)
	if err := d.DeleteVolume(ctx, "vol-1"); err != nil {
		t.Error(err)
	}
	_, err = d.RecreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: -1})
	wantCode(t, "no epoch", err, api.CodeInvalid)
}

// A volume that is to receive another's content needs no image.
func testStandalone(t *testing.T, d sds.Driver) {
	ctx := t.Context()
	v, err := d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: 4 * mib, Standalone: true})
	if err != nil || v.Image != "img-1" || !v.Standalone || v.SizeBytes != 4*mib || (v.Source.RBD == nil) != (v.Source.Format == sds.QCOW2) {
		t.Fatalf("%+v, %v", v, err)
	}
	// As the agent asks for it every minute afterwards.
	if again, err := d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: 4 * mib}); err != nil || !again.Standalone {
		t.Errorf("%+v, %v", again, err)
	}
	importImage(t, d, "img-1")
	if err := d.DeleteImage(ctx, "img-1"); err != nil {
		t.Errorf("a volume that does not read its image keeps it: %v", err)
	}
	_, err = d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-2", Image: "img-1", Standalone: true})
	wantCode(t, "no size", err, api.CodeInvalid)
}

// Owners of a driver that may be shared or not; RunShared has the rest.
func testOwners(t *testing.T, d sds.Driver) {
	ctx := t.Context()
	shared := d.Capabilities().Shared
	if shared != (d.PoolID() != "") {
		t.Errorf("shared %v, pool %q", shared, d.PoolID())
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
		t.Errorf("owner %+v, %v", got, err)
	}
	if err := d.ReleaseVolume(ctx, "vol-1", sds.Owner{Node: "node-a", Epoch: 1}); err != nil {
		t.Error(err)
	}
	for _, o := range []sds.Owner{{Epoch: 1}, {Node: "../x", Epoch: 1}, {Node: "node-a", Epoch: -1}} {
		wantCode(t, "claim by nobody", d.ClaimVolume(ctx, "vol-1", o), api.CodeInvalid)
	}
}
