package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

const mib = 1 << 20

func needTools(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"qemu-img", "prlimit"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("host: %s is not installed: installer/dev/setup.sh installs it", tool)
		}
	}
}

func open(t *testing.T, opt Options) *Store {
	t.Helper()
	needTools(t)
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	s, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close()
		for _, pattern := range []string{"*/.new-*", "*/.old-*"} {
			if left, _ := filepath.Glob(filepath.Join(opt.Dir, pattern)); len(left) > 0 {
				t.Errorf("left behind: %v, want nothing", left)
			}
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) sds.Driver { return open(t, Options{Limits: drivertest.Limits}) })
}

func TestReopenKeepsAndSweeps(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	if _, err := Open(Options{Dir: dir}); api.CodeOf(err) != api.CodeInUse {
		t.Errorf("second Open = %v, want in_use", err)
	}
	img, err := s.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.QCOW2, Content: bytes.NewReader(drivertest.QCOW2(mib))})
	if err != nil {
		t.Fatal(err)
	}
	vol, err := s.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1"})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	for _, p := range []string{"images/.new-img-2-1/disk", "volumes/.old-vol-2-1/x/disk"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, p)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, p), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, Options{Dir: dir}) // its clean-up checks for leftovers
	if got, err := s.Image(t.Context(), "img-1"); err != nil || got != img {
		t.Errorf("Image after reopening = %+v, %v, want %+v", got, err, img)
	}
	if got, err := s.Volume(t.Context(), "vol-1"); err != nil || !cmp.Equal(got, vol) {
		t.Errorf("Volume after reopening = %+v, %v, want %+v", got, err, vol)
	}
}

// TestOverlayAfterMigration checks that an overlay reads the image's
// content, also when the store has been moved.
func TestOverlayAfterMigration(t *testing.T) {
	base := t.TempDir()
	s := open(t, Options{Dir: filepath.Join(base, "a")})
	content := drivertest.Raw(2 * mib)
	if _, err := s.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(content)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1"}); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if err := os.Rename(filepath.Join(base, "a"), filepath.Join(base, "b")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(base, "out")
	if msg, err := exec.Command("qemu-img", "convert", "-O", "raw", filepath.Join(base, "b/volumes/vol-1/disk"), out).CombinedOutput(); err != nil {
		t.Fatalf("qemu-img convert: %v: %s", err, msg)
	}
	if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the content of the volume differs from its image (%v)", err)
	}
}

func TestZerosTakeNoRoom(t *testing.T) {
	s := open(t, Options{})
	content := make([]byte, 64*mib)
	content[510], content[511], content[len(content)-1] = 0x55, 0xAA, 1
	img, err := s.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(content)})
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(img.Path, &st); err != nil || st.Blocks*512 > 4*mib {
		t.Errorf("an image of 64 MiB of zeros uses %d bytes (%v), want at most %d", st.Blocks*512, err, 4*mib)
	}
	if got, err := os.ReadFile(img.Path); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the content of the image has changed (%v)", err)
	}
}

func TestUsedVolumeIsLeftAlone(t *testing.T) {
	s := open(t, Options{})
	v, err := s.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", SizeBytes: mib})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(v.Source.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// As QEMU does for a disk that it writes to.
	lk := unix.Flock_t{Type: unix.F_RDLCK, Start: 100, Len: 2}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk); err != nil {
		t.Skipf("host: open-file-description locks are not supported: %v", err)
	}
	if err := s.DeleteVolume(t.Context(), "vol-1"); api.CodeOf(err) != api.CodeInUse {
		t.Errorf("DeleteVolume of an open volume = %v, want in_use", err)
	}
	if _, err := s.ResizeVolume(t.Context(), "vol-1", 2*mib, sds.Access{}); api.CodeOf(err) != api.CodeInUse {
		t.Errorf("ResizeVolume of an open volume = %v, want in_use", err)
	}
	_ = f.Close()
	if err := s.DeleteVolume(t.Context(), "vol-1"); err != nil {
		t.Errorf("DeleteVolume of a closed volume: %v", err)
	}
}

