// Package model describes the GPUs that a soft GPU can present itself as: the
// device attributes that programs read and compute with.
//
// The values are public and were not read from hardware: limits of a multiprocessor as
// in the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability";
// multiprocessors, clocks, buses and caches as in NVIDIA's data sheets of V100, T4,
// A100, GA102, Ada and H100; PCI IDs as in pci-ids.ucw.cz. Names are as nvidia-smi
// prints them.
package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Model describes a GPU. The zero Model is invalid.
type Model struct {
	Name       string
	Capability int // compute capability: 80 is 8.0
	// Multiprocessors is their number; 0 means that it is chosen when the device is
	// created.
	Multiprocessors int
	Clock           int // MHz, the maximum, of multiprocessors: what %clock counts
	MemoryClock     int // MHz
	BusWidth        int // of memory, bits
	L2Cache         int // bytes
	CopyEngines     int
	ECC             bool
	PCIDevice       int // PCI device ID; the vendor is PCIVendor
	LinkGeneration  int // of PCI Express, with LinkWidth lanes; 0: it has no such link
	Limits
}

// PCIVendor is NVIDIA's PCI vendor ID.
const PCIVendor = 0x10de

// LinkWidth is the number of lanes of all models with a link of PCI Express.
const LinkWidth = 16

// Limits has the limits of a multiprocessor, by compute capability. For all of them, a
// warp has 32 threads, and a multiprocessor and a block have at most 65536 registers.
type Limits struct {
	Threads        int // resident on a multiprocessor
	Blocks         int // resident on a multiprocessor
	SharedBytes    int // of a multiprocessor
	BlockShared    int // bytes that a block may opt in to
	ReservedShared int // bytes of each block's shared memory that the system reserves
	DoubleRatio    int // single to double precision throughput
}

// Default returns the model of the soft GPU itself. Its compute capability is the
// newest whose instructions are implemented, as libraries select by it the kernels that
// were compiled for their PTX. Its clocks count nanoseconds.
func Default() Model {
	return Model{
		Name: "Basalt Soft GPU", Capability: 90, Clock: 1000, MemoryClock: 1000, BusWidth: 64, L2Cache: 1 << 20, CopyEngines: 1,
		Limits: Limits{Threads: 2048, Blocks: 32, SharedBytes: 227 << 10, BlockShared: 227 << 10, DoubleRatio: 2},
	}
}

var limits = map[int]Limits{
	70: {Threads: 2048, Blocks: 32, SharedBytes: 96 << 10, BlockShared: 96 << 10, DoubleRatio: 2},
	75: {Threads: 1024, Blocks: 16, SharedBytes: 64 << 10, BlockShared: 64 << 10, DoubleRatio: 32},
	80: {Threads: 2048, Blocks: 32, SharedBytes: 164 << 10, BlockShared: 163 << 10, ReservedShared: 1 << 10, DoubleRatio: 2},
	86: {Threads: 1536, Blocks: 16, SharedBytes: 100 << 10, BlockShared: 99 << 10, ReservedShared: 1 << 10, DoubleRatio: 64},
	89: {Threads: 1536, Blocks: 24, SharedBytes: 100 << 10, BlockShared: 99 << 10, ReservedShared: 1 << 10, DoubleRatio: 64},
	90: {Threads: 2048, Blocks: 32, SharedBytes: 228 << 10, BlockShared: 227 << 10, ReservedShared: 1 << 10, DoubleRatio: 2},
}

// models has the models by the names that options use. CopyEngines is that of the
// soft GPU: one copy in each direction concurrently with kernels.
var models = map[string]Model{
	"v100":    {Name: "Tesla V100-SXM2-16GB", Capability: 70, Multiprocessors: 80, Clock: 1530, MemoryClock: 877, BusWidth: 4096, L2Cache: 6 << 20, ECC: true, PCIDevice: 0x1db1, LinkGeneration: 3},
	"t4":      {Name: "Tesla T4", Capability: 75, Multiprocessors: 40, Clock: 1590, MemoryClock: 5001, BusWidth: 256, L2Cache: 4 << 20, ECC: true, PCIDevice: 0x1eb8, LinkGeneration: 3},
	"a100":    {Name: "NVIDIA A100-SXM4-40GB", Capability: 80, Multiprocessors: 108, Clock: 1410, MemoryClock: 1215, BusWidth: 5120, L2Cache: 40 << 20, ECC: true, PCIDevice: 0x20b0, LinkGeneration: 4},
	"a10":     {Name: "NVIDIA A10", Capability: 86, Multiprocessors: 72, Clock: 1695, MemoryClock: 6251, BusWidth: 384, L2Cache: 6 << 20, ECC: true, PCIDevice: 0x2236, LinkGeneration: 4},
	"rtx3090": {Name: "NVIDIA GeForce RTX 3090", Capability: 86, Multiprocessors: 82, Clock: 1695, MemoryClock: 9751, BusWidth: 384, L2Cache: 6 << 20, PCIDevice: 0x2204, LinkGeneration: 4},
	"l4":      {Name: "NVIDIA L4", Capability: 89, Multiprocessors: 58, Clock: 2040, MemoryClock: 6251, BusWidth: 192, L2Cache: 48 << 20, ECC: true, PCIDevice: 0x27b8, LinkGeneration: 4},
	"l40s":    {Name: "NVIDIA L40S", Capability: 89, Multiprocessors: 142, Clock: 2520, MemoryClock: 9001, BusWidth: 384, L2Cache: 96 << 20, ECC: true, PCIDevice: 0x26b9, LinkGeneration: 4},
	"rtx4090": {Name: "NVIDIA GeForce RTX 4090", Capability: 89, Multiprocessors: 128, Clock: 2520, MemoryClock: 10501, BusWidth: 384, L2Cache: 72 << 20, PCIDevice: 0x2684, LinkGeneration: 4},
	"h100":    {Name: "NVIDIA H100 80GB HBM3", Capability: 90, Multiprocessors: 132, Clock: 1980, MemoryClock: 2619, BusWidth: 5120, L2Cache: 50 << 20, ECC: true, PCIDevice: 0x2330, LinkGeneration: 5},
}

// Find returns the model with a name that options use; "" is Default.
func Find(name string) (Model, error) {
	if name == "" {
		return Default(), nil
	}
	m, ok := models[name]
	if !ok {
		return Model{}, fmt.Errorf("unknown model %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	m.CopyEngines = 2
	m.Limits = limits[m.Capability]
	return m, nil
}

// Names returns the names that Find accepts, sorted.
func Names() []string { return slices.Sorted(maps.Keys(models)) }
