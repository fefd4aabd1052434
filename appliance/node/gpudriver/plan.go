package gpudriver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/node/hardware"
)

// Packages are Debian's packages of the driver, without the headers of a kernel.
var Packages = []string{
	"dkms", "gcc", "make", "nvidia-open-kernel-dkms", "libcuda1", "libnvidia-ml1", "nvidia-smi", "nvidia-modprobe", "nvidia-persistenced",
}

// modulesPackage contains the source of the kernel modules.
const modulesPackage = "nvidia-open-kernel-dkms"

// minDriver is the oldest major version of the driver that works: it has CUDA 12.4.
const minDriver = 550

// firstTuring is the lowest PCI device ID of the Turing generation (TU102). NVIDIA's open
// kernel modules drive this and newer generations only
// (https://github.com/NVIDIA/open-gpu-kernel-modules, "Compatible GPUs").
const firstTuring = 0x1e00

// Options are the operator's choices.
type Options struct {
	AcceptLicense bool
	// From are directories with packages. If there are some, no archive is used.
	From []string
	// WithoutCard installs the driver although the node has no card yet.
	WithoutCard bool
	// KeyEnrolled states that the firmware accepts the key that dkms signs modules with,
	// which Secure Boot requires.
	KeyEnrolled bool
}

// State is what was observed of a node.
type State struct {
	Cards       []hardware.GPU // without those that the operator has assigned to vfio-pci
	SecureBoot  bool
	Kernel      string            // the release that modules are built for
	Running     bool              // it is the running one
	Known       bool              // it is installed
	Installed   map[string]string // version by package
	Unfinished  []string          // packages that are unpacked and not configured
	Interrupted bool              // dpkg was killed
	NonFree     bool              // the configured archives include contrib and non-free
	Settings    bool              // the files of dkms, modprobe.d and modules-load.d are as wanted
	Built       bool              // the kernel has the modules nvidia and nvidia-uvm
	Driver      string            // version of the loaded driver; empty: none
	Unified     bool              // the module nvidia-uvm is loaded
	Nouveau     bool              // the module nouveau is loaded
	Devices     bool              // /dev/nvidiactl and /dev/nvidia-uvm exist
	Enabled     bool              // nvidia-persistenced starts at boot
	Persistent  bool              // nvidia-persistenced runs
	Checked     bool              // basalt-gpud doctor has succeeded in this run
}

// Step is a step of the installation.
type Step struct {
	ID      StepID
	Text    string
	Done    bool
	Missing string // why it is not done
}

// StepID identifies a step.
type StepID string

// The steps, in their order.
const (
	StepSettings    StepID = "settings"
	StepUnfinished  StepID = "unfinished"
	StepSources     StepID = "sources"
	StepPackages    StepID = "packages"
	StepBuild       StepID = "build"
	StepLoad        StepID = "load"
	StepDevices     StepID = "devices"
	StepPersistence StepID = "persistence"
	StepDoctor      StepID = "doctor"
)

// Refusal is why an installation cannot succeed until somebody changes something: trying
// again does not help.
type Refusal struct{ Reason, Hint string }

func (r *Refusal) Error() string { return r.Reason + ": " + r.Hint }

func refuse(hint, reason string, args ...any) error {
	return &Refusal{fmt.Sprintf(reason, args...), hint}
}

// Wanted returns the packages for a kernel: its headers, the package that depends on the
// headers of each later kernel, and the driver.
func Wanted(kernel string) []string {
	return append([]string{"linux-headers-" + kernel, "linux-headers-" + flavour(kernel)}, Packages...)
}

// flavour returns the flavour of a Debian kernel: amd64 of 6.12.118+deb13-amd64 and of
// 6.1.0-28-amd64, cloud-amd64 of 6.12.118+deb13-cloud-amd64.
func flavour(kernel string) string {
	_, f, _ := strings.Cut(kernel, "-")
	if number, rest, ok := strings.Cut(f, "-"); ok {
		if _, err := strconv.Atoi(number); err == nil {
			return rest
		}
	}
	return f
}

// Decide returns the steps of the installation in their order, and which of them are done.
// The error is a *Refusal if the driver must not or cannot be installed.
func Decide(s State, o Options) ([]Step, error) {
	if err := check(s, o); err != nil {
		return nil, err
	}
	return steps(s, o), nil
}