// TestDamagedTablesAreRefused checks damage that only qemu-img detects: tables
// with invalid references.
func TestDamagedTablesAreRefused(t *testing.T) {
	s := open(t, Options{})
	long := filepath.Join(t.TempDir(), "long.qcow2")
	if out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", "-o", "preallocation=falloc", long, "8M").CombinedOutput(); err != nil {
		t.Fatalf("qemu-img create: %v: %s", err, out)
	}
	cut, err := os.ReadFile(long)
	if err != nil {
		t.Fatal(err)
	}
	cut = cut[:len(cut)/2]
	twisted := drivertest.QCOW2(mib)
	binary.BigEndian.PutUint64(twisted[3*64<<10:], 1<<63|1<<50)
	refcount := drivertest.QCOW2(mib)
	binary.BigEndian.PutUint64(refcount[48:], 1<<50)
	for name, content := range map[string][]byte{"cut": cut, "l1": twisted, "refcount": refcount} {
		_, err := s.ImportImage(t.Context(), sds.ImageImport{ID: api.ImageID(name), Format: sds.QCOW2, Content: bytes.NewReader(content)})
		if api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("ImportImage of %s = %v, want invalid", name, err)
		}
		var e *api.Error
		if errors.As(err, &e) && strings.Contains(e.Error(), s.opt.Dir) {
			t.Errorf("the error of %s contains paths of the node: %v", name, e)
		}
	}
}

func TestReserveIsKept(t *testing.T) {
	s := open(t, Options{ReserveBytes: 1 << 60})
	_, err := s.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(drivertest.Raw(mib))})
	if api.CodeOf(err) != api.CodeDiskFull {
		t.Errorf("ImportImage into the reserve = %v, want insufficient_disk", err)
	}
	if _, err := s.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", SizeBytes: mib}); api.CodeOf(err) != api.CodeDiskFull {
		t.Errorf("CreateVolume in the reserve = %v, want insufficient_disk", err)
	}
}

// TestFullDisk fills a real disk: nothing incomplete remains, and the store
// continues to work.
func TestFullDisk(t *testing.T) {
	needTools(t)
	dir := t.TempDir()
	if err := unix.Mount("basalt-test", dir, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("host: cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	s := open(t, Options{Dir: dir})
	content := bytes.Repeat(drivertest.Raw(4096), 4*mib/4096)
	_, err := s.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(content)})
	if api.CodeOf(err) != api.CodeDiskFull {
		t.Errorf("ImportImage larger than the disk = %v, want insufficient_disk", err)
	}
	fill := filepath.Join(dir, "fill")
	if err := os.WriteFile(fill, make([]byte, 4*mib), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("write to the disk = %v, want ENOSPC", err)
	}
	if _, err := s.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", SizeBytes: mib}); api.CodeOf(err) != api.CodeDiskFull {
		t.Errorf("CreateVolume on a full disk = %v, want insufficient_disk", err)
	}
	_ = os.Remove(fill)
	if _, err := s.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", SizeBytes: mib}); err != nil {
		t.Errorf("CreateVolume when there is space again: %v", err)
	}
}

func TestFetch(t *testing.T) {
	content := drivertest.Raw(mib)
	mux := http.NewServeMux()
	mux.HandleFunc("/image", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1048576")
		_, _ = w.Write(content[:1000])
	})
	mux.HandleFunc("/huge", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "99999999999999")
		_, _ = w.Write(content)
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/image", http.StatusFound) })
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	local := filepath.Join(t.TempDir(), "i.raw")
	if err := os.WriteFile(local, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{URLs: outbound.Options{Policy: outbound.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}, AllowFileURL: true})
	for url, code := range map[string]api.Code{
		srv.URL + "/image": "", srv.URL + "/away": "", "file://" + local: "",
		srv.URL + "/cut": api.CodeUnavailable, srv.URL + "/huge": api.CodeTooLarge, srv.URL + "/none": api.CodeInvalid,
		srv.URL + "/loop": api.CodeInvalid, srv.URL + "/file": api.CodeInvalid, "file:///nowhere": api.CodeInvalid,
		"file:///dev/zero": api.CodeInvalid, "http://127.0.0.1:1/": api.CodeUnavailable,
	} {
		_, err := s.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, URL: url})
		if code == "" && err != nil || code != "" && (err == nil || api.CodeOf(err) != code) {
			t.Errorf("ImportImage of %s = %v, want code %q", url, err, code)
		}
		if err := s.DeleteImage(t.Context(), "img-1"); err != nil {
			t.Fatal(err)
		}
	}
	strict := open(t, Options{})
	for _, url := range []string{srv.URL + "/image", "file://" + local} {
		if _, err := strict.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, URL: url}); api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("ImportImage of %s with strict options = %v, want invalid", url, err)
		}
	}
}
