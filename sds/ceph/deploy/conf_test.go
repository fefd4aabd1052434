package deploy

import (
	"bytes"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/sds/rawdisk"
)

func TestConfig(t *testing.T) {
	in := three()
	in.Settings = map[string]string{"osd_heartbeat_grace": "6"}
	golden(t, "testdata/ceph.conf", in.config("/var/lib/basalt/ceph", "node-b", netip.MustParseAddr("fd00::2")))
}

func TestKeys(t *testing.T) {
	k, err := NewKeys(bytes.NewReader(bytes.Repeat([]byte{7}, 48)), time.Unix(1_700_000_000, 5))
	if err != nil || k.Validate() != nil {
		t.Fatalf("NewKeys: %v, Validate: %v", err, k.Validate())
	}
	golden(t, "testdata/keyring", keyring(k.mon(), k.admin(), k.client()))
	if _, err := NewKeys(bytes.NewReader(nil), time.Unix(0, 0)); err == nil {
		t.Error("NewKeys without randomness = nil, want an error")
	}
	k.Admin = k.Admin[1:]
	if err := k.Validate(); err == nil || strings.Contains(err.Error(), k.Admin) {
		t.Errorf("Validate of a damaged key = %v, want an error that does not contain it", err)
	}
}

// TestProbe checks that a disk with any content is not blank.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, at int64, content string) string {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(64 << 20); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(content), at); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]Content{
		file("blank", 0, ""):                                  Blank,
		file("mbr", 510, "\x55\xaa"):                          Other,
		file("btrfs", 0x10040, "_BHRfS_M"):                    Other,
		file("gpt-backup", 64<<20-512, "EFI PART"):            Other,
		file("raid", 64<<20-64<<10, "\xfc\x4e\x2b\xa9"):       Other,
		file("osd", 0, labelMark+"not an OSD's label at all"): Other,
		filepath.Join(dir, "none"):                            Missing,
	} {
		got, err := probe(t.Context(), fsid, path)
		if strings.HasSuffix(path, "/osd") && err != nil {
			if _, lost := exec.LookPath("ceph-bluestore-tool"); lost != nil {
				continue
			}
		}
		if err != nil || got.Content != want || want == Other && got.What == "" {
			t.Errorf("probe(%s) = %+v, %v, want content %s", path, got, err, want)
		}
	}
	path := file("wiped", 0, labelMark)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("EFI PART"), 64<<20-512); err != nil {
		t.Fatal(err)
	}
	if err := rawdisk.Wipe(path); err != nil {
		t.Fatal(err)
	}
	if got, err := probe(t.Context(), fsid, path); err != nil || got.Content != Blank {
		t.Errorf("probe after Wipe = %+v, %v, want blank", got, err)
	}
	if st, err := f.Stat(); err != nil || st.Size() != 64<<20 {
		t.Errorf("size after Wipe = %v, %v, want %d", st.Size(), err, 64<<20)
	}
}

func FuzzCluster(f *testing.F) {
	f.Add([]byte(`{"mons":[{"name":"a"}]}{"osds":[{"osd":0,"uuid":"x","up":1,"in":1}],"pools":[{"pool_name":"p","crush_rule":1}]}[{"rule_id":1,"rule_name":"r"}]{"nodes":[{"id":0,"type":"osd","device_class":"ssd"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := decodeCluster(raw)
		if (c == nil) == (err == nil) {
			t.Errorf("decodeCluster = %+v, %v, want either a cluster or an error", c, err)
		}
		decodeSafe(raw)
		_, _ = decodeLabel(raw)
		if g, err := decodeTable(raw); err == nil && g.uuid != "" {
			if start, sectors, err := g.place(1 << 30); err == nil && (start < g.first || start+sectors-1 > g.last) {
				t.Errorf("place in %+v = %d, %d, want within %d to %d", g, start, sectors, g.first, g.last)
			}
		}
	})
}
