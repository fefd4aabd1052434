package hypervisor

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"

	lx "libvirt.org/go/libvirtxml"

	"github.com/basalt-gpu/basalt/api"
)

// MetadataNamespace is the namespace of the mark in the domain's metadata with
// its instance and node.
const MetadataNamespace = "urn:basalt-gpu:domain:1"

const (
	// tbCacheMiB limits TCG's translation cache: without a limit, QEMU uses about
	// one GiB in addition to the guest's memory; 128 MiB boots as fast.
	tbCacheMiB = 128

	// agentChannel is the name that qemu-guest-agent opens.
	agentChannel = "org.qemu.guest_agent.0"

	// vgpuSlot on pcie.0 is never used by libvirt: it reserves it for a USB
	// controller, which the domain does not have.
	vgpuSlot = "0x1d"
)

// XML returns the domain in libvirt's form, deterministically.
func (d Domain) XML() (string, error) {
	if err := d.Validate(); err != nil {
		return "", err
	}
	dom := &lx.Domain{
		Type:     domainType(d.Accelerator),
		Name:     DomainName(d.ID),
		UUID:     UUID(d.ID),
		Title:    d.Name,
		Metadata: &lx.DomainMetadata{XML: metadata(d.ID, d.Node, false)},
		// A core dump must not contain the guest's memory.
		Memory: &lx.DomainMemory{Value: uint(d.MemoryBytes / mib), Unit: "MiB", DumpCore: "off"},
		// The vGPU's process maps the guest's memory: a shared memfd. Guests' pages
		// are never merged: merging reveals the content of one guest to another.
		MemoryBacking: &lx.DomainMemoryBacking{
			MemoryHugePages:    d.hugePages(),
			MemoryAllocation:   d.allocation(),
			MemoryNosharepages: &lx.DomainMemoryNosharepages{},
			MemorySource:       &lx.DomainMemorySource{Type: "memfd"},
			MemoryAccess:       &lx.DomainMemoryAccess{Mode: "shared"},
		},
		VCPU:      d.vcpu(),
		CPUTune:   d.cpuTune(),
		NUMATune:  d.numaTune(),
		IOThreads: ioThreads,
		OS:        d.os(),
		Features:  d.features(),
		CPU:       d.cpu(),
		Clock:     d.clock(),
		// QEMU ends when the guest has shut down or panicked; the agent decides what
		// happens next.
		OnPoweroff: "destroy",
		OnReboot:   "restart",
		OnCrash:    "destroy",
		Devices:    d.devices(),
	}
	if d.VGPUSocket != "" {
		dom.QEMUCommandline = vgpu(d.VGPUSocket)
	}
	return dom.Marshal()
}

func domainType(a Accelerator) string {
	if a == KVM {
		return "kvm"
	}
	return "qemu"
}

func (d Domain) cpu() *lx.DomainCPU {
	x := d.cpuModel()
	x.Topology, x.Numa = d.topology(), d.guestCells()
	return x
}

func (d Domain) cpuModel() *lx.DomainCPU {
	if d.Accelerator == KVM && d.CPU != nil {
		return d.CPU.xml()
	}
	if d.Accelerator == KVM {
		return &lx.DomainCPU{Mode: "host-passthrough", Check: "none", Migratable: "on"}
	}
	c := &lx.DomainCPU{Mode: "maximum", Check: "none"} // -cpu max
	for _, name := range slowEmulated {
		c.Features = append(c.Features, lx.DomainCPUFeature{Policy: "disable", Name: name})
	}
	return c
}

// slowEmulated are the processor features that slow an emulated processor
// down. With erms and fsrm, kernels and C libraries copy and clear memory by
// REP MOVSB and REP STOSB, which QEMU executes byte by byte; with la57 each
// address translation requires a fifth level of page tables.
var slowEmulated = []string{"erms", "fsrm", "la57"}

func (d Domain) features() *lx.DomainFeatureList {
	f := &lx.DomainFeatureList{ACPI: &lx.DomainFeature{}, APIC: &lx.DomainFeatureAPIC{}, HyperV: d.hyperv()}
	if d.Accelerator == TCG {
		f.TCG = &lx.DomainFeatureTCG{TBCache: &lx.DomainFeatureTCGTBCache{Unit: "MiB", Size: tbCacheMiB}}
	}
	if d.Firmware != nil && d.Firmware.SecureBoot {
		f.SMM = &lx.DomainFeatureSMM{State: "on"} // otherwise the guest could write its variables itself
	}
	return f
}

