package local

import (
	"bytes"
	"context"
	"errors"
	"os"
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

// TestPoolThatIsAway checks that a pool that is not mounted is never mistaken
// for an empty one.
func TestPoolThatIsAway(t *testing.T) {
	base := t.TempDir()
	dir, remember := filepath.Join(base, "pool"), filepath.Join(base, "remember")
	opt := Options{Dir: dir, Shared: true, Remember: remember}
	if _, err := Open(opt); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("Open of a missing directory = %v, want unavailable", err)
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
	// Like umount: an empty directory is left.
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
		"ResizeVolume":  func() error { _, err := s.ResizeVolume(ctx, "vol-1", 2*mib, sds.Access{}); return err },
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
			t.Errorf("%s without the mount = %v, want unavailable with a hint about the mount", name, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("files in the mount point = %v, %v, want none", left, err)
	}
	// Another pool in its place.
	other := open(t, Options{Dir: dir, Shared: true})
	if other.PoolID() == s.PoolID() {
		t.Errorf("two pools have the same ID %s", s.PoolID())
	}
	if _, err := s.Volumes(ctx); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("Volumes with another pool in its place = %v, want unavailable", err)
	}
	if _, err := Open(opt); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("Open with another pool than the remembered one = %v, want unavailable", err)
	}
	// The right pool is mounted again.
	if err := errors.Join(os.Rename(dir, dir+"-other"), os.Rename(dir+"-away", dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Volume(ctx, "vol-1"); err != nil {
		t.Errorf("Volume after the pool was mounted again: %v", err)
	}
	if again := open(t, opt); again.PoolID() != s.PoolID() {
		t.Errorf("pool ID = %s, want %s as before", again.PoolID(), s.PoolID())
	}
}

// TestPoolIsMadeOnce checks that nodes that find the directory empty at the
// same time create one pool.
func TestPoolIsMadeOnce(t *testing.T) {
	for range 10 {
		dir := t.TempDir()
		all := make([]*Store, 8)
		var wg sync.WaitGroup
		for i := range all {
			wg.Go(func() {
				s, err := Open(Options{Dir: dir, Shared: true})
				if err != nil {
					t.Errorf("Open: %v", err)
					return
				}
				all[i] = s
			})
		}
		wg.Wait()
		for _, s := range all {
			if s == nil || all[0] == nil {
				t.Fatal("not all nodes could open the pool")
			}
			if s.PoolID() != all[0].PoolID() {
				t.Errorf("pool IDs %s and %s in one directory, want one", s.PoolID(), all[0].PoolID())
			}
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
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
		t.Errorf("Open of a directory with other files = %v, want wrong_state", err)
	}
	own := t.TempDir()
	open(t, Options{Dir: own})
	if _, err := Open(Options{Dir: own, Shared: true}); api.CodeOf(err) != api.CodeState {
		t.Errorf("Open of a node's own store as shared = %v, want wrong_state", err)
	}
	shared := t.TempDir()
	open(t, Options{Dir: shared, Shared: true})
	if _, err := Open(Options{Dir: shared}); api.CodeOf(err) != api.CodeState {
		t.Errorf("Open of a shared pool as a node's own = %v, want wrong_state", err)
	}
	for _, text := range []string{"{}", "no JSON", `{"version":9,"id":"x"}`} {
		if err := os.WriteFile(filepath.Join(shared, markerName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{Dir: shared, Shared: true}); err == nil {
			t.Errorf("Open with marker %q = nil, want an error", text)
		}
	}
}

// TestServerThatHangs checks that a call to a server that hangs returns an
// error, and at once if its context is canceled.
func TestServerThatHangs(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), Shared: true})
	file := filepath.Join(s.opt.Dir, markerName)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)); err != nil { // its reader waits for a writer
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Space(ctx); !errors.Is(err, ctx.Err()) {
		t.Errorf("Space with a canceled context = %v, want %v", err, ctx.Err())
	}
	if !testing.Short() {
		if _, err := s.Space(t.Context()); api.CodeOf(err) != api.CodeUnavailable {
			t.Errorf("Space of a server that hangs = %v, want unavailable", err)
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
		t.Errorf("Space after the server responds again: %v", err)
	}
}
