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

// What dead processes left goes when it is old; what living ones make stays.
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
	sweep := func(age time.Duration) { // as a third node does when it starts
		t.Helper()
		s, err := Open(Options{Dir: b.opt.Dir, Shared: true, LeftoverAge: age})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	there := func(path string) bool { _, err := os.Stat(path); return err == nil }
	sweep(time.Hour)
	if !there(mine) || !there(dead) || !there(trash) {
		t.Error("what is young was swept")
	}
	sweep(time.Nanosecond)
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
	sweep(time.Nanosecond)
	if !there(mine) {
		t.Error("its lock was not taken again")
	}
	if err := a.lock.Close(); err != nil { // a is dead
		t.Fatal(err)
	}
	sweep(time.Nanosecond)
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
	if _, err := b.ResizeVolume(ctx, "vol-1", 2*mib, sds.Access{}); !errors.Is(err, ctx.Err()) {
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
	if all, err := s.Volumes(ctx); err != nil || len(all) != 1 || all[0].Source.Path != v.Source.Path || all[0].Epoch != 0 {
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
