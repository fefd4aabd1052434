package hypervisor

import (
	"fmt"
	"slices"

	lx "libvirt.org/go/libvirtxml"

	"github.com/basalt-gpu/basalt/api"
)

// MaxHostCPU is the largest number of a CPU of a node (NR_CPUS of the kernel).
const MaxHostCPU = 8191

// Cell is the part of a machine that is in one NUMA cell of its node.
type Cell struct {
	Host        int   // number of the node's cell
	CPUs        []int // of the cell; the vCPUs of the machine run on them, in order
	MemoryBytes int64 // whole MiB
}

// Pinning is where the threads of a machine run.
type Pinning struct {
	// VCPUs has for each vCPU the CPU that it alone has. Empty: they run on Shared.
	VCPUs []int
	// Shared are the CPUs for everything else.
	Shared []int
}

// Pinning returns where the threads of the machine run; an empty Shared means on all
// CPUs.
func (d Domain) Pinning() Pinning {
	p := Pinning{Shared: d.SharedCPUs}
	for _, c := range d.Cells {
		p.VCPUs = append(p.VCPUs, c.CPUs...)
	}
	return p
}

// Check returns what is wrong with the pinning of a running machine: an *api.Error, or
// nil.
func (p Pinning) Check() error {
	if len(p.Shared) == 0 {
		return invalid("shared", "missing, want at least one CPU")
	}
	seen := map[int]bool{}
	for _, cpu := range p.VCPUs {
		if cpu < 0 || cpu > MaxHostCPU || seen[cpu] {
			return invalid("vcpus", "CPU %d is out of range, or used twice", cpu)
		}
		seen[cpu] = true
	}
	for _, cpu := range p.Shared {
		if cpu < 0 || cpu > MaxHostCPU || seen[cpu] {
			return invalid("shared", "CPU %d is out of range, or used by a vCPU", cpu)
		}
	}
	return nil
}

func (d Domain) validateCells() error {
	p := d.Pinning()
	if len(d.SharedCPUs) > 0 {
		if err := p.Check(); err != nil {
			return err
		}
	}
	if len(d.Cells) == 0 {
		return nil
	}
	var memory int64
	for _, c := range d.Cells {
		if c.Host < 0 || c.Host > 1023 || len(c.CPUs) == 0 || c.MemoryBytes <= 0 || c.MemoryBytes%max(d.HugePages, mib) != 0 {
			return invalid("cells", "cell %d has %d CPUs and %d bytes of memory, want at least one CPU and whole pages of memory", c.Host, len(c.CPUs), c.MemoryBytes)
		}
		memory += c.MemoryBytes
	}
	switch {
	case len(d.SharedCPUs) == 0:
		return invalid("sharedCPUs", "missing, want CPUs for the threads of a machine with dedicated ones that are not vCPUs")
	case len(p.VCPUs) != d.VCPUs:
		return invalid("cells", "they have %d CPUs, want %d, one for each vCPU", len(p.VCPUs), d.VCPUs)
	case memory != d.MemoryBytes:
		return invalid("cells", "they have %d bytes of memory, want %d", memory, d.MemoryBytes)
	}
	return nil
}

// vcpu returns the number of vCPUs and, for a machine without CPUs of its own, where all
// of its threads run. A machine with its own has a place for each thread (cpuTune).
func (d Domain) vcpu() *lx.DomainVCPU {
	v := &lx.DomainVCPU{Value: uint(d.VCPUs)}
	if len(d.SharedCPUs) > 0 {
		v.Placement, v.CPUSet = "static", api.FormatCPUs(d.SharedCPUs)
	}
	return v
}

func (d Domain) cpuTune() *lx.DomainCPUTune {
	if len(d.Cells) == 0 {
		return nil
	}
	shared := api.FormatCPUs(d.SharedCPUs)
	t := &lx.DomainCPUTune{EmulatorPin: &lx.DomainCPUTuneEmulatorPin{CPUSet: shared}}
	for i, cpu := range d.Pinning().VCPUs {
		t.VCPUPin = append(t.VCPUPin, lx.DomainCPUTuneVCPUPin{VCPU: uint(i), CPUSet: fmt.Sprint(cpu)})
	}
	for i := range ioThreads {
		t.IOThreadPin = append(t.IOThreadPin, lx.DomainCPUTuneIOThreadPin{IOThread: uint(i + 1), CPUSet: shared})
	}
	return t
}

// numaTune binds the memory to the cells. With several, each of the guest's has its own.
func (d Domain) numaTune() *lx.DomainNUMATune {
	if len(d.Cells) == 0 {
		return nil
	}
	mode := "strict"
	if d.AnyMemory {
		mode = "preferred"
	}
	if len(d.Cells) == 1 {
		return &lx.DomainNUMATune{Memory: &lx.DomainNUMATuneMemory{Mode: mode, Nodeset: fmt.Sprint(d.Cells[0].Host)}}
	}
	t := &lx.DomainNUMATune{}
	for i, c := range d.Cells {
		t.MemNodes = append(t.MemNodes, lx.DomainNUMATuneMemNode{CellID: uint(i), Mode: mode, Nodeset: fmt.Sprint(c.Host)})
	}
	return t
}

// guestCells returns the NUMA cells that the guest sees; nil: it sees none.
func (d Domain) guestCells() *lx.DomainNuma {
	if len(d.Cells) < 2 {
		return nil
	}
	n, first := &lx.DomainNuma{}, 0
	for i, c := range d.Cells {
		var vcpus []int
		for v := range c.CPUs {
			vcpus = append(vcpus, first+v)
		}
		first += len(c.CPUs)
		id := uint(i)
		n.Cell = append(n.Cell, lx.DomainCell{ID: &id, CPUs: api.FormatCPUs(vcpus), Memory: uint(c.MemoryBytes / mib), Unit: "MiB", MemAccess: "shared"})
	}
	return n
}

// allocation has QEMU allocate all memory at its start where it is bound to cells: if
// other programs used up a cell's memory later, the kernel would kill one of those that
// have memory there (CONSTRAINT_MEMORY_POLICY in mm/oom_kill.c).
func (d Domain) allocation() *lx.DomainMemoryAllocation {
	if len(d.Cells) == 0 {
		return nil
	}
	return &lx.DomainMemoryAllocation{Mode: "immediate"}
}

// sameCells reports whether a running guest sees the same NUMA cells as its target
// definition: with other ones it could not continue. libvirt reports sizes in KiB.
func sameCells(running *lx.DomainCPU, want *lx.DomainNuma) bool {
	var has *lx.DomainNuma
	if running != nil {
		has = running.Numa
	}
	return slices.Equal(cellSizes(has), cellSizes(want))
}

// cellSizes returns for each of the guest's cells its vCPUs and its memory in KiB.
func cellSizes(n *lx.DomainNuma) (all []string) {
	if n == nil {
		return nil
	}
	units := map[string]uint{"KiB": 1, "": 1, "MiB": 1 << 10, "GiB": 1 << 20}
	for _, c := range n.Cell {
		all = append(all, fmt.Sprintf("%s %d", c.CPUs, c.Memory*units[c.Unit]))
	}
	return all
}
