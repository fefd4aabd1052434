package hypervisor

import (
	"fmt"
	"slices"

	lx "libvirt.org/go/libvirtxml"

	"github.com/basalt-gpu/basalt/api"
)

// Attached is the disks, CD drives and network cards of one of a domain's two
// descriptions: that of the running machine, or the persistent definition.
type Attached struct {
	disks     []lx.DomainDisk
	drives    map[int]lx.DomainDisk // by index
	nics      []lx.DomainInterface
	ports     int
	ioThreads uint
}

// ParseAttached decodes the domain XML of libvirt.
func ParseAttached(text string) (a Attached, err error) {
	var dom lx.Domain
	if err := dom.Unmarshal(text); err != nil {
		return a, fmt.Errorf("decode domain XML: %w", err)
	}
	a.ioThreads, a.drives = dom.IOThreads, map[int]lx.DomainDisk{}
	if dom.Devices == nil {
		return a, nil
	}
	for _, k := range dom.Devices.Disks {
		if k.Target != nil && diskIndex(k.Target.Dev) >= 0 {
			a.disks = append(a.disks, k)
		}
		if i := driveIndex(k); i >= 0 {
			a.drives[i] = k
		}
	}
	for _, n := range dom.Devices.Interfaces {
		if n.MAC != nil {
			a.nics = append(a.nics, n)
		}
	}
	for _, c := range dom.Devices.Controllers {
		if c.Type == "pci" && c.Model == "pcie-root-port" && c.Index != nil && *c.Index <= allPorts {
			a.ports++
		}
	}
	return a, nil
}

func (a Attached) disk(serial string) (lx.DomainDisk, bool) {
	i := slices.IndexFunc(a.disks, func(k lx.DomainDisk) bool { return k.Serial == serial })
	if i < 0 {
		return lx.DomainDisk{}, false
	}
	return a.disks[i], true
}

func (a Attached) nic(mac string) (lx.DomainInterface, bool) {
	i := slices.IndexFunc(a.nics, func(n lx.DomainInterface) bool { return n.MAC.Address == mac })
	if i < 0 {
		return lx.DomainInterface{}, false
	}
	return a.nics[i], true
}

// Device returns libvirt's name of the disk with the serial, such as "vdb", or
// "" if the domain has no such disk.
func (a Attached) Device(serial string) string {
	k, ok := a.disk(serial)
	if !ok {
		return ""
	}
	return k.Target.Dev
}

// Open returns the disks with their chains.
func (a Attached) Open() (all []OpenDisk) {
	for _, k := range a.disks {
		o := OpenDisk{Serial: k.Serial}
		if t := k.IOTune; t != nil {
			o.QoS = QoS{int64(t.ReadIopsSec), int64(t.WriteIopsSec), int64(t.ReadBytesSec), int64(t.WriteBytesSec)}
		}
		for _, l := range layers(k) {
			o.Chain = append(o.Chain, l.path)
		}
		all = append(all, o)
	}
	return all
}

// LayerName returns libvirt's name of one file of the disk's chain: "vdb[2]",
// or "vdb" for the file that is written to. It returns "" if the file is not
// in the chain. top reports whether it is the file that is written to.
func (a Attached) LayerName(serial, path string) (name string, top bool) {
	k, _ := a.disk(serial)
	for i, l := range layers(k) {
		switch {
		case l.path != path:
		case i == 0:
			return k.Target.Dev, true
		default:
			return fmt.Sprintf("%s[%d]", k.Target.Dev, l.index), false
		}
	}
	return "", false
}

// Mirrored reports whether a block job on the disk has copied everything and
// waits for its completion.
func (a Attached) Mirrored(serial string) bool {
	k, _ := a.disk(serial)
	return k.Mirror != nil && k.Mirror.Ready == "yes"
}

// SnapshotXML returns the snapshot description with which libvirt writes the
// disk into overlay from then on, and leaves the other disks as they are.
func (a Attached) SnapshotXML(serial, overlay string) (string, error) {
	if err := checkPath("overlay", overlay, true, maxPath); err != nil {
		return "", err
	}
	x := lx.DomainSnapshot{Disks: &lx.DomainSnapshotDisks{}}
	for _, k := range a.disks {
		to := lx.DomainSnapshotDisk{Name: k.Target.Dev, Snapshot: "no"}
		if k.Serial == serial {
			to.Snapshot, to.Driver = "external", &lx.DomainDiskDriver{Type: "qcow2"}
			to.Source = &lx.DomainDiskSource{File: &lx.DomainDiskSourceFile{File: overlay}}
			if k.Source != nil {
				to.Source.Encryption = k.Source.Encryption
			}
		}
		x.Disks.Disks = append(x.Disks.Disks, to)
	}
	return x.Marshal()
}

