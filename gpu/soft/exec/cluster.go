package exec

import (
	"fmt"
	"math/bits"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// MaxCluster is the maximum number of blocks of a cluster.
const MaxCluster = 8

// cluster is the state that the blocks of one cluster share. They begin together. The
// shared memory of a block is that of its machine: what others read there after the
// block has ended is undefined (CUDA requires programs to synchronize before).
type cluster struct {
	shared [][]byte // by rank

	mu      sync.Mutex
	live    int    // threads that have not ended
	arrived int    // number of live threads at the barrier in this phase
	phase   uint32 // number of completed phases
}

// arrive counts threads at the barrier, and returns their phase.
func (c *cluster) arrive(threads int) (phase uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	phase = c.phase
	c.arrived += threads
	c.complete()
	return phase
}

// leave removes threads that end. arrived returns how many of them had arrived in a
// phase.
func (c *cluster) leave(threads int, arrived func(phase uint32) int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live -= threads
	c.arrived -= arrived(c.phase)
	c.complete()
}

// complete ends the phase if all threads have arrived. The caller must hold mu.
func (c *cluster) complete() {
	if c.live > 0 && c.arrived == c.live {
		c.arrived = 0
		c.phase++
	}
}

func (c *cluster) now() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase
}

// clusterBarrier is a barrier of all threads of a cluster. A lane stores the parity of
// the phase in which it arrived, which is enough: at most one phase ends between its
// arrival and its wait.
type clusterBarrier struct{ *ir.ClusterBarrier }

// sync is the syncFunc of the barrier.
func (o clusterBarrier) sync(m *machine, g *group) (bool, error) {
	if !o.Wait {
		m.setParity(g, m.cluster.arrive(m.sizeOf(g)))
		m.wakeCluster()
		return true, nil
	}
	var stay [maxWarps]uint32
	some, all := false, true
	phase := m.cluster.now()
	for w, a := range g.act[:m.warps] {
		stay[w] = a & m.inPhase(w, phase)
		some = some || stay[w] != 0
		all = all && stay[w] == a
	}
	g.state = runnable
	switch {
	case all:
		g.state = atCluster
		return false, nil
	case some:
		m.split(g, &stay).state = atCluster
	}
	return true, nil
}

// inPhase returns the lanes of a warp that have arrived in this phase.
func (m *machine) inPhase(w int, phase uint32) uint32 { return m.parity[w] ^ (phase&1 - 1) }

func (m *machine) setParity(g *group, phase uint32) {
	for w, a := range g.act[:m.warps] {
		m.parity[w] = m.parity[w]&^a | a&-(phase&1)
	}
}

// wakeCluster makes the groups that wait for the cluster runnable, to check the barrier
// again.
func (m *machine) wakeCluster() {
	for _, g := range m.groups {
		if g.state == atCluster {
			g.state = runnable
		}
	}
}

// awaits reports whether a group waits for the cluster.
func (m *machine) awaits() bool {
	for _, g := range m.groups {
		if g.state == atCluster {
			return true
		}
	}
	return false
}

// quit removes the lanes of a group that ends from the cluster.
func (m *machine) quit(g *group) {
	m.cluster.leave(m.sizeOf(g), func(phase uint32) (n int) {
		for w, a := range g.act[:m.warps] {
			n += bits.OnesCount32(a & m.inPhase(w, phase))
		}
		return n
	})
	m.wakeCluster()
}

// sharedOf returns the shared memory that an address refers to, and the offset in it.
func (m *machine) sharedOf(addr uint64) ([]byte, uint64, error) {
	part := addr >> ops.ClusterShift
	if part == 0 {
		return m.shared, addr, nil
	}
	if part > uint64(len(m.cluster.shared)) {
		return nil, 0, fmt.Errorf("%w: address %#x in the shared memory of block %d of the cluster, want a block below %d", abi.ErrIllegalAddress, addr, part-1, len(m.cluster.shared))
	}
	return m.cluster.shared[part-1], addr & (1<<ops.ClusterShift - 1), nil
}

// beginCluster initializes machines for the next blocks; all blocks of a cluster begin
// together. It returns the machine of the first. The caller must hold mu.
func (r *Run) beginCluster() *machine {
	block := r.nextBlock()
	var c *cluster
	for rank := uint32(0); ; rank++ {
		m := r.machine()
		if rank == 0 {
			c = m.first(r)
		}
		m.beginBlock(c, rank, block+uint64(rank))
		r.begun++
		if rank == r.size-1 {
			return m
		}
		r.half = append(r.half, m)
	}
}

// beginBlock initializes a machine for a block, which has a rank in its cluster.
func (m *machine) beginBlock(c *cluster, rank uint32, block uint64) {
	dims, at := m.env.Cluster, block/uint64(m.of.size)
	var first [3]uint32
	for i, d := range dims {
		n := uint64(m.env.Grid[i] / d)
		first[i] = uint32(at%n) * d
		at /= n
	}
	x, rest := rank%dims[0], rank/dims[0]
	m.beginAt(c, rank, block, [3]uint32{first[0] + x, first[1] + rest%dims[1], first[2] + rest/dims[1]})
}

// beginAt is beginBlock for a block whose position in the grid is known.
func (m *machine) beginAt(c *cluster, rank uint32, block uint64, ctaid [3]uint32) {
	m.cluster, m.rank, m.block = c, rank, block
	c.shared = append(c.shared, m.shared)
	m.begin(ctaid)
}

// first returns the cluster that begins with a machine's block. A single block reuses
// that of its machine.
func (m *machine) first(r *Run) *cluster {
	c := &m.alone
	if r.size > 1 {
		c = &cluster{}
	}
	c.shared, c.live, c.arrived, c.phase = c.shared[:0], int(r.size)*r.env.threads, 0, 0
	return c
}
