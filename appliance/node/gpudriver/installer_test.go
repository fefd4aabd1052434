package gpudriver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var accepted = Options{AcceptLicense: true}

// all are the commands of an installation from the beginning.
var all = []string{"apt-get update", "apt-cache show", "apt-get install", "modprobe nvidia", "modprobe nvidia-uvm", "nvidia-modprobe", "systemctl enable"}

func TestInstall(t *testing.T) {
	n := newNode(t)
	if err := n.install(accepted); err != nil {
		t.Fatalf("Install: %v\n%s", err, n.out.String())
	}
	if d := cmp.Diff(all, n.verbs()); d != "" {
		t.Errorf("commands: mismatch (-want +got):\n%s", d)
	}
	for _, p := range Wanted(kernel) {
		if n.status[p] != "installed" {
			t.Errorf("package %s is %q, want it installed", p, n.status[p])
		}
	}
	for name, want := range map[string]string{
		modprobeFile: "blacklist nouveau\n", dkmsFile: "nvidia-source", loadFile: "nvidia\nnvidia-uvm\n",
		listFile: "deb http://deb.debian.org/debian trixie contrib non-free\n",
	} {
		if got, _ := os.ReadFile(filepath.Join(n.root, name)); !strings.Contains(string(got), want) {
			t.Errorf("%s = %q, want %q in it", name, got, want)
		}
	}
	if !strings.Contains(n.out.String(), "[4/9] install the packages\n") || !strings.Contains(n.out.String(), "is installed for kernel "+kernel) {
		t.Errorf("output = %q, want the steps and the end", n.out.String())
	}
	if _, err := os.Stat(filepath.Join(n.root, workDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s after the installation: error %v, want it removed", workDir, err)
	}
	// Again: the cards are checked, and nothing else is done.
	n.commands = nil
	if err := n.install(accepted); err != nil || len(n.commands) != 0 || n.doctors != 2 {
		t.Errorf("Install again: error %v, commands %q, %d checks; want no command and a second check", err, n.commands, n.doctors)
	}
}

// TestKilled kills an installation in each of its commands, and checks that the next one
// ends.
func TestKilled(t *testing.T) {
	for at := 1; at <= len(all); at++ {
		t.Run(fmt.Sprintf("in command %d", at), func(t *testing.T) {
			n := newNode(t)
			n.killAt = at
			if err := n.install(accepted); err == nil {
				t.Fatal("Install that was killed: no error")
			}
			if n.verbs()[at-1] != all[at-1] {
				t.Fatalf("killed in %q, want %q", n.verbs()[at-1], all[at-1])
			}
			n.killAt = 0
			if err := n.install(accepted); err != nil {
				t.Fatalf("Install after one that was killed: %v\n%s", err, n.out.String())
			}
			for _, p := range Wanted(kernel) {
				if n.status[p] != "installed" {
					t.Errorf("package %s is %q, want it installed", p, n.status[p])
				}
			}
		})
	}
}

// TestInterruptedPackages checks that packages which were unpacked without those that they
// need are repaired.
func TestInterruptedPackages(t *testing.T) {
	n := newNode(t)
	n.status["gcc"] = "unpacked"
	n.fail["dpkg --configure"] = errors.New("exit status 1: dependency problems prevent configuration of gcc")
	err := n.install(accepted)
	if want := []string{"dpkg --configure", "apt-get update", "apt-get install"}; !cmp.Equal(want, n.verbs()) || !strings.Contains(n.commands[2], "--fix-broken") {
		t.Errorf("commands = %q, error %v; want %q with --fix-broken", n.commands, err, want)
	}
	// The simulated apt does not configure it.
	if err == nil || !strings.Contains(err.Error(), "ended without an error, but not configured: gcc") {
		t.Errorf("Install whose step has no effect: error %v, want one that names the step and gcc", err)
	}
}

// TestKilledInTheFirstPackage checks that dpkg is repaired when it was killed before any
// package was unpacked: apt refuses to work before.
func TestKilledInTheFirstPackage(t *testing.T) {
	n := newNode(t)
	n.status["gcc"] = "half-installed"
	n.journal(true)
	if err := n.installer().Status(t.Context(), Options{}); err == nil || !strings.Contains(n.out.String(), "interrupted installations of packages: dpkg was killed") {
		t.Errorf("Status: error %v, output\n%s\nwant that dpkg was killed", err, n.out.String())
	}
	if err := n.install(accepted); err != nil || n.verbs()[0] != "dpkg --configure" {
		t.Errorf("Install: error %v, commands %q; want dpkg --configure first", err, n.verbs())
	}
}

func TestKernelMissedByDKMS(t *testing.T) {
	n := newNode(t)
	n.builds = false
	if err := n.install(accepted); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(n.commands, "\n"), "dkms autoinstall -k "+kernel) {
		t.Errorf("commands = %q, want dkms to build for %s", n.commands, kernel)
	}
}

