// Package drivertest checks a storage driver against the contract of
// sds.Driver.
package drivertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// Limits are those that the driver under test must be created with.
var Limits = sds.Limits{MaxImageBytes: 4 << 20, MaxVirtualBytes: 1 << 40}

const mib = 1 << 20

// Run runs the suite; open creates an empty store for one test and removes it
// afterwards.
func Run(t *testing.T, open func(t *testing.T) sds.Driver) {
	for _, c := range []struct {
		name string
		test func(*testing.T, sds.Driver)
	}{
		{"Import", testImport}, {"Disc", testDisc}, {"ImportTwice", testImportTwice}, {"ImportRefuses", testImportRefuses},
		{"ImportBrokenSource", testBrokenSource}, {"Volumes", testVolumes}, {"VolumesRefused", testVolumesRefused},
		{"ImageInUse", testImageInUse}, {"Concurrent", testConcurrent}, {"Cancelled", testCancelled},
		{"Export", testExport}, {"Recreate", testRecreate}, {"Standalone", testStandalone}, {"Owners", testOwners},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// QCOW2 returns an empty but complete qcow2 image: header, refcount table,
// refcount block and L1 table, one cluster each.
func QCOW2(virtual int64) []byte {
	const cluster = 64 << 10
	b := make([]byte, 4*cluster)
	copy(b, "QFI\xfb")
	be := binary.BigEndian
	be.PutUint32(b[4:], 3)
	be.PutUint32(b[20:], 16)
	be.PutUint64(b[24:], uint64(virtual))
	be.PutUint32(b[36:], uint32((virtual+cluster*cluster/8-1)/(cluster*cluster/8)))
	be.PutUint64(b[40:], 3*cluster) // L1
	be.PutUint64(b[48:], 1*cluster) // refcount table
	be.PutUint32(b[56:], 1)
	be.PutUint32(b[96:], 4)
	be.PutUint32(b[100:], 104)
	be.PutUint64(b[cluster:], 2*cluster)
	for i := range 4 {
		be.PutUint16(b[2*cluster+2*i:], 1)
	}
	return b
}

// Raw returns a raw image that a PC would consider bootable.
func Raw(size int) []byte {
	b := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		b[i] = byte(i >> 12)
	}
	b[510], b[511] = 0x55, 0xAA
	return b
}

// location returns the location of a disk, in a file or a cluster.
func location(s sds.Source) string {
	if s.RBD != nil {
		return s.RBD.Pool + "/" + s.RBD.Image
	}
	return s.Path
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func testImport(t *testing.T, d sds.Driver) {
	ctx := t.Context()
	for id, c := range map[api.ImageID]struct {
		content []byte
		format  sds.Format
		virtual int64
	}{
		"img-q": {QCOW2(3 * mib), sds.QCOW2, 3 * mib},
		"img-r": {Raw(2 * mib), sds.Raw, 2 * mib},
		"img-s": {Raw(512), sds.Raw, 512},
	} {
		var told int64
		got, err := d.ImportImage(ctx, sds.ImageImport{
			ID: id, Format: c.format, SHA256: sum(c.content), Content: bytes.NewReader(c.content),
			Progress: func(n int64) { told = n },
		})
		if err != nil {
			t.Fatalf("ImportImage %s: %v", id, err)
		}
		want := sds.Image{ID: id, Format: c.format, SHA256: sum(c.content), SizeBytes: int64(len(c.content)), VirtualBytes: c.virtual}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(sds.Image{}, "Path")); diff != "" || got.Path == "" {
			t.Errorf("ImportImage %s: path %q, mismatch (-want +got):\n%s", id, got.Path, diff)
		}
		if told != want.SizeBytes {
			t.Errorf("ImportImage %s: last progress = %d, want %d", id, told, want.SizeBytes)
		}
		again, err := d.Image(ctx, id)
		if err != nil || again != got {
			t.Errorf("Image %s = %+v, %v, want %+v", id, again, err, got)
		}
	}
	all, err := d.Images(ctx)
	if err != nil || len(all) != 3 || all[0].ID != "img-q" || all[2].ID != "img-s" {
		t.Errorf("Images = %+v, %v, want 3 sorted by ID", all, err)
	}
	for range 2 {
		if err := d.DeleteImage(ctx, "img-q"); err != nil {
			t.Errorf("DeleteImage: %v", err)
		}
	}
	_, err = d.Image(ctx, "img-q")
	wantCode(t, "a deleted image", err, api.CodeNotFound)
}

// Disc returns a disc of at least 64 KiB that is recognized as ISO 9660.
func Disc(bytes int) []byte {
	b := make([]byte, bytes)
	copy(b[16*2048:], "\x01CD001\x01")
	return b
}

// testDisc checks that a disc is stored as it is, is exported as it is, and that
// no volume can be created from it.
func testDisc(t *testing.T, d sds.Driver) {
	content := Disc(mib)
	got, err := d.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.ISO, Content: bytes.NewReader(content)})
	want := sds.Image{ID: "img-1", Format: sds.ISO, SHA256: sum(content), SizeBytes: mib, VirtualBytes: mib, Path: got.Path}
	if err != nil || got != want {
		t.Fatalf("ImportImage = %+v, %v, want %+v", got, err, want)
	}
	f, _, err := d.ExportImage(t.Context(), "img-1")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if has, err := io.ReadAll(f); err != nil || !bytes.Equal(has, content) {
		t.Errorf("the exported disc has %d bytes, %v, want the %d that were imported", len(has), err, len(content))
	}
	_, err = d.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: 8 * mib})
	wantCode(t, "a volume of a disc", err, api.CodeInvalid)
	_, err = d.Volume(t.Context(), "vol-1")
	wantCode(t, "the volume of a disc", err, api.CodeNotFound)
	_, err = d.ImportImage(t.Context(), sds.ImageImport{ID: "img-2", Format: sds.ISO, Content: bytes.NewReader(Raw(mib))})
	wantCode(t, "a disk as a disc", err, api.CodeInvalid)
}

