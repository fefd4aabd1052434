package hardware

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// cpu is the content of /proc/cpuinfo that the checks use (proc_cpuinfo(5)).
type cpu struct {
	vendor    string
	flags     []string
	revisions []string // revisions of the microcode, each once
}

func readCPU(f fs.FS) (c cpu) {
	for text := range strings.Lines(read(f, "proc/cpuinfo")) {
		key, value, ok := strings.Cut(text, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !ok:
		case key == "vendor_id" && c.vendor == "":
			c.vendor = value
		case key == "flags" && c.flags == nil:
			c.flags = strings.Fields(value)
		case key == "microcode" && !slices.Contains(c.revisions, value) && len(c.revisions) < 64:
			c.revisions = append(c.revisions, value)
		}
	}
	return c
}

func (c cpu) has(flag string) bool { return slices.Contains(c.flags, flag) }

// virtual reports whether the machine is a virtual machine.
func (c cpu) virtual() bool { return c.has("hypervisor") }

// extension returns the CPU's virtualization extension that the kernel shows, or ""
// if there is none or the firmware has disabled it.
func (c cpu) extension() string {
	switch {
	case c.has("vmx"):
		return "Intel VT-x"
	case c.has("svm"):
		return "AMD-V"
	}
	return ""
}

// menu returns the name of the extension in firmware menus.
func (c cpu) menu() string {
	if c.vendor == "AuthenticAMD" || c.vendor == "HygonGenuine" {
		return "SVM Mode (AMD-V)"
	}
	return "Intel Virtualization Technology (VT-x)"
}

func kvm(f Facts) api.HardwareCheck {
	c := readCPU(f.FS)
	bad := func(found, advice string) api.HardwareCheck {
		if f.AllowEmulation {
			return warning(api.HardwareKVM, found, "Instances are emulated here, which is many times slower; this node allows that.", advice)
		}
		return failed(api.HardwareKVM, found, "No instances are placed on this node: without KVM they would be emulated, which is many times slower.", advice)
	}
	there := exists(f.FS, "dev/kvm")
	switch {
	case there && f.KVM.Tried && f.KVM.Err != nil:
		return bad(fmt.Sprintf("/dev/kvm is there and no virtual machine can be made with it: %v", f.KVM.Err),
			"See dmesg for kvm. If another program uses the processor's extension, VirtualBox say, end it.")
	case there && f.Accelerator == "tcg":
		return bad("/dev/kvm is there, and no guest boots with it", "journalctl -u basaltd says why; on a virtual machine, see to its host's nested virtualization.")
	case there && (f.KVM.Tried || f.Accelerator == "kvm"):
		return ok(api.HardwareKVM, strings.TrimSuffix("KVM works: "+c.extension(), ": "))
	case there:
		return unknown(api.HardwareKVM, "/dev/kvm is there and was not tried", "Run the check as root.")
	case c.extension() != "":
		return bad("the processor has "+c.extension()+" and there is no /dev/kvm", "Load the kernel's module: modprobe kvm_intel, or kvm_amd; dmesg says why it refuses.")
	case c.flags == nil:
		return bad("there is no /dev/kvm, and the processor's abilities cannot be read", "See /proc/cpuinfo and dmesg.")
	case c.virtual():
		return bad("this is a virtual machine without nested virtualization", "Turn nested virtualization on at its host, or install on a real machine.")
	}
	return bad("the processor shows no extension for virtual machines: it is off in the firmware, or there is none",
		"In the firmware's setup, under CPU or Security, enable "+c.menu()+", then switch the machine off and on.")
}

func microcode(f Facts) api.HardwareCheck {
	const id = api.HardwareMicrocode
	c := readCPU(f.FS)
	if c.virtual() {
		return ok(id, "a virtual machine: its host updates the processor")
	}
	if len(c.revisions) == 0 {
		return unknown(id, "the kernel shows no revision of the processor's microcode", "See dmesg for microcode.")
	}
	if len(c.revisions) > 1 {
		return warning(id, "the processors have different revisions: "+few(c.revisions), "Processors of one machine behave differently, and fixes of security holes may be missing on some.",
			"Update the firmware (BIOS) to the maker's newest version, and see dmesg for microcode.")
	}
	name, dir := "intel-microcode", "intel-ucode"
	if c.vendor != "GenuineIntel" {
		name, dir = "amd64-microcode", "amd-ucode"
	}
	if !exists(f.FS, "usr/lib/firmware", dir) && !exists(f.FS, "lib/firmware", dir) {
		return warning(id, "revision "+c.revisions[0]+", as the firmware has loaded it; package "+name+" is not installed",
			"Fixes of processor errors and security holes come with updates of the firmware (BIOS) only.",
			"Keep the firmware up to date, or install "+name+" from Debian's non-free-firmware and restart the node.")
	}
	return ok(id, "revision "+c.revisions[0]+"; "+name+" is installed")
}
