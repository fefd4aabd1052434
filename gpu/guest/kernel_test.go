package guest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeTree writes executable text files below the folder root.
func writeTree(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// distribution is a fake machine whose programs record their calls. root is its root
// folder, path the folder with its programs and the record, named calls.
type distribution struct {
	t          *testing.T
	root, path string
}

// cloudMachine returns a machine with a vGPU and a kernel without DRM.
func cloudMachine(t *testing.T, osRelease string) distribution {
	t.Helper()
	d := distribution{t, t.TempDir(), t.TempDir()}
	writeTree(t, d.root, map[string]string{
		"etc/os-release":                          osRelease,
		"proc/sys/kernel/osrelease":               "6.1.0-9-cloud-amd64\n",
		"proc/cmdline":                            "ro quiet\n",
		"boot/config-6.1.0-9-cloud-amd64":         "CONFIG_VIRTIO_PCI=m\n# CONFIG_DRM is not set\n",
		"sys/bus/pci/devices/0000:00:1d.0/vendor": "0x1af4\n",
		"sys/bus/pci/devices/0000:00:1d.0/device": "0x1050\n",
	})
	for _, program := range []string{"apt-get", "dnf", "zypper", "dpkg-query", "update-grub", "systemctl", "modprobe"} {
		d.program(program, "")
	}
	return d
}

// program writes a program that records its arguments and then runs the shell code more.
func (d distribution) program(name, more string) {
	d.t.Helper()
	writeTree(d.t, d.path, map[string]string{name: fmt.Sprintf("#!/bin/sh\necho \"%s $*\" >>\"%s/calls\"\n%s\n", name, d.path, more)})
}

// installs makes a package manager install a kernel that has the driver.
func (d distribution) installs(manager string) {
	d.program(manager, fmt.Sprintf("mkdir -p %[1]s/lib/modules/6.1.0-9-amd64; echo kernel/drivers/gpu/drm/virtio/virtio-gpu.ko: >%[1]s/lib/modules/6.1.0-9-amd64/modules.dep", d.root))
}

// run runs the program that replaces the kernel, and returns its output.
func (d distribution) run(args ...string) (output string, err error) {
	d.t.Helper()
	cmd := exec.Command("sh", append([]string{made("kernel")}, args...)...)
	cmd.Env = append(os.Environ(), "BASALT_ROOT="+d.root, "PATH="+d.path+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// calls returns the recorded calls, or one empty string if there were none.
func (d distribution) calls() []string {
	b, _ := os.ReadFile(filepath.Join(d.path, "calls"))
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// state returns the state that the program has written to /run/basalt/kernel.
func (d distribution) state() string {
	b, _ := os.ReadFile(filepath.Join(d.root, "run/basalt/kernel"))
	return strings.TrimSpace(string(b))
}

const debian = "ID=debian\nVERSION_ID=13\n"

// A cloud kernel is replaced once, with one reboot. If the same kernel boots again, the
// program reports a failure and changes nothing.
func TestKernelIsReplaced(t *testing.T) {
	d := cloudMachine(t, debian)
	d.installs("apt-get")
	out, err := d.run()
	if err != nil {
		t.Fatalf("replace the kernel: %v\n%s", err, out)
	}
	calls := d.calls()
	for _, want := range []string{"apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends linux-image-amd64",
		"apt-get -o DPkg::Lock::Timeout=600 remove -y linux-image-6.1.0-9-cloud-amd64", "systemctl reboot"} {
		if !slices.Contains(calls, want) {
			t.Errorf("calls = %q, want %q among them", calls, want)
		}
	}
	if d.state() != "reboot" || calls[len(calls)-1] != "systemctl reboot" || !strings.Contains(out, "keep-kernel") {
		t.Errorf("state %q, calls %q; want state reboot, systemctl reboot as the last call, and keep-kernel in the output\n%s", d.state(), calls, out)
	}
	out, err = d.run() // the same kernel booted again
	if err == nil || d.state() != "failed" || !strings.Contains(out, "runs again") || len(d.calls()) != len(calls) {
		t.Errorf("second run: %v, state %q, calls %q; want an error that the kernel runs again, state failed and no calls\n%s", err, d.state(), d.calls()[len(calls):], out)
	}
}

// The kernel is not changed on machines whose owner has forbidden it, on machines without
// a vGPU, and on machines whose kernel has the driver.
func TestKernelIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		state string
	}{
		"file":         {map[string]string{"etc/basalt/keep-kernel": ""}, "off"},
		"command line": {map[string]string{"proc/cmdline": "ro basalt.kernel=keep quiet\n"}, "off"},
		"no vGPU":      {map[string]string{"sys/bus/pci/devices/0000:00:1d.0/device": "0x1041\n"}, ""},
		"has driver":   {map[string]string{"sys/bus/virtio/drivers/virtio_gpu/virtio1/x": ""}, ""},
		"nomodeset": {map[string]string{"proc/cmdline": "nomodeset\n", "boot/config-6.1.0-9-cloud-amd64": "CONFIG_DRM=m\nCONFIG_DRM_VIRTIO_GPU=m\n",
			"lib/modules/6.1.0-9-cloud-amd64/modules.dep": "kernel/drivers/gpu/drm/virtio/virtio-gpu.ko:\n"}, ""},
		"nothing is known": {map[string]string{"proc/sys/kernel/osrelease": "7.0-own\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := cloudMachine(t, debian)
			writeTree(t, d.root, c.files)
			out, err := d.run()
			if err != nil || d.state() != c.state || d.calls()[0] != "" {
				t.Errorf("%v, state %q, calls %q; want success, state %q and no calls\n%s", err, d.state(), d.calls(), c.state, out)
			}
		})
	}
}

// If the kernel cannot be replaced, the program reports why and does not reboot.
func TestKernelThatCannotBeReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		release string
		set     func(distribution)
		text    string
	}{
		"no package":           {debian, func(d distribution) { d.program("apt-get", `case "$*" in *install*) exit 100;; esac`) }, "failed: the vGPU cannot be used until"},
		"no archive":           {debian, func(d distribution) { d.program("apt-get", "exit 100") }, "apt-get update failed"},
		"package without it":   {debian, func(distribution) {}, "left no kernel with the module virtio_gpu"},
		"another distribution": {"ID=plan9\n", func(distribution) {}, "plan9"},
		"kernel that stays": {debian, func(d distribution) {
			d.installs("apt-get")
			b, _ := os.ReadFile(filepath.Join(d.path, "apt-get"))
			writeTree(t, d.path, map[string]string{"apt-get": string(b) + "case \"$*\" in *remove*) exit 1;; esac\n"})
		}, "would boot again"},
	} {
		t.Run(name, func(t *testing.T) {
			d := cloudMachine(t, c.release)
			c.set(d)
			out, err := d.run()
			if err == nil || d.state() != "failed" || !strings.Contains(out, c.text) || slices.Contains(d.calls(), "systemctl reboot") {
				t.Errorf("%v, state %q, calls %q, output\n%s\nwant an error, state failed, no reboot, and %q in the output", err, d.state(), d.calls(), out, c.text)
			}
		})
	}
}