func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(n *node, o *Options)
		want    []string
		refused bool // trying again does not help
		runs    bool // packages were installed before
	}{
		"license":     {func(_ *node, o *Options) { o.AcceptLicense = false }, []string{"license was not accepted", "--accept-nvidia-license"}, true, false},
		"no card":     {func(n *node, _ *Options) { n.unplug() }, []string{"no NVIDIA card is on the PCI bus", "--without-card"}, true, false},
		"an old card": {func(n *node, _ *Options) { n.plug("0000:65:00.0", "0x1db4", "") }, []string{"0000:65:00.0 (device 0x1db4)", "Turing"}, true, false},
		"other driver": {func(n *node, _ *Options) {
			n.file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.10  x\n")
		}, []string{"driver 535.10 is loaded"}, true, false},
		"Secure Boot": {func(n *node, _ *Options) {
			n.file("sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "\x06\x00\x00\x00\x01")
		}, []string{"Secure Boot is on", "mokutil"}, true, false},
		"kernel was replaced":  {func(n *node, _ *Options) { n.file("proc/sys/kernel/osrelease", "6.12.99+deb13-amd64\n") }, []string{"kernel 6.12.99+deb13-amd64 is not installed", "restart"}, true, false},
		"no archive":           {func(n *node, _ *Options) { n.noArchive = true }, []string{"no package archive can be reached", "--from DIR", "Temporary failure"}, false, false},
		"headers of another":   {func(n *node, _ *Options) { delete(n.offered, "linux-headers-"+kernel) }, []string{"install the packages: linux-headers-" + kernel + " is not in the configured archives", "linux-image-amd64"}, true, false},
		"sections are missing": {func(n *node, _ *Options) { delete(n.offered, "libcuda1") }, []string{"libcuda1", "contrib and non-free"}, true, false},
		"Debian 12":            {func(n *node, _ *Options) { n.offered[modulesPackage] = "535.261.03-1~deb12u1" }, []string{"version 535.261.03-1~deb12u1", "550 or newer"}, true, false},
		"the build fails":      {func(n *node, _ *Options) { n.builds = false; n.fail["dkms"] = errors.New("exit status 10") }, []string{"build the modules for kernel " + kernel, "make.log"}, false, true},
		"the module is refused": {func(n *node, _ *Options) {
			n.fail["modprobe"] = errors.New("exit status 1: Key was rejected by service")
		},
			[]string{"load the modules", "Key was rejected"}, false, true},
		"nouveau": {func(n *node, _ *Options) { n.plug("0000:65:00.0", "0x2335", "nouveau") }, []string{"driver nouveau is bound to card 0000:65:00.0", "restart the node"}, true, true},
		"doctor":  {func(n *node, _ *Options) { n.doctor = errors.New("/dev/nvidiactl has mode 0600") }, []string{"basalt-gpud doctor", "mode 0600"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			n, o := newNode(t), accepted
			c.change(n, &o)
			err := n.install(o)
			if err == nil {
				t.Fatal("Install: no error")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error = %q, want %q in it", err, w)
				}
			}
			var refusal *Refusal
			if errors.As(err, &refusal) != c.refused {
				t.Errorf("error %q is a refusal: %v, want %v", err, !c.refused, c.refused)
			}
			if installed := n.status["libcuda1"] != ""; installed != c.runs {
				t.Errorf("packages were installed: %v, want %v", installed, c.runs)
			}
			if got, _ := os.ReadFile(n.report); !strings.HasPrefix(string(got), "the installation of the driver failed at 03:04 UTC: ") || !strings.Contains(string(got), c.want[0]) {
				t.Errorf("report = %q, want the error", got)
			}
		})
	}
}

