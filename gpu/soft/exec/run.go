package exec

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Launch has the parameters that all blocks of one launch share.
type Launch struct {
	Grid, Block [3]uint32
	Params      []byte
	Spaces      ir.Spaces
	Shared      uint32       // bytes of dynamic shared memory
	Stop        *atomic.Bool // ends the kernel between instructions
	Clock       func() int64 // returns the time in nanoseconds
	MHz         uint64       // clock rate of %clock
	SMs         uint32
	Output      Output // if nil, output of kernels is discarded
	Engine      Engine
	Heap        *Heap     // for malloc; nil if the module does not use it
	Cluster     [3]uint32 // blocks of a cluster, which must divide the grid's; 0: each block is a cluster
	Workspace   uint64    // address of a cooperative grid's barrier, or 0
	// Textures returns a texture or surface object of the context, or nil. It is called
	// from any goroutine. It may be nil if there are none.
	Textures   func(object uint64) *Texture
	Children   Children   // launches kernels from the kernel; nil if it cannot
	References []*Texture // textures bound to the module's references; an element is nil if nothing is bound

	threads int      // number of threads of a block
	table   []Region // device memory of the context
}

// MaxLaunchBytes limits the memory of the blocks of one launch that have begun and not
// ended, unless a single one needs more.
const MaxLaunchBytes = 1 << 30

// Run is one launch in progress. Each block that has begun has a machine. As many of
// them run as there are workers; the others are set aside, because they wait for other
// blocks or because the slice has ended.
type Run struct {
	p       *Program
	env     *Launch
	expired func() bool
	workers int
	total   uint64 // number of blocks
	size    uint32 // blocks of a cluster
	pause   atomic.Bool

	mu    sync.Mutex
	next  uint64     // the first block that has not begun and is in no batch
	left  []batch    // batches that machines had reserved and did not begin
	ended uint64     // number of blocks that have ended
	begun int        // number of blocks with a machine
	most  int        // maximum of begun
	grown int        // additional bytes of the blocks that are set aside
	half  []*machine // blocks that continue first: the slice had ended, or their cluster has begun
	aside []*machine // blocks that wait, sorted by block
	at    uint64     // the block that was resumed last
	down  bool       // whether the next one to resume is before it
	free  []*machine // machines of blocks that have ended
	again bool       // the next turn is that of a block that was set aside
	pool  *MachinePool
	err   error // the first error
}

// NewRun prepares a launch that executes at most that many blocks at a time, and whose
// slices end when expired returns true. It takes machines from pool and returns them
// to it.
func NewRun(p *Program, l *Launch, most int, expired func() bool, pool *MachinePool) *Run {
	l.threads = int(l.Block[0] * l.Block[1] * l.Block[2])
	if l.Cluster == [3]uint32{} {
		l.Cluster = [3]uint32{1, 1, 1}
	}
	r := &Run{p: p, env: l, expired: expired, pool: pool, size: l.Cluster[0] * l.Cluster[1] * l.Cluster[2]}
	r.total = uint64(l.Grid[0]) * uint64(l.Grid[1]) * uint64(l.Grid[2])
	r.most = max(int(r.size), ResidentBlocks(p.Program, uint64(l.threads), uint64(l.Shared)))
	p.checked(r)
	r.workers = int(min(uint64(most), uint64(r.most), r.total))
	return r
}

// ResidentBlocks returns how many blocks of a launch can have begun and not ended at
// the same time, which is at least one.
func ResidentBlocks(p *ir.Program, threads, shared uint64) int {
	return int(max(1, MaxLaunchBytes/bytesOf(p, threads, shared)))
}

// Finished reports whether the launch has ended, and the error that ended it. It must
// not be called during a slice.
func (r *Run) Finished() (bool, error) { return r.err != nil || r.ended == r.total, r.err }

// Workers returns how many blocks the launch can execute at a time.
func (r *Run) Workers() int { return r.workers }

// Slice executes blocks, at most that many at a time, on device memory, until all
// blocks have ended, one fails, or the slice expires.
func (r *Run) Slice(memory []Region, most int) {
	r.env.table = memory
	r.pause.Store(false)
	r.workAll(min(most, r.workers))
	if finished, _ := r.Finished(); finished {
		r.pool.put(r.free)
		r.free = nil
	}
}

