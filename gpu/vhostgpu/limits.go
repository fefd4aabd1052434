package vhostgpu

import (
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/hypervisor/virtio"
)

// Limits bounds what one guest can make the device hold. A guest that wants
// more gets an error, nothing else changes.
type Limits struct {
	Contexts    int    // guest processes that have the device open
	Workers     int    // of them, with a worker process, those that are ending included
	Resources   int    // of all contexts
	Attachments int    // pairs of context and resource
	Extents     int    // pieces of guest memory that resources consist of, in all
	Region      uint64 // bytes of one shared region
	Regions     int    // per context, besides those on their way out
	Waits       int    // fenced waits held per context
	Releases    int    // per context, regions freed by the guest but not yet by the worker: on their way out
}

// DefaultLimits suit a guest with some dozens of GPU processes. Each costs the
// host a worker process.
//
// The region's size is bounded by how many mappings a process may have
// (vm.max_map_count, 65,530 by default): in the worst case a worker needs one
// for each page.
func DefaultLimits() Limits {
	return Limits{
		Contexts: 1024, Workers: 64, Resources: 65536, Attachments: 131072, Extents: 4 << 20,
		Region: 128 << 20, Regions: abi.MaxRegions, Waits: 16, Releases: 32,
	}
}

const (
	// killGrace is how long a worker may take to end after its socket was
	// closed.
	killGrace = time.Second
	// maxSubmit bounds the commands of one SUBMIT_3D, in bytes: a carrier
	// message.
	maxSubmit = 4096
	// maxSmall bounds what is read of any other command but ATTACH_BACKING.
	maxSmall = 256
	// carrierBuffer is what a carrier's socket takes without a reader, in bytes;
	// the largest region in single pages takes 24 bytes a page.
	carrierBuffer = 2 << 20
	// backlog bounds what waits for a worker that does not read, in bytes.
	backlog = 2 * (abi.MaxCarrierBody + abi.CarrierHeaderSize)
)

// chainLimits: the longest command is an ATTACH_BACKING of 16 bytes per page
// of a region, which the kernel lays out in pages.
var chainLimits = virtio.Limits{Descriptors: 4096, Bytes: 8 << 20}
