package hypervisor

import lx "libvirt.org/go/libvirtxml"

// A machine has one PCI Express port for each device that it can ever have,
// with fixed assignments: so a disk or a network card can be attached at any
// time, and a guest finds its cards under the same names regardless of its
// disks.
//
//	bus 0      what is on the board; the vGPU at 1d
//	bus 1-6    what libvirt places: console, discs, balloon, entropy, tablet
//	bus 7-14   network cards
//	bus 15-30  disks
const (
	nicPort  = 7
	diskPort = nicPort + MaxNICs
	allPorts = diskPort + MaxDisks - 1
)

func ports() []lx.DomainController {
	all := make([]lx.DomainController, 0, allPorts)
	for i := uint(1); i <= allPorts; i++ {
		index := i
		all = append(all, lx.DomainController{Type: "pci", Index: &index, Model: "pcie-root-port"})
	}
	return all
}

// portAddress returns the address of the device at the port.
func portAddress(port int) *lx.DomainAddress {
	domain, bus, slot, function := uint(0), uint(port), uint(0), uint(0)
	return &lx.DomainAddress{PCI: &lx.DomainAddressPCI{Domain: &domain, Bus: &bus, Slot: &slot, Function: &function}}
}