func (r *Run) workAll(workers int) {
	if workers == 1 { // a small launch starts no goroutine
		r.work()
		return
	}
	var wg sync.WaitGroup
	for range workers - 1 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r.work()
		}()
	}
	r.work()
	wg.Wait()
}

// work executes one block after another.
func (r *Run) work() {
	var m *machine
	how, err := goesOn, error(nil)
	for fruitless := 0; ; {
		if m = r.turn(m, how, err); m == nil {
			return
		}
		for how, err = m.run(); how == ended && err == nil && m.beginNext(); {
			how, err = m.run()
		}
		if how != waiting {
			fruitless = 0
		} else if fruitless++; fruitless > 2 { // let another worker run its block
			runtime.Gosched()
		}
	}
}

// turn returns a machine, if there is one, to the run, and returns the next machine to
// run, or nil.
func (r *Run) turn(m *machine, how outcome, err error) *machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m != nil {
		r.finishTurn(m, how, err)
	}
	if r.pause.Load() {
		return nil
	}
	if last := len(r.half) - 1; last >= 0 {
		m, r.half = r.half[last], r.half[:last]
		return m
	}
	// A block that waits may wait for one that has begun or for one that has not, so they
	// take turns. Otherwise, a grid whose blocks wait for their predecessor would have
	// most of its blocks set aside.
	fresh := (len(r.left) > 0 || r.next < r.total) && r.begun+int(r.size) <= r.most
	if len(r.aside) > 0 && (r.again || !fresh) {
		r.again = false
		return r.resume()
	}
	if !fresh {
		return nil
	}
	r.again = len(r.aside) > 0
	m = r.beginCluster()
	if r.size == 1 && len(r.aside) == 0 {
		m.batch = r.reserve()
	}
	return m
}

// resume returns the next block that was set aside. It goes up and down through all of
// them, so that a chain of blocks of which each waits for its predecessor, or each for
// its successor, is completed in one pass. The caller must hold mu.
func (r *Run) resume() *machine {
	i := r.place(r.at + 1)
	if r.down {
		i = r.place(r.at) - 1
	}
	if i < 0 || i == len(r.aside) {
		r.down = !r.down
		i = min(max(i, 0), len(r.aside)-1)
	}
	m := r.aside[i]
	r.aside = slices.Delete(r.aside, i, i+1)
	r.at = m.block
	r.grown -= m.grown()
	return m
}

// place returns the index of a block among those that are set aside.
func (r *Run) place(block uint64) int {
	i, _ := slices.BinarySearchFunc(r.aside, block, func(m *machine, block uint64) int { return cmp.Compare(m.block, block) })
	return i
}

// machine returns a machine for a block that begins. The caller must hold mu.
func (r *Run) machine() *machine {
	if last := len(r.free) - 1; last >= 0 {
		m := r.free[last]
		r.free = r.free[:last]
		return m
	}
	if m := r.pool.get(r); m != nil {
		m.join(r)
		return m
	}
	return newMachine(r)
}

// fail ends the launch with an error. The caller must hold mu.
func (r *Run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.pause.Store(true)
}

// finishTurn receives a machine from a worker. The caller must hold mu.
func (r *Run) finishTurn(m *machine, how outcome, err error) {
	r.ended, m.through = r.ended+m.through, 0
	if m.batch.from < m.batch.to { // others may wait for these blocks
		r.left, m.batch = append(r.left, m.batch), batch{}
	}
	switch {
	case err != nil:
		r.fail(err)
	case how == ended:
		r.begun--
		r.ended++
		r.free = append(r.free, m)
	case how == paused:
		r.half = append(r.half, m)
	default:
		r.aside = slices.Insert(r.aside, r.place(m.block), m)
		if r.grown += m.grown(); r.grown > MaxLaunchBytes {
			r.fail(fmt.Errorf("%w: the saved calls of %d waiting blocks of kernel %s take more than %d MiB", abi.ErrLaunchResources, len(r.aside), r.p.Name, MaxLaunchBytes>>20))
		}
	}
}