func testImportTwice(t *testing.T, d sds.Driver) {
	first, err := d.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(Raw(mib))})
	if err != nil {
		t.Fatal(err)
	}
	second, err := d.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: failing{}})
	if err != nil || second != first {
		t.Errorf("ImportImage of an existing image = %+v, %v, want %+v", second, err, first)
	}
}

func testImportRefuses(t *testing.T, d sds.Driver) {
	backed := QCOW2(mib)
	binary.BigEndian.PutUint64(backed[8:], 512)
	binary.BigEndian.PutUint32(backed[16:], 11)
	copy(backed[512:], "/etc/shadow")
	for name, c := range map[string]struct {
		in   sds.ImageImport
		code api.Code
	}{
		"text":         {sds.ImageImport{Format: sds.Raw, Content: bytes.NewReader(bytes.Repeat([]byte("text\n"), 512))}, api.CodeInvalid},
		"empty":        {sds.ImageImport{Format: sds.Raw, Content: bytes.NewReader(nil)}, api.CodeInvalid},
		"wrong format": {sds.ImageImport{Format: sds.QCOW2, Content: bytes.NewReader(Raw(mib))}, api.CodeInvalid},
		"backing file": {sds.ImageImport{Format: sds.QCOW2, Content: bytes.NewReader(backed)}, api.CodeInvalid},
		"checksum":     {sds.ImageImport{Format: sds.Raw, SHA256: sum(nil), Content: bytes.NewReader(Raw(mib))}, api.CodeInvalid},
		"no checksum":  {sds.ImageImport{Format: sds.Raw, SHA256: "abc", Content: bytes.NewReader(Raw(mib))}, api.CodeInvalid},
		"large file":   {sds.ImageImport{Format: sds.Raw, Content: bytes.NewReader(Raw(5 * mib))}, api.CodeTooLarge},
		"large disk":   {sds.ImageImport{Format: sds.QCOW2, Content: bytes.NewReader(QCOW2(2 << 40))}, api.CodeTooLarge},
		"no source":    {sds.ImageImport{Format: sds.Raw}, api.CodeInvalid},
		"two sources":  {sds.ImageImport{Format: sds.Raw, URL: "http://x/", Content: bytes.NewReader(nil)}, api.CodeInvalid},
		"no format":    {sds.ImageImport{Content: bytes.NewReader(Raw(mib))}, api.CodeInvalid},
		"scheme":       {sds.ImageImport{Format: sds.Raw, URL: "ftp://x/"}, api.CodeInvalid},
	} {
		c.in.ID = "img-1"
		_, err := d.ImportImage(t.Context(), c.in)
		wantCode(t, name, err, c.code)
	}
	_, err := d.ImportImage(t.Context(), sds.ImageImport{ID: "../x", Format: sds.Raw, Content: bytes.NewReader(Raw(mib))})
	wantCode(t, "a path as id", err, api.CodeInvalid)
	wantNothing(t, d)
}

