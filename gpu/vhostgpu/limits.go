package vhostgpu

import (
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/hypervisor/virtio"
)

// Limits bound what one guest can make the device hold. A guest that exceeds them
// gets an error; nothing else changes.
type Limits struct {
	Contexts    int    // guest processes that have the device open
	Workers     int    // of them, with a worker process, including those that are ending
	Resources   int    // of all contexts
	Attachments int    // pairs of context and resource
	Extents     int    // pieces of guest memory that resources consist of, in total
	Region      uint64 // bytes of one shared region
	Regions     int    // per context, besides those being released
	Waits       int    // fenced waits held per context
	Releases    int    // per context, regions being released: freed by the guest but not yet by the worker
}

// DefaultLimits returns limits for a guest with some dozens of GPU processes.
// Each costs the host a worker process.
//
// The region's size is limited by how many mappings a process may have
// (vm.max_map_count, 65,530 by default): in the worst case a worker needs one for
// each page.
func DefaultLimits() Limits {
	return Limits{
		Contexts: 1024, Workers: 64, Resources: 65536, Attachments: 131072, Extents: 4 << 20,
		Region: 128 << 20, Regions: abi.MaxRegions, Waits: 16, Releases: 32,
	}
}

const (
	// killGrace is how long a worker may take to exit after its socket was
	// closed.
	killGrace = time.Second
	// maxSubmit bounds the commands of one SUBMIT_3D, in bytes: a carrier
	// message.
	maxSubmit = 4096
	// maxSmall bounds what is read of any other command except ATTACH_BACKING.
	maxSmall = 256
	// carrierBuffer is how much a carrier's socket can buffer without a reader,
	// in bytes; the message of the largest region in single pages has 24 bytes
	// per page.
	carrierBuffer = 2 << 20
	// backlog bounds the messages that wait for a worker that does not read, in
	// bytes.
	backlog = 2 * (abi.MaxCarrierBody + abi.CarrierHeaderSize)
)

// The longest command is an ATTACH_BACKING of 16 bytes per page of a region,
// which the kernel splits into pages.
var chainLimits = virtio.Limits{Descriptors: 4096, Bytes: 8 << 20}
