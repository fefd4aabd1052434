package mirror

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// node is a node whose second disk was replaced by a new one, sdc.
func node(change map[string]string) fstest.MapFS {
	files := map[string]string{
		"block/sda/device/model": "x", "block/sda/size": "156250000\n",
		"block/sda/sda2/partition": "2\n", "block/sda/sda3/partition": "3\n", "block/sda/sda3/holders/md127/x": "",
		"block/sda/sda4/partition": "4\n", "block/sda/sda4/holders/md126/x": "",
		"block/sdc/device/model": "x", "block/sdc/size": "156250000\n",
		"block/md127/md/level": "raid1\n", "block/md127/md/raid_disks": "2\n", "block/md127/md/degraded": "1\n", "block/md127/md/sync_action": "idle\n",
		"block/md127/md/dev-sda3/state": "in_sync\n",
		"block/md126/md/level":          "raid1\n", "block/md126/md/raid_disks": "2\n", "block/md126/md/degraded": "1\n", "block/md126/md/sync_action": "idle\n",
		"block/md126/md/dev-sda4/state": "in_sync\n",
	}
	f := fstest.MapFS{}
	for name, content := range files {
		f[name] = &fstest.MapFile{Data: []byte(content)}
	}
	for name, content := range change {
		f[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return f
}

func TestReplacement(t *testing.T) {
	s, err := Read(node(nil), "/dev/md127 / ext4 rw 0 0\n")
	if err != nil {
		t.Fatal(err)
	}
	commands, err := Replacement(s, "sdc", "0A1B2C3D")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range commands {
		got = append(got, strings.Join(c, " "))
	}
	want := []string{
		"wipefs --all --force --quiet /dev/sdc", "sgdisk --zap-all /dev/sdc", "sgdisk --replicate=/dev/sdc /dev/sda",
		"sgdisk --randomize-guids --move-second-header /dev/sdc", "udevadm settle --timeout=30", "mkfs.vfat -F 32 -n BASALT-ESP -i 0A1B2C3D /dev/sdc2",
		"mdadm --manage /dev/md126 --remove failed --remove detached", "wipefs --all --force --quiet /dev/sdc4", "mdadm --manage /dev/md126 --add /dev/sdc4",
		"mdadm --manage /dev/md127 --remove failed --remove detached", "wipefs --all --force --quiet /dev/sdc3", "mdadm --manage /dev/md127 --add /dev/sdc3",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("commands: mismatch (-want +got):\n%s", d)
	}
}

// TestReplacementRefuses checks that nothing is erased but an unused disk of sufficient
// size.
func TestReplacementRefuses(t *testing.T) {
	whole := map[string]string{"block/md127/md/degraded": "0", "block/md126/md/degraded": "0"}
	for name, c := range map[string]struct {
		change       map[string]string
		mounts, disk string
		says         string
	}{
		"the remaining disk": {nil, "", "sda", "runs from"},
		"no disk":            {nil, "", "sdz", "not a disk of this node"},
		"a whole mirror":     {whole, "", "sdc", "lacks no disk"},
		"a mounted disk":     {nil, "/dev/sdc /mnt ext4 rw 0 0\n", "sdc", "mounted on /mnt"},
		"a member":           {map[string]string{"block/sdc/sdc1/partition": "1", "block/sdc/sdc1/holders/dm-0/x": ""}, "", "sdc", "sdc1 belongs to dm-0"},
		"a small disk":       {map[string]string{"block/sdc/size": "100000000"}, "", "sdc", "want at least"},
		"no complete disk":   {map[string]string{"block/md127/md/dev-sda3/state": "faulty"}, "", "sdc", "complete in every array"},
	} {
		s, err := Read(node(c.change), c.mounts)
		if err != nil {
			t.Fatal(err)
		}
		if commands, err := Replacement(s, c.disk, "0A1B2C3D"); err == nil || !strings.Contains(err.Error(), c.says) || commands != nil {
			t.Errorf("%s: Replacement = %q, %v; want no commands and an error with %q", name, commands, err, c.says)
		}
	}
	if _, err := Replacement(State{}, "sdc", "0A1B2C3D"); !errors.Is(err, ErrNone) {
		t.Errorf("Replacement without arrays = %v, want ErrNone", err)
	}
}

func TestPartitionNames(t *testing.T) {
	for part, want := range map[string]string{"sda3": "sda", "nvme0n1p12": "nvme0n1", "vdp3": "vdp"} {
		disk, n := split(part)
		if disk != want || Partition(disk, n) != "/dev/"+part {
			t.Errorf("split(%s) = %s, %d, whose path is %s; want %s", part, disk, n, Partition(disk, n), want)
		}
	}
}

func TestVolumeID(t *testing.T) {
	if id, err := VolumeID("0A1B-2C3D\n"); err != nil || id != "0A1B2C3D" {
		t.Errorf("VolumeID = %q, %v; want 0A1B2C3D", id, err)
	}
	for _, bad := range []string{"", "0A1B", "0A1B-2C3G", "--help--"} {
		if _, err := VolumeID(bad); err == nil {
			t.Errorf("VolumeID(%q) succeeded, want an error", bad)
		}
	}
}
