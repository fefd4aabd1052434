package install

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/machine"
	"github.com/basalt-gpu/basalt/installer/machine/network"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("plan: mismatch (-want +got):\n%s", d)
	}
}

func full() Job {
	p := netip.MustParsePrefix
	r := Request{
		Answers: answers.Answers{
			Hostname: "node1", NTP: []string{"ntp.example.net"}, Cluster: answers.Cluster{Init: "basalt"},
			Network: answers.Network{
				Path: answers.Path{Interface: "eno1", Address: p("192.0.2.11/24")}, Gateway: netip.MustParseAddr("192.0.2.1"),
				DNS: []netip.Addr{netip.MustParseAddr("192.0.2.53")}, Second: &answers.Path{Interface: "eno2", Address: p("198.51.100.11/24")},
			},
			Root:      answers.Root{Password: "correct horse", SSHKeys: []string{"ssh-ed25519 AAAA me"}},
			SharedDir: "/srv/shared", Serial: "ttyS0", After: answers.Reboot,
		},
		Disk:   machine.Disk{Path: "/dev/nvme0n1", Serial: "S1", SizeBytes: 1 << 40},
		Main:   network.Up{Card: "eno1", MAC: "52:54:00:00:00:01", Address: p("192.0.2.11/24")},
		Second: &network.Up{Card: "eno2", MAC: "52:54:00:00:00:02", Address: p("198.51.100.11/24")},
	}
	return Job{
		Request: r, Source: Source, Target: Target, Version: "v1", Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), IDs: NewIDs([36]byte{}),
		NVRAM: true, SerialPorts: []string{"ttyS0", "ttyS1"},
	}
}

func small() Job {
	r := Request{
		Answers: answers.Answers{
			Hostname: "node2", Network: answers.Network{Path: answers.Path{MAC: "52:54:00:00:00:03", DHCP: true}},
			Cluster: answers.Cluster{Token: "bslt-join-abc"}, Root: answers.Root{PasswordHash: "$y$j9T$abc"}, SharedDir: "nfs://192.0.2.9/srv/basalt",
			AllowEmulation: true, After: answers.PowerOff,
		},
		Disk: machine.Disk{Path: "/dev/vda", SizeBytes: 20 << 30},
		Main: network.Up{Card: "ens3", MAC: "52:54:00:00:00:03", Address: netip.MustParsePrefix("10.0.2.15/24")},
	}
	return Job{
		Request: r, Source: Source, Target: Target, Version: "v1", Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), IDs: NewIDs([36]byte{1}),
		NoTimerCheck: true,
	}
}

// mirrored is full on two disks, of which the second is smaller, with external networks on
// the first card.
func mirrored() Job {
	j := full()
	j.Mirror = &machine.Disk{Path: "/dev/nvme1n1", Serial: "S2", SizeBytes: 1<<40 - 4096}
	j.Answers.Network.External = true
	return j
}

// script prints a plan as people read it, followed by the content of every file.
func script(steps []Step) string {
	var b strings.Builder
	var files []Write
	for i, s := range steps {
		fmt.Fprintf(&b, "%d. %s   [%s; again: %s]\n", i+1, s.Text, s.ID, s.Again)
		for _, a := range s.Actions {
			fmt.Fprintf(&b, "   %s\n", a)
			if w, ok := a.(Write); ok {
				files = append(files, w)
			}
		}
	}
	for _, w := range files {
		fmt.Fprintf(&b, "\n-- %s --\n%s", w.Path, w.Data)
	}
	return b.String()
}

func TestPlan(t *testing.T) {
	golden(t, "full.golden", script(Plan(full())))
	golden(t, "small.golden", script(Plan(small())))
	golden(t, "mirror.golden", script(Plan(mirrored())))
}

