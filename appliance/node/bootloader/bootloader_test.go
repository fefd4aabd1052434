package bootloader

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// node is a pretended node with two disks, sda and sdb, below a folder: files stand for
// devices, and folders for EFI system partitions.
type node struct {
	t       *testing.T
	root    string
	uefi    string   // output of efibootmgr; empty: the node was started by a BIOS
	changes []string // commands that changed something
	fails   string   // commands that contain it fail
}

const (
	idA = "aaaaaaaa-0000-4000-8000-000000000001"
	idB = "bbbbbbbb-0000-4000-8000-000000000002"
)

func newNode(t *testing.T) *node {
	n := &node{t: t, root: t.TempDir()}
	n.write("etc/basalt/installed", "version: v1\n")
	n.write("proc/self/mounts", "/dev/md127 / ext4 rw 0 0\n")
	n.write("usr/lib/grub/i386-pc/normal.mod", "module 1")
	n.write("usr/lib/grub/x86_64-efi/normal.mod", "module 1")
	n.write("sys/block/md127/md/level", "raid1\n")
	for _, disk := range []string{"sda", "sdb"} {
		n.write("sys/block/"+disk+"/device/model", "x")
		n.write("sys/block/"+disk+"/"+disk+"3/partition", "3\n")
		n.write("sys/block/md127/md/dev-"+disk+"3/state", "in_sync\n")
		n.write("dev/"+disk, strings.Repeat("\x00", bootCode))
		n.write("dev/"+disk+"1", "")
		n.write("esp/"+disk+"2/capsule", "the firmware's")
	}
	for _, dir := range []string{"run", "boot/grub"} {
		if err := os.MkdirAll(filepath.Join(n.root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (n *node) write(name, text string) {
	n.t.Helper()
	path := filepath.Join(n.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) host() Host {
	return Host{Root: n.root, Run: n.run, Mount: func(device string, _ bool, f func(string) error) error {
		return f(filepath.Join(n.root, "esp", filepath.Base(device)))
	}}
}

// run pretends to be blkid, efibootmgr and grub-install, which installs the modules.
func (n *node) run(_ context.Context, argv []string) (string, error) {
	line := strings.ReplaceAll(strings.Join(argv, " "), n.root, "")
	last := argv[len(argv)-1]
	if n.fails != "" && strings.Contains(line, n.fails) {
		return "", errors.New("no space left on device")
	}
	switch {
	case argv[0] == "blkid":
		return map[string]string{"sda2": idA, "sdb2": strings.ToUpper(idB)}[filepath.Base(last)] + "\n", nil
	case line == "efibootmgr -v":
		return n.uefi, nil
	}
	n.changes = append(n.changes, line)
	if argv[0] != "grub-install" {
		return "", nil
	}
	core, err := os.ReadFile(filepath.Join(n.root, "usr/lib/grub", strings.TrimPrefix(argv[1], "--target="), "normal.mod"))
	if err != nil {
		return "", err
	}
	if argv[1] == "--target=i386-pc" {
		n.write(strings.TrimPrefix(last, n.root), "GRUB "+strings.Repeat("\x00", bootCode))
		n.write(strings.TrimPrefix(last, n.root)+"1", string(core))
		return "", nil
	}
	i := slices.IndexFunc(argv, func(a string) bool { return strings.HasPrefix(a, "--efi-directory=") })
	esp := strings.TrimPrefix(strings.TrimPrefix(argv[i], "--efi-directory="), n.root)
	file := "/EFI/basalt/grubx64.efi"
	if slices.Contains(argv, "--removable") {
		file = "/EFI/BOOT/BOOTX64.EFI"
	}
	n.write(esp+file, string(core))
	return "", nil
}

func (n *node) faults() (all []string) {
	n.t.Helper()
	s, err := n.host().Observe(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	for _, f := range Faults(s) {
		all = append(all, string(f.Kind)+": "+f.String())
	}
	return all
}

func (n *node) expect(what string, want ...string) {
	n.t.Helper()
	if d := cmp.Diff(want, n.faults()); d != "" {
		n.t.Errorf("%s: faults differ (-want +got):\n%s", what, d)
	}
}

// update updates the boot loaders, and checks which disks were changed.
func (n *node) update(want ...string) {
	n.t.Helper()
	n.changes = nil
	if changed, err := n.host().Update(n.t.Context()); err != nil || !slices.Equal(changed, want) {
		n.t.Errorf("Update changed %q, error %v; want %q", changed, err, want)
	}
}

// TestUpdate follows the disks of a node: new ones, an update of GRUB, damage, and a disk
// that was replaced.
func TestUpdate(t *testing.T) {
	n := newNode(t)
	n.expect("new disks", "broken: sda has no boot loader for UEFI", "broken: sdb has no boot loader for UEFI")
	n.update("sda", "sdb")
	n.expect("after the first update")
	n.update()
	if len(n.changes) > 0 {
		t.Errorf("commands on current disks = %q, want none", n.changes)
	}
	n.write("esp/sda2/capsule", "another of the firmware's")
	n.expect("a file of the firmware")

	n.write("usr/lib/grub/i386-pc/normal.mod", "another module")
	n.expect("another GRUB", "old: sda has boot loaders of an earlier GRUB than is installed", "old: sdb has boot loaders of an earlier GRUB than is installed")
	n.update("sda", "sdb")
	n.expect("after the update")

	n.write("esp/sdb2/EFI/BOOT/BOOTX64.EFI", "damaged")
	n.expect("damage for UEFI", "broken: sdb has another boot loader for UEFI than was installed")
	n.update("sdb")
	n.write("dev/sda1", "damaged")
	n.expect("damage for BIOS", "broken: sda has another boot loader for BIOS than was installed")
	n.update("sda")
	n.write("dev/sda", "no boot loader")
	n.expect("an erased first sector", "broken: sda has no boot loader for BIOS")
	n.update("sda")
	n.write(RecordFile, "{damaged")
	n.expect("a damaged record", "old: sda has boot loaders of unknown origin", "old: sdb has boot loaders of unknown origin")
	n.update("sda", "sdb")

	n.write("sys/block/md127/md/dev-sdb3/state", "faulty\n")
	n.write("esp/sdb2/EFI/BOOT/BOOTX64.EFI", "damaged")
	n.expect("a disk that has failed does not count")
}

// TestUpdateFails checks that a disk that cannot be written does not keep the other from
// being updated, and stays reported.
func TestUpdateFails(t *testing.T) {
	n := newNode(t)
	n.fails = "--target=i386-pc --boot-directory=/boot /dev/sda"
	changed, err := n.host().Update(t.Context())
	if err == nil || !strings.Contains(err.Error(), "install the boot loaders on sda: no space left") || !slices.Equal(changed, []string{"sdb"}) {
		t.Errorf("Update changed %q, error %v; want sdb, and that sda failed", changed, err)
	}
	n.expect("after a failure", "broken: sda has no boot loader for BIOS")
}

// TestSingleDisk checks a node with one disk, and a machine that is not a node.
func TestSingleDisk(t *testing.T) {
	n := newNode(t)
	n.write("proc/self/mounts", "/dev/sdb3 / ext4 rw 0 0\n")
	n.update("sdb")
	n.write("proc/self/mounts", "overlay / overlay rw 0 0\n")
	if _, err := n.host().Update(t.Context()); err == nil || !strings.Contains(err.Error(), `root file system is on "overlay"`) {
		t.Errorf("Update without a disk: error %v, want that the root file system is on no disk", err)
	}
	if err := os.Remove(filepath.Join(n.root, installedFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.host().Update(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("Update on another machine: error %v, want ErrNone", err)
	}
}

// TestRecordInstalled checks that a node finds the boot loaders current that the
// installer has installed.
func TestRecordInstalled(t *testing.T) {
	n := newNode(t)
	n.update("sda", "sdb")
	if err := os.Remove(filepath.Join(n.root, RecordFile)); err != nil {
		t.Fatal(err)
	}
	if err := n.host().RecordInstalled(t.Context(), []string{"sda", "sdb"}, n.root); err != nil {
		t.Fatal(err)
	}
	n.expect("after the installation")
}

const bootList = `BootCurrent: 0004
BootOrder: 0004,0005,0000
Boot0000* UiApp	FvVol(7cb8)/FvFile(462c)
Boot0004* basalt	HD(2,GPT,` + idA + `,0x1000,0x100000)/File(\EFI\basalt\grubx64.efi)
Boot0005* basalt-mirror	HD(2,GPT,CCCCCCCC-0000-4000-8000-000000000003,0x1000,0x100000)/File(\EFI\basalt\grubx64.efi)
`

// TestEntries checks that a new disk gets an entry in place of that of a disk that is
// gone, and that the other disk keeps its entry.
func TestEntries(t *testing.T) {
	n := newNode(t)
	n.write("sys/firmware/efi/efivars/x", "")
	n.uefi = bootList
	n.update("sda", "sdb")
	n.expect("a disk without an entry", "entry: sdb has no entry in the firmware's boot list")
	var got []string
	for _, c := range n.changes {
		if strings.HasPrefix(c, "efibootmgr") {
			got = append(got, c)
		}
	}
	want := []string{"efibootmgr -q -b 0005 -B", `efibootmgr -q -c -d /dev/sdb -p 2 -L basalt-mirror -l \EFI\basalt\grubx64.efi`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("commands for entries differ (-want +got):\n%s", d)
	}
	n.uefi = strings.Replace(bootList, "CCCCCCCC-0000-4000-8000-000000000003", idB, 1)
	n.expect("both have an entry")
	n.uefi = strings.Replace(n.uefi, idA, "cccccccc-0000-4000-8000-000000000003", 1) // the first disk was replaced
	n.update()
	want = []string{"efibootmgr -q -b 0004 -B", `efibootmgr -q -c -d /dev/sda -p 2 -L basalt -l \EFI\basalt\grubx64.efi`}
	if d := cmp.Diff(want, n.changes); d != "" {
		t.Errorf("commands for a new first disk differ (-want +got):\n%s", d)
	}
}

// FuzzParseEntries checks that names and numbers from the firmware cannot become other
// arguments of commands.
func FuzzParseEntries(f *testing.F) {
	f.Add(bootList)
	f.Add("Boot0001* basalt\tVenHw(99e275e7)\nBoot0002 basalt\n")
	f.Fuzz(func(t *testing.T, out string) {
		for _, e := range ParseEntries(out) {
			if len(e.Number) != 4 || strings.Trim(e.Number, "0123456789ABCDEF") != "" || !slices.Contains(entryNames, e.Name) || e.Partition != "" && len(e.Partition) != 36 {
				t.Errorf("entry = %+v, want a number of four digits, one of our names and a GUID", e)
			}
		}
	})
}
