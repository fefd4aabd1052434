package exec

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
)

// Program is a kernel that can be executed: a program with a closure for each
// instruction, and machine code of runs that are executed often. Machines share it.
type Program struct {
	*ir.Program
	Blocks   []block
	variants variants
	checks   model.Checks
	vectors  bool // steps may use package simd
}

// block is a basic block: the instruction at which its lanes wait first, its steps, and
// its end.
type block struct {
	sync   syncFunc
	warp   *warpOp // the instruction of sync, if it is one of a warp
	syncAt *ir.Place
	steps  []step
	end    end
	endAt  *ir.Place
}

// step is one instruction.
type step struct {
	dense    func(m *machine, w0, w1 int)         // all lanes of some warps
	masked   func(m *machine, act []uint32) error // exactly the active lanes
	run      *run                                 // the instructions that have machine code
	dst      []ir.Ref                             // the registers that dense writes
	guard    int                                  // predicate slot, or -1
	guardNot bool
	at       *ir.Place
}

// dense returns a step that may be executed for all lanes of some warps. dst are the
// registers it writes, which are restored in lanes that are not active.
func dense(f func(m *machine, w0, w1 int), dst ...ir.Ref) step {
	return step{guard: -1, dense: f, dst: dst}
}

// masked returns a step that is executed for exactly the active lanes.
func masked(f func(m *machine, act []uint32) error) step { return step{guard: -1, masked: f} }

// NewProgram compiles a program to steps.
func NewProgram(p *ir.Program) *Program { return newProgram(p, newStep) }

func newProgram(p *ir.Program, newStep func(ir.Op) step) *Program {
	x := &Program{Program: p, Blocks: make([]block, len(p.Blocks)), vectors: useVectors.Load()}
	for i := range p.Blocks {
		x.Blocks[i] = newBlock(&p.Blocks[i], newStep)
		if w := x.Blocks[i].warp; w != nil {
			w.fix(p.Const32)
		}
	}
	x.chain()
	return x
}

func newBlock(b *ir.Block, newStep func(ir.Op) step) block {
	x := block{syncAt: b.SyncAt, endAt: b.EndAt, end: newEnd(b.End), steps: make([]step, len(b.Insts))}
	switch o := b.Sync.(type) {
	case *ir.Exchange:
		x.warp = newWarpOp(o)
		x.sync = x.warp.sync
	case *ir.Aligned:
		x.warp = together(o)
		x.sync = x.warp.sync
	case *ir.ClusterBarrier:
		x.sync = clusterBarrier{o}.sync
	case *ir.Barrier:
		x.sync = (&barrierOp{Barrier: o, source: predOf(o.P)}).sync
	}
	for i := range b.Insts {
		in := &b.Insts[i]
		s := newStep(in.Op)
		s.at = in.At
		if in.Guard != nil {
			s.guard, s.guardNot = in.Guard.Slot, in.Guard.Not
		}
		x.steps[i] = s
	}
	return x
}

// newStep returns the step of an operation.
func newStep(op ir.Op) step {
	switch o := op.(type) {
	case *ir.Arith:
		return arith(o)
	case *ir.Load:
		return load(o)
	case *ir.Store:
		return store(o)
	case *ir.Atomic:
		return update(o)
	case *ir.CopyAsync:
		return copyAsync(o)
	case *ir.CopyTensor:
		return copyTensor(o)
	case *ir.ReplaceTensorField:
		return replaceTensorField(o)
	case *ir.CopyBulk:
		return copyBulk(o)
	case *ir.MBarrier:
		return mbarrier(o)
	case *ir.Exchange:
		return newWarpOp(o).lockstep()
	}
	if s, ok := moving(op); ok {
		return s
	}
	if s, ok := calling(op); ok {
		return s
	}
	if s, ok := textured(op); ok {
		return s
	}
	panic(fmt.Sprintf("no step for %T", op)) // excluded by TestEveryOperation
}

// moving returns the steps that move and combine values of registers.
func moving(op ir.Op) (step, bool) {
	switch o := op.(type) {
	case *ir.Clock:
		return clock(o), true
	case *ir.Pack:
		return pack(o), true
	case *ir.Unpack:
		return unpack(o), true
	case *ir.Logic:
		return logic(o), true
	case *ir.LogicPair:
		return logicPair(o), true
	case *ir.Select:
		return selection(o), true
	case *ir.Convert:
		return convert(o), true
	case *ir.StackAddress:
		return stackAddress(o), true
	case *ir.Alloca:
		return alloca(o), true
	case *ir.AddCarry:
		return carry(o), true
	case *ir.ActiveMask:
		return activeMask(o), true
	case *ir.Fail:
		return fail(o), true
	case *ir.Nanosleep:
		return nanosleep(o), true
	}
	return step{}, false
}

// calling returns the steps that copy arguments and results of calls, and those of
// functions that the device provides.
func calling(op ir.Op) (step, bool) {
	switch o := op.(type) {
	case *ir.CopyLocal:
		return copyLocal(o), true
	case *ir.CopyWord:
		return copyWord(o), true
	case *ir.Malloc:
		return malloc(o), true
	case *ir.Free:
		return free(o), true
	case *ir.Print:
		return print(o), true
	case *ir.Assertion:
		return assertion(o), true
	case *ir.SetCondition:
		return setCondition(o), true
	case *ir.LaunchBuffer:
		return launchBuffer(o), true
	case *ir.LaunchKernel:
		return launchKernel(o), true
	}
	return step{}, false
}

// textured returns the steps of textures and surfaces.
func textured(op ir.Op) (step, bool) {
	switch o := op.(type) {
	case *ir.Fetch:
		return fetch(o), true
	case *ir.TextureProperty:
		return property(o), true
	case *ir.IsTexture:
		return isTexture(o), true
	case *ir.SurfaceLoad:
		return surfaceLoad(o), true
	case *ir.SurfaceStore:
		return surfaceStore(o), true
	case *ir.SurfaceReduce:
		return surfaceReduce(o), true
	}
	return step{}, false
}

// pred is a predicate register as an operand: its value is XORed with not, which has
// all bits set for the negation.
type pred struct {
	slot int
	not  uint32
}

func predOf(p ir.Pred) pred { return pred{p.Slot, -bitOf(p.Not)} }
