package device

import (
	"fmt"
	"runtime"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Launch implements worker.Context.
func (c *Context) Launch(s worker.Stream, fn worker.Function, l worker.Launch, done func(error)) error {
	f, err := c.function(fn)
	if err != nil {
		return err
	}
	if err := c.checkLaunch(f, &l); err != nil {
		return err
	}
	params := make([]byte, f.p.ParamBytes)
	if copy(params, l.Params) < len(params) {
		return fmt.Errorf("%w: %d bytes of parameters, kernel %s has %d", abi.ErrInvalidValue, len(l.Params), f.p.Name, len(params))
	}
	return c.enqueue(s, &op{notify: notifying(done), run: func() error {
		if fault := c.d.o.Faults.Launch; fault != nil {
			if err := fault(f.p.Name); err != nil {
				return err
			}
		}
		return c.runKernel(f.ready(), &exec.Launch{
			Grid: l.Grid, Block: l.Block, Params: params, Spaces: c.spaces, Shared: l.Shared, Stop: &c.stop,
			Clock: func() int64 { return c.d.o.Clock().UnixNano() }, MHz: uint64(c.d.o.Model.Clock), SMs: uint32(c.d.o.SMs), Output: c.output, Heap: f.m.heap,
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
	if threads > ir.MaxThreads {
		return abi.ErrInvalidValue
	}
	if threads > uint64(f.p.MaxThreads) {
		return abi.ErrLaunchResources
	}
	if f.p.ReqThreads[0] != 0 && f.p.ReqThreads != l.Block {
		return abi.ErrLaunchResources
	}
	if l.Cooperative && l.Grid != [3]uint32{1, 1, 1} {
		return abi.ErrNotSupported
	}
	f.m.c.mu.Lock()
	dynamic := f.maxDynamic
	f.m.c.mu.Unlock()
	if l.Shared > dynamic || uint64(l.Shared)+uint64(f.p.SharedBytes) > c.d.optIn() {
		return abi.ErrInvalidValue
	}
	if f.p.BlockBytes(threads) > ir.MaxBlockBytes {
		return abi.ErrLaunchResources
	}
	return nil
}

// runKernel runs all blocks of a launch. It holds the device while the gate
// allows, and accounts exactly for the time between Enter and Leave.
func (c *Context) runKernel(p *exec.Program, env *exec.Launch) error {
	c.engine.Lock()
	defer c.engine.Unlock()
	r := exec.NewRun(p, env, min(runtime.NumCPU(), c.d.o.SMs), c.gate.Expired, &c.spare)
	for {
		if err := c.enter(); err != nil {
			return err
		}
		start := c.d.o.Clock()
		r.Slice(*c.table.Load())
		busy := max(0, c.d.o.Clock().Sub(start).Nanoseconds())
		finished, err := r.Finished()
		launches := uint64(0)
		if finished && err == nil {
			launches = 1
		}
		c.leave(uint64(busy), launches)
		if finished {
			return err
		}
	}
}
