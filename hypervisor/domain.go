// Package hypervisor describes virtual machines and the operations of a
// hypervisor driver. The package has no side effects: Domain is a machine, XML
// its libvirt form, and Driver the interface that hypervisor/libvirt and
// hypervisor/fake implement.
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
	Name string     // the name that users see; never interpreted

	VCPUs       int
	MemoryBytes int64 // whole MiB
	HugePages   int64 // size in bytes of the pages that back its memory; 0: ordinary ones
	Accelerator Accelerator
	// Cells are the CPUs of this node that the machine alone has, one for each vCPU
	// in order, and where its memory is. Several are NUMA cells of the guest. Empty:
	// it runs on SharedCPUs.
	Cells []Cell
	// SharedCPUs are the CPUs of this node for machines without Cells, and for the
	// emulator and the I/O threads of those with. Empty: all.
	SharedCPUs []int
	// AnyMemory lets memory be in other cells if those in Cells have too little.
	AnyMemory bool
	// Machine is the versioned machine type (pc-q35-10.0), so that the guest's
	// board stays the same whichever QEMU version runs it. Empty: the newest of
	// this node's QEMU.
	Machine string
	// CPU is the processor that the guest has under KVM; nil: the node's own,
	// unchanged. Under TCG it is always QEMU's.
	CPU *CPU

	// Firmware is UEFI; nil: SeaBIOS.
	Firmware *Firmware
	TPM      bool
	// Windows sets up the machine for Windows, see hyperv and clock.
	Windows bool

	// Disks in the guest's order; the first is booted from.
	Disks  []Disk
	CDROMs []CDROM
	// Drives are the CD drives for the user's media. The firmware tries the disk
	// and then the medium in the first of them, with BootMedium the medium first.
	Drives     []Drive
	BootMedium bool
	NICs       []NIC

	// VGPUSocket is basalt-vgpu's vhost-user socket, which must be listening
	// when the domain starts. Empty: no vGPU.
	VGPUSocket string

	// SerialSocket is created by QEMU for the serial console. Required.
	SerialSocket string
	// SerialLog is the file to which the output of the console is appended.
	// Required.
	SerialLog string
	// AgentSocket is created by QEMU for the guest agent's channel. Empty:
	// libvirt chooses a path.
	AgentSocket string
	// VNCSocket is created by QEMU for the screen. Empty: the machine has no
	// screen.
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

// DomainName returns libvirt's name of the instance's domain.
func DomainName(id api.InstanceID) string { return "basalt-" + string(id) }

// uuidNamespace was generated at random once. It must never change: existing
// domains are found by the UUIDs derived from it.
var uuidNamespace = [16]byte{0x6f, 0x1c, 0x2b, 0x8e, 0x35, 0x0d, 0x4a, 0x77, 0x9b, 0xe2, 0x51, 0xc4, 0x08, 0xd6, 0xaf, 0x13}

// UUID returns the UUID of the instance's domain: RFC 9562 version 5 of its
// ID.
func UUID(id api.InstanceID) string { return uuid(string(id)) }

// SecretUUID returns the UUID of a secret (see Secret): version 5 of its name,
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
