package selfreport

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine is a root file system: the content of text files by their paths.
type machine map[string]string

func (m machine) with(more machine) machine {
	all := machine{}
	for _, files := range []machine{m, more} {
		for name, text := range files {
			all[name] = text
		}
	}
	return all
}

// report runs the script on the machine, with each shell that is installed, and returns the
// report. All shells must give the same.
func (m machine) report(t *testing.T) Report {
	t.Helper()
	root := t.TempDir()
	for name, text := range m {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var last Report
	for i, shell := range [][]string{{"sh"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		if _, err := exec.LookPath(shell[0]); err != nil {
			continue
		}
		cmd := exec.Command(shell[0], append(shell[1:], "-c", Script)...)
		cmd.Env = append(os.Environ(), "BASALT_ROOT="+root)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("run the script with %v: %v", shell, err)
		}
		r, err := Parse(out)
		if err != nil {
			t.Fatalf("parse the output with %v: %v\n%s", shell, err, out)
		}
		if i > 0 && r != last {
			t.Errorf("report by %v = %+v, want %+v as by the shell before it", shell, r, last)
		}
		last = r
	}
	return last
}

const (
	cloud    = "6.12.1-cloud-amd64"
	ordinary = "6.12.1-amd64"
)

// Machines with kernels as distributions build them, with the relevant lines of the kernels'
// configuration.
var (
	cloudKernel = machine{"proc/sys/kernel/osrelease": cloud + "\n", "proc/cmdline": "BOOT_IMAGE=/vmlinuz ro console=ttyS0\n",
		"boot/config-" + cloud: "CONFIG_VIRTIO_PCI=m\n# CONFIG_DRM is not set\n", "lib/modules/" + cloud + "/modules.dep": "kernel/drivers/net/virtio_net.ko:\n"}
	ordinaryKernel = machine{"proc/sys/kernel/osrelease": ordinary + "\n", "proc/cmdline": "ro quiet\n",
		"boot/config-" + ordinary:                  "CONFIG_DRM=m\nCONFIG_DRM_VIRTIO_GPU=m\nCONFIG_DRM_VIRTIO_GPU_KMS=y\n",
		"lib/modules/" + ordinary + "/modules.dep": "kernel/drivers/gpu/drm/virtio/virtio-gpu.ko.xz: kernel/drivers/gpu/drm/drm.ko.xz\n"}
)

func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		machine machine
		want    Report
	}{
		"nothing at all": {machine{}, Report{}},
		"cloud kernel":   {cloudKernel, Report{Kernel: cloud, DRM: No, VirtioGPU: No, Module: ModuleMissing}},
		"ordinary kernel, not loaded": {ordinaryKernel,
			Report{Kernel: ordinary, DRM: AsModule, VirtioGPU: AsModule, Module: ModulePresent}},
		"nomodeset": {ordinaryKernel.with(machine{"proc/cmdline": "ro nomodeset quiet\n", "sys/module/virtio_gpu/refcnt": "0"}),
			Report{Kernel: ordinary, NoModeset: true, DRM: AsModule, VirtioGPU: AsModule, Module: ModuleLoaded}},
		"nomodeset, but not for this driver": {ordinaryKernel.with(machine{"proc/cmdline": "ro nomodeset virtio_gpu.modeset=1\n"}),
			Report{Kernel: ordinary, DRM: AsModule, VirtioGPU: AsModule, Module: ModulePresent}},
		"a word that only looks like it": {ordinaryKernel.with(machine{"proc/cmdline": "ro i915.nomodesets=1 nomodesetting\n"}),
			Report{Kernel: ordinary, DRM: AsModule, VirtioGPU: AsModule, Module: ModulePresent}},
		"blocked by a file": {ordinaryKernel.with(machine{"etc/modprobe.d/hardening.conf": "# all graphics\nblacklist nouveau\n  blacklist virtio-gpu\n"}),
			Report{Kernel: ordinary, Blocked: "/etc/modprobe.d/hardening.conf", DRM: AsModule, VirtioGPU: AsModule, Module: ModulePresent}},
		"replaced by false": {ordinaryKernel.with(machine{"etc/modprobe.d/cis.conf": "install virtio_gpu /bin/false\n"}),
			Report{Kernel: ordinary, Blocked: "/etc/modprobe.d/cis.conf", DRM: AsModule, VirtioGPU: AsModule, Module: ModulePresent}},
		"not blocked": {ordinaryKernel.with(machine{"etc/modprobe.d/x.conf": "# blacklist virtio_gpu\nblacklist virtio_gpu_other\noptions virtio_gpu modeset=1\n"}),
			Report{Kernel: ordinary, DRM: AsModule, VirtioGPU: AsModule, Module: ModulePresent}},
		"blocked by the command line": {ordinaryKernel.with(machine{"proc/cmdline": "ro module_blacklist=floppy,virtio_gpu\n"}),
			Report{Kernel: ordinary, Blocked: "cmdline", DRM: AsModule, VirtioGPU: AsModule, Module: ModulePresent}},
		"modules of another package": {ordinaryKernel.with(machine{"lib/modules/" + ordinary + "/modules.dep": "kernel/drivers/net/virtio_net.ko:\n"}),
			Report{Kernel: ordinary, DRM: AsModule, VirtioGPU: AsModule, Module: ModuleMissing}},
		"all well": {ordinaryKernel.with(machine{"sys/bus/virtio/drivers/virtio_gpu/virtio3/device": "0x0010", "etc/basalt-guest-tools-version": "1.2.3\n", "run/basalt/check": "ok\n"}),
			Report{Kernel: ordinary, Driver: true, Tools: "1.2.3", Check: CheckOK}},
		"a new kernel waits": {cloudKernel.with(machine{"run/basalt/kernel": "reboot\n"}),
			Report{Kernel: cloud, Change: ChangeReboot, DRM: No, VirtioGPU: No, Module: ModuleMissing}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.machine.report(t); got != c.want {
				t.Errorf("report = %+v, want\n%+v", got, c.want)
			}
		})
	}
}