// TestReport checks what basalt-gpud can show of an installation.
func TestReport(t *testing.T) {
	n := newNode(t)
	i := n.installer()
	var during string
	i.Doctor = func(context.Context) error {
		raw, err := os.ReadFile(n.report)
		during = string(raw)
		return err
	}
	if err := i.Install(t.Context(), accepted); err != nil {
		t.Fatal(err)
	}
	if want := "the driver is being installed since 03:04 UTC: check the cards (basalt-gpud doctor) (step 9 of 9)\n"; during != want {
		t.Errorf("report during the last step = %q, want %q", during, want)
	}
	if _, err := os.Stat(n.report); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("report after the installation: error %v, want no file", err)
	}
}

func TestWithoutCard(t *testing.T) {
	n := newNode(t)
	n.unplug()
	if err := n.install(Options{AcceptLicense: true, WithoutCard: true}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"apt-get update", "apt-cache show", "apt-get install", "systemctl enable"}; !cmp.Equal(want, n.verbs()) || n.doctors != 0 {
		t.Errorf("commands = %q and %d checks, want %q: without a card the modules do not load", n.verbs(), n.doctors, want)
	}
	// A card is added: the next start loads the modules (modules-load.d), and what is
	// missing can also be done at once.
	n.plug("0000:65:00.0", "0x2335", "")
	n.commands = nil
	if err := n.install(accepted); err != nil || !cmp.Equal(all[3:], n.verbs()) {
		t.Errorf("with a card: error %v, commands %q, want %q", err, n.verbs(), all[3:])
	}
}

// TestAnotherKernel checks that modules for a kernel that does not run are not loaded.
func TestAnotherKernel(t *testing.T) {
	n := newNode(t)
	n.file("proc/sys/kernel/osrelease", "6.1.0-28-amd64\n")
	i := n.installer()
	i.Kernel = kernel
	if err := i.Install(t.Context(), accepted); err != nil || strings.Contains(strings.Join(n.verbs(), "\n"), "modprobe") {
		t.Errorf("Install for another kernel: error %v, commands %q, want no modprobe", err, n.verbs())
	}
}

func TestOneAtATime(t *testing.T) {
	n := newNode(t)
	i := n.installer()
	i.Doctor = func(context.Context) error {
		if err := n.installer().Install(t.Context(), accepted); err == nil || !strings.Contains(err.Error(), "another installation of the driver is running") {
			t.Errorf("a second Install: error %v, want that another one is running", err)
		}
		return nil
	}
	if err := i.Install(t.Context(), accepted); err != nil {
		t.Fatal(err)
	}
}

func TestStatus(t *testing.T) {
	n := newNode(t)
	if err := n.installer().Status(t.Context(), Options{}); !errors.Is(err, ErrIncomplete) {
		t.Errorf("Status before an installation: error %v, want ErrIncomplete", err)
	}
	want := `card 0000:65:00.0: no driver is bound to it
driver: not loaded
missing  configure the modules: /etc/dkms, /etc/modprobe.d or /etc/modules-load.d lacks the driver's configuration
done     finish interrupted installations of packages
missing  add contrib and non-free to the package archives: the archives are configured without them
missing  install the packages: not installed: linux-headers-6.12.118+deb13-amd64, linux-headers-amd64, dkms, gcc, make, nvidia-open-kernel-dkms, libcuda1, libnvidia-ml1, nvidia-smi, nvidia-modprobe, nvidia-persistenced
missing  build the modules for kernel 6.12.118+deb13-amd64: kernel 6.12.118+deb13-amd64 has no modules nvidia and nvidia-uvm
missing  load the modules: nvidia or nvidia-uvm is not loaded
missing  create the device files: /dev/nvidiactl or /dev/nvidia-uvm does not exist
missing  enable nvidia-persistenced: it is not running or does not start at boot
`
	if d := cmp.Diff(want, n.out.String()); d != "" {
		t.Errorf("status before: mismatch (-want +got):\n%s", d)
	}
	if len(n.commands) != 0 {
		t.Errorf("Status ran %q, want it to change nothing", n.commands)
	}
	if err := n.install(accepted); err != nil {
		t.Fatal(err)
	}
	if err := n.installer().Status(t.Context(), Options{}); err != nil || strings.Contains(n.out.String(), "missing") {
		t.Errorf("Status after an installation: error %v, output\n%s\nwant all steps done", err, n.out.String())
	}
	n.unplug()
	if err := os.Remove(filepath.Join(n.root, loadFile)); err != nil {
		t.Fatal(err)
	}
	var refusal *Refusal
	if err := n.installer().Status(t.Context(), Options{}); !errors.As(err, &refusal) {
		t.Errorf("Status without a card: error %v, want why the driver cannot be installed", err)
	}
}

