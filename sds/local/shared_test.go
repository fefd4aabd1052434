package local

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

// pair returns two nodes' stores of one pool, each with another path.
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

// TestSharedSweep checks that the remains of dead processes are swept when
// they are old, and that those of living ones stay.
func TestSharedSweep(t *testing.T) {
	a, b := pair(t, Options{})
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
	sweep := func(age time.Duration) { // like a third node at its start
		t.Helper()
		s, err := Open(Options{Dir: b.opt.Dir, Shared: true, LeftoverAge: age})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	there := func(path string) bool { _, err := os.Stat(path); return err == nil }
	sweep(time.Hour)
	if !there(mine) || !there(dead) || !there(trash) {
		t.Errorf("existing after a sweep of old files: %v, %v, %v, want all, because they are recent", there(mine), there(dead), there(trash))
	}
	sweep(time.Nanosecond)
	if !there(mine) {
		t.Error("a directory of a living process was swept")
	}
	if there(dead) || there(trash) {
		t.Errorf("existing after the sweep: %v and %v, want nothing of dead processes", there(dead), there(trash))
	}
	// The same after the server has lost the living process's lock, once the
	// process creates something.
	if err := setLock(a.lock, sessionKey(a.session), unix.F_UNLCK); err != nil {
		t.Fatal(err)
	}
	if _, err := a.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", SizeBytes: mib}); err != nil {
		t.Fatal(err)
	}
	sweep(time.Nanosecond)
	if !there(mine) {
		t.Error("a directory of a living process was swept: it has not acquired its lock again")
	}
	if err := a.lock.Close(); err != nil { // as if a had died
		t.Fatal(err)
	}
	sweep(time.Nanosecond)
	if there(mine) {
		t.Error("the directory of a dead process exists after the sweep")
	}
	if a.lock, err = os.Open(os.DevNull); err != nil { // needed by Close
		t.Fatal(err)
	}
}

// TestLockBetweenHosts checks that a call waits for a lock of another node,
// until its context or its patience ends.
func TestLockBetweenHosts(t *testing.T) {
	a, b := pair(t, Options{})
	if _, err := a.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", SizeBytes: mib}); err != nil {
		t.Fatal(err)
	}
	unlock, err := a.locks.Lock(t.Context(), volumes+"/vol-1", lockExclusive)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := b.DeleteVolume(ctx, "vol-1"); !errors.Is(err, ctx.Err()) || ctx.Err() == nil {
		t.Errorf("DeleteVolume while the lock is held = %v, want %v", err, ctx.Err())
	}
	if _, err := b.ResizeVolume(ctx, "vol-1", 2*mib, sds.Access{}); !errors.Is(err, ctx.Err()) {
		t.Errorf("ResizeVolume while the lock is held = %v, want %v", err, ctx.Err())
	}
	b.locks.patience = 50 * time.Millisecond // as with a frozen node
	if err := b.DeleteVolume(t.Context(), "vol-1"); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("DeleteVolume with a lock that is never free = %v, want unavailable", err)
	}
	b.locks.patience = lockWait
	done := make(chan error, 1)
	go func() { done <- b.DeleteVolume(t.Context(), "vol-1") }()
	unlock()
	if err := <-done; err != nil {
		t.Errorf("DeleteVolume after the lock was released: %v", err)
	}
	one, err := a.locks.Lock(t.Context(), images+"/img-1", lockShared)
	if err != nil {
		t.Fatal(err)
	}
	defer one()
	two, err := b.locks.Lock(t.Context(), images+"/img-1", lockShared)
	if err != nil {
		t.Fatalf("second shared lock: %v", err)
	}
	two()
}

// TestFullSharedDisk fills a real disk of a shared pool: nothing incomplete
// remains, existing objects can be deleted, and the pool continues to work.
func TestFullSharedDisk(t *testing.T) {
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
		t.Fatalf("write to the disk = %v, want ENOSPC", err)
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
			t.Errorf("%s on a full disk = %v, want insufficient_disk", name, err)
		}
	}
	if all, err := s.Volumes(ctx); err != nil || len(all) != 1 || all[0].Source.Path != v.Source.Path || all[0].Epoch != 0 {
		t.Errorf("Volumes on a full disk = %+v, %v, want vol-1 unchanged", all, err)
	}
	if o, err := s.Owner(ctx, "vol-1"); err != nil || o != (sds.Owner{}) {
		t.Errorf("Owner on a full disk = %+v, %v, want none", o, err)
	}
	if err := s.DeleteVolume(ctx, "vol-1"); err != nil {
		t.Errorf("DeleteVolume on a full disk: %v", err)
	}
	if err := errors.Join(s.DeleteImage(ctx, "img-1"), os.Remove(fill)); err != nil {
		t.Errorf("DeleteImage on a full disk: %v", err)
	}
	if _, err := s.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-2", SizeBytes: mib}); err != nil {
		t.Errorf("CreateVolume when there is space again: %v", err)
	}
}
