package xfsdisk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
)

func FuzzDecode(f *testing.F) {
	sector := make([]byte, sbBytes)
	copy(sector, sbMagic)
	f.Add(sector)
	f.Add([]byte(sbMagic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		sb, is := decode(raw)
		if is != (len(raw) >= sbBytes && string(raw[:4]) == sbMagic) || !is && sb != (superblock{}) {
			t.Errorf("decode of %d bytes = %+v, %v, want a superblock exactly with the magic", len(raw), sb, is)
		}
		if len(sb.uuid.String()) != 36 {
			t.Errorf("UUID = %q, want 36 characters", sb.uuid.String())
		}
	})
}

func TestDeviceIn(t *testing.T) {
	const table = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
96 22 7:3 / /var/lib/basalt/pools/a\040b rw,noatime - xfs /dev/loop3 rw
97 22 0:44 / /x rw - tmpfs tmpfs rw
98 22 7:4 / /x rw - xfs /dev/loop4 rw
`
	for dir, want := range map[string]uint64{"/var/lib/basalt/pools/a b": unix.Mkdev(7, 3), "/x": unix.Mkdev(7, 4), "/y": 0} {
		if got, err := deviceIn(strings.NewReader(table), dir); err != nil || got != want {
			t.Errorf("deviceIn(%s) = %d, %v, want %d", dir, got, err, want)
		}
	}
	if _, err := deviceIn(strings.NewReader("1 2 x:y / /z rw - xfs a rw\n"), "/z"); err == nil {
		t.Error("deviceIn with device x:y = nil, want an error")
	}
}

// TestCheck checks that a mark is created in an empty file system only, and
// that any other is rejected.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	want := Mark{Version: 1, Node: "node-a", Disk: "disk-1", Pool: "fast"}
	if _, err := ReadMark(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadMark without a mark = %v, want fs.ErrNotExist", err)
	}
	for range 2 {
		if err := Check(dir, want); err != nil {
			t.Fatal(err)
		}
	}
	other := want
	other.Pool = "other"
	if err := Check(dir, other); api.CodeOf(err) != api.CodeState {
		t.Errorf("Check with another pool's mark = %v, want wrong_state", err)
	}
	strange := t.TempDir()
	if err := os.WriteFile(filepath.Join(strange, "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(strange, want); api.CodeOf(err) != api.CodeState {
		t.Errorf("Check of a file system with other files = %v, want wrong_state", err)
	}
}
