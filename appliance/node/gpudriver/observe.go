package gpudriver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/node/hardware"
)

// Files that this package writes, below the root of the file system.
const (
	modprobeFile = "etc/modprobe.d/basalt-nvidia.conf"
	loadFile     = "etc/modules-load.d/basalt-nvidia.conf"
	dkmsFile     = "etc/dkms/nvidia-current-open.conf"
	listFile     = "etc/apt/sources.list.d/basalt-nvidia.list"
	stanzaFile   = "etc/apt/sources.list.d/basalt-nvidia.sources"
)

const header = "# Written by basalt-gpud driver install.\n"

// settings are the contents of modprobe.d(5) and modules-load.d(5): nouveau would bind to
// the cards first, and workers may not load nvidia-uvm. dkms(8) reads its file after the
// package's own: the source is adapted to the kernel before each build, also for kernels
// that are installed later.
var settings = map[string]string{
	dkmsFile:     header + `MAKE[0]="/usr/lib/basalt/nvidia-source $kernelver; ${MAKE[0]}"` + "\n",
	modprobeFile: header + "blacklist nouveau\noptions nouveau modeset=0\n",
	loadFile:     header + "nvidia\nnvidia-uvm\n",
}

// observe returns the state of the node.
func (n *Installer) observe(ctx context.Context) (State, error) {
	s := State{Kernel: n.Kernel, Running: n.Kernel == n.running(), Checked: n.checked}
	root := os.DirFS(n.Root)
	for _, g := range hardware.NVIDIA(root) {
		if g.Driver != "vfio-pci" {
			s.Cards = append(s.Cards, g)
		}
	}
	s.SecureBoot = hardware.SecureBoot(root)
	s.Known = n.exists("lib/modules", n.Kernel)
	s.Driver = driverVersion(n.read("proc/driver/nvidia/version"))
	s.Unified, s.Nouveau = n.exists("sys/module/nvidia_uvm"), n.exists("sys/module/nouveau")
	s.Devices = n.exists("dev/nvidiactl") && n.exists("dev/nvidia-uvm")
	s.Enabled = n.exists("etc/systemd/system/multi-user.target.wants/nvidia-persistenced.service")
	s.Persistent = n.exists("run/nvidia-persistenced/socket")
	s.Built = n.built()
	s.Settings = true
	for name, want := range settings {
		s.Settings = s.Settings && n.read(name) == want
	}
	list, stanzas, err := n.archives()
	if err != nil {
		return s, err
	}
	s.NonFree = n.read(listFile) == list && n.read(stanzaFile) == stanzas
	// What dpkg had not yet written to its list of packages when it was killed. apt refuses
	// to work until "dpkg --configure -a" has done so.
	journal, err := filepath.Glob(filepath.Join(n.Root, "var/lib/dpkg/updates/[0-9]*"))
	if err != nil {
		return s, err
	}
	s.Interrupted = len(journal) > 0
	s.Installed, s.Unfinished, err = n.packages(ctx)
	return s, err
}

// read returns the content of a file, or an empty string if it cannot be read.
func (n *Installer) read(name string) string {
	raw, _ := os.ReadFile(filepath.Join(n.Root, name))
	return string(raw)
}

// exists reports whether a file exists. Links are not followed: their targets are in the
// root of the node.
func (n *Installer) exists(name ...string) bool {
	_, err := os.Lstat(filepath.Join(append([]string{n.Root}, name...)...))
	return err == nil
}

// running returns the release of the running kernel.
func (n *Installer) running() string {
	return strings.TrimSpace(n.read("proc/sys/kernel/osrelease"))
}

// driverVersion returns the version in /proc/driver/nvidia/version, whose first line is
// "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.163.01  Release Build ...".
func driverVersion(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	for _, word := range strings.Fields(first) {
		if word[0] >= '0' && word[0] <= '9' && strings.Contains(word, ".") {
			return word
		}
	}
	return strings.TrimSpace(first)
}

// built reports whether the kernel has the modules. Debian's packages call them
// nvidia-current-open.ko and nvidia-current-open-uvm.ko, NVIDIA's nvidia.ko and
// nvidia-uvm.ko.
func (n *Installer) built() bool {
	var names []string
	for _, dir := range []string{"updates", "extra", "kernel/drivers/video"} {
		_ = filepath.WalkDir(filepath.Join(n.Root, "lib/modules", n.Kernel, dir), func(_ string, e fs.DirEntry, err error) error {
			if err == nil && strings.HasPrefix(e.Name(), "nvidia") {
				name, _, module := strings.Cut(e.Name(), ".ko")
				if module {
					names = append(names, name)
				}
			}
			return nil
		})
	}
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(names, name+"-uvm") })
}

// archives returns what additions returns for the node's sources of apt.
func (n *Installer) archives() (list, stanzas string, err error) {
	files := map[string]string{}
	names, err := filepath.Glob(filepath.Join(n.Root, "etc/apt/sources.list.d/*"))
	if err != nil {
		return "", "", err
	}
	for _, name := range append(names, filepath.Join(n.Root, "etc/apt/sources.list")) {
		raw, err := os.ReadFile(name)
		rel, _ := filepath.Rel(n.Root, name)
		ext := filepath.Ext(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) || rel == listFile || rel == stanzaFile || ext != ".list" && ext != ".sources":
		case err != nil:
			return "", "", err
		default:
			files[name] = string(raw)
		}
	}
	list, stanzas = additions(files)
	if list != "" {
		list = header + list
	}
	if stanzas != "" {
		stanzas = header + stanzas
	}
	return list, stanzas, nil
}

// packages returns the installed packages with their versions, and those that are
// unpacked but not configured. Those that were not completely unpacked count as missing.
func (n *Installer) packages(ctx context.Context) (installed map[string]string, unfinished []string, err error) {
	var out bytes.Buffer
	if err := n.Command(ctx, []string{"dpkg-query", "-W", "-f", `${Package} ${db:Status-Status} ${Version}\n`}, &out); err != nil {
		return nil, nil, fmt.Errorf("list the installed packages: %w", err)
	}
	installed = map[string]string{}
	for line := range strings.Lines(out.String()) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch f[1] {
		case "installed":
			if len(f) > 2 {
				installed[f[0]] = f[2]
			}
		case "unpacked", "half-configured", "triggers-awaited", "triggers-pending":
			unfinished = append(unfinished, f[0])
		}
	}
	return installed, unfinished, nil
}