// TestOrder checks the order that makes an installation safe against power cuts.
func TestOrder(t *testing.T) {
	j := full()
	at := map[string]int{}
	var commands []string
	for _, s := range Plan(j) {
		if s.Again == "" || hints[s.ID] == "" && s.ID != "check" {
			t.Errorf("step %s lacks the reason why it can be repeated, or a hint for its failure", s.ID)
		}
		for _, a := range s.Actions {
			commands = append(commands, a.String())
			if strings.Contains(a.String(), "correct horse") || strings.Contains(a.String(), "bslt-join") {
				t.Errorf("action %s contains a secret, want it hidden", a)
			}
		}
	}
	for i, c := range commands {
		for _, word := range []string{"grub-install", machine.PartitionRoot, j.IDs.RootPart, "unpack", "etc/basalt/installed", "dd if=/dev/zero"} {
			if strings.Contains(c, word) {
				at[word] = i
			}
		}
	}
	if at["unpack"] > at["etc/basalt/installed"] || at["etc/basalt/installed"] > at["grub-install"] || at["grub-install"] > at[machine.PartitionRoot] || at["dd if=/dev/zero"] > at["unpack"] {
		t.Errorf("order of the actions = %v, want the boot loader last and then the partition's name", at)
	}
	// The boot loader looks for the ID that only the last write sets.
	if at[j.IDs.RootPart] != at[machine.PartitionRoot] {
		t.Errorf("the root partition's ID is set at %d and its name at %d, want a single write", at[j.IDs.RootPart], at[machine.PartitionRoot])
	}
	if !strings.Contains(grubConfig(j), "root=PARTUUID="+j.IDs.RootPart) {
		t.Errorf("the boot loader does not look for root partition %s, which marks a complete installation", j.IDs.RootPart)
	}
}

func TestNewIDs(t *testing.T) {
	var random [36]byte
	for i := range random {
		random[i] = byte(255 - i)
	}
	ids := NewIDs(random)
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if !uuid.MatchString(ids.RootFS) || !uuid.MatchString(ids.RootPart) || ids.RootFS == ids.RootPart || !regexp.MustCompile(`^[0-9A-F]{8}$`).MatchString(ids.ESP) {
		t.Errorf("NewIDs = %+v, want two different UUIDs of version 4 and a volume ID", ids)
	}
}

func TestPick(t *testing.T) {
	busy := &machine.Refusal{Reason: "sdb1 is mounted on /mnt", Hint: "umount /dev/sdb1"}
	a := machine.Disk{Path: "/dev/sda", Serial: "A", SizeBytes: 100 << 30, ByID: []string{"ata-A"}}
	b := machine.Disk{Path: "/dev/sdb", Serial: "B", SizeBytes: 200 << 30, Refusal: busy}
	c := machine.Disk{Path: "/dev/sdc", Serial: "C", SizeBytes: 400 << 30, Node: true}
	for name, c := range map[string]struct {
		disks  []machine.Disk
		disk   answers.Disk
		erase  string
		re     bool
		want   string
		reason string
	}{
		"only":                 {[]machine.Disk{a, b}, answers.Disk{Only: true}, "A", false, "/dev/sda", ""},
		"by serial":            {[]machine.Disk{a, b}, answers.Disk{Serial: "A"}, answers.EraseAnything, false, "/dev/sda", ""},
		"by id":                {[]machine.Disk{a, c}, answers.Disk{ByID: "ata-A"}, "A", false, "/dev/sda", ""},
		"by size":              {[]machine.Disk{a, c}, answers.Disk{Size: answers.Size{Max: 150 << 30}}, "A", false, "/dev/sda", ""},
		"two fit":              {[]machine.Disk{a, c}, answers.Disk{Only: true}, "A", false, "", "2 disks fit"},
		"two of the size":      {[]machine.Disk{a, c}, answers.Disk{Size: answers.Size{Min: 1}}, "A", false, "", "2 disks fit"},
		"none":                 {nil, answers.Disk{Only: true}, "A", false, "", "no disk here fits"},
		"none of that serial":  {[]machine.Disk{a}, answers.Disk{Serial: "X"}, "X", false, "", "no disk here fits"},
		"busy":                 {[]machine.Disk{a, b}, answers.Disk{Serial: "B"}, "B", false, "", "sdb1 is mounted"},
		"another confirmation": {[]machine.Disk{a}, answers.Disk{Only: true}, "B", false, "", `erase allows "B"`},
		"a node":               {[]machine.Disk{c}, answers.Disk{Only: true}, "C", false, "", "finished Basalt node"},
		"a node again":         {[]machine.Disk{c}, answers.Disk{Only: true}, "C", true, "/dev/sdc", ""},
	} {
		picked, err := Pick(c.disks, answers.Answers{Disk: c.disk, Erase: []string{c.erase}, Reinstall: c.re})
		if c.reason == "" {
			if err != nil || len(picked) != 1 || picked[0].Path != c.want {
				t.Errorf("%s: Pick = %+v, %v; want %s", name, picked, err, c.want)
			}
			continue
		}
		var known *api.Error
		if !errors.As(err, &known) || !strings.Contains(known.Message, c.reason) || known.Hint == "" {
			t.Errorf("%s: Pick = %v, want an error with %q and a hint", name, err, c.reason)
		}
	}
}

