package hardware

import (
	"io/fs"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// GPU is an NVIDIA GPU on the PCI bus.
type GPU struct {
	Address string // as 0000:65:00.0
	Driver  string // the kernel driver that is bound to it; empty: none
	Device  uint16 // PCI device ID
}

// NVIDIA returns the NVIDIA GPUs below root, the root of a file system with /sys
// (Documentation/ABI/testing/sysfs-bus-pci), without virtual functions.
func NVIDIA(f fs.FS) (all []GPU) {
	const dir = "sys/bus/pci/devices"
	for _, address := range names(f, dir, "") {
		if line(f, dir, address, "vendor") != "0x10de" || !strings.HasPrefix(line(f, dir, address, "class"), "0x03") || exists(f, dir, address, "physfn") {
			continue
		}
		device, _ := strconv.ParseUint(line(f, dir, address, "device"), 0, 16)
		all = append(all, GPU{address, target(f, dir, address, "driver"), uint16(device)})
	}
	return all
}

func gpus(f Facts) api.HardwareCheck {
	const id = api.HardwareGPUs
	all := NVIDIA(f.FS)
	var driven, other []string
	for _, g := range all {
		switch g.Driver {
		case "nvidia":
			driven = append(driven, g.Address)
		case "":
			other = append(other, g.Address+" without a driver")
		default:
			other = append(other, g.Address+" driven by "+g.Driver)
		}
	}
	switch {
	case len(all) == 0:
		return ok(id, "no NVIDIA GPU on the bus")
	case len(other) > 0:
		return warning(id, few(other), "Virtual GPUs need NVIDIA's driver: this GPU cannot be used.", "Install the driver on the node: basalt-gpud driver install (docs/gpu-nodes.md), and keep nouveau and vfio-pci from binding it.")
	}
	return ok(id, "driven by NVIDIA's driver: "+few(driven))
}
