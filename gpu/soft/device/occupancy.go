package device

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// The number of blocks of a kernel that can wait for each other. The reported occupancy
// is guaranteed: blocks that wait are set aside, so it does not matter that fewer run
// at a time; it is limited by the host memory that the blocks use.

// OccupancyMaxActiveBlocksPerMultiprocessor implements worker.Context.
func (c *Context) OccupancyMaxActiveBlocksPerMultiprocessor(fn worker.Function, blockSize int32, dynamicShared uint64) (int32, error) {
	f, err := c.function(fn)
	if err != nil {
		return 0, err
	}
	if blockSize <= 0 || uint32(blockSize) > f.p.MaxThreads {
		return 0, abi.ErrInvalidValue
	}
	threads, m := roundUp(uint32(blockSize), ir.WarpSize), c.d.o.Model
	n := min(uint32(m.Threads)/threads, uint32(m.Blocks), maxRegisters/(roundUp(f.registers, registerUnit)*threads))
	if dynamicShared > c.d.optIn() || dynamicShared+uint64(f.p.SharedBytes) > c.d.optIn() {
		return 0, nil
	}
	if shared := uint64(f.p.SharedBytes) + dynamicShared + uint64(m.ReservedShared); shared > 0 {
		n = uint32(min(uint64(n), uint64(m.SharedBytes)/shared))
	}
	host := exec.ResidentBlocks(f.p, uint64(blockSize), dynamicShared) / c.d.o.SMs
	return min(int32(n), int32(max(1, host))), nil
}

// MaxActiveClusters implements worker.ClusterOccupancy. All blocks of a cluster are on
// the device at once, on any multiprocessors.
func (c *Context) MaxActiveClusters(fn worker.Function, l worker.Launch) (int32, error) {
	f, err := c.function(fn)
	if err != nil {
		return 0, err
	}
	if err := c.checkCluster(f, &l); err != nil {
		return 0, err
	}
	size := l.Cluster[0] * l.Cluster[1] * l.Cluster[2]
	if size == 0 {
		return 0, fmt.Errorf("%w: kernel %s: neither it nor the launch has the size of a cluster", abi.ErrInvalidClusterSize, f.p.Name)
	}
	blocks, err := c.blocksAtOnce(f, l)
	return blocks / int32(size), err
}

// MaxClusterSize implements worker.ClusterOccupancy.
func (c *Context) MaxClusterSize(fn worker.Function, l worker.Launch) (int32, error) {
	f, err := c.function(fn)
	if err != nil {
		return 0, err
	}
	if c.d.o.Capability < firstWithClusters {
		return 0, fmt.Errorf("%w: kernel %s: cluster of blocks on a device of compute capability %d, want %d or newer", abi.ErrNotSupported, f.p.Name, c.d.o.Capability, firstWithClusters)
	}
	if r := f.p.Cluster; r != [3]uint32{} {
		return int32(r[0] * r[1] * r[2]), nil
	}
	blocks, err := c.blocksAtOnce(f, l)
	size := int32(exec.MaxCluster)
	for size > 0 && size > blocks {
		size /= 2
	}
	return size, err
}

// blocksAtOnce returns how many blocks of a launch the device can have at a time.
func (c *Context) blocksAtOnce(f *function, l worker.Launch) (int32, error) {
	threads := uint64(l.Block[0]) * uint64(l.Block[1]) * uint64(l.Block[2])
	if l.Block[0] > f.p.MaxThreads || l.Block[1] > f.p.MaxThreads || l.Block[2] > f.p.MaxThreads || threads > uint64(f.p.MaxThreads) {
		return 0, abi.ErrInvalidValue
	}
	each, err := c.OccupancyMaxActiveBlocksPerMultiprocessor(f, int32(threads), uint64(l.Shared))
	return each * int32(c.d.o.SMs), err
}