// TestPickTwo checks the rules for two disks that mirror each other.
func TestPickTwo(t *testing.T) {
	a := machine.Disk{Path: "/dev/sda", Serial: "A", SizeBytes: 100 << 30, ByID: []string{"ata-A"}}
	b := machine.Disk{Path: "/dev/sdb", Serial: "B", SizeBytes: 80 << 30}
	c := machine.Disk{Path: "/dev/sdc", Serial: "C", SizeBytes: 90 << 30}
	usb := machine.Disk{Path: "/dev/sdu", Serial: "U", SizeBytes: 100 << 30, Removable: true, Transport: "usb"}
	tiny := machine.Disk{Path: "/dev/sdt", Serial: "T", SizeBytes: 8 << 30, Refusal: &machine.Refusal{Reason: "it has 8 GiB; a node needs 16 GiB", Hint: "choose a larger disk"}}
	node := machine.Disk{Path: "/dev/sdn", Serial: "N", SizeBytes: 100 << 30, Node: true}
	only, serial := answers.Disk{Only: true}, func(s string) answers.Disk { return answers.Disk{Serial: s} }
	for name, c := range map[string]struct {
		disks        []machine.Disk
		disk, mirror answers.Disk
		erase        []string
		sizes        answers.FileSystems
		want, reason string
	}{
		"by serials":            {[]machine.Disk{a, b, c}, serial("B"), serial("A"), []string{"A", "B"}, answers.FileSystems{}, "/dev/sdb /dev/sda", ""},
		"the only two":          {[]machine.Disk{a, b}, only, only, []string{answers.EraseAnything}, answers.FileSystems{}, "/dev/sda /dev/sdb", ""},
		"one named, one other":  {[]machine.Disk{a, b}, serial("B"), only, []string{"A", "B"}, answers.FileSystems{}, "/dev/sdb /dev/sda", ""},
		"three instead of two":  {[]machine.Disk{a, b, c}, only, only, []string{answers.EraseAnything}, answers.FileSystems{}, "", "3 disks fit"},
		"one instead of two":    {[]machine.Disk{a}, only, only, []string{answers.EraseAnything}, answers.FileSystems{}, "", "want two disks"},
		"the same by two names": {[]machine.Disk{a, b}, answers.Disk{ByID: "ata-A"}, serial("A"), []string{"A"}, answers.FileSystems{}, "", "cannot mirror itself"},
		"second not erasable":   {[]machine.Disk{a, b}, serial("A"), serial("B"), []string{"A"}, answers.FileSystems{}, "", `erase allows "A"`},
		"removable":             {[]machine.Disk{a, usb}, serial("A"), serial("U"), []string{"A", "U"}, answers.FileSystems{}, "", "removable"},
		"too small":             {[]machine.Disk{a, tiny}, serial("A"), serial("T"), []string{"A", "T"}, answers.FileSystems{}, "", "needs 16 GiB"},
		"a node is on it":       {[]machine.Disk{a, node}, serial("A"), serial("N"), []string{"A", "N"}, answers.FileSystems{}, "", "finished Basalt node"},
		"sizes too large":       {[]machine.Disk{a, b}, serial("A"), serial("B"), []string{"A", "B"}, answers.FileSystems{Root: 60 << 30}, "", "for images and volumes"},
	} {
		picked, err := Pick(c.disks, answers.Answers{Disk: c.disk, Mirror: &c.mirror, Erase: c.erase, FileSystems: c.sizes})
		var known *api.Error
		switch {
		case c.reason == "" && (err != nil || len(picked) != 2 || picked[0].Path+" "+picked[1].Path != c.want):
			t.Errorf("%s: Pick = %+v, %v; want %s", name, picked, err, c.want)
		case c.reason != "" && (!errors.As(err, &known) || !strings.Contains(known.Message, c.reason) || known.Hint == ""):
			t.Errorf("%s: Pick = %v, want an error with %q and a hint", name, err, c.reason)
		}
	}
}

