package soft

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// maxOptInBytes is the shared memory that a kernel may ask for beyond 48 KiB.
const maxOptInBytes = 96 << 10

// maxMachineBytes bounds the registers and local memory of one running block.
const maxMachineBytes = 1 << 30

// Launch implements worker.Context.
func (c *Context) Launch(s worker.Stream, fn worker.Function, l worker.Launch, done func(error)) error {
	f, ok := fn.(*function)
	if !ok || f == nil || f.m.c != c {
		return abi.ErrInvalidHandle
	}
	if err := c.checkLaunch(f, &l); err != nil {
		return err
	}
	params := make([]byte, f.p.paramBytes)
	if copy(params, l.Params) < len(params) {
		return fmt.Errorf("%w: %d bytes of parameters, kernel %s has %d", abi.ErrInvalidValue, len(l.Params), f.p.name, len(params))
	}
	return c.enqueue(s, &op{notify: notifying(done), run: func() error {
		if fault := c.d.o.Faults.Launch; fault != nil {
			if err := fault(f.p.name); err != nil {
				return err
			}
		}
		return c.runKernel(f.p, &launchEnv{
			grid: l.Grid, block: l.Block, threads: int(l.Block[0] * l.Block[1] * l.Block[2]),
			params: params, spaces: c.spaces, dynShared: l.Shared, stop: &c.stop,
			clock: func() int64 { return c.d.o.Clock().UnixNano() }, sms: uint32(c.d.o.SMs),
		})
	}})
}

func (c *Context) checkLaunch(f *function, l *worker.Launch) error {
	limit := [3]uint32{1024, 1024, 64}
	gridLimit := [3]uint32{1<<31 - 1, 65535, 65535}
	threads := uint64(1)
	for i := range 3 {
		if l.Block[i] == 0 || l.Grid[i] == 0 || l.Block[i] > limit[i] || l.Grid[i] > gridLimit[i] {
			return abi.ErrInvalidValue
		}
		threads *= uint64(l.Block[i])
	}
	if threads > maxThreads {
		return abi.ErrInvalidValue
	}
	if threads > uint64(f.p.maxThreads) {
		return abi.ErrLaunchResources
	}
	if f.p.reqThreads[0] != 0 && f.p.reqThreads != l.Block {
		return abi.ErrLaunchResources
	}
	if l.Cooperative && l.Grid != [3]uint32{1, 1, 1} {
		return abi.ErrNotSupported
	}
	f.m.c.mu.Lock()
	dynamic := f.maxDynamic
	f.m.c.mu.Unlock()
	if l.Shared > dynamic || uint64(l.Shared)+uint64(f.p.sharedBytes) > maxOptInBytes {
		return abi.ErrInvalidValue
	}
	if f.p.machineBytes(threads) > maxMachineBytes {
		return abi.ErrLaunchResources
	}
	return nil
}

func (p *program) machineBytes(threads uint64) uint64 {
	lanes := (threads + warpSize - 1) &^ (warpSize - 1)
	return lanes * p.laneBytes()
}

func (p *program) laneBytes() uint64 { return 4*uint64(p.n32) + 8*uint64(p.n64) + uint64(p.localBytes) }

// runKernel runs all blocks of a launch. It holds the device while the gate
// allows, and accounts exactly for the time between Enter and Leave.
func (c *Context) runKernel(p *program, env *launchEnv) error {
	c.engine.Lock()
	defer c.engine.Unlock()
	total := uint64(env.grid[0]) * uint64(env.grid[1]) * uint64(env.grid[2])
	n := min(runtime.NumCPU(), c.d.o.SMs, int(min(total, 1<<16)))
	if bytes := p.machineBytes(uint64(env.threads)); bytes > 0 {
		n = max(1, min(n, int(4*maxMachineBytes/bytes)))
	}
	r := &run{p: p, env: env, gate: c.gate, total: total}
	machines := make([]*machine, n)
	for {
		if err := c.enter(); err != nil {
			return err
		}
		env.table = *c.table.Load()
		start := c.d.o.Clock()
		r.slice(machines)
		busy := max(0, c.d.o.Clock().Sub(start).Nanoseconds())
		finished := r.err != nil || r.next.Load() >= total
		launches := uint64(0)
		if finished && r.err == nil {
			launches = 1
		}
		c.leave(uint64(busy), launches)
		if finished {
			return r.err
		}
	}
}

// run is one launch in progress.
type run struct {
	p     *program
	env   *launchEnv
	gate  worker.Gate
	total uint64
	next  atomic.Uint64 // first block that nobody has taken
	pause atomic.Bool

	mu  sync.Mutex
	err error // the first
}

// slice runs blocks until all are done, one fails, or the gate's time is up.
func (r *run) slice(machines []*machine) {
	r.pause.Store(false)
	var wg sync.WaitGroup
	for i := 1; i < len(machines); i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r.blocks(&machines[i])
		}()
	}
	r.blocks(&machines[0])
	wg.Wait()
}

func (r *run) blocks(m **machine) {
	for !r.pause.Load() {
		i := r.next.Add(1) - 1
		if i >= r.total {
			r.next.Store(r.total)
			return
		}
		if *m == nil {
			*m = newMachine(r.p, r.env)
		}
		g := r.env.grid
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
		if r.gate.Expired() {
			r.pause.Store(true)
		}
	}
}