// The script finds the vGPU among the machine's PCI devices.
func TestReportDevice(t *testing.T) {
	root := t.TempDir()
	runScript := func() string {
		cmd := exec.Command("sh", "-c", Script)
		cmd.Env = append(os.Environ(), "BASALT_ROOT="+root)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if out := runScript(); !strings.Contains(out, "device=none\n") {
		t.Errorf("report of a machine without devices = %s, want device=none in it", out)
	}
	for dir, ids := range map[string][2]string{"0000:00:1d.0": {"0x1af4\n", "0x1050\n"}, "0000:00:02.0": {"0x1234\n", "0x1111\n"}} {
		dir = filepath.Join(root, "sys/bus/pci/devices", dir)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "vendor"), []byte(ids[0]), 0o644), os.WriteFile(filepath.Join(dir, "device"), []byte(ids[1]), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if out := runScript(); !strings.Contains(out, "device=vgpu\n") {
		t.Errorf("report of a machine with a vGPU = %s, want device=vgpu in it", out)
	}
}

// The script does not start any program if the driver is bound.
func TestReportIsCheap(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "sys/bus/virtio/drivers/virtio_gpu/virtio3")
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", Script)
	cmd.Env = []string{"BASALT_ROOT=" + root, "PATH=/nowhere"}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "driver=bound\n") || strings.Contains(string(out), "not found") {
		t.Errorf("report with an empty PATH: %v, want driver=bound and no missing program; it printed\n%s", err, out)
	}
}

// The output of a broken or hostile guest is not a report, or a report without the unknown
// values.
func TestParse(t *testing.T) {
	for out, want := range map[string]Report{
		header: {},
		header + "\ntools=1\x1b[31m.2\nkernel=6 .1\xff\n":      {Tools: "1[31m.2", Kernel: "6.1"},
		header + "\ndrm=yes\nmodule=x\ncheck=OK\ndriver=maybe": {},
		header + "\nnew=1\n=\n\n\x00":                          {},
		header + "\ntools=" + strings.Repeat("7", 4000):        {Tools: strings.Repeat("7", 40)},
	} {
		if got, err := Parse([]byte(out)); err != nil || got != want {
			t.Errorf("Parse(%.60q) = %+v, %v; want %+v", out, got, err, want)
		}
	}
	for _, out := range []string{"", "\n" + header, "basalt-report 2\n", strings.Repeat("A", 1<<20), header + "\n" + strings.Repeat("A", MaxSize)} {
		if r, err := Parse([]byte(out)); !errors.Is(err, ErrNoReport) || r != (Report{}) {
			t.Errorf("Parse(%.60q) = %+v, %v; want an empty report and %v", out, r, err, ErrNoReport)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(header + "\ntools=1\ndrm=n\nblocked=/etc/x\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		r, err := Parse(out)
		if err != nil && r != (Report{}) {
			t.Errorf("Parse returned %+v with the error %v, want an empty report", r, err)
		}
		for _, s := range []string{r.Tools, r.Kernel, r.Blocked} {
			if len(s) > maxValue || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
				t.Errorf("text value = %q, want at most %d printable characters without blanks", s, maxValue)
			}
		}
	})
}