// TestLayout checks the limits of the sizes, and that the rest suffices for all sizes of
// disks.
func TestLayout(t *testing.T) {
	sizes := func(disk uint64, want answers.FileSystems) (s string) {
		all, reason := Layout(disk, want)
		for _, f := range all {
			s += fmt.Sprintf("%s %d ", f.Name, f.Bytes/gib)
		}
		return s + reason
	}
	for _, c := range []struct {
		disk  uint64
		asked answers.FileSystems
		want  string
	}{
		{16 * gib, answers.FileSystems{}, "root 0 the disk has 16 GiB, and separate file systems need 64 GiB"},
		{64 * gib, answers.FileSystems{}, "root 16 state 8 logs 4 volumes 0 "},
		{512 * gib, answers.FileSystems{}, "root 32 state 32 logs 16 volumes 0 "},
		{8192 * gib, answers.FileSystems{}, "root 32 state 64 logs 16 volumes 0 "},
		{512 * gib, answers.FileSystems{One: true}, "root 0 the answers ask for one file system"},
		{40 * gib, answers.FileSystems{Root: 10 * gib}, "root 10 state 8 logs 4 volumes 0 "},
	} {
		if got := sizes(c.disk, c.asked); got != c.want {
			t.Errorf("Layout(%d GiB, %+v) = %q, want %q", c.disk/gib, c.asked, got, c.want)
		}
	}
	for disk := uint64(MinSeparate); disk < 100<<40; disk += disk / 7 {
		if err := checkLayout(disk, answers.FileSystems{}, true); err != nil {
			t.Errorf("checkLayout(%d) = %v, want nil", disk, err)
		}
	}
}

// TestMirrorEndsLast checks that the label by which the kernel finds its root is set
// last, and that the partitions of both disks have the same sizes.
func TestMirrorEndsLast(t *testing.T) {
	j := mirrored()
	var last, tables []string
	for _, s := range Plan(j) {
		for _, a := range s.Actions {
			if r, ok := a.(Run); ok && r.Argv[0] == "sgdisk" && strings.HasPrefix(r.Argv[1], "--new") {
				tables = append(tables, strings.Join(r.Argv[:len(r.Argv)-1], " "))
			} else if ok && r.Argv[0] != "sync" && r.Argv[0] != "udevadm" {
				last = r.Argv
			}
		}
	}
	if want := []string{"tune2fs", "-L", j.label(), "/dev/md/basalt-root"}; !cmp.Equal(want, last) {
		t.Errorf("last command = %q, want %q", last, want)
	}
	if !strings.Contains(grubConfig(j), "root=LABEL="+j.label()+" ") || len(j.label()) > 16 {
		t.Errorf("the boot loader does not look for label %q of at most 16 bytes", j.label())
	}
	if len(tables) != 2 || tables[0] != tables[1] {
		t.Errorf("partitions = %q, want the same on both disks", tables)
	}
}