// TestFromDirectories checks that an installation from directories uses no archive: the
// list of packages that it writes, and apt's sources.
func TestFromDirectories(t *testing.T) {
	n := newNode(t)
	n.offered["linux-headers-amd64"] = "" // its packages are for one kernel
	n.file("stick/libcuda1.deb", "a package")
	n.file("stick/readme.txt", "not one")
	n.file("medium/packages/InRelease", "signed")
	n.file(KeptMedium+"/InRelease", "signed")
	n.file(keyring, "key")
	var list, sources string
	i := n.installer()
	i.Command = func(ctx context.Context, argv []string, out io.Writer) error {
		if argv[0] == "apt-cache" {
			list = i.read(workDir + "/from0/Packages")
			sources = i.read(workDir + "/parts/local.list")
		}
		return n.run(ctx, argv, out)
	}
	o := Options{AcceptLicense: true, From: []string{filepath.Join(n.root, "stick"), filepath.Join(n.root, "medium")}}
	if err := i.Install(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want := "Package: libcuda1\nVersion: 1.0\nFilename: ./p0.deb\nSize: 9\nSHA256: 4d0f1d0b5b2c\n\n"
	if got := regexp.MustCompile("SHA256: [0-9a-f]{64}").ReplaceAllString(list, "SHA256: 4d0f1d0b5b2c"); got != want {
		t.Errorf("list of packages = %q, want %q", got, want)
	}
	want = "deb [trusted=yes] file:ROOT/" + workDir + "/from0 ./\n" +
		"deb [signed-by=/etc/apt/keyrings/basalt.gpg] file:ROOT/medium/packages ./\n" +
		"deb [signed-by=/etc/apt/keyrings/basalt.gpg] file:ROOT/" + KeptMedium + " ./\n"
	if got := strings.ReplaceAll(sources, n.root, "ROOT"); got != want {
		t.Errorf("apt's sources = %q, want %q", got, want)
	}
	for _, c := range n.commands {
		if strings.HasPrefix(c, "apt-") && !strings.Contains(c, "-o Dir::Etc::SourceList=/dev/null") {
			t.Errorf("command %q may use an archive", c)
		}
	}
	if _, err := os.Stat(filepath.Join(n.root, listFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: error %v, want no change of the archives", listFile, err)
	}
	n.status["linux-headers-amd64"] = "installed"
	if err := n.installer().Status(t.Context(), Options{}); err != nil {
		t.Errorf("Status: error %v, want none: the archives are not needed\n%s", err, n.out.String())
	}
}

func TestDirectoriesThatCannotBeUsed(t *testing.T) {
	n := newNode(t)
	n.file("empty/readme.txt", "")
	n.file("with space/InRelease", "signed")
	n.file("unknown/InRelease", "signed")
	n.file("broken/libcuda1.deb", "")
	n.fail["dpkg-deb"] = errors.New("exit status 2: not a Debian format archive")
	for dir, want := range map[string]string{
		"empty": "contains no packages", "none": "cannot be read: no such file or directory", "with space": "spaces or brackets", "unknown": keyring + " is missing", "broken": "is damaged: exit status 2",
	} {
		err := n.install(Options{AcceptLicense: true, From: []string{filepath.Join(n.root, dir)}})
		var refusal *Refusal
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), want) {
			t.Errorf("Install from %s: error %v, want a refusal with %q", dir, err, want)
		}
	}
}
