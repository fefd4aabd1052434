package exec

import (
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"sync"
	"sync/atomic"
)

// Launch is what the blocks of one launch share.
type Launch struct {
	Grid, Block [3]uint32
	Params      []byte
	Spaces      ir.Spaces
	Shared      uint32       // bytes of dynamic shared memory
	Stop        *atomic.Bool // ends the kernel between instructions
	Clock       func() int64 // nanoseconds
	SMs         uint32
	Output      Output // nil: what kernels write is lost
	Heap        *Heap  // for malloc; nil when the module does not use it

	threads int      // of a block
	table   []Region // device memory of the context
}

// Run is one launch in progress.
type Run struct {
	p        *Program
	env      *Launch
	expired  func() bool
	machines []*machine
	total    uint64
	next     atomic.Uint64 // first block that nobody has taken
	pause    atomic.Bool

	mu  sync.Mutex
	err error // the first
}

// NewRun prepares a launch that runs at most so many blocks at a time, and
// takes no more blocks in a slice when expired says so. Blocks of a program
// with much memory run one after another.
func NewRun(p *Program, l *Launch, most int, expired func() bool) *Run {
	l.threads = int(l.Block[0] * l.Block[1] * l.Block[2])
	total := uint64(l.Grid[0]) * uint64(l.Grid[1]) * uint64(l.Grid[2])
	n := min(most, int(min(total, 1<<16)))
	if bytes := p.BlockBytes(uint64(l.threads)); bytes > 0 {
		n = max(1, min(n, int(4*ir.MaxBlockBytes/bytes)))
	}
	return &Run{p: p, env: l, expired: expired, total: total, machines: make([]*machine, n)}
}

// Finished reports whether the launch has ended, and the error that ended it.
// It is called between slices.
func (r *Run) Finished() (bool, error) { return r.err != nil || r.next.Load() >= r.total, r.err }

// Slice runs blocks on device memory until all are done, one fails, or the time
// is up.
func (r *Run) Slice(memory []Region) {
	r.env.table = memory
	r.pause.Store(false)
	var wg sync.WaitGroup
	for i := 1; i < len(r.machines); i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r.blocks(&r.machines[i])
		}()
	}
	r.blocks(&r.machines[0])
	wg.Wait()
}

func (r *Run) blocks(m **machine) {
	for !r.pause.Load() {
		i := r.next.Add(1) - 1
		if i >= r.total {
			r.next.Store(r.total)
			return
		}
		if *m == nil {
			*m = newMachine(r.p, r.env)
		}
		g := r.env.Grid
		x, rest := uint32(i%uint64(g[0])), i/uint64(g[0])
		if err := (*m).runBlock(x, uint32(rest%uint64(g[1])), uint32(rest/uint64(g[1]))); err != nil {
			r.mu.Lock()
			if r.err == nil {
				r.err = err
			}
			r.mu.Unlock()
			r.pause.Store(true)
			return
		}
		if r.expired() {
			r.pause.Store(true)
		}
	}
}
