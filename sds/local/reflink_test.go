package local

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/sds"
)

// TestReflink checks that on a file system with reflinks, a file of the node
// becomes an image without being copied.
func TestReflink(t *testing.T) {
	if testing.Short() {
		t.Skip("creates a file system")
	}
	if os.Getuid() != 0 {
		t.Skip("host: mounting file systems requires root")
	}
	if _, err := exec.LookPath("mkfs.xfs"); err != nil {
		t.Skip("host: mkfs.xfs is not installed: installer/dev/setup.sh installs it")
	}
	base := t.TempDir()
	disk, dir := filepath.Join(base, "disk"), filepath.Join(base, "mnt")
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Skipf("host: %s: %v: %s", name, err, out)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	run("truncate", "-s", "400M", disk)
	run("mkfs.xfs", "-q", disk)
	run("mount", "-o", "loop", disk, dir)
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	content := make([]byte, 32*mib)
	_, _ = rand.Read(content)
	content[510], content[511] = 0x55, 0xAA
	file := filepath.Join(dir, "image")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	free := func() int64 {
		t.Helper()
		unix.Sync()
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		return int64(st.Bfree) * st.Bsize
	}
	before := free()
	s := open(t, Options{Dir: filepath.Join(dir, "pool"), AllowFileURL: true})
	img, err := s.ImportImage(t.Context(), sds.ImageImport{ID: "img-1", Format: sds.Raw, URL: "file://" + file})
	if err != nil || img.SizeBytes != 32*mib {
		t.Fatalf("ImportImage = %+v, %v, want %d bytes", img, err, 32*mib)
	}
	if took := before - free(); took > 4*mib {
		t.Errorf("an image of 32 MiB used %d bytes, want at most %d", took, 4*mib)
	}
	// The image must still be an independent copy.
	if err := os.WriteFile(file, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(img.Path); err != nil || string(got) != string(content) {
		t.Errorf("the image has changed with the file (%v)", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
