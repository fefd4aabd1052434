package dmcrypt

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/sds/rawdisk"
)

const uuid = "aaaaaaaa-0000-4000-8000-000000000000"

var (
	begun = Header{UUID: uuid, Label: "basalt-osd-begun", Subsystem: "ceph_fsid=11111111-2222-4333-8444-555555555555"}
	key   = []byte("0f2ad6b1c9e84c3f9d6ba1e2f3041526")
)

// newDevice returns a file with old content, as a device that was in use.
func newDevice(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("cryptsetup"); err != nil {
		t.Skip("host: cryptsetup is not installed: installer/dev/setup.sh installs it")
	}
	path := filepath.Join(t.TempDir(), "device")
	old := make([]byte, HeaderBytes+4<<20)
	_, _ = rand.Read(old)
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func headerOf(t *testing.T, path string) (Header, bool) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return Decode(raw)
}

func opens(t *testing.T, path string, key []byte) bool {
	t.Helper()
	ok, err := Opens(t.Context(), path, key)
	if err != nil {
		t.Errorf("Opens: %v", err)
	}
	return ok
}

// TestFormat checks a new header with cryptsetup, which also accepts it after its label
// has changed, and that nothing opens it after it was shredded.
func TestFormat(t *testing.T) {
	path, scratch := newDevice(t), filepath.Join(t.TempDir(), "scratch")
	if err := (Kernel{}).Format(t.Context(), path, begun, key, scratch); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(scratch); !os.IsNotExist(err) {
		t.Errorf("stat of the scratch file: %v, want it removed", err)
	}
	if h, ok := headerOf(t, path); !ok || h != begun {
		t.Errorf("Decode = %+v, %v, want %+v", h, ok, begun)
	}
	if !opens(t, path, key) || opens(t, path, []byte("another")) {
		t.Error("want the header to open with its key only")
	}
	out, err := exec.Command("cryptsetup", "luksDump", path).CombinedOutput()
	for _, want := range []string{"aes-xts-plain64", "sector: 4096", "offset: 16777216", "Iterations: 1000", "Flags:       \t(no flags)"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("luksDump, error %v: no %q in:\n%s", err, want, out)
		}
	}
	done := begun
	done.Label = "basalt-osd"
	if err := (Kernel{}).Label(t.Context(), path, done); err != nil {
		t.Fatal(err)
	}
	if h, _ := headerOf(t, path); h != done || !opens(t, path, key) {
		t.Errorf("after Label, Decode = %+v, want %+v, and that it opens", h, done)
	}
	if err := (Kernel{}).Shred(path); err != nil {
		t.Fatal(err)
	}
	if h, ok := headerOf(t, path); !ok || h != done {
		t.Errorf("after Shred, Decode = %+v, %v, want it still recognized as %+v", h, ok, done)
	}
	if ok, err := Opens(t.Context(), path, key); ok || err == nil {
		t.Errorf("after Shred, Opens = %v, %v, want an error: no key slot is left", ok, err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || !rawdisk.Zero(raw[4<<10:HeaderBytes]) {
		t.Errorf("after Shred, error %v; want only zeros in the header after 4 KiB", err)
	}
}

// TestOddSize checks that a device that ends within a sector of 4096 bytes has smaller
// ones.
func TestOddSize(t *testing.T) {
	path := newDevice(t)
	if err := os.Truncate(path, HeaderBytes+1<<20+sectorBytes); err != nil {
		t.Fatal(err)
	}
	if err := (Kernel{}).Format(t.Context(), path, begun, key, path+".scratch"); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("cryptsetup", "luksDump", path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "sector: 512 [bytes]") {
		t.Errorf("luksDump, error %v: want sectors of 512 bytes:\n%s", err, out)
	}
}

// TestHeadersDiffer checks that two devices with the same key have different volume
// keys.
func TestHeadersDiffer(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	for _, path := range []string{a, b} {
		if err := (Kernel{}).Format(t.Context(), path, begun, key, path+".scratch"); err != nil {
			t.Fatal(err)
		}
	}
	digest := func(path string) []byte {
		out, err := exec.Command("cryptsetup", "luksDump", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		_, digests, _ := bytes.Cut(out, []byte("Digests:"))
		return digests
	}
	if bytes.Equal(digest(a), digest(b)) {
		t.Error("the digests of two volume keys are equal")
	}
}

// TestInterruptedCopy checks that a device with the beginning of a header is recognized
// as soon as anything was written.
func TestInterruptedCopy(t *testing.T) {
	path := newDevice(t)
	if err := (Kernel{}).Format(t.Context(), path, begun, key, path+".scratch"); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{sectorBytes, 4096, 32 << 10, 1 << 20, HeaderBytes} {
		partial := make([]byte, len(whole))
		copy(partial, whole[:n])
		if h, ok := Decode(partial); !ok || h != begun {
			t.Errorf("Decode of the first %d bytes = %+v, %v, want %+v", n, h, ok, begun)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	luks1 := append([]byte("LUKS\xba\xbe\x00\x01"), make([]byte, sectorBytes)...)
	for name, raw := range map[string][]byte{"empty": nil, "zeros": make([]byte, 4096), "LUKS1": luks1, "short": []byte("LUKS\xba\xbe\x00\x02")} {
		if h, ok := Decode(raw); ok {
			t.Errorf("Decode of %s = %+v, true, want false", name, h)
		}
	}
}

func TestTooSmall(t *testing.T) {
	path := newDevice(t)
	if err := os.Truncate(path, HeaderBytes); err != nil {
		t.Fatal(err)
	}
	if err := (Kernel{}).Format(t.Context(), path, begun, key, path+".scratch"); err == nil || !strings.Contains(err.Error(), "too small") {
		t.Errorf("Format of a device without space = %v, want that it is too small", err)
	}
}

// TestNotInstalled checks that a node without the program says what to install.
func TestNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Kernel{}.Label(context.Background(), "/dev/null", begun)
	if err == nil || !strings.Contains(err.Error(), "install the package cryptsetup-bin") {
		t.Errorf("Label without cryptsetup = %v, want what to install", err)
	}
}

// TestOwnMappings checks which mappings are taken for LUKS2 devices that were opened under
// their name.
func TestOwnMappings(t *testing.T) {
	const name, luks = "basalt-osd-" + uuid, "aaaaaaaa000040008000000000000000"
	for uuid, want := range map[string]bool{
		"CRYPT-LUKS2-" + luks + "-" + name:            true,
		"CRYPT-LUKS2-" + luks + "-another":            false,
		"CRYPT-LUKS2-" + luks:                         false,
		"CRYPT-LUKS1-" + luks + "-" + name:            false,
		"CRYPT-PLAIN-" + name:                         false,
		"LVM-" + luks + luks:                          false,
		"":                                            false,
		"CRYPT-LUKS2-" + luks + "-" + name + "-after": false,
	} {
		if got := isOwn(name, uuid); got != want {
			t.Errorf("isOwn(%q) = %v, want %v", uuid, got, want)
		}
	}
}