// OccupancyAvailableDynamicSMemPerBlock implements worker.Context. It returns how much
// shared memory of a multiprocessor, and of the limit of a block, that many blocks
// leave for dynamic use.
func (c *Context) OccupancyAvailableDynamicSMemPerBlock(fn worker.Function, blocks, blockSize int32) (uint64, error) {
	most, err := c.OccupancyMaxActiveBlocksPerMultiprocessor(fn, blockSize, 0)
	if err != nil {
		return 0, err
	}
	if blocks <= 0 || blocks > most {
		return 0, abi.ErrInvalidValue
	}
	m := c.d.o.Model
	each := uint64(m.SharedBytes)/uint64(blocks) - uint64(m.ReservedShared)
	return min(each, c.d.optIn()) - uint64(fn.(*function).p.SharedBytes), nil
}

// optIn returns the maximum shared memory of a block in bytes.
func (d *device) optIn() uint64 { return uint64(d.o.Model.BlockShared) }

// workspaceBytes is the size of the workspace of a cooperative grid. Cooperative groups
// have their barrier in its second word.
const workspaceBytes = 256

// workspaceOf returns the workspace for a cooperative launch, whose blocks must all be
// resident.
func (c *Context) workspaceOf(f *function, l *worker.Launch) (uint64, error) {
	threads := l.Block[0] * l.Block[1] * l.Block[2]
	each, err := c.OccupancyMaxActiveBlocksPerMultiprocessor(f, int32(threads), uint64(l.Shared))
	if err != nil {
		return 0, err
	}
	most := min(int(each)*c.d.o.SMs, exec.ResidentBlocks(f.p, uint64(threads), uint64(l.Shared)))
	if blocks := uint64(l.Grid[0]) * uint64(l.Grid[1]) * uint64(l.Grid[2]); blocks > uint64(most) {
		return 0, fmt.Errorf("%w: kernel %s: cooperative launch of %d blocks, want at most the %d that are resident at once", abi.ErrCooperativeTooLarge, f.p.Name, blocks, most)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.barrier == 0 {
		c.barrier, err = c.allocLocked(workspaceBytes)
	}
	return c.barrier, err
}

// clearWorkspace clears the workspace for a launch that begins. If the program has
// freed it, the kernel fails with an illegal address.
func (c *Context) clearWorkspace(address uint64) {
	if address == 0 {
		return
	}
	if b, err := c.memory(address, workspaceBytes); err == nil {
		clear(b)
	}
}

// firstWithClusters is the first compute capability with clusters.
const firstWithClusters = 90

// checkCluster sets the cluster of a launch to the one that the kernel requires, if it
// has none, and checks it.
func (c *Context) checkCluster(f *function, l *worker.Launch) error {
	if l.Cluster == [3]uint32{} {
		l.Cluster = f.p.Cluster
	}
	size := uint64(1)
	for i, n := range l.Cluster {
		if n == 0 && l.Cluster != [3]uint32{} || n > exec.MaxCluster || n > 0 && l.Grid[i]%n != 0 {
			return fmt.Errorf("%w: kernel %s: cluster of %d blocks, want 1 to %d in each dimension that divide the grid of %d", abi.ErrInvalidClusterSize, f.p.Name, l.Cluster, exec.MaxCluster, l.Grid)
		}
		size *= uint64(n)
	}
	if required := f.p.Cluster; size > exec.MaxCluster || required != [3]uint32{} && required != l.Cluster {
		return fmt.Errorf("%w: kernel %s: cluster of %d blocks, want the %d that it requires and at most %d together", abi.ErrInvalidClusterSize, f.p.Name, l.Cluster, required, exec.MaxCluster)
	}
	if size > 1 && c.d.o.Capability < firstWithClusters {
		return fmt.Errorf("%w: kernel %s: cluster of blocks on a device of compute capability %d, want %d or newer", abi.ErrNotSupported, f.p.Name, c.d.o.Capability, firstWithClusters)
	}
	return nil
}