// testBrokenSource checks that a source that fails in the middle leaves
// nothing, and that the next attempt succeeds.
func testBrokenSource(t *testing.T, d sds.Driver) {
	broken := io.MultiReader(bytes.NewReader(Raw(mib)[:mib/2]), failing{})
	if _, err := d.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: broken}); !errors.Is(err, errBroken) {
		t.Errorf("ImportImage of a failing source = %v, want %v", err, errBroken)
	}
	wantNothing(t, d)
	if _, err := d.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(Raw(mib))}); err != nil {
		t.Errorf("ImportImage after a failed one: %v", err)
	}
}

func testVolumes(t *testing.T, d sds.Driver) {
	ctx := t.Context()
	importImage(t, d, "img-1")
	for _, c := range []struct {
		create sds.VolumeCreate
		size   int64
	}{
		{sds.VolumeCreate{ID: "vol-1", Image: "img-1"}, 2 * mib},
		{sds.VolumeCreate{ID: "vol-2", Image: "img-1", SizeBytes: 10<<30 + 1}, 10<<30 + mib},
		{sds.VolumeCreate{ID: "vol-3", SizeBytes: 5 * mib}, 5 * mib},
	} {
		v, err := d.CreateVolume(ctx, c.create)
		if err != nil {
			t.Fatalf("CreateVolume %s: %v", c.create.ID, err)
		}
		if v.ID != c.create.ID || v.Image != c.create.Image || v.SizeBytes != c.size || location(v.Source) == "" || v.Source.Format == "" || v.AllocatedBytes <= 0 {
			t.Errorf("CreateVolume of %+v = %+v, want %d bytes and a source", c.create, v, c.size)
		}
		again, err := d.CreateVolume(ctx, c.create)
		if err != nil || location(again.Source) != location(v.Source) || again.SizeBytes != v.SizeBytes {
			t.Errorf("second CreateVolume = %+v, %v, want %+v", again, err, v)
		}
	}
	all, err := d.Volumes(ctx)
	if err != nil || len(all) != 3 || all[0].ID != "vol-1" || all[2].ID != "vol-3" {
		t.Errorf("Volumes = %+v, %v, want 3 sorted by ID", all, err)
	}
	for _, c := range []struct{ ask, size int64 }{{8*mib - 1, 8 * mib}, {8 * mib, 8 * mib}, {mib, 8 * mib}} {
		v, err := d.ResizeVolume(ctx, "vol-1", c.ask, sds.Access{})
		if err != nil || v.SizeBytes != c.size {
			t.Errorf("ResizeVolume to %d = %d, %v, want %d", c.ask, v.SizeBytes, err, c.size)
		}
	}
	if v, err := d.Volume(ctx, "vol-1"); err != nil || v.SizeBytes != 8*mib || v.Image != "img-1" {
		t.Errorf("Volume after resizing = %+v, %v, want %d bytes of img-1", v, err, 8*mib)
	}
	for range 2 {
		if err := d.DeleteVolume(ctx, "vol-1"); err != nil {
			t.Errorf("DeleteVolume: %v", err)
		}
	}
	_, err = d.Volume(ctx, "vol-1")
	wantCode(t, "a deleted volume", err, api.CodeNotFound)
	space, err := d.Space(ctx)
	if err != nil || space.TotalBytes <= 0 || space.FreeBytes <= 0 || space.FreeBytes > space.TotalBytes {
		t.Errorf("Space = %+v, %v, want 0 < free <= total", space, err)
	}
}