func (d Domain) os() *lx.DomainOS {
	o := &lx.DomainOS{Type: &lx.DomainOSType{Arch: "x86_64", Machine: d.machine(), Type: "hvm"}}
	d.firmware(o)
	if d.Boot != nil {
		o.Kernel, o.Initrd, o.Cmdline = d.Boot.Kernel, d.Boot.Initrd, d.Boot.Cmdline
		return o
	}
	if len(d.Drives) == 0 { // otherwise the devices have their places, which excludes this
		o.BootDevices = []lx.DomainBootDevice{{Dev: "hd"}}
	}
	return o
}

func (d Domain) devices() *lx.DomainDeviceList {
	zero := uint(0)
	list := &lx.DomainDeviceList{
		Controllers: append([]lx.DomainController{{Type: "usb", Model: "none"}}, ports()...),
		Serials: []lx.DomainSerial{{
			Source: listen(d.SerialSocket),
			Log:    &lx.DomainChardevLog{File: d.SerialLog, Append: "on"},
			Target: &lx.DomainSerialTarget{Type: "isa-serial", Port: &zero},
		}},
		Channels: []lx.DomainChannel{{
			Source: listen(d.AgentSocket),
			Target: &lx.DomainChannelTarget{VirtIO: &lx.DomainChannelTargetVirtIO{Name: agentChannel}},
		}},
		Videos:     []lx.DomainVideo{{Model: lx.DomainVideoModel{Type: "vga"}}},
		TPMs:       d.tpm(),
		MemBalloon: &lx.DomainMemBalloon{Model: "virtio"},
		RNGs: []lx.DomainRNG{{
			Model:   "virtio",
			Backend: &lx.DomainRNGBackend{Random: &lx.DomainRNGBackendRandom{Device: "/dev/urandom"}},
		}},
		// The device by which a Linux guest reports a panic.
		Panics: []lx.DomainPanic{{Model: "isa"}},
	}
	if d.VNCSocket != "" {
		list.Graphics = []lx.DomainGraphic{{VNC: &lx.DomainGraphicVNC{
			Listeners: []lx.DomainGraphicListener{{Socket: &lx.DomainGraphicListenerSocket{Socket: d.VNCSocket}}},
		}}}
		// The PS/2 mouse reports relative movements; a browser has absolute
		// positions.
		list.Inputs = []lx.DomainInput{{Type: "tablet", Bus: "virtio"}}
	}
	disk, drive := d.bootOrders()
	for i, k := range d.Disks {
		list.Disks = append(list.Disks, k.xml(i))
	}
	if len(d.Disks) > 0 {
		list.Disks[0].Boot = bootOrder(disk)
	}
	if len(d.CDROMs) > 0 {
		list.Controllers = append(list.Controllers, lx.DomainController{Type: "scsi", Index: &zero, Model: "virtio-scsi"})
	}
	for i, c := range d.CDROMs {
		list.Disks = append(list.Disks, c.xml(i))
	}
	for i, v := range d.Drives {
		list.Disks = append(list.Disks, v.xml(i, drive))
		drive = 0 // of the first only
	}
	for i, n := range d.NICs {
		list.Interfaces = append(list.Interfaces, n.xml(i))
	}
	return list
}

// vgpu adds the vhost-user-gpu device by QEMU arguments: libvirt's own device
// would be the primary screen, and its process would start without the name of
// the domain.
func vgpu(socket string) *lx.DomainQEMUCommandline {
	device, err := json.Marshal(struct {
		Driver  string `json:"driver"`
		ID      string `json:"id"`
		Chardev string `json:"chardev"`
		Bus     string `json:"bus"`
		Addr    string `json:"addr"`
	}{"vhost-user-gpu-pci", "vgpu0dev", "vgpu0", "pcie.0", vgpuSlot})
	if err != nil {
		panic(fmt.Sprintf("hypervisor: encode constant strings: %v", err))
	}
	// In QEMU's option syntax a comma ends a value; two commas stand for one.
	path := strings.ReplaceAll(socket, ",", ",,")
	return &lx.DomainQEMUCommandline{Args: []lx.DomainQEMUCommandlineArg{
		{Value: "-chardev"}, {Value: "socket,id=vgpu0,path=" + path},
		{Value: "-device"}, {Value: string(device)},
	}}
}

func listen(path string) *lx.DomainChardevSource {
	return &lx.DomainChardevSource{UNIX: &lx.DomainChardevSourceUNIX{Mode: "bind", Path: path}}
}

