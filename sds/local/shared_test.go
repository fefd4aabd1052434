package local

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

// pair is one pool as two nodes see it, each under a path of its own.
func pair(t *testing.T, opt Options) (a, b *Store) {
	t.Helper()
	base := t.TempDir()
	opt.Shared, opt.Dir = true, filepath.Join(base, "a")
	if err := os.Mkdir(opt.Dir, 0o711); err != nil {
		t.Fatal(err)
	}
	a = open(t, opt)
	opt.Dir = filepath.Join(base, "b")
	if err := os.Symlink("a", opt.Dir); err != nil {
		t.Fatal(err)
	}
	return a, open(t, opt)
}

func TestSharedConformance(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) sds.Driver {
		return open(t, Options{Dir: t.TempDir(), Shared: true, Limits: drivertest.Limits})
	})
	drivertest.RunShared(t, func(t *testing.T) (sds.Driver, sds.Driver) { return pair(t, Options{Limits: drivertest.Limits}) })
}

// A pool that is not mounted is never taken for an empty one.
func TestPoolThatIsAway(t *testing.T) {
	base := t.TempDir()
	dir, remember := filepath.Join(base, "pool"), filepath.Join(base, "remember")
	opt := Options{Dir: dir, Shared: true, Remember: remember}
	if _, err := Open(opt); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("a directory that is missing: %v", err)
	}
	mkdir := func() {
		t.Helper()
		if err := os.Mkdir(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	mkdir()
	s := open(t, opt)
	ctx := t.Context()
	if _, err := s.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", SizeBytes: mib}); err != nil {
		t.Fatal(err)
	}
	// As umount does it: an empty folder is left.
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	mkdir()
	owner := sds.Owner{Node: "node-a", Epoch: 1}
	for name, verb := range map[string]func() error{
		"Volume":        func() error { _, err := s.Volume(ctx, "vol-1"); return err },
		"Volumes":       func() error { _, err := s.Volumes(ctx); return err },
		"Images":        func() error { _, err := s.Images(ctx); return err },
		"Space":         func() error { _, err := s.Space(ctx); return err },
		"Owner":         func() error { _, err := s.Owner(ctx, "vol-1"); return err },
		"ClaimVolume":   func() error { return s.ClaimVolume(ctx, "vol-1", owner) },
		"ReleaseVolume": func() error { return s.ReleaseVolume(ctx, "vol-1", owner) },
		"DeleteVolume":  func() error { return s.DeleteVolume(ctx, "vol-1") },
		"DeleteImage":   func() error { return s.DeleteImage(ctx, "img-1") },
		"ExportImage":   func() error { _, _, err := s.ExportImage(ctx, "img-1"); return err },
		"ResizeVolume":  func() error { _, err := s.ResizeVolume(ctx, "vol-1", 2*mib); return err },
		"CreateVolume": func() error {
			_, err := s.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-2", SizeBytes: mib})
			return err
		},
		"RecreateVolume": func() error {
			_, err := s.RecreateVolume(ctx, sds.VolumeCreate{ID: "vol-2", SizeBytes: mib, Epoch: 1})
			return err
		},
		"ImportImage": func() error {
			_, err := s.ImportImage(ctx, sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(drivertest.Raw(512))})
			return err
		},
		"Open": func() error { _, err := Open(opt); return err },
	} {
		err := verb()
		var e *api.Error
		if api.CodeOf(err) != api.CodeUnavailable || !errors.As(err, &e) || !strings.Contains(e.Hint, "mount") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the mount point was written to: %v, %v", left, err)
	}
	// Another pool in its place.
	other := open(t, Options{Dir: dir, Shared: true})
	if other.PoolID() == s.PoolID() {
		t.Error("two pools have one name")
	}
	if _, err := s.Volumes(ctx); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("another pool was taken for it: %v", err)
	}
	if _, err := Open(opt); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("another pool was taken for the one that is remembered: %v", err)
	}
	// And the right one comes back.
	if err := errors.Join(os.Rename(dir, dir+"-other"), os.Rename(dir+"-away", dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Volume(ctx, "vol-1"); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	if again := open(t, opt); again.PoolID() != s.PoolID() {
		t.Error("the pool has changed its name")
	}
}

// Nodes that find the directory empty at the same time make one pool.
func TestPoolIsMadeOnce(t *testing.T) {
	for range 10 {
		dir := t.TempDir()
		all := make([]*Store, 8)
		var wg sync.WaitGroup
		for i := range all {
			wg.Go(func() {
				s, err := Open(Options{Dir: dir, Shared: true})
				if err != nil {
					t.Error(err)
					return
				}
				all[i] = s
			})
		}
		wg.Wait()
		for _, s := range all {
			if s == nil || all[0] == nil {
				t.Fatal("not all are open")
			}
			if s.PoolID() != all[0].PoolID() {
				t.Errorf("pools %s and %s in one directory", s.PoolID(), all[0].PoolID())
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestWhatIsNoPool(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir, Shared: true}); api.CodeOf(err) != api.CodeState {
		t.Errorf("somebody's files: %v", err)
	}
	own := t.TempDir()
	open(t, Options{Dir: own})
	if _, err := Open(Options{Dir: own, Shared: true}); api.CodeOf(err) != api.CodeState {
		t.Errorf("a node's own store: %v", err)
	}
	shared := t.TempDir()
	open(t, Options{Dir: shared, Shared: true})
	if _, err := Open(Options{Dir: shared}); api.CodeOf(err) != api.CodeState {
		t.Errorf("a shared pool as a node's own: %v", err)
	}
	for _, text := range []string{"{}", "no JSON", `{"version":9,"id":"x"}`} {
		if err := os.WriteFile(filepath.Join(shared, markerName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{Dir: shared, Shared: true}); err == nil {
			t.Errorf("marker %q was taken", text)
		}
	}
}

// Whoever asks a server that hangs is told so, and a cancelled one at once.
func TestServerThatHangs(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), Shared: true})
	file := filepath.Join(s.opt.Dir, markerName)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)); err != nil { // whose reader waits for a writer
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Space(ctx); !errors.Is(err, ctx.Err()) {
		t.Errorf("cancelled: %v", err)
	}
	if !testing.Short() {
		if _, err := s.Space(t.Context()); api.CodeOf(err) != api.CodeUnavailable {
			t.Errorf("it hangs: %v", err)
		}
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(raw)
	if err := errors.Join(err, f.Close(), os.Remove(file), os.WriteFile(file, raw, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Space(t.Context()); err != nil {
		t.Errorf("when it answers again: %v", err)
	}
}

// What dead processes left goes when it is old; what living ones make stays.
func TestSharedSweep(t *testing.T) {
	a, b := pair(t, Options{LeftoverAge: time.Hour})
	mine, err := a.temp(images)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(mine)
	dead := filepath.Join(a.opt.Dir, images, newPrefix+"dead-1")
	trash := filepath.Join(a.opt.Dir, volumes, oldPrefix+"dead-2")
	for _, dir := range []string{dead, trash} {
		if err := os.MkdirAll(filepath.Join(dir, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func() {
		t.Helper()
		for _, sub := range []string{images, volumes} {
			if err := b.sweep(t.Context(), sub); err != nil {
				t.Fatal(err)
			}
		}
	}
	there := func(path string) bool { _, err := os.Stat(path); return err == nil }
	sweep()
	if !there(mine) || !there(dead) || !there(trash) {
		t.Error("what is young was swept")
	}
	b.opt.LeftoverAge = 0
	sweep()
	if !there(mine) {
		t.Error("what a living process makes was swept")
	}
	if there(dead) || there(trash) {
		t.Error("what dead processes left is still there")
	}
	// Also after the server has lost the living one's lock, and it makes more.
	if err := setLock(a.lock, sessionKey(a.session), unix.F_UNLCK); err != nil {
		t.Fatal(err)
	}
	if _, err := a.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", SizeBytes: mib}); err != nil {
		t.Fatal(err)
	}
	sweep()
	if !there(mine) {
		t.Error("its lock was not taken again")
	}
	if err := a.lock.Close(); err != nil { // a is dead
		t.Fatal(err)
	}
	sweep()
	if there(mine) {
		t.Error("what it left is still there")
	}
	if a.lock, err = os.Open(os.DevNull); err != nil { // for Close
		t.Fatal(err)
	}
}

// A lock that another host has is waited for, until the caller gives up.
func TestLockBetweenHosts(t *testing.T) {
	a, b := pair(t, Options{})
	if _, err := a.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", SizeBytes: mib}); err != nil {
		t.Fatal(err)
	}
	unlock, err := a.locks.Lock(t.Context(), volumes+"/vol-1", alone)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := b.DeleteVolume(ctx, "vol-1"); !errors.Is(err, ctx.Err()) || ctx.Err() == nil {
		t.Errorf("the lock was not waited for: %v", err)
	}
	if _, err := b.ResizeVolume(ctx, "vol-1", 2*mib); !errors.Is(err, ctx.Err()) {
		t.Errorf("the lock was not waited for: %v", err)
	}
	b.locks.patience = 50 * time.Millisecond // with a node that is frozen
	if err := b.DeleteVolume(t.Context(), "vol-1"); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("a lock that is never free: %v", err)
	}
	b.locks.patience = lockWait
	done := make(chan error, 1)
	go func() { done <- b.DeleteVolume(t.Context(), "vol-1") }()
	unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
	one, err := a.locks.Lock(t.Context(), images+"/img-1", among)
	if err != nil {
		t.Fatal(err)
	}
	defer one()
	two, err := b.locks.Lock(t.Context(), images+"/img-1", among)
	if err != nil {
		t.Fatalf("two readers: %v", err)
	}
	two()
}

// Ephemeral roots: what was written is gone, the size is the image's, and
// nothing is left of the old disk.
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
		qemu(t, "qemu-io", "-f", "qcow2", "-c", "write -P 0x77 0 1M", v.Path)
		// As if an earlier try had died of it.
		for _, name := range []string{"disk-4", "." + metaName} {
			if err := os.WriteFile(filepath.Join(filepath.Dir(v.Path), name), []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.OpenFile(v.Path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		lk := unix.Flock_t{Type: unix.F_RDLCK, Start: 100, Len: 2} // as QEMU does
		if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk); err != nil {
			t.Fatal(err)
		}
		if _, err := s.RecreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: 4}); api.CodeOf(err) != api.CodeInUse {
			t.Errorf("under a running instance: %v", err)
		}
		_ = f.Close()
		anew, err := s.RecreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: 4})
		if err != nil {
			t.Fatal(err)
		}
		if got := flat(t, anew.Path); !bytes.Equal(got, content) {
			t.Error("the volume still has what was written to it")
		}
		names, err := filepath.Glob(filepath.Join(filepath.Dir(v.Path), "*"))
		if err != nil || len(names) != 2 {
			t.Errorf("left behind: %v, %v", names, err)
		}
	}
}

