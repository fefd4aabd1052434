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

// Launch is what the blocks of one launch share.
type Launch struct {
	Grid, Block [3]uint32
	Params      []byte
	Spaces      ir.Spaces
	Shared      uint32       // bytes of dynamic shared memory
	Stop        *atomic.Bool // ends the kernel between instructions
	Clock       func() int64 // nanoseconds
	MHz         uint64       // of %clock
	SMs         uint32
	Output      Output // nil: what kernels write is lost
	Engine      Engine
	Heap        *Heap     // for malloc; nil when the module does not use it
	Cluster     [3]uint32 // blocks of a cluster, which divide the grid's; 0: each block is one
	Workspace   uint64    // address of a cooperative grid's barrier, or 0
	// Textures finds a texture or surface object of the context, or nil. It is
	// called from any goroutine; nil: there are none.
	Textures   func(object uint64) *Texture
	References []*Texture // what is bound to the module's references; nil: nothing

	threads int      // of a block
	table   []Region // device memory of the context
}

// MaxLaunchBytes bounds what the blocks of one launch take that have begun and
// not ended, unless a single one takes more.
const MaxLaunchBytes = 1 << 30

// Run is one launch in progress. Blocks that have begun have a machine each. As
// many as there are workers run; the others are set aside, because they wait for
// other blocks or because the slice ended.
type Run struct {
	p       *Program
	env     *Launch
	expired func() bool
	workers int
	total   uint64 // blocks
	size    uint32 // of a cluster
	pause   atomic.Bool

	mu    sync.Mutex
	next  uint64     // the first block that has not begun and is in no batch
	left  []batch    // that machines had and did not begin
	ended uint64     // how many have
	begun int        // blocks with a machine
	most  int        // of begun
	grown int        // bytes by which blocks that are set aside have grown
	half  []*machine // of blocks that go on first: the slice ended, or their cluster has begun
	aside []*machine // of blocks that wait, in the order of their blocks
	at    uint64     // the block that was taken from them last
	down  bool       // the next one is before it
	free  []*machine // of blocks that have ended
	again bool       // the next turn is of a block that was set aside
	spare *Spare
	err   error // the first
}

// NewRun prepares a launch that runs at most so many blocks at a time, and ends
// a slice when expired says so. It uses and leaves machines in spare.
func NewRun(p *Program, l *Launch, most int, expired func() bool, spare *Spare) *Run {
	l.threads = int(l.Block[0] * l.Block[1] * l.Block[2])
	if l.Cluster == [3]uint32{} {
		l.Cluster = [3]uint32{1, 1, 1}
	}
	r := &Run{p: p, env: l, expired: expired, spare: spare, size: l.Cluster[0] * l.Cluster[1] * l.Cluster[2]}
	r.total = uint64(l.Grid[0]) * uint64(l.Grid[1]) * uint64(l.Grid[2])
	r.most = max(int(r.size), ResidentBlocks(p.Program, uint64(l.threads), uint64(l.Shared)))
	p.checked(r)
	r.workers = int(min(uint64(most), uint64(r.most), r.total))
	return r
}

// ResidentBlocks returns how many blocks of a launch can have begun and not
// ended at the same time: at least one.
func ResidentBlocks(p *ir.Program, threads, shared uint64) int {
	return int(max(1, MaxLaunchBytes/bytesOf(p, threads, shared)))
}

// Finished reports whether the launch has ended, and the error that ended it.
// It is called between slices.
func (r *Run) Finished() (bool, error) { return r.err != nil || r.ended == r.total, r.err }

// Workers returns how many blocks the launch can run at a time.
func (r *Run) Workers() int { return r.workers }

// Slice runs blocks, at most so many at a time, on device memory until all are
// done, one fails, or the time is up.
func (r *Run) Slice(memory []Region, most int) {
	r.env.table = memory
	r.pause.Store(false)
	r.workAll(min(most, r.workers))
	if finished, _ := r.Finished(); finished {
		r.spare.put(r.free)
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

// work runs one block after another.
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
		} else if fruitless++; fruitless > 2 { // for another worker's block, perhaps
			runtime.Gosched()
		}
	}
}

// turn takes back a machine, if there is one, and returns the one that runs
// next, or nil.
func (r *Run) turn(m *machine, how outcome, err error) *machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m != nil {
		r.back(m, how, err)
	}
	if r.pause.Load() {
		return nil
	}
	if last := len(r.half) - 1; last >= 0 {
		m, r.half = r.half[last], r.half[:last]
		return m
	}
	// A block that waits may wait for one that has begun or for one that has
	// not: they take turns. Without that, a grid whose blocks wait for the one
	// before them would have most of its blocks set aside.
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

// resume takes the next block that was set aside; mu is held. Up and down again
// through all of them: then a chain of blocks of which each waits for the one
// before it, or each for the one after it, is through in one go.
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

// place is where a block that is set aside has its place.
func (r *Run) place(block uint64) int {
	i, _ := slices.BinarySearchFunc(r.aside, block, func(m *machine, block uint64) int { return cmp.Compare(m.block, block) })
	return i
}

// machine returns one for a block that begins; mu is held.
func (r *Run) machine() *machine {
	if last := len(r.free) - 1; last >= 0 {
		m := r.free[last]
		r.free = r.free[:last]
		return m
	}
	if m := r.spare.take(r); m != nil {
		m.join(r)
		return m
	}
	return newMachine(r)
}

// fail ends the launch; mu is held.
func (r *Run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.pause.Store(true)
}

// back takes a machine from a worker; mu is held.
func (r *Run) back(m *machine, how outcome, err error) {
	r.ended, m.through = r.ended+m.through, 0
	if m.batch.from < m.batch.to { // others may wait for them
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
