package capability

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestFiles(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		cached     string // the file that cannot be opened with O_DIRECT
		uring      error
		cache, aio string
		says       string
	}{
		"all is there":       {cache: "none", aio: "io_uring"},
		"no io_uring":        {uring: refused, cache: "none", aio: "native", says: "io_uring is not available"},
		"no O_DIRECT":        {cached: "/pool/a", says: "does not support O_DIRECT"},
		"no O_DIRECT, below": {cached: "/images/b", says: "does not support O_DIRECT"},
	} {
		var log bytes.Buffer
		asked := 0
		f := Files{
			Log: slog.New(slog.NewTextHandler(&log, nil)),
			direct: func(path string) error {
				if path == c.cached {
					return refused
				}
				return nil
			},
			uring: func(context.Context) error { asked++; return c.uring },
		}
		for range 2 {
			cache, aio := f.Modes(t.Context(), []string{"/pool/a", "/images/b"})
			if cache != c.cache || aio != c.aio {
				t.Errorf("%s: Modes = cache %q, AIO %q, want %q and %q", name, cache, aio, c.cache, c.aio)
			}
		}
		if n := strings.Count(log.String(), "level="); asked > 1 || n > 1 || (n == 1) != (c.says != "") || !strings.Contains(log.String(), c.says) {
			t.Errorf("%s: io_uring was tested %d times and the log is %q, want at most one test and one line with %q", name, asked, log.String(), c.says)
		}
	}
}

// TestFilesAsksAgain checks that a test of io_uring that was canceled is not
// cached.
func TestFilesAsksAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := Files{Log: slog.New(slog.DiscardHandler), direct: func(string) error { return nil }, uring: func(ctx context.Context) error { return ctx.Err() }}
	if _, aio := f.Modes(ctx, nil); aio != "native" {
		t.Errorf("Modes with a canceled context: AIO %q, want native", aio)
	}
	if _, aio := f.Modes(t.Context(), nil); aio != "io_uring" {
		t.Errorf("Modes after a canceled call: AIO %q, want io_uring", aio)
	}
}

// TestOpensDirect checks opensDirect with a real file, a directory, a missing
// file and a file of procfs.
func TestOpensDirect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Logf("opensDirect of a file of 100 bytes in %s: %v", path, opensDirect(path)) // depends on the file system
	if err := opensDirect(filepath.Dir(path)); err == nil {
		t.Error("opensDirect of a directory = nil, want an error")
	}
	if err := opensDirect(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opensDirect of a missing file = %v, want os.ErrNotExist", err)
	}
	if err := opensDirect("/proc/self/status"); err == nil { // procfs has no O_DIRECT
		t.Error("opensDirect of a file of procfs = nil, want an error")
	}
}

func TestIOURing(t *testing.T) {
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Skip("host: qemu-img is not installed: installer/dev/setup.sh installs it")
	}
	err := ioURing(t.Context())
	t.Logf("ioURing on this machine: %v", err)
	t.Setenv("PATH", "/nonexistent")
	if err := ioURing(t.Context()); err == nil {
		t.Error("ioURing without qemu-img = nil, want an error")
	}
}
