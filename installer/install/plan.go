package install

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/machine"
	"github.com/basalt-gpu/basalt/installer/machine/network"
)

// Where the live system has the image, and where the disk is mounted.
const (
	Source = machine.LiveMedium + "/live/filesystem.squashfs"
	Target = "/target"
)

// Request is a requested installation: the answers, and the parts of this machine that
// they refer to.
type Request struct {
	Answers answers.Answers
	Disk    machine.Disk
	Mirror  *machine.Disk // a second disk that holds the same; nil: none
	Main    network.Up
	Second  *network.Up
}

// Job is everything that determines a plan.
type Job struct {
	Request
	Source      string // path of the image
	SourceBytes uint64 // unpacked; 0: unknown
	Target      string
	IDs         IDs
	Version     string
	Now         time.Time
	// NoTimerCheck is set if the medium's kernel needed that parameter to start
	// (installer/iso/grub.cfg); the node's kernel then needs it as well.
	NoTimerCheck bool
	// NVRAM reports whether the firmware supports boot entries: UEFI with writable
	// variables.
	NVRAM bool
	// SerialPorts are the computer's serial ports, such as ttyS0.
	SerialPorts []string
}

// IDs are the random IDs of this installation's disk.
type IDs struct {
	RootFS string // UUID of the root file system
	// RootPart is the UUID of the root partition, set when the installation is complete.
	// Of two disks it gives the label of the root file system.
	RootPart string
	ESP      string // volume ID, 8 hex digits
}

// NewIDs returns IDs made from 36 random bytes.
func NewIDs(random [36]byte) IDs {
	return IDs{uuid(random[:16]), uuid(random[16:32]), strings.ToUpper(fmt.Sprintf("%x", random[32:]))}
}

func uuid(b []byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4 (RFC 9562)
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// settle waits for udev.
var settle = Run{Argv: []string{"udevadm", "settle", "--timeout=30"}, MayFail: "waiting is all it does"}

// Plan returns the steps of the installation. It is pure.
func Plan(j Job) []Step {
	var names []string
	check := []Action{Release{}}
	for _, d := range j.disks() {
		names = append(names, d.Path)
		check = append(check, Recheck{d})
	}
	check = append(check, checkDriver(j.Answers.GPUDriver)...)
	return []Step{
		{"check", "Look at the disk a last time", "it only looks", check},
		{"erase", "Erase " + strings.Join(names, " and "), "what is erased stays erased", erase(j)},
		{"partition", "Make partitions", "the table is written anew", partition(j)},
		{"format", "Make file systems", "they are made anew", format(j)},
		{"mount", "Mount them", "nothing is mounted: check released it", mount(j)},
		{"unpack", "Copy the system", "the file system is new", []Action{Unpack{j.Source, j.SourceBytes}}},
		{"configure", "Configure the node", "each file is written whole", configure(j)},
		{"boot", "Install the boot loader", "it is written anew", slices.Concat([]Action{
			Kernel{},
			Write{"boot/grub/grub.cfg", 0o600, grubConfig(j)},
			Write{"etc/default/grub.d/basalt.cfg", 0o644, grubDefaults(j)},
			Run{Argv: []string{"sync"}},
		}, loaders(j))},
		{"unmount", "Write everything to the disk", "nothing is left to write", []Action{Run{Argv: []string{"sync"}}, Release{}}},
		{"complete", "Declare it complete", "the same id and name again", complete(j)},
	}
}

// configure turns the copied system into this node.
func configure(j Job) []Action {
	a := j.Answers
	acts := append(folders(j), Write{"etc/fstab", 0o644, fstab(j)})
	if j.Mirror != nil {
		acts = append(acts, Write{"etc/mdadm/mdadm.conf", 0o644, mdadmConf(j)})
	}
	acts = append(acts,
		Write{"etc/hostname", 0o644, a.Hostname + "\n"},
		Write{"etc/hosts", 0o644, hosts(a.Hostname)},
		Remove{"etc/systemd/network/*.network"},
	)
	acts = append(acts, networkFiles(j)...)
	acts = append(acts, Link{"etc/resolv.conf", "/run/systemd/resolve/stub-resolv.conf"})
	if len(a.NTP) > 0 {
		acts = append(acts, Write{"etc/systemd/timesyncd.conf.d/basalt.conf", 0o644, "[Time]\nNTP=" + strings.Join(a.NTP, " ") + "\n"})
	}
	acts = append(acts,
		// Every node generates its own at its first start.
		Write{"etc/machine-id", 0o444, ""},
		Remove{"var/lib/dbus/machine-id"},
		Remove{"var/lib/systemd/random-seed"},
		Remove{"etc/ssh/ssh_host_*"},
		Write{"etc/basalt/basaltd.yaml", 0o644, basaltd(j)},
		Write{"etc/basalt/setup.yaml", 0o600, setup(a.Cluster)},
		Write{"etc/basalt/installed", 0o644, fmt.Sprintf("version: %q\nat: %s\n", j.Version, j.Now.UTC().Format(time.RFC3339))},
	)
	acts = append(acts, requestDriver(a.GPUDriver)...)
	if path.IsAbs(a.SharedDir) { // basaltd mounts exports of servers
		acts = append(acts, Mkdir{strings.TrimPrefix(a.SharedDir, "/"), 0o755})
	}
	if len(a.Root.SSHKeys) > 0 {
		acts = append(acts, Mkdir{"root/.ssh", 0o700}, Write{"root/.ssh/authorized_keys", 0o600, strings.Join(a.Root.SSHKeys, "\n") + "\n"})
	}
	switch {
	case a.Root.PasswordHash != "":
		acts = append(acts, Run{Argv: []string{"chroot", j.Target, "chpasswd", "-e"}, Input: "root:" + a.Root.PasswordHash + "\n"})
	case a.Root.Password != "":
		acts = append(acts, Run{Argv: []string{"chroot", j.Target, "chpasswd"}, Input: "root:" + a.Root.Password + "\n"})
	}
	return acts
}
