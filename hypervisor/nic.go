package hypervisor

import lx "libvirt.org/go/libvirtxml"

// NIC is a virtio network card on a tap device that exists already.
type NIC struct {
	MAC string
	Tap string // name of the device
	MTU int    // 0: the guest's own default
	// NoOffload: the card leaves checksums and segments to the guest. For taps
	// of a switch that is no kernel: what it passes on nobody would complete.
	NoOffload bool
	// Queues of the card, each served by its own processor of the guest. More than one
	// need a tap that was made for several (IFF_MULTI_QUEUE), and one needs a tap that was
	// not. 0: one.
	Queues int
}

// MaxNICQueues of a network card. Each costs a thread of the kernel and interrupts.
const MaxNICQueues = 8

// xml of the card in the i-th place.
func (n NIC) xml(i int) lx.DomainInterface {
	x := lx.DomainInterface{
		MAC:     &lx.DomainInterfaceMAC{Address: n.MAC},
		Source:  &lx.DomainInterfaceSource{Ethernet: &lx.DomainInterfaceSourceEthernet{}},
		Target:  &lx.DomainInterfaceTarget{Dev: n.Tap, Managed: "no"},
		Model:   &lx.DomainInterfaceModel{Type: "virtio"},
		Driver:  n.driver(),
		Address: behind(nicPort + i),
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

// queuesOf a card that libvirt describes.
func queuesOf(x lx.DomainInterface) int {
	if x.Driver == nil {
		return 1
	}
	return max(1, int(x.Driver.Queues))
}