// check returns why the driver cannot be installed.
func check(s State, o Options) error {
	switch {
	case !o.AcceptLicense:
		return refuse("read it (https://www.nvidia.com/en-us/drivers/nvidia-license/, and /usr/share/doc/libcuda1/copyright once it is installed), then add --accept-nvidia-license",
			"NVIDIA's license was not accepted")
	case len(s.Cards) == 0 && !o.WithoutCard:
		return refuse("check its seating and power, and whether lspci -d 10de: lists it; --without-card installs the driver for a card that is added later",
			"no NVIDIA card is on the PCI bus")
	case !s.Known:
		return refuse("ls /lib/modules lists the installed kernels; restart the node if its kernel was replaced", "kernel %s is not installed: it has no modules", s.Kernel)
	case s.Driver != "" && s.Installed[modulesPackage] == "":
		return refuse("use it (basalt-gpud doctor), or remove it in the way in which it was installed, and restart the node",
			"NVIDIA's driver %s is loaded, which Debian's packages have not installed", s.Driver)
	case len(s.Cards) > 0 && !slices.ContainsFunc(s.Cards, supported):
		return refuse("use a card of the Turing generation or a newer one", "the open kernel modules do not drive %s (device 0x%04x)", s.Cards[0].Address, s.Cards[0].Device)
	case s.SecureBoot && s.Driver == "" && s.loads() && !o.KeyEnrolled:
		return refuse("disable Secure Boot in the firmware's setup; or enroll the key that dkms signs modules with (mokutil --import /var/lib/dkms/mok.pub) and add --secure-boot-key-enrolled",
			"Secure Boot is on, and the kernel does not load modules that are built on this node")
	}
	return nil
}

func supported(g hardware.GPU) bool { return g.Device >= firstTuring }

// loads reports whether the modules can be loaded: they are for the running kernel, and
// without a card they refuse to load.
func (s State) loads() bool { return s.Running && len(s.Cards) > 0 }

func steps(s State, o Options) []Step {
	var missing []string
	for i, p := range Wanted(s.Kernel) {
		// Directories may lack the package that depends on the headers of later kernels:
		// the driver works without it, until the kernel is upgraded.
		if optional := i == 1 && len(o.From) > 0; s.Installed[p] == "" && !optional {
			missing = append(missing, p)
		}
	}
	all := []Step{
		// First, as unfinished packages may have to build the modules.
		step(StepSettings, "configure the modules", s.Settings, "/etc/dkms, /etc/modprobe.d or /etc/modules-load.d lacks the driver's configuration"),
		step(StepUnfinished, "finish interrupted installations of packages", len(s.Unfinished) == 0 && !s.Interrupted, unfinished(s)),
	}
	if len(o.From) == 0 {
		// A node whose packages came from directories needs no archives.
		all = append(all, step(StepSources, "add contrib and non-free to the package archives", s.NonFree || len(missing) == 0, "the archives are configured without them"))
	}
	all = append(all,
		step(StepPackages, "install the packages", len(missing) == 0, "not installed: "+strings.Join(missing, ", ")),
		step(StepBuild, "build the modules for kernel "+s.Kernel, s.Built, "kernel "+s.Kernel+" has no modules nvidia and nvidia-uvm"),
	)
	if !s.loads() {
		return append(all, step(StepPersistence, "enable nvidia-persistenced", s.Enabled, "it does not start at boot"))
	}
	return append(all,
		step(StepLoad, "load the modules", s.Driver != "" && s.Unified, "nvidia or nvidia-uvm is not loaded"),
		step(StepDevices, "create the device files", s.Devices, "/dev/nvidiactl or /dev/nvidia-uvm does not exist"),
		step(StepPersistence, "enable nvidia-persistenced", s.Enabled && s.Persistent, "it is not running or does not start at boot"),
		step(StepDoctor, "check the cards (basalt-gpud doctor)", s.Checked, "not checked"),
	)
}

func unfinished(s State) string {
	if len(s.Unfinished) == 0 {
		return "dpkg was killed"
	}
	return "not configured: " + strings.Join(s.Unfinished, ", ")
}

func step(id StepID, text string, done bool, missing string) Step {
	if done {
		missing = ""
	}
	return Step{id, text, done, missing}
}