type layer struct {
	path  string
	index uint
}

func layers(k lx.DomainDisk) (all []layer) {
	if k.Source != nil && k.Source.File != nil {
		all = append(all, layer{k.Source.File.File, k.Source.Index})
	}
	for b := k.BackingStore; b != nil && b.Source != nil && len(all) <= MaxLayers; b = b.BackingStore {
		if b.Source.File != nil {
			all = append(all, layer{b.Source.File.File, b.Index})
		}
	}
	return all
}

// Room is the set of places where another device can be attached.
type Room struct {
	disks, nics map[int]bool // occupied
	ports       bool
	ioThreads   bool // both descriptions have an I/O thread
	active      bool
}

// RoomOf returns the room in a domain. running is nil for a domain that does
// not run.
func RoomOf(running, defined *Attached) Room {
	r := Room{disks: map[int]bool{}, nics: map[int]bool{}, ports: true, ioThreads: true, active: running != nil}
	for _, a := range []*Attached{running, defined} {
		if a == nil {
			continue
		}
		for _, k := range a.disks {
			r.disks[diskIndex(k.Target.Dev)] = true
		}
		for _, n := range a.nics {
			if n.Address != nil && n.Address.PCI != nil && n.Address.PCI.Bus != nil {
				r.nics[int(*n.Address.PCI.Bus)-nicPort] = true
			}
		}
		r.ports = r.ports && a.ports == allPorts
		r.ioThreads = r.ioThreads && a.ioThreads > 0
	}
	return r
}

// Disk returns the XML to attach the disk with, or "" if in has the same disk
// already.
func (r Room) Disk(id api.InstanceID, in Attached, k Disk) (string, error) {
	if err := k.Validate(); err != nil {
		return "", err
	}
	if k.Serial == "" {
		return "", invalid("disks.serial", "serial is empty, want the name of the disk")
	}
	if have, ok := in.disk(k.Serial); ok {
		if !k.same(have.Source) {
			return "", api.Errorf(api.CodeExists, "instance %s already has another disk %s", id, k.Serial)
		}
		return "", nil
	}
	i, err := r.free(id, r.disks, MaxDisks, "disks")
	if err != nil {
		return "", err
	}
	x := k.xml(i)
	if !r.ioThreads { // the domain was started by a Basalt version without I/O threads
		x.Driver.IOThread = nil
	}
	return x.Marshal()
}

// NIC returns the XML to attach the network card with, or "" if in has the
// same card already.
func (r Room) NIC(id api.InstanceID, in Attached, n NIC) (string, error) {
	if err := n.Validate(); err != nil {
		return "", err
	}
	if have, ok := in.nic(n.MAC); ok {
		if have.Target == nil || have.Target.Dev != n.Tap {
			return "", api.Errorf(api.CodeExists, "instance %s already has another network interface %s", id, n.MAC)
		}
		return "", nil
	}
	i, err := r.free(id, r.nics, MaxNICs, "nics")
	if err != nil {
		return "", err
	}
	x := n.xml(i)
	return x.Marshal()
}

func (r Room) free(id api.InstanceID, taken map[int]bool, most int, field string) (int, error) {
	if !r.ports {
		return 0, api.Errorf(api.CodeState, "instance %s was started by a version of Basalt that did not reserve slots for more devices", id).
			WithHint("restart it once")
	}
	for i := range most {
		if !taken[i] {
			return i, nil
		}
	}
	return 0, invalid(field, "instance %s already has %d, the maximum", id, most)
}

// Detachable is a device that can be detached: its XML and, in a running
// machine, QEMU's alias of it. XML is empty if there is no such device.
type Detachable struct{ XML, Alias string }

// DetachDisk returns what to detach for the disk with the serial.
func (a Attached) DetachDisk(serial string) (Detachable, error) {
	k, ok := a.disk(serial)
	if !ok {
		return Detachable{}, nil
	}
	text, err := k.Marshal()
	return Detachable{text, alias(k.Alias)}, err
}

// DetachNIC returns what to detach for the network card with the MAC address.
func (a Attached) DetachNIC(mac string) (Detachable, error) {
	n, ok := a.nic(mac)
	if !ok {
		return Detachable{}, nil
	}
	text, err := n.Marshal()
	return Detachable{text, alias(n.Alias)}, err
}

func alias(a *lx.DomainAlias) string {
	if a == nil {
		return ""
	}
	return a.Name
}
