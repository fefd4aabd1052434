package gpudriver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// perform performs a step.
func (n *Installer) perform(ctx context.Context, id StepID, s State, o Options) error {
	switch id {
	case StepUnfinished:
		return n.finish(ctx, o)
	case StepSources:
		return n.addSources()
	case StepSettings:
		return n.writeSettings(ctx, s)
	case StepPackages:
		return n.installPackages(ctx, s, o)
	case StepBuild:
		return n.build(ctx, s)
	case StepLoad:
		return n.load(ctx, s)
	case StepDevices:
		// nvidia-modprobe(1): the files of the first card, of the driver, and of
		// nvidia-uvm.
		return n.run(ctx, "nvidia-modprobe", "-u", "-c", "0")
	case StepPersistence:
		if s.loads() {
			return n.run(ctx, "systemctl", "enable", "--now", "nvidia-persistenced.service")
		}
		return n.run(ctx, "systemctl", "enable", "nvidia-persistenced.service")
	case StepDoctor:
		err := n.Doctor(ctx)
		n.checked = err == nil
		return err
	}
	return fmt.Errorf("gpudriver: no way to perform %s", id)
}

// run runs a program, with its output on Out.
func (n *Installer) run(ctx context.Context, argv ...string) error {
	if err := n.Command(ctx, argv, n.Out); err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	return nil
}

