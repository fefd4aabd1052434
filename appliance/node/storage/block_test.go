package storage

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
)

func devices(t *testing.T) []device {
	t.Helper()
	raw, err := os.ReadFile("testdata/lsblk.json")
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseDevices(raw)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBlocks checks which devices of a machine that has some of every kind are
// disks, and whether they can be used.
func TestBlocks(t *testing.T) {
	got := map[string]string{}
	for _, b := range blocks(devices(t), surroundings{
		Node: "node-1", Loops: []string{"/tmp/x/disk*"},
		Backing: map[string]string{"loop0": "/tmp/x/disk0", "loop1": "/var/snap/core"},
		Links: map[string][]string{
			"/dev/sdb": {"/dev/disk/by-path/pci-1", "/dev/disk/by-id/scsi-3600", "/dev/disk/by-id/ata-FAST_S1"},
			"/dev/vdb": {"/dev/disk/by-path/virtio-pci-1"},
		},
	}) {
		got[b.Path] = fmt.Sprintf("%s|%s|%s", b.path(), b.Held, b.Holds)
	}
	want := map[string]string{
		"/dev/sda":     "/dev/sda|it contains the system, mounted at /|it has 2 partitions",
		"/dev/sdb":     "/dev/disk/by-id/ata-FAST_S1||",
		"/dev/sdc":     "/dev/sdc||it has a partition",
		"/dev/sdd":     "/dev/sdd|it is part of vg-data (lvm)|it has a partition",
		"/dev/sde":     "/dev/sde|it is mounted at /srv|it contains ext4",
		"/dev/sdf":     "/dev/sdf|it is a removable disk|",
		"/dev/sdg":     "/dev/sdg|it is read-only|",
		"/dev/sdh":     "/dev/sdh|it is too small: 1024 MiB, want at least 4096 MiB|",
		"/dev/sdi":     "/dev/sdi|it is used as swap space by the system|it contains swap",
		"/dev/nvme0n1": "/dev/nvme0n1||it contains a partition table (gpt)",
		"/dev/vdb":     "/dev/disk/by-path/virtio-pci-1||",
		"/dev/vdc":     "/dev/vdc|it has no serial number and no persistent name|",
		"/dev/loop0":   "/dev/loop0||",
	}
	for path, w := range want {
		if got[path] != w {
			t.Errorf("block %s = %q, want %q", path, got[path], w)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s is returned as a disk (%s), want it left out", path, got[path])
		}
	}
}

// TestOpenDisksOfCeph checks that an encrypted disk of Ceph, or the partition with its
// database, that is open does not count as used by something else.
func TestOpenDisksOfCeph(t *testing.T) {
	disk := func(children ...device) string {
		b := blocks([]device{{Name: "sda", Path: "/dev/sda", Type: "disk", Size: 8 << 30, WWN: "w", Children: children}}, surroundings{Node: "n"})
		return b[0].Held + "|" + b[0].Holds
	}
	open := device{Name: "basalt-osd-aaaaaaaa-0000-4000-8000-000000000000", Type: "crypt"}
	if got := disk(open); got != "|" {
		t.Errorf("an open OSD = %q, want nothing that uses it", got)
	}
	if got := disk(device{Name: "sda1", Type: "part", Children: []device{open}}); got != "|it has a partition" {
		t.Errorf("an open database = %q, want a partition that nothing uses", got)
	}
	if got := disk(device{Name: "secret", Type: "crypt"}); got != "it is part of secret (crypt)|it has a partition" {
		t.Errorf("another encrypted disk that is open = %q, want that it is in use", got)
	}
}

// TestBlockIsTheSame checks that a disk has the same ID whatever the kernel calls
// it, and a different one on another node.
func TestBlockIsTheSame(t *testing.T) {
	at := func(node, path, serial string) Block {
		raw := fmt.Sprintf(`{"blockdevices":[{"name":"x","path":%q,"type":"disk","size":%d,"model":"Fast","serial":%q}]}`, path, int64(1)<<40, serial)
		all, err := parseDevices([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return blocks(all, surroundings{Node: api.NodeID(node)})[0]
	}
	one := at("1", "/dev/sda", "S1")
	if again := at("1", "/dev/sdq", "S1"); again.ID != one.ID {
		t.Errorf("ID of the same disk at another path = %s, want %s", again.ID, one.ID)
	}
	for _, other := range []Block{at("1", "/dev/sda", "S2"), at("2", "/dev/sda", "S1")} {
		if other.ID == one.ID {
			t.Errorf("two different disks have the ID %s", one.ID)
		}
	}
}

func FuzzParseDevices(f *testing.F) {
	raw, err := os.ReadFile("testdata/lsblk.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"blockdevices":[{"path":"/dev/x","size":-1}]}`))
	f.Add([]byte(`{"blockdevices":[{"path":"/dev/a","size":9,"type":"disk","children":[{"mountpoints":["\n"]}]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		all, err := parseDevices(raw)
		if err != nil {
			return
		}
		for _, b := range blocks(all, surroundings{Node: "node-1", Loops: []string{"*"}, Backing: map[string]string{"loop0": "x"}}) {
			if _, err := json.Marshal(b); err != nil || b.ID == "" || b.SizeBytes <= 0 {
				t.Errorf("block = %+v, error %v; want an ID, a positive size and valid JSON", b, err)
			}
			for _, s := range []string{b.Path, b.Model, b.Serial, b.Held, b.Holds} {
				if len(s) > 3*storage.MaxLine || strings.ContainsAny(s, "\n\x00") {
					t.Errorf("text of a block = %q, want one line of at most %d bytes", s, 3*storage.MaxLine)
				}
			}
		}
	})
}
