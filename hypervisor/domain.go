// Package hypervisor describes virtual machines and what a hypervisor driver
// does with them. The package is pure: Domain is a machine, XML is its libvirt
// form, Driver is the interface that hypervisor/libvirt and hypervisor/fake
// implement.
package hypervisor

import (
	"crypto/sha1" // name-based UUIDs (RFC 9562, version 5) are SHA-1; nothing is secured by it
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// Accelerator is how a guest's instructions are executed.
type Accelerator string

// Accelerators.
const (
	KVM Accelerator = "kvm" // by the CPU
	TCG Accelerator = "tcg" // by QEMU's translator, some ten times slower
)

// Domain is one virtual machine. All paths are absolute.
type Domain struct {
	ID   api.InstanceID
	Node api.NodeID // whose domain it is: several nodes may share one libvirtd in tests
	Name string     // as the tenant calls it; shown, never interpreted

	VCPUs       int
	MemoryBytes int64 // whole MiB
	HugePages   int64 // size in bytes of the pages that back its memory; 0: ordinary ones
	Accelerator Accelerator
	// Machine is the machine type with its version (pc-q35-10.0): what the guest sees
	// of its board stays the same whichever QEMU runs it. Empty: the newest of this
	// node's QEMU.
	Machine string
	// CPU that the guest is given by KVM; nil: the node's as it is. An emulated one is
	// always QEMU's own.
	CPU *CPU

	// Firmware is UEFI; nil: SeaBIOS.
	Firmware *Firmware
	TPM      bool
	// Windows: the machine is made for that, see hyperv and clock.
	Windows bool

	// Disks in the guest's order; the first is booted from.
	Disks  []Disk
	CDROMs []CDROM
	NICs   []NIC

	// VGPUSocket is basalt-vgpu's vhost-user socket, which must be listening
	// when the domain starts. Empty: no vGPU.
	VGPUSocket string

	// SerialSocket is made by QEMU and is the serial console. Required.
	SerialSocket string
	// SerialLog is the file to which all that the console says is appended.
	// Required.
	SerialLog string
	// AgentSocket is made by QEMU for the guest agent's channel. Empty: libvirt
	// chooses.
	AgentSocket string
	// VNCSocket is made by QEMU and is the screen. Empty: nobody can see it.
	VNCSocket string

	// Boot, when not nil, starts a kernel directly, without the disk's loader.
	Boot *DirectBoot
}

// CDROM is a disc in a SCSI drive, always raw and read-only.
type CDROM struct {
	Path   string
	Serial string
}

// DirectBoot starts a kernel without a boot loader.
type DirectBoot struct {
	Kernel, Initrd string // Initrd may be empty
	Cmdline        string
}

// DomainName is what libvirt calls the instance's domain.
func DomainName(id api.InstanceID) string { return "basalt-" + string(id) }

// uuidNamespace was drawn at random once. It must never change: every domain
// in the field is found by the UUIDs made from it.
var uuidNamespace = [16]byte{0x6f, 0x1c, 0x2b, 0x8e, 0x35, 0x0d, 0x4a, 0x77, 0x9b, 0xe2, 0x51, 0xc4, 0x08, 0xd6, 0xaf, 0x13}

// UUID of the instance's domain: RFC 9562 version 5 of its id.
func UUID(id api.InstanceID) string { return uuid(string(id)) }

// SecretUUID is the UUID of a secret (see Secret): version 5 of what it is for,
// such as "volume/vol-1".
func SecretUUID(name string) string { return uuid("secret/" + name) }

func uuid(name string) string {
	h := sha1.New()
	h.Write(uuidNamespace[:])
	h.Write([]byte(name))
	u := h.Sum(nil)[:16]
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}
