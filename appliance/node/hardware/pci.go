package hardware

import (
	"io/fs"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// pciGPU is an NVIDIA GPU on the PCI bus.
type pciGPU struct{ address, driver string }

// nvidia returns the NVIDIA GPUs (Documentation/ABI/testing/sysfs-bus-pci), without
// virtual functions.
func nvidia(f fs.FS) (all []pciGPU) {
	const dir = "sys/bus/pci/devices"
	for _, address := range names(f, dir, "") {
		if line(f, dir, address, "vendor") != "0x10de" || !strings.HasPrefix(line(f, dir, address, "class"), "0x03") || exists(f, dir, address, "physfn") {
			continue
		}
		all = append(all, pciGPU{address, target(f, dir, address, "driver")})
	}
	return all
}

func gpus(f Facts) api.HardwareCheck {
	const id = api.HardwareGPUs
	all := nvidia(f.FS)
	var driven, other []string
	for _, g := range all {
		switch g.driver {
		case "nvidia":
			driven = append(driven, g.address)
		case "":
			other = append(other, g.address+" without a driver")
		default:
			other = append(other, g.address+" driven by "+g.driver)
		}
	}
	switch {
	case len(all) == 0:
		return ok(id, "no NVIDIA GPU on the bus")
	case len(other) > 0:
		return warning(id, few(other), "Virtual GPUs need NVIDIA's driver: this GPU cannot be used.", "Install the driver as docs/gpu-nodes.md says, and keep nouveau and vfio-pci from binding it.")
	}
	return ok(id, "driven by NVIDIA's driver: "+few(driven))
}
