package local

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

// TestRecreateForgets checks recreated ephemeral root disks: written data is
// discarded, the size is the image's, and nothing is left of the old disk.
func TestRecreateForgets(t *testing.T) {
	for _, shared := range []bool{false, true} {
		s := open(t, Options{Dir: t.TempDir(), Shared: shared})
		content := drivertest.Raw(2 * mib)
		if _, err := s.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(content)}); err != nil {
			t.Fatal(err)
		}
		v, err := s.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1"})
		if err != nil {
			t.Fatal(err)
		}
		qemu(t, "qemu-io", "-f", "qcow2", "-c", "write -P 0x77 0 1M", v.Source.Path)
		// As if an earlier attempt had been interrupted.
		for _, name := range []string{"disk-4", ".new-1"} {
			if err := os.WriteFile(filepath.Join(filepath.Dir(v.Source.Path), name), []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.OpenFile(v.Source.Path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		lk := unix.Flock_t{Type: unix.F_RDLCK, Start: 100, Len: 2} // as QEMU does
		if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk); err != nil {
			t.Fatal(err)
		}
		if _, err := s.RecreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: 4}); api.CodeOf(err) != api.CodeInUse {
			t.Errorf("RecreateVolume under a running instance = %v, want in_use", err)
		}
		_ = f.Close()
		anew, err := s.RecreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: 4})
		if err != nil {
			t.Fatal(err)
		}
		if got := flat(t, anew.Source.Path); !bytes.Equal(got, content) {
			t.Error("the recreated volume still has written data, want the content of its image")
		}
		names, err := filepath.Glob(filepath.Join(filepath.Dir(v.Source.Path), "*"))
		if err != nil || len(names) != 2 {
			t.Errorf("files of the volume = %v, %v, want 2", names, err)
		}
	}
}

// TestStandaloneTakesACopy simulates a live migration with disks: the target's
// volume has no backing file, gets the whole content, and outlives the image.
func TestStandaloneTakesACopy(t *testing.T) {
	source, target := open(t, Options{}), open(t, Options{})
	content := drivertest.Raw(2 * mib)
	if _, err := source.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(content)}); err != nil {
		t.Fatal(err)
	}
	from, err := source.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: 5 * mib})
	if err != nil {
		t.Fatal(err)
	}
	qemu(t, "qemu-io", "-f", "qcow2", "-c", "write -P 0x77 1M 64k", from.Source.Path)
	to, err := target.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: from.SizeBytes, Standalone: true})
	if err != nil || to.SizeBytes != from.SizeBytes || to.Source.Format != from.Source.Format {
		t.Fatalf("standalone volume = %+v, %v, want the size and format of %+v", to, err, from)
	}
	// As the migration's full mirror does, into the existing file.
	qemu(t, "qemu-img", "convert", "-n", "-f", "qcow2", "-O", "qcow2", from.Source.Path, to.Source.Path)
	if out := qemu(t, "qemu-img", "info", to.Source.Path); strings.Contains(out, "backing") {
		t.Errorf("the copy has a backing file, want none: %s", out)
	}
	if got, want := flat(t, to.Source.Path), flat(t, from.Source.Path); !bytes.Equal(got, want) || int64(len(got)) != from.SizeBytes {
		t.Errorf("the copy of %d bytes differs from the source of %d", len(got), len(want))
	}
	if v, err := target.Volume(t.Context(), "vol-1"); err != nil || v.Image != "img-1" || !v.Standalone {
		t.Errorf("Volume = %+v, %v, want standalone with image img-1", v, err)
	}
}

// TestImageGoesToAnotherNode checks that an image is transferred unchanged
// from one node's store to another's.
func TestImageGoesToAnotherNode(t *testing.T) {
	source, target := open(t, Options{}), open(t, Options{})
	put, err := source.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.QCOW2, Content: bytes.NewReader(drivertest.QCOW2(2 * mib))})
	if err != nil {
		t.Fatal(err)
	}
	r, img, err := source.ExportImage(t.Context(), "img-1")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := source.DeleteImage(t.Context(), "img-1"); err != nil { // during the transfer
		t.Fatal(err)
	}
	got, err := target.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: img.Format, SHA256: img.SHA256, SizeBytes: img.SizeBytes, Content: r})
	put.Path, got.Path = "", ""
	if err != nil || got != put {
		t.Errorf("transferred image = %+v, %v, want %+v", got, err, put)
	}
}

func qemu(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("run %v: %v: %s", args, err, out)
	}
	return string(out)
}

// flat returns the content as an instance reads it.
func flat(t *testing.T, disk string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "flat")
	qemu(t, "qemu-img", "convert", "-f", "qcow2", "-O", "raw", disk, out)
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
