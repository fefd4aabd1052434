package gpudriver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const kernel = "6.12.118+deb13-amd64"

// node is a simulated node: a directory tree like that of a node, and the programs that
// are run on it.
type node struct {
	t         *testing.T
	root      string
	status    map[string]string // dpkg's status by package
	offered   map[string]string // versions in the archives or directories
	noArchive bool
	builds    bool             // the package's scripts build the modules
	commands  []string         // what was run
	fail      map[string]error // by the beginning of the command
	killAt    int              // the number of the command that is killed; 0: none
	kill      context.CancelFunc
	doctor    error
	doctors   int
	out       bytes.Buffer
	report    string
}

// newNode returns a node as installed from the medium, with an H200 and without its
// driver.
func newNode(t *testing.T) *node {
	n := &node{t: t, root: t.TempDir(), status: map[string]string{"bash": "installed"}, offered: map[string]string{}, builds: true, fail: map[string]error{}}
	n.report = filepath.Join(n.root, "run/basalt/gpu-driver")
	for _, p := range Wanted(kernel) {
		n.offered[p] = "1.0"
	}
	n.offered[modulesPackage] = "550.163.01-2"
	n.file("proc/sys/kernel/osrelease", kernel+"\n")
	n.file("lib/modules/"+kernel+"/modules.dep", "")
	n.file("etc/apt/sources.list", "deb http://deb.debian.org/debian trixie main non-free-firmware\n")
	n.plug("0000:65:00.0", "0x2335", "")
	return n
}

func (n *node) file(name, content string) {
	n.t.Helper()
	path := filepath.Join(n.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) plug(address, device, driver string) {
	n.t.Helper()
	dir := "sys/bus/pci/devices/" + address
	n.file(dir+"/vendor", "0x10de\n")
	n.file(dir+"/class", "0x030200\n")
	n.file(dir+"/device", device+"\n")
	link := filepath.Join(n.root, dir, "driver")
	_ = os.Remove(link)
	if driver != "" {
		if err := os.Symlink("../../../../bus/pci/drivers/"+driver, link); err != nil {
			n.t.Fatal(err)
		}
	}
}

func (n *node) unplug() {
	if err := os.RemoveAll(filepath.Join(n.root, "sys/bus")); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) installer() *Installer {
	n.out.Reset()
	return &Installer{
		Root: n.root, Out: &n.out, Command: n.run, Report: n.report,
		Now:    func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		Doctor: func(context.Context) error { n.doctors++; return n.doctor },
	}
}

// install runs an installation, which is killed at the command killAt.
func (n *node) install(o Options) error {
	ctx, cancel := context.WithCancel(n.t.Context())
	defer cancel()
	n.kill = cancel
	return n.installer().Install(ctx, o)
}

// run is Installer.Command.
func (n *node) run(ctx context.Context, argv []string, out io.Writer) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	line := strings.Join(argv, " ")
	if argv[0] == "dpkg-query" {
		for _, name := range slices.Sorted(maps.Keys(n.status)) {
			fmt.Fprintf(out, "%s %s 1.0\n", name, n.status[name])
		}
		return nil
	}
	n.commands = append(n.commands, line)
	killed := n.killAt == len(n.commands)
	for begin, err := range n.fail {
		if strings.HasPrefix(line, begin) {
			return err
		}
	}
	err := n.perform(argv, killed, out)
	if killed {
		n.kill()
		return errors.Join(errors.New("signal: killed"), ctx.Err())
	}
	return err
}

// perform does what the program does to the node, or the first part of it.
func (n *node) perform(argv []string, half bool, out io.Writer) error {
	switch argv[0] {
	case "dpkg":
		if !half {
			n.journal(false)
		}
		for p, s := range n.status {
			if s != "installed" && !half {
				n.status[p] = "installed"
			}
		}
	case "dpkg-deb":
		fmt.Fprintf(out, "Package: %s\nVersion: 1.0\n", strings.TrimSuffix(filepath.Base(argv[2]), ".deb"))
	case "apt-cache":
		for _, p := range argv[slices.Index(argv, "show")+1:] {
			if v := n.offered[p]; v != "" {
				fmt.Fprintf(out, "Package: %s\nVersion: %s\n\n", p, v)
			}
		}
	case "apt-get":
		return n.apt(argv, half)
	case "dkms":
		if !half {
			n.module()
		}
	case "modprobe":
		if argv[1] == "nvidia" {
			n.file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.163.01  Release Build\nGCC version: 14\n")
		} else {
			n.file("sys/module/nvidia_uvm/refcnt", "0\n")
		}
	case "nvidia-modprobe":
		n.file("dev/nvidiactl", "")
		n.file("dev/nvidia-uvm", "")
	case "systemctl":
		n.file("etc/systemd/system/multi-user.target.wants/nvidia-persistenced.service", "")
		if argv[2] == "--now" {
			n.file("run/nvidia-persistenced/socket", "")
		}
	}
	return nil
}

func (n *node) apt(argv []string, half bool) error {
	i := slices.Index(argv, "install")
	if i < 0 { // update
		if n.noArchive {
			return errors.New("exit status 100: Temporary failure resolving 'deb.debian.org'")
		}
		return nil
	}
	if n.interrupted() {
		return errors.New("exit status 100: E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem")
	}
	if half {
		n.journal(true)
	}
	for j, p := range argv[i+1:] {
		switch {
		case n.offered[p] == "" && n.status[p] == "":
			return fmt.Errorf("exit status 100: unable to locate package %s", p)
		case half && j > 3:
		case half:
			n.status[p] = []string{"half-installed", "unpacked", "half-configured", "installed"}[j]
		default:
			n.status[p] = "installed"
		}
	}
	if n.builds && !half {
		n.module()
	}
	return nil
}

const journalFile = "var/lib/dpkg/updates/0001"

// journal creates or removes what a killed dpkg leaves.
func (n *node) journal(exists bool) {
	if exists {
		n.file(journalFile, "Package: gcc\n")
	} else if err := os.RemoveAll(filepath.Join(n.root, journalFile)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) interrupted() bool {
	_, err := os.Stat(filepath.Join(n.root, journalFile))
	return err == nil
}

func (n *node) module() {
	n.file("lib/modules/"+kernel+"/updates/dkms/nvidia-current-open.ko.xz", "")
	n.file("lib/modules/"+kernel+"/updates/dkms/nvidia-current-open-uvm.ko.xz", "")
}

// verbs returns what was run, without apt's options.
func (n *node) verbs() (all []string) {
	for _, c := range n.commands {
		f := strings.Fields(c)
		verb := f[0]
		for _, word := range []string{"update", "install", "show", "--configure", "autoinstall", "enable"} {
			if slices.Contains(f, word) {
				verb += " " + word
			}
		}
		if f[0] == "modprobe" {
			verb = c
		}
		all = append(all, verb)
	}
	return all
}
