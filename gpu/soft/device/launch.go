package device

import (
	"fmt"
	"time"

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
	workspace := uint64(0)
	if l.Cooperative {
		if workspace, err = c.workspaceOf(f, &l); err != nil {
			return err
		}
	}
	return c.enqueue(s, &op{notify: notifying(done), run: func() error {
		if err := c.faultyLaunch(f.p.Name); err != nil {
			return err
		}
		return c.runKernel(f.ready(), &exec.Launch{
			Grid: l.Grid, Block: l.Block, Params: params, Spaces: c.spaces, Shared: l.Shared, Stop: &c.stop,
			Clock: func() int64 { return c.d.o.Clock().UnixNano() }, MHz: uint64(c.d.o.Model.Clock), SMs: uint32(c.d.o.SMs), Output: c.output, Heap: f.m.heap, Engine: c.d.o.Engine,
			Workspace: workspace, Cluster: l.Cluster, Textures: c.texture,
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
	if err := c.checkCluster(f, l); err != nil {
		return err
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

// runKernel runs all blocks of a launch, beside other kernels where processors
// are free. It holds the device while the gate allows, and accounts exactly for
// the time between Enter and Leave.
func (c *Context) runKernel(p *exec.Program, env *exec.Launch) error {
	if err := c.engine.begin(c.ended); err != nil {
		return err
	}
	defer c.engine.end()
	if env.Workspace != 0 {
		c.cooperative.Lock()
		defer c.cooperative.Unlock()
	}
	var turn slice
	r := exec.NewRun(p, env, c.engine.processors, func() bool { return c.gate.Expired() || turn.over() }, &c.spare)
	for fresh := env.Workspace; ; fresh = 0 {
		var err error
		if turn, err = c.engine.acquire(r.Workers(), c.ended); err != nil {
			return err
		}
		finished, err := c.slice(r, turn.has, fresh)
		turn.release()
		if finished || err != nil {
			return err
		}
	}
}

// slice runs a launch on some processors until it ends or has to leave. fresh is
// the workspace of one that begins, or 0.
func (c *Context) slice(r *exec.Run, processors int, fresh uint64) (finished bool, err error) {
	if err := c.enter(); err != nil {
		return false, err
	}
	c.engine.enter(c.d.o.Clock())
	c.clearWorkspace(fresh)
	began := time.Now()
	r.Slice(*c.table.Load(), processors)
	finished, err = r.Finished()
	if err == nil {
		err = c.faultyKernel(began)
	}
	launches := uint64(0)
	if finished && err == nil {
		launches = 1
	}
	c.leave(c.engine.leave(c.d.o.Clock()), launches)
	return finished, err
}
