package hardware

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// secureBoot is the UEFI variable (section 3.3 of its specification) in efivarfs:
// four bytes of attributes, then a byte that is 1 if Secure Boot is enabled.
const secureBoot = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

// SecureBoot reports whether the firmware below root, the root of a file system with /sys,
// has Secure Boot enabled.
func SecureBoot(f fs.FS) bool {
	value := read(f, secureBoot)
	return len(value) == 5 && value[4] == 1
}

func firmware(f Facts) api.HardwareCheck {
	const id = api.HardwareFirmware
	if !exists(f.FS, "sys/firmware") {
		return unknown(id, "the kernel shows no firmware", "")
	}
	if !exists(f.FS, "sys/firmware/efi") {
		return ok(id, "BIOS, or UEFI in its legacy mode; no Secure Boot")
	}
	switch {
	case len(read(f.FS, secureBoot)) != 5:
		return ok(id, "UEFI; it does not say whether Secure Boot is on")
	case !SecureBoot(f.FS):
		return ok(id, "UEFI, Secure Boot off")
	case slices.ContainsFunc(NVIDIA(f.FS), func(g GPU) bool { return g.Driver != "nvidia" }):
		return warning(id, "UEFI, Secure Boot on, and an NVIDIA GPU without its driver", "The kernel loads signed modules only: a driver that was built on this machine is refused.",
			"Sign the driver's modules with a key that the firmware knows, or turn Secure Boot off; see docs/gpu-nodes.md.")
	}
	return ok(id, "UEFI, Secure Boot on")
}

func iommu(f Facts) api.HardwareCheck {
	const id = api.HardwareIOMMU
	if groups := names(f.FS, "sys/kernel/iommu_groups", ""); len(groups) > 0 {
		return ok(id, fmt.Sprintf("on, %d groups of devices", len(groups)))
	}
	if readCPU(f.FS).virtual() {
		return ok(id, "a virtual machine without one")
	}
	const meaning = "A device, or its driver, can write anywhere in the machine's memory. Virtual GPUs do not need it; giving whole devices to machines would."
	for table, arg := range map[string]string{"DMAR": "intel_iommu=on", "IVRS": "amd_iommu=on"} {
		if exists(f.FS, "sys/firmware/acpi/tables", table) {
			return warning(id, "the firmware has one (ACPI table "+table+"), and the kernel does not use it", meaning,
				"Add "+arg+" to GRUB_CMDLINE_LINUX in /etc/default/grub.d, run update-grub and restart the node.")
		}
	}
	return warning(id, "none: off in the firmware, or the machine has none", meaning, "In the firmware's setup enable VT-d (Intel) or IOMMU (AMD).")
}

// limiting are words of the kernel's command line (kernel-parameters.txt) that
// limit the node, and their effects.
var limiting = []struct{ word, meaning string }{
	{"nomodeset", "no graphics driver of the kernel loads; NVIDIA's shows no console"},
	{"mitigations=off", "instances can read each other's memory on processors with known holes"},
	{"acpi=off", "no power button, no NUMA, perhaps one processor"},
	{"noapic", "interrupts are slow or lost"},
	{"nolapic", "one processor only"},
	{"pci=nomsi", "NVMe disks, network interfaces and GPUs are slow or do not work"},
	{"iommu=off", "no IOMMU"},
	{"intel_iommu=off", "no IOMMU"},
	{"amd_iommu=off", "no IOMMU"},
	{"nosmp", "one processor only"},
	{"nosmt", "half of the processors' threads are not used"},
	{"numa=off", "memory is used as if all of it were equally near"},
	{"maxcpus=", "not all processors are used"},
	{"nr_cpus=", "not all processors are used"},
	{"mem=", "not all memory is used"},
}

func kernelArgs(f Facts) api.HardwareCheck {
	const id = api.HardwareKernelArgs
	text := line(f.FS, "proc/cmdline")
	if text == "" {
		return unknown(id, "the kernel's command line cannot be read", "See /proc/cmdline.")
	}
	var found, means []string
	for _, word := range strings.Fields(text) {
		for _, l := range limiting {
			if word == l.word || strings.HasSuffix(l.word, "=") && strings.HasPrefix(word, l.word) {
				found, means = append(found, word), append(means, word+": "+l.meaning)
			}
		}
	}
	if len(found) == 0 {
		return ok(id, "nothing that limits the node")
	}
	return warning(id, few(found), few(means)+".", "If nobody wants that, remove it in /etc/default/grub and /etc/default/grub.d, run update-grub and restart the node.")
}

func watchdog(f Facts) api.HardwareCheck {
	const id = api.HardwareWatchdog
	const soft = "Software Watchdog"
	const dir = "sys/class/watchdog"
	all := names(f.FS, dir, "watchdog")
	var hard []string
	for _, n := range all {
		if name := line(f.FS, dir, n, "identity"); name != soft && exists(f.FS, dir, n) {
			hard = append(hard, n+" ("+clean(name, 40)+")")
		}
	}
	first := line(f.FS, dir, "watchdog0", "identity") // /dev/watchdog, the one that basalt-fence feeds
	const meaning = "When the kernel of this node hangs nothing resets it, and what ran here is started elsewhere only after an operator has seen to it."
	switch {
	case len(all) == 0:
		return warning(id, "none", meaning, "Enable the watchdog in the firmware's setup or load the chipset's driver (iTCO_wdt, sp5100_tco, ipmi_watchdog); until then: modprobe softdog.")
	case len(hard) == 0:
		return warning(id, "softdog, which the kernel runs itself", meaning, "Enable the watchdog in the firmware's setup or load the chipset's driver: iTCO_wdt, sp5100_tco, ipmi_watchdog.")
	case first == soft:
		return warning(id, "softdog comes before "+few(hard), meaning, "Restart the node: basalt-fence chooses the machine's own with each boot. journalctl -u basalt-fence says which one it feeds.")
	}
	return ok(id, few(hard))
}

func bmc(f Facts) api.HardwareCheck {
	const id = api.HardwareBMC
	switch {
	case exists(f.FS, "dev/ipmi0") || exists(f.FS, "sys/class/ipmi/ipmi0"):
		return ok(id, "a management controller (BMC) answers at /dev/ipmi0")
	case len(names(f.FS, "sys/firmware/dmi/entries", "38-")) > 0: // SMBIOS type 38: IPMI Device Information
		return warning(id, "the firmware names a management controller (BMC), and there is no /dev/ipmi0", "Sensors, the controller's watchdog and its event log cannot be read from the node.",
			"modprobe ipmi_si ipmi_devintf; dmesg says why it refuses.")
	}
	return ok(id, "no management controller (BMC)")
}
