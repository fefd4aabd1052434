package storagedaemon

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func needTools(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"qemu-img", "qemu-storage-daemon"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("host: %s is not installed: installer/dev/setup.sh installs it", tool)
		}
	}
}

func disk(t *testing.T) map[string]any {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	if out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", path, "1M").CombinedOutput(); err != nil {
		t.Fatalf("qemu-img create: %v: %s", err, out)
	}
	return map[string]any{"driver": "qcow2", "file": map[string]any{"driver": "file", "filename": path}}
}

// TestMount checks that data written to the file is on the disk, and that the
// file is removed with the daemon, also when that is killed.
func TestMount(t *testing.T) {
	needTools(t)
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil || os.Getuid() != 0 {
		t.Skipf("host: FUSE cannot be used by this user: %v", err)
	} else {
		_ = f.Close()
	}
	ctx, node := t.Context(), disk(t)
	content := bytes.Repeat([]byte("content"), 1000)
	for i, kill := range []bool{false, true, false} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		d, err := Start(ctx, dir, map[string][]byte{"k": []byte("secret")})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Open(ctx, "disk", node); err != nil {
			t.Fatal(err)
		}
		file, err := d.Mount(ctx, "disk", true)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			got := make([]byte, len(content))
			if _, err := f.ReadAt(got, 4096); err != nil || !bytes.Equal(got, content) {
				t.Errorf("round %d: the file's content differs from the written one, %v", i, err)
			}
		}
		if _, err := f.WriteAt(content, 4096); err != nil {
			t.Errorf("write to the file: %v", err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			t.Errorf("close the file: %v", err)
		}
		if kill {
			if err := syscall.Kill(d.Pid(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-d.Done()
			if err := d.Do(ctx, "query-jobs", nil, nil); err == nil {
				t.Error("Do on a killed daemon = nil, want an error")
			}
			if err := Sweep(dir); err != nil {
				t.Errorf("Sweep: %v", err)
			}
		} else if err := errors.Join(d.Close(), Sweep(dir)); err != nil {
			t.Errorf("Close and Sweep: %v", err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("stat of %v after Sweep = %v, want not exist", dir, err)
		}
	}
}

// TestRefused checks that errors of the daemon are returned, and that its
// arguments contain no secret.
func TestRefused(t *testing.T) {
	needTools(t)
	d, err := Start(t.Context(), t.TempDir(), map[string][]byte{"k": []byte("top secret")})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var said *Error
	if err := d.Open(t.Context(), "disk", map[string]any{"driver": "nothing"}); !errors.As(err, &said) {
		t.Errorf("Open with an unknown driver = %v, want an *Error", err)
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", d.Pid()))
	if err != nil || len(args) == 0 || bytes.Contains(args, []byte("top secret")) {
		t.Errorf("arguments = %q, %v, want them without the secret", args, err)
	}
	if err := d.Job(t.Context(), "block-commit", map[string]any{"device": "disk"}); !errors.As(err, &said) {
		t.Errorf("Job on an unknown disk = %v, want an *Error", err)
	}
}