// A live migration with its disks: the target's volume has no backing file,
// takes the whole content, and outlives the image.
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
	qemu(t, "qemu-io", "-f", "qcow2", "-c", "write -P 0x77 1M 64k", from.Path)
	to, err := target.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: from.SizeBytes, Standalone: true})
	if err != nil || to.SizeBytes != from.SizeBytes || to.Format != from.Format {
		t.Fatalf("%+v, %v", to, err)
	}
	// What the migration's full mirror does, into the file that is there.
	qemu(t, "qemu-img", "convert", "-n", "-f", "qcow2", "-O", "qcow2", from.Path, to.Path)
	if out := qemu(t, "qemu-img", "info", to.Path); strings.Contains(out, "backing") {
		t.Errorf("the copy has a backing file: %s", out)
	}
	if got, want := flat(t, to.Path), flat(t, from.Path); !bytes.Equal(got, want) || int64(len(got)) != from.SizeBytes {
		t.Errorf("the copy of %d bytes differs from the %d of the source", len(got), len(want))
	}
	if v, err := target.Volume(t.Context(), "vol-1"); err != nil || v.Image != "img-1" || !v.Standalone {
		t.Errorf("%+v, %v", v, err)
	}
}

// An image goes from one node's store to another's as it is.
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
	if err := source.DeleteImage(t.Context(), "img-1"); err != nil { // in the middle of it
		t.Fatal(err)
	}
	got, err := target.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: img.Format, SHA256: img.SHA256, SizeBytes: img.SizeBytes, Content: r})
	put.Path, got.Path = "", ""
	if err != nil || got != put {
		t.Errorf("%+v became %+v, %v", put, got, err)
	}
}

