package dmcrypt_test

import (
	"bytes"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/sds/dmcrypt"
	"github.com/basalt-gpu/basalt/sds/dmcrypt/dmcrypttest"
)

// newLoop returns a loop device over a file with other content.
func newLoop(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"cryptsetup", "losetup"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("host: " + program + " is not installed: installer/dev/setup.sh installs it")
		}
	}
	if os.Getuid() != 0 {
		t.Skip("host: loop devices need root")
	}
	path := filepath.Join(t.TempDir(), "device")
	old := make([]byte, dmcrypt.HeaderBytes+8<<20)
	_, _ = rand.Read(old)
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", path).CombinedOutput()
	if err != nil {
		t.Skipf("host: no loop devices: %v: %s", err, out)
	}
	loop := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", loop).CombinedOutput(); err != nil {
			t.Errorf("detach %s: %v: %s", loop, err, out)
		}
	})
	return loop
}

func TestFake(t *testing.T) {
	if testing.Short() {
		t.Skip("uses loop devices")
	}
	dmcrypttest.Run(t, &dmcrypttest.Loop{}, newLoop)
}

// needKernel skips a test if this kernel cannot encrypt devices.
func needKernel(t *testing.T) {
	t.Helper()
	layer.NeedLong(t, "TestFake, and TestFormat of the headers")
	if !dmcrypttest.HasKernel() {
		t.Skip("host: this kernel has no device mapper")
	}
}

func TestKernel(t *testing.T) {
	needKernel(t)
	dmcrypttest.Run(t, dmcrypt.Kernel{}, newLoop)
}

// TestKernelEncrypts checks that what is written to a mapping is not on the device.
func TestKernelEncrypts(t *testing.T) {
	needKernel(t)
	const name = "basalt-test-content"
	device := newLoop(t)
	k, key := dmcrypt.Kernel{}, []byte("0f2ad6b1c9e84c3f9d6ba1e2f3041526")
	if err := k.Format(t.Context(), device, dmcrypt.Header{UUID: "cccccccc-0000-4000-8000-000000000000"}, key, filepath.Join(t.TempDir(), "scratch")); err != nil {
		t.Fatal(err)
	}
	if err := k.Open(t.Context(), device, name, key); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile("/dev/mapper/"+name, os.O_RDWR|os.O_SYNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("confidential data "), 4096/18+1)[:4096]
	if _, err := f.WriteAt(content, 1<<20); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := k.Close(t.Context(), name); err != nil {
		t.Error(err)
	}
	raw, err := os.ReadFile(device)
	if err != nil || bytes.Contains(raw, []byte("confidential")) || bytes.Equal(raw[dmcrypt.HeaderBytes+1<<20:][:4096], make([]byte, 4096)) {
		t.Errorf("the device, error %v, has the content in plain, or nothing; want it encrypted", err)
	}
}