// metadata returns the mark of a domain of Basalt, so that orphans can be
// found. incoming marks one that another node is sending and that has not run
// here yet.
func metadata(id api.InstanceID, node api.NodeID, incoming bool) string {
	mark := ""
	if incoming {
		mark = ` incoming="yes"`
	}
	return fmt.Sprintf(`<basalt:instance xmlns:basalt=%q id="%s" node="%s"%s/>`, MetadataNamespace, escape(string(id)), escape(string(node)), mark)
}

// Metadata returns the mark of a domain of Basalt that is not incoming any
// more, and its namespace, in the form in which libvirt replaces an element.
func Metadata(id api.InstanceID, node api.NodeID) (namespace, element string) {
	return MetadataNamespace, fmt.Sprintf(`<instance id="%s" node="%s"/>`, escape(string(id)), escape(string(node)))
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder never returns an error
	return b.String()
}

// Owned is what a domain's XML contains about its owner, its console and its
// screen.
type Owned struct {
	ID           api.InstanceID
	Node         api.NodeID
	SerialSocket string
	SerialLog    string
	VNCSocket    string   // empty: it has no screen
	DiskSerials  []string // by the index of the disk; empty for an index without a disk
	Incoming     bool     // being received from another node, has not run here yet
}

// ParseOwned decodes the values of Owned from libvirt's present form of a
// domain's XML. ok is false if the domain is not one of Basalt's.
func ParseOwned(text string) (o Owned, ok bool, err error) {
	var dom lx.Domain
	if err := dom.Unmarshal(text); err != nil {
		return Owned{}, false, fmt.Errorf("decode domain XML: %w", err)
	}
	if dom.Metadata == nil {
		return Owned{}, false, nil
	}
	if o.ID, o.Node, o.Incoming, ok = parseMetadata(dom.Metadata.XML); !ok || dom.Name != DomainName(o.ID) {
		return Owned{}, false, nil
	}
	if dom.Devices == nil {
		return o, true, nil
	}
	for _, k := range dom.Devices.Disks {
		if k.Target == nil {
			continue
		}
		if i := diskIndex(k.Target.Dev); i >= 0 {
			o.DiskSerials = append(o.DiskSerials, make([]string, max(0, i+1-len(o.DiskSerials)))...)
			o.DiskSerials[i] = k.Serial
		}
	}
	for _, s := range dom.Devices.Serials {
		if s.Source != nil && s.Source.UNIX != nil {
			o.SerialSocket = s.Source.UNIX.Path
		}
		if s.Log != nil {
			o.SerialLog = s.Log.File
		}
	}
	o.VNCSocket = vncSocket(dom.Devices.Graphics)
	return o, true, nil
}

// vncSocket returns the path of the VNC socket, in the form that libvirt uses
// for a running domain or the one in its definition.
func vncSocket(graphics []lx.DomainGraphic) string {
	for _, g := range graphics {
		if g.VNC == nil {
			continue
		}
		for _, l := range g.VNC.Listeners {
			if l.Socket != nil && l.Socket.Socket != "" {
				return l.Socket.Socket
			}
		}
		if g.VNC.Socket != "" {
			return g.VNC.Socket
		}
	}
	return ""
}

// ParseMark decodes the mark in the form in which libvirt returns the element
// alone: without its namespace.
func ParseMark(text string) (o Owned, ok bool) {
	var m struct {
		XMLName  xml.Name
		ID       string `xml:"id,attr"`
		Node     string `xml:"node,attr"`
		Incoming string `xml:"incoming,attr"`
	}
	if err := xml.Unmarshal([]byte(text), &m); err != nil || m.XMLName.Local != "instance" || !idForm.MatchString(m.ID) || !idForm.MatchString(m.Node) {
		return Owned{}, false
	}
	return Owned{ID: api.InstanceID(m.ID), Node: api.NodeID(m.Node), Incoming: m.Incoming == "yes"}, true
}

func parseMetadata(text string) (id api.InstanceID, node api.NodeID, incoming, ok bool) {
	var m struct {
		Instance struct {
			ID       string `xml:"id,attr"`
			Node     string `xml:"node,attr"`
			Incoming string `xml:"incoming,attr"`
		} `xml:"urn:basalt-gpu:domain:1 instance"`
	}
	if err := xml.Unmarshal([]byte("<metadata>"+text+"</metadata>"), &m); err != nil {
		return "", "", false, false
	}
	x := m.Instance
	return api.InstanceID(x.ID), api.NodeID(x.Node), x.Incoming == "yes", idForm.MatchString(x.ID) && idForm.MatchString(x.Node)
}
