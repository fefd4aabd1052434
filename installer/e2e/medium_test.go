package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/release"
	"github.com/basalt-gpu/basalt/hypervisor/iso9660"
)

// TestMedium inspects the medium: both vendors' microcode is where the kernel looks for
// it, and the packages are signed with the key that nodes trust.
func TestMedium(t *testing.T) {
	t.Parallel()
	iso := medium(t)
	f, err := os.Open(iso)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	disc, err := iso9660.Open(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	contents, err := os.ReadFile(iso + ".contents")
	if err != nil {
		t.Fatal(err)
	}
	microcode(t, disc, strings.Contains(string(contents), "\nintel-microcode\t"))
	key, err := release.Keys(bytes.NewReader(nodesKey(t, disc)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := release.Read(disc, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"basalt", "basalt-guest-tools"} {
		p, err := r.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		deb, err := fs.ReadFile(disc, p.Path)
		if got := fmt.Sprintf("%x", sha256.Sum256(deb)); err != nil || got != p.SHA256 || int64(len(deb)) != p.SizeBytes {
			t.Errorf("%s has %d bytes and sum %s (%v), want %+v", p.Path, len(deb), got, err, p)
		}
	}
}

// microcode checks the archives before the compressed one.
func microcode(t *testing.T, disc fs.FS, wanted bool) {
	t.Helper()
	initrd, err := fs.ReadFile(disc, "live/initrd.img")
	if err != nil {
		t.Fatal(err)
	}
	names := early(initrd)
	for _, maker := range []string{"GenuineIntel", "AuthenticAMD"} {
		name := "kernel/x86/microcode/" + maker + ".bin"
		if slices.Contains(names, name) != wanted {
			t.Errorf("the initramfs begins with %q; contains %s = %v, want %v", names, name, !wanted, wanted)
		}
	}
}

// early lists the files of the uncompressed archives (cpio's format newc).
func early(b []byte) (names []string) {
	field := func(at int) int {
		n, err := strconv.ParseUint(string(b[at:at+8]), 16, 31)
		if err != nil {
			return len(b)
		}
		return int(n)
	}
	for {
		b = bytes.TrimLeft(b, "\x00")
		if len(b) < 110 || string(b[:6]) != "070701" {
			return names
		}
		size, named := field(54), field(94)
		content := (110 + named + 3) &^ 3
		end := (content + size + 3) &^ 3
		if end > len(b) {
			return names
		}
		names = append(names, strings.TrimRight(string(b[110:110+named]), "\x00"))
		b = b[end:]
	}
}

// nodesKey returns the key that an installed node trusts.
func nodesKey(t *testing.T, disc fs.FS) []byte {
	t.Helper()
	image := filepath.Join(t.TempDir(), "filesystem.squashfs")
	to, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	from, err := disc.Open("live/filesystem.squashfs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	key, err := exec.Command("unsquashfs", "-cat", image, "etc/apt/keyrings/basalt.gpg").Output()
	if err != nil {
		t.Fatalf("read the key of releases in the medium's system: %v", err)
	}
	return key
}