// --plan prints the commands for each distribution and runs none of them.
func TestKernelPlans(t *testing.T) {
	for release, want := range map[string]string{
		debian:                        "install -y --no-install-recommends linux-image-amd64, then remove linux-image-cloud-amd64 linux-image-6.1.0-9-cloud-amd64, reboot: yes",
		"ID=ubuntu\nID_LIKE=debian\n": "linux-image-generic, reboot: yes",
		"ID=\"almalinux\"\nID_LIKE=\"rhel centos fedora\"\n": "dnf install -y kernel, reboot: yes",
		"ID=fedora\n": "dnf install -y kernel, reboot: yes",
		"ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n": "zypper --non-interactive install --force-resolution kernel-default, reboot: yes",
	} {
		d := cloudMachine(t, release)
		out, err := d.run("--plan")
		if err != nil || !strings.Contains(out, want) || d.calls()[0] != "" || d.state() != "" {
			t.Errorf("--plan on %q: %v, calls %q, output %s; want no calls, and %q in the output", release, err, d.calls(), out, want)
		}
	}
	d := cloudMachine(t, "ID=fedora\n") // the module of its kernel is in another package
	writeTree(t, d.root, map[string]string{"boot/config-6.1.0-9-cloud-amd64": "CONFIG_DRM=m\nCONFIG_DRM_VIRTIO_GPU=m\n", "lib/modules/6.1.0-9-cloud-amd64/modules.dep": "x\n"})
	if out, err := d.run(); err != nil || !slices.Contains(d.calls(), "dnf install -y kernel-modules-6.1.0-9-cloud-amd64") || !slices.Contains(d.calls(), "modprobe virtio_gpu") || slices.Contains(d.calls(), "systemctl reboot") {
		t.Errorf("module in another package: %v, calls %q; want the package kernel-modules installed, the module loaded, and no reboot\n%s", err, d.calls(), out)
	}
}

// The installer installs our guest agent's unit on systems with systemd that have no guest
// agent. Others keep their own.
func TestInstallBringsAnAgent(t *testing.T) {
	const unit, wants = "etc/systemd/system/basalt-guest-agent.service", `etc/systemd/system/dev-virtio\x2dports-org.qemu.guest_agent.0.device.wants/basalt-guest-agent.service`
	for name, c := range map[string]struct {
		has   map[string]string
		wants bool
	}{
		"without":         {map[string]string{"etc/systemd/system/x": ""}, true},
		"with":            {map[string]string{"etc/systemd/system/x": "", "usr/sbin/qemu-ga": ""}, false},
		"without systemd": {map[string]string{"etc/x": ""}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dest := t.TempDir()
			writeTree(t, dest, c.has)
			before := files(t, dest)
			mustInstall(t, made("install.sh"), dest, nil)
			got := files(t, dest)
			if slices.Contains(got, unit) != c.wants || slices.Contains(got, wants) != c.wants {
				t.Errorf("the agent's unit is installed: %v, and wanted by its port: %v; want both %v", slices.Contains(got, unit), slices.Contains(got, wants), c.wants)
			}
			if !slices.Contains(got, "usr/lib/basalt/bin/basalt-guest-agent") {
				t.Error("usr/lib/basalt/bin/basalt-guest-agent is not installed")
			}
			mustInstall(t, made("install.sh"), dest, nil, "--remove")
			if left := slices.DeleteFunc(files(t, dest), func(f string) bool { return f == "etc/ld.so.cache" }); !slices.Equal(left, before) {
				t.Errorf("--remove left %v, want %v", left, before)
			}
		})
	}
	if systemd, err := exec.LookPath("systemd-analyze"); err == nil {
		dest := t.TempDir()
		writeTree(t, dest, map[string]string{"etc/systemd/system/x": ""})
		mustInstall(t, made("install.sh"), dest, nil)
		out, err := exec.Command(systemd, "verify", "--man=no", "--recursive-errors=no", filepath.Join(dest, unit)).CombinedOutput()
		if text := strings.ReplaceAll(string(out), "\n", " "); err != nil && !strings.Contains(text, "is not executable") {
			t.Errorf("systemd-analyze verify: %v\n%s", err, out)
		}
	}
}