// TestDissolve checks that arrays are stopped once, and before their members are erased.
func TestDissolve(t *testing.T) {
	sys := t.TempDir()
	for _, holder := range []string{"sda/sda3/holders/md127", "sda/sda4/holders/md126", "sdb/sdb3/holders/md127", "sdc/sdc1/holders/md1"} {
		if err := os.MkdirAll(filepath.Join(sys, "block", holder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var ran []string
	e := &Executor{Sys: sys, Log: io.Discard, Command: func(_ context.Context, argv []string, _ string, _ io.Writer) error {
		ran = append(ran, argv[0]+" "+argv[len(argv)-1])
		return nil
	}}
	if err := e.stopArrays(context.Background(), StopArrays{[]machine.Disk{{Path: "/dev/sda"}, {Path: "/dev/sdb"}}}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"mdadm /dev/md126", "mdadm /dev/md127", "wipefs /dev/sda3", "wipefs /dev/sda4", "wipefs /dev/sdb3"}, ran); d != "" {
		t.Errorf("commands: mismatch (-want +got):\n%s", d)
	}
}

func TestMountsBelow(t *testing.T) {
	info := "1 0 8:1 / / rw - ext4 x y\n2 1 8:2 / /target rw - ext4 x y\n3 2 8:3 / /target/boot\\040efi rw - vfat x y\n4 1 8:4 / /target2 rw - ext4 x y\nbroken\n"
	if got := fmt.Sprintf("%q", mountsBelow(info, "/target")); got != `["/target/boot efi" "/target"]` {
		t.Errorf("mountsBelow = %s, want the inner mount first", got)
	}
}

func TestPercent(t *testing.T) {
	var p percent
	for _, s := range []string{"1\n2", "\n3", "7\r", "created 12 files\n", "999\n"} {
		fmt.Fprint(&p, s)
	}
	if p.value.Load() != 37 {
		t.Errorf("percent = %d, want 37", p.value.Load())
	}
}

// TestRunOnDirectory runs the whole plan with a directory as target: disk commands are
// recorded, files are real, and the image is a real squashfs if its tools are
// installed.
func TestRunOnDirectory(t *testing.T) {
	j := full()
	j.Target = t.TempDir()
	j.Disk.Path = filepath.Join(t.TempDir(), "disk")
	for _, p := range []int{2, 3, 4, 5, 6} {
		if err := os.WriteFile(j.Disk.Partition(p), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	image := t.TempDir()
	for _, f := range []string{"boot/vmlinuz-6.1", "boot/vmlinuz-6.12", "boot/initrd.img-6.12", "etc/ssh/ssh_host_rsa_key", "etc/systemd/network/80-live.network", "etc/basalt/basaltd.yaml"} {
		path := filepath.Join(image, f)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("old"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	j.Source = filepath.Join(t.TempDir(), "filesystem.squashfs")
	_, noTools := exec.LookPath("mksquashfs")
	if noTools == nil {
		if out, err := exec.Command("mksquashfs", image, j.Source, "-no-progress").CombinedOutput(); err != nil {
			t.Fatalf("mksquashfs: %v: %s", err, out)
		}
	} else if err := os.WriteFile(j.Source, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	var last Progress
	inputs := map[string]string{}
	e := &Executor{
		Target: j.Target, Log: &log, Progress: func(p Progress) { last = p },
		Disks: func(context.Context, string) ([]machine.Disk, error) { return []machine.Disk{j.Disk}, nil },
		Command: func(ctx context.Context, argv []string, input string, out io.Writer) error {
			inputs[argv[0]] = input
			switch {
			case argv[0] == "unsquashfs" && noTools == nil:
				return Exec(ctx, argv, input, out)
			case argv[0] == "unsquashfs":
				return os.CopyFS(j.Target, os.DirFS(image))
			}
			return nil
		},
	}
	for range 2 { // a second run succeeds like the first
		if err := e.Run(context.Background(), Plan(j)); err != nil {
			t.Fatalf("run the plan: %v\n%s", err, log.String())
		}
		if noTools != nil {
			break // CopyFS does not overwrite
		}
	}
	if !last.Done {
		t.Errorf("last progress = %+v, want it done", last)
	}
	for name, want := range map[string]string{"etc/hostname": "node1\n", "etc/basalt/setup.yaml": setup(j.Answers.Cluster), "root/.ssh/authorized_keys": "ssh-ed25519 AAAA me\n"} {
		if got, err := os.ReadFile(filepath.Join(j.Target, name)); err != nil || string(got) != want {
			t.Errorf("%s = %q, %v; want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]os.FileMode{"etc/basalt/setup.yaml": 0o600, "root/.ssh": 0o700, "root/.ssh/authorized_keys": 0o600} {
		if s, err := os.Stat(filepath.Join(j.Target, name)); err != nil || s.Mode().Perm() != want {
			t.Errorf("mode of %s = %v, %v; want %v", name, s, err, want)
		}
	}
	for _, gone := range []string{"etc/ssh/ssh_host_rsa_key", "etc/systemd/network/80-live.network"} {
		if _, err := os.Stat(filepath.Join(j.Target, gone)); err == nil {
			t.Errorf("%s exists, want it removed", gone)
		}
	}
	if to, err := os.Readlink(filepath.Join(j.Target, "vmlinuz")); err != nil || to != "boot/vmlinuz-6.12" {
		t.Errorf("vmlinuz links to %q, %v; want boot/vmlinuz-6.12", to, err)
	}
	if inputs["chroot"] != "root:correct horse\n" || strings.Contains(log.String(), "correct horse") {
		t.Errorf("password passed to chpasswd = %q, or it is in the log", inputs["chroot"])
	}
}

// TestFailureSaysWhatToDo checks that the error of any failed action has a hint, and
// that no later action runs.
func TestFailureSaysWhatToDo(t *testing.T) {
	j := small()
	j.Target = t.TempDir()
	for _, broken := range []string{"wipefs", "mkfs.ext4", "mount"} {
		var ran []string
		e := &Executor{
			Target: j.Target, Log: io.Discard, Progress: func(Progress) {},
			Disks: func(context.Context, string) ([]machine.Disk, error) { return []machine.Disk{j.Disk}, nil },
			Command: func(_ context.Context, argv []string, _ string, out io.Writer) error {
				ran = append(ran, argv[0])
				if argv[0] == broken {
					fmt.Fprintln(out, "Input/output error")
					return errors.New("exit status 1")
				}
				return nil
			},
		}
		steps := Plan(j)
		for i := range steps { // no device files appear here
			steps[i].Actions = withoutAwait(steps[i].Actions)
		}
		err := e.Run(context.Background(), steps)
		var known *api.Error
		if !errors.As(err, &known) || known.Hint == "" || !strings.Contains(known.Message, "Input/output error") || ran[len(ran)-1] != broken {
			t.Errorf("failed %s: error %v after %v; want a hint and no later action", broken, err, ran)
		}
	}
}

func withoutAwait(in []Action) (out []Action) {
	for _, a := range in {
		if _, ok := a.(Await); !ok {
			out = append(out, a)
		}
	}
	return out
}

func TestRecheckRefusesAnotherDisk(t *testing.T) {
	want := small().Disk
	for name, now := range map[string][]machine.Disk{
		"gone":           nil,
		"another serial": {{Path: want.Path, Serial: "X", SizeBytes: want.SizeBytes}},
		"another size":   {{Path: want.Path, SizeBytes: 1}},
		"busy":           {{Path: want.Path, SizeBytes: want.SizeBytes, Refusal: &machine.Refusal{Reason: "mounted"}}},
	} {
		e := &Executor{Target: Target, Disks: func(context.Context, string) ([]machine.Disk, error) { return now, nil }}
		if err := e.recheck(context.Background(), want); err == nil {
			t.Errorf("%s: recheck succeeded, want an error so that nothing is erased", name)
		}
	}
}

// TestPartitionAnImageFile runs the partition commands on an image file.
func TestPartitionAnImageFile(t *testing.T) {
	for _, tool := range []string{"sgdisk", "wipefs"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("host: %s is not installed", tool)
		}
	}
	j := full()
	j.Disk.Path = filepath.Join(t.TempDir(), "disk.img")
	f, err := os.Create(j.Disk.Path)
	if err == nil {
		err = errors.Join(f.Truncate(1<<40), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	do := func(id string) {
		t.Helper()
		for _, s := range Plan(j) {
			if s.ID != id {
				continue
			}
			for _, a := range s.Actions {
				r, ok := a.(Run)
				if !ok || r.Argv[0] == "udevadm" {
					continue
				}
				if r.Argv[0] == "dd" {
					r.Argv = append(r.Argv, "conv=notrunc")
				}
				var out strings.Builder
				if err := Exec(context.Background(), r.Argv, r.Input, &out); err != nil {
					t.Fatalf("%s: %v: %s", r, err, out.String())
				}
			}
		}
	}
	names := func() string {
		out, err := exec.Command("sgdisk", "--print", j.Disk.Path).CombinedOutput()
		if err != nil {
			t.Fatalf("sgdisk --print: %v: %s", err, out)
		}
		return string(out)
	}
	for range 2 {
		do("erase")
		do("partition")
		if mbr := make([]byte, 512); readAt(t, j.Disk.Path, mbr) && (!strings.HasPrefix(string(mbr), unfinished()) || mbr[510] != 0x55 || mbr[450] != 0xee) {
			t.Errorf("first sector = %q, want the code for an unfinished installation", mbr)
		}
		if got := names(); !strings.Contains(got, machine.PartitionUnfinished) || strings.Contains(got, machine.PartitionRoot+"\n") || !strings.Contains(got, "EF02  "+machine.PartitionBIOS) {
			t.Errorf("partition names before the end:\n%s", got)
		}
		do("complete")
		out, err := exec.Command("sgdisk", "--info=3", j.Disk.Path).CombinedOutput()
		if err != nil || !strings.Contains(string(out), strings.ToUpper(j.IDs.RootPart)) || !strings.Contains(names(), machine.PartitionRoot) {
			t.Errorf("partitions at the end:\n%s\n%s", out, names())
		}
	}
}

func readAt(t *testing.T, path string, b []byte) bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.ReadFull(f, b); err != nil {
		t.Fatal(err)
	}
	return true
}

// TestUnfinishedCode checks the jumps in the boot code and the address of its message.
func TestUnfinishedCode(t *testing.T) {
	code := unfinished()
	message := strings.Index(code, "\r\nBasalt")
	if len(code) > 440 || int(code[6])|int(code[7])<<8 != 0x7c00+message || code[len(code)-1] != 0 {
		t.Errorf("boot code has %d bytes and its message at %#x, want at most 440 and the address that it loads", len(code), message)
	}
	next, end := strings.IndexByte(code, 0xac), strings.Index(code, "\xcd\x18")
	jz, jmp := strings.IndexByte(code, 0x74), strings.Index(code, "\xeb\xf2")
	if jz+2+int(code[jz+1]) != end || jmp+2+int(int8(code[jmp+1])) != next {
		t.Errorf("jz leads to %d, want %d; jmp leads to %d, want %d", jz+2+int(code[jz+1]), end, jmp+2+int(int8(code[jmp+1])), next)
	}
}