// A real full disk under a shared pool: nothing half-done stays, what is there
// can be deleted, and the pool goes on.
func TestFullSharedDisk(t *testing.T) {
	needTools(t)
	dir := t.TempDir()
	if err := unix.Mount("basalt-test", dir, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("host: a tmpfs cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := open(t, Options{Dir: dir, Shared: true})
	ctx := t.Context()
	put := sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(drivertest.Raw(mib))}
	if _, err := s.ImportImage(ctx, put); err != nil {
		t.Fatal(err)
	}
	v, err := s.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1"})
	if err != nil {
		t.Fatal(err)
	}
	fill := filepath.Join(dir, "fill")
	if err := os.WriteFile(fill, make([]byte, 4*mib), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	for name, verb := range map[string]func() error{
		"create": func() error { _, err := s.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-2", SizeBytes: mib}); return err },
		"recreate": func() error {
			_, err := s.RecreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: 1})
			return err
		},
		"claim": func() error { return s.ClaimVolume(ctx, "vol-1", sds.Owner{Node: "node-a", Epoch: 1}) },
		"import": func() error {
			_, err := s.ImportImage(ctx, sds.ImageImport{ID: "img-2", Format: sds.Raw, Content: bytes.NewReader(drivertest.Raw(mib))})
			return err
		},
	} {
		if err := verb(); api.CodeOf(err) != api.CodeDiskFull {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := s.Volumes(ctx); err != nil || len(all) != 1 || all[0].Path != v.Path || all[0].Epoch != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if o, err := s.Owner(ctx, "vol-1"); err != nil || o != (sds.Owner{}) {
		t.Errorf("owner %+v, %v", o, err)
	}
	if err := s.DeleteVolume(ctx, "vol-1"); err != nil {
		t.Errorf("delete on a full disk: %v", err)
	}
	if err := errors.Join(s.DeleteImage(ctx, "img-1"), os.Remove(fill)); err != nil {
		t.Error(err)
	}
	if _, err := s.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-2", SizeBytes: mib}); err != nil {
		t.Errorf("create when there is room again: %v", err)
	}
}

func qemu(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

// flat is what an instance reads.
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