func testVolumesRefused(t *testing.T, d sds.Driver) {
	importImage(t, d, "img-1")
	importImage(t, d, "img-2")
	if _, err := d.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		create sds.VolumeCreate
		code   api.Code
	}{
		{sds.VolumeCreate{ID: "vol-1", Image: "img-2"}, api.CodeExists},
		{sds.VolumeCreate{ID: "vol-2", Image: "img-9"}, api.CodeNotFound},
		{sds.VolumeCreate{ID: "vol-2", Image: "img-1", SizeBytes: mib}, api.CodeInvalid},
		{sds.VolumeCreate{ID: "vol-2"}, api.CodeInvalid},
		{sds.VolumeCreate{ID: "vol-2", SizeBytes: -1}, api.CodeInvalid},
		{sds.VolumeCreate{ID: "vol-2", SizeBytes: 2 << 40}, api.CodeTooLarge},
		{sds.VolumeCreate{ID: "../../x", SizeBytes: mib}, api.CodeInvalid},
	} {
		_, err := d.CreateVolume(t.Context(), c.create)
		wantCode(t, fmt.Sprintf("%+v", c.create), err, c.code)
	}
	_, err := d.ResizeVolume(t.Context(), "vol-9", mib, sds.Access{})
	wantCode(t, "resize of a missing volume", err, api.CodeNotFound)
	_, err = d.ResizeVolume(t.Context(), "vol-1", 2<<40, sds.Access{})
	wantCode(t, "resize to too much", err, api.CodeTooLarge)
	if all, err := d.Volumes(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("Volumes = %+v, %v, want 1: rejected volumes must not remain", all, err)
	}
}

func testImageInUse(t *testing.T, d sds.Driver) {
	ctx := t.Context()
	importImage(t, d, "img-1")
	if _, err := d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1"}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "delete of an image in use", d.DeleteImage(ctx, "img-1"), api.CodeInUse)
	if err := d.DeleteVolume(ctx, "vol-1"); err != nil {
		t.Errorf("DeleteVolume: %v", err)
	}
	if err := d.DeleteImage(ctx, "img-1"); err != nil {
		t.Errorf("DeleteImage: %v", err)
	}
}

// testConcurrent checks that of many concurrent requests for the same image
// and volume all succeed.
func testConcurrent(t *testing.T, d sds.Driver) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := d.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.QCOW2, Content: bytes.NewReader(QCOW2(2 * mib))}); err != nil {
				t.Errorf("concurrent ImportImage: %v", err)
			}
			if _, err := d.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1"}); err != nil {
				t.Errorf("concurrent CreateVolume: %v", err)
			}
		})
	}
	wg.Wait()
}

func testCancelled(t *testing.T, d sds.Driver) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.ImportImage(ctx, sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(Raw(mib))}); !errors.Is(err, context.Canceled) {
		t.Errorf("ImportImage with a canceled context = %v, want context.Canceled", err)
	}
	if _, err := d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", SizeBytes: mib}); !errors.Is(err, context.Canceled) {
		t.Errorf("CreateVolume with a canceled context = %v, want context.Canceled", err)
	}
	wantNothing(t, d)
}

func importImage(t *testing.T, d sds.Driver, id api.ImageID) {
	t.Helper()
	if _, err := d.ImportImage(t.Context(), sds.ImageImport{ID: id, Format: sds.QCOW2, Content: bytes.NewReader(QCOW2(2 * mib))}); err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, what string, err error, code api.Code) {
	t.Helper()
	if err == nil || api.CodeOf(err) != code {
		t.Errorf("%s: error = %v, want code %s", what, err, code)
	}
}

func wantNothing(t *testing.T, d sds.Driver) {
	t.Helper()
	is, err := d.Images(t.Context())
	vs, err2 := d.Volumes(t.Context())
	if err := errors.Join(err, err2); err != nil || len(is)+len(vs) != 0 {
		t.Errorf("images = %v, volumes = %v, %v, want none", is, vs, err)
	}
}

var errBroken = errors.New("the source broke")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errBroken }
