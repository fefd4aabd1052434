package device

import (
	"fmt"

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
	k, err := c.newKernel(f, &l, nil)
	if err != nil {
		return err
	}
	if l.Cooperative {
		if k.env.Workspace, err = c.workspaceOf(f, &l); err != nil {
			return err
		}
	}
	k.op.report, k.op.run = done, k.run
	return c.enqueue(s, &k.op)
}

// newKernel returns a launch that has been checked, of the program or of a kernel.
func (c *Context) newKernel(f *function, l *worker.Launch, parent *family) (*kernel, error) {
	k := &kernel{c: c, f: f, env: exec.Launch{
		Grid: l.Grid, Block: l.Block, Spaces: c.spaces, Shared: l.Shared, Stop: &c.stop, Clock: c.clock, MHz: uint64(c.d.o.Model.Clock),
		SMs: uint32(c.d.o.SMs), Output: c.output, Heap: f.m.heap, Engine: c.d.o.Engine, Cluster: l.Cluster, Textures: c.textureOf,
		References: c.boundTo(f.m),
	}}
	k.env.Params = k.params(int(f.p.ParamBytes))
	if copy(k.env.Params, l.Params) < len(k.env.Params) {
		return nil, fmt.Errorf("%w: kernel %s: %d bytes of parameters, want %d", abi.ErrInvalidValue, f.p.Name, len(l.Params), len(k.env.Params))
	}
	if len(f.m.code) > 0 {
		k.family = newFamily(k, parent)
		k.env.Children = k.family
	}
	return k, nil
}

// kernel is a launch and its operation in one allocation, as allocations are most of
// the cost of launching a small kernel.
type kernel struct {
	op    op
	c     *Context
	f     *function
	env   exec.Launch
	turn  slice
	small [64]byte // parameters, if they fit

	family *family // nil if it cannot launch kernels
}

func (k *kernel) params(n int) []byte {
	if n <= len(k.small) {
		return k.small[:n]
	}
	return make([]byte, n)
}

func (k *kernel) run() error {
	defer func() { k.f, k.env, k.family = nil, exec.Launch{}, nil }() // the stream retains its last operation
	if err := k.c.faultyLaunch(k.f.p.Name); err != nil {
		return err
	}
	return k.c.runFamily(k)
}

// expired reports whether the kernel must leave the device for a while.
func (k *kernel) expired() bool { return k.c.gate.Expired() || k.turn.over() }

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

// runKernel executes all blocks of a launch, concurrently with other kernels if
// processors are free. It keeps the device while the gate allows, and accounts for
// exactly the time between Enter and Leave.
func (c *Context) runKernel(k *kernel) error {
	p := k.f.ready()
	if err := c.engine.begin(c.ended); err != nil {
		return err
	}
	defer c.engine.end()
	if k.env.Workspace != 0 {
		c.cooperative.Lock()
		defer c.cooperative.Unlock()
	}
	r := exec.NewRun(p, &k.env, c.engine.processors, k.expired, &c.machines)
	for fresh := k.env.Workspace; ; fresh = 0 {
		var err error
		if k.turn, err = c.engine.acquire(r.Workers(), c.ended); err != nil {
			return err
		}
		finished, err := c.slice(r, k.turn.has, fresh)
		k.turn.release()
		if finished || err != nil {
			return err
		}
	}
}

// slice executes a launch on some processors until it ends or must leave the device.
// fresh is the workspace of a launch that begins, or 0.
func (c *Context) slice(r *exec.Run, processors int, fresh uint64) (finished bool, err error) {
	if err := c.enter(); err != nil {
		return false, err
	}
	began := c.d.o.Clock()
	c.engine.enter(began)
	c.clearWorkspace(fresh)
	r.Slice(*c.table.Load(), processors)
	finished, err = r.Finished()
	ended := c.d.o.Clock()
	if err == nil && c.d.o.Fault != "" {
		err = c.faultyKernel(ended.Sub(began))
		ended = c.d.o.Clock()
	}
	launches := uint64(0)
	if finished && err == nil {
		launches = 1
	}
	c.leave(c.engine.leave(ended), launches)
	return finished, err
}