func (n *Installer) addSources() error {
	list, stanzas, err := n.archives()
	if err != nil {
		return err
	}
	for name, text := range map[string]string{listFile: list, stanzaFile: stanzas} {
		if text == "" {
			if err := os.Remove(filepath.Join(n.Root, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			continue
		}
		if err := n.write(name, text); err != nil {
			return err
		}
	}
	return nil
}

// writeSettings writes the settings, and keeps nouveau out of the initramfs if the kernel
// has it. The last file is written at the end, so that the step is not done before.
func (n *Installer) writeSettings(ctx context.Context, s State) error {
	for _, name := range []string{dkmsFile, modprobeFile} {
		if err := n.write(name, settings[name]); err != nil {
			return err
		}
	}
	if s.Nouveau {
		if err := n.run(ctx, "update-initramfs", "-u", "-k", s.Kernel); err != nil {
			return err
		}
	}
	return n.write(loadFile, settings[loadFile])
}

// write replaces a file below the root.
func (n *Installer) write(name, text string) error {
	path := filepath.Join(n.Root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteFile(path, []byte(text), 0o644)
}

// finish configures the packages that were unpacked when dpkg was killed, and installs what
// they need if that was not unpacked yet.
func (n *Installer) finish(ctx context.Context, o Options) error {
	failed := n.run(ctx, "dpkg", "--configure", "-a", "--force-confold")
	if failed == nil {
		return nil
	}
	apt, _, err := n.prepare(ctx, o)
	if err != nil {
		return errors.Join(failed, err)
	}
	return n.run(ctx, append(apt, "--fix-broken", "install")...)
}

// prepare fetches the lists of packages. It returns the command that installs them, and
// apt's options.
func (n *Installer) prepare(ctx context.Context, o Options) (apt, options []string, err error) {
	options, err = n.aptOptions(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	apt = append([]string{"apt-get", "-q", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"}, options...)
	if err := n.run(ctx, append(slices.Clone(apt), "-o", "APT::Update::Error-Mode=any", "update")...); err != nil {
		if len(o.From) > 0 {
			return nil, nil, fmt.Errorf("the packages in %s cannot be read: %w", strings.Join(o.From, ", "), err)
		}
		return nil, nil, fmt.Errorf("no package archive can be reached: check the network and /etc/apt, or name a directory with the packages (--from DIR): %w", err)
	}
	return slices.Clip(apt), options, nil
}

// installPackages installs the packages, after it has checked that there are all of them,
// so that nothing is installed if the headers are of another kernel.
func (n *Installer) installPackages(ctx context.Context, s State, o Options) error {
	apt, options, err := n.prepare(ctx, o)
	if err != nil {
		return err
	}
	wanted := Wanted(s.Kernel)
	offered, err := n.offered(ctx, options, wanted)
	if err != nil {
		return err
	}
	wanted, err = choose(wanted, offered, s, o)
	if err != nil {
		return err
	}
	return n.run(ctx, append(append(apt, "install"), wanted...)...)
}

// offered returns the versions of the packages that can be installed.
func (n *Installer) offered(ctx context.Context, options, names []string) (map[string]string, error) {
	var out bytes.Buffer
	argv := append(append([]string{"apt-cache"}, options...), "--no-all-versions", "show")
	// It fails if there is none of them, which choose reports in other words.
	_ = n.Command(ctx, append(argv, names...), &out)
	offered := map[string]string{}
	var name string
	for line := range strings.Lines(out.String()) {
		if v, ok := strings.CutPrefix(line, "Package:"); ok {
			name = strings.TrimSpace(v)
		}
		if v, ok := strings.CutPrefix(line, "Version:"); ok && name != "" {
			offered[name], name = strings.TrimSpace(v), ""
		}
	}
	return offered, ctx.Err()
}

// choose returns the packages to install, or why what is offered does not suffice.
func choose(wanted []string, offered map[string]string, s State, o Options) ([]string, error) {
	place, hint := "the configured archives", "check /etc/apt/sources.list: the driver is in Debian's sections contrib and non-free"
	if len(o.From) > 0 {
		place, hint = strings.Join(o.From, ", "), "docs/gpu-nodes.md describes how to download the packages with all that they depend on"
	}
	available := func(p string) bool { return offered[p] != "" || s.Installed[p] != "" }
	headers, following := wanted[0], wanted[1]
	if !available(headers) {
		return nil, refuse("install the newest kernel (apt-get install linux-image-"+flavour(s.Kernel)+"), restart the node and try again; or name a directory with that package, such as the medium that the node was installed from (--from DIR)",
			"%s is not in %s, and headers of another kernel do not fit", headers, place)
	}
	if !available(following) && len(o.From) > 0 { // optional, as in steps
		wanted = slices.DeleteFunc(slices.Clone(wanted), func(p string) bool { return p == following })
	}
	var missing []string
	for _, p := range wanted {
		if !available(p) {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		return nil, refuse(hint, "not in %s: %s", place, strings.Join(missing, ", "))
	}
	if v := offered[modulesPackage]; v != "" && major(v) < minDriver {
		return nil, refuse("use Debian 13 or newer, or NVIDIA's own packages (docs/gpu-nodes.md)", "version %s of the driver is in %s, want %d or newer", v, place, minDriver)
	}
	return wanted, nil
}

// major returns the first number of a version.
func major(version string) int {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		version = rest
	}
	first, _, _ := strings.Cut(version, ".")
	number, _ := strconv.Atoi(first)
	return number
}

// build builds the modules, if the packages' scripts have not: for a kernel that was
// installed without its headers, or that was not the newest.
func (n *Installer) build(ctx context.Context, s State) error {
	if err := n.run(ctx, "dkms", "autoinstall", "-k", s.Kernel); err != nil {
		return fmt.Errorf("%w; the compiler's output is in /var/lib/dkms/nvidia-current-open/*/build/make.log", err)
	}
	return nil
}

func (n *Installer) load(ctx context.Context, s State) error {
	for _, g := range s.Cards {
		if g.Driver != "" && g.Driver != "nvidia" {
			return refuse("restart the node, and then run this again", "driver %s is bound to card %s", g.Driver, g.Address)
		}
	}
	for _, module := range []string{"nvidia", "nvidia-uvm"} {
		if err := n.run(ctx, "modprobe", module); err != nil {
			return fmt.Errorf("%w%s", err, n.kernelLog(ctx))
		}
	}
	return nil
}

// kernelLog returns the last lines of the kernel's log about the driver, for an error.
func (n *Installer) kernelLog(ctx context.Context) string {
	var out bytes.Buffer
	if n.Command(ctx, []string{"dmesg"}, &out) != nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "NVRM") || strings.Contains(line, "nvidia") || strings.Contains(line, "module verification failed") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "; the kernel's log: " + strings.Join(lines[max(0, len(lines)-4):], " | ")
}
