package hypervisor

import lx "libvirt.org/go/libvirtxml"

// NIC is a virtio network card on a tap device that exists already.
type NIC struct {
	MAC string
	Tap string // name of the device
	MTU int    // 0: the guest's own default
	// NoOffload leaves checksums and segmentation to the guest. It is for taps of
	// a switch outside the kernel, which would not complete them.
	NoOffload bool
	// Queues is the number of queues, each served by its own processor of the
	// guest. More than one requires a tap that was created for several
	// (IFF_MULTI_QUEUE), one a tap that was not. 0: one.
	Queues int
}

// MaxNICQueues limits the queues of a network card. Each costs a kernel thread
// and interrupts.
const MaxNICQueues = 8

// xml returns the XML of the card at index i.
func (n NIC) xml(i int) lx.DomainInterface {
	x := lx.DomainInterface{
		MAC:     &lx.DomainInterfaceMAC{Address: n.MAC},
		Source:  &lx.DomainInterfaceSource{Ethernet: &lx.DomainInterfaceSourceEthernet{}},
		Target:  &lx.DomainInterfaceTarget{Dev: n.Tap, Managed: "no"},
		Model:   &lx.DomainInterfaceModel{Type: "virtio"},
		Driver:  n.driver(),
		Address: portAddress(nicPort + i),
	}
	if n.MTU != 0 {
		x.MTU = &lx.DomainInterfaceMTU{Size: uint(n.MTU)}
	}
	return x
}

func (n NIC) driver() *lx.DomainInterfaceDriver {
	if !n.NoOffload && n.Queues <= 1 {
		return nil
	}
	d := &lx.DomainInterfaceDriver{}
	if n.Queues > 1 {
		d.Queues = uint(n.Queues)
	}
	if n.NoOffload {
		d.Host = &lx.DomainInterfaceDriverHost{CSum: "off", GSO: "off", TSO4: "off", TSO6: "off", ECN: "off", UFO: "off"}
		d.Guest = &lx.DomainInterfaceDriverGuest{CSum: "off", TSO4: "off", TSO6: "off", ECN: "off", UFO: "off"}
	}
	return d
}

// queuesOf returns the number of queues of a card in libvirt's XML.
func queuesOf(x lx.DomainInterface) int {
	if x.Driver == nil {
		return 1
	}
	return max(1, int(x.Driver.Queues))
}
