// Package oracle executes PTX one thread and one instruction at a time. It is slow and
// simple on purpose: tests compare the engines (package exec and the code of package
// native) with it. They share the parser and no arithmetic: the oracle computes integers
// with math/big and floating-point values as exact rationals that are rounded once.
//
// Where PTX leaves a result open (NaN payloads, approximations, division by zero), the
// oracle returns the value that the soft GPU documents, which is that of a real GPU.
package oracle

import (
	"errors"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// Launch is one kernel launch.
type Launch struct {
	Func        *ptx.Func
	Grid, Block [3]uint32
	Dynamic     uint32 // bytes of dynamic shared memory
	Params      []byte
	Address     func(*ptx.Var) uint64 // returns the address of a module variable in device memory
	// Memory returns size bytes of device memory at an address.
	Memory func(addr, size uint64) ([]byte, error)
	// Images has the texture and surface objects by object number.
	Images map[uint64]*Image
	// Steps limits the number of instructions that one block executes; 0 means 100
	// million.
	Steps int
}

// The windows of the generic address space. They differ from those of the engines: a
// program must not depend on their addresses.
const (
	sharedWindow = uint64(0x7d0000000000)
	localWindow  = uint64(0x7c0000000000)
	window       = uint64(1) << 32
	functions    = uint64(0x7b0000000000) // addresses of functions
)

const warpSize = 32

// quantum is the number of instructions that a thread executes before the next thread
// has its turn, so that a thread that polls for a store of another one does not wait
// forever.
const quantum = 1000

// errSteps is the error of a launch that has executed more than Launch.Steps
// instructions.
var errSteps = errors.New("the launch takes more instructions than its limit")

// block is one running thread block.
type block struct {
	l       *Launch
	at      [3]uint32
	shared  []byte
	place   map[*ptx.Var]uint64 // offsets of the shared variables
	static  uint64
	threads []*thread
	arrived [16]int // threads that have executed bar.arrive, by barrier
	// taken has the functions whose address a thread has taken. Its index is the offset of
	// the address from functions.
	taken []*ptx.Func
	// barriers has the mbarrier objects in shared memory, by the address of their first
	// byte.
	barriers map[*byte]*phases
}

// Run executes the blocks of the launch one after another, and returns the first error.
func (l *Launch) Run() error {
	for z := range l.Grid[2] {
		for y := range l.Grid[1] {
			for x := range l.Grid[0] {
				if err := l.block([3]uint32{x, y, z}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (l *Launch) block(at [3]uint32) error {
	b := &block{l: l, at: at, shared: make([]byte, 227<<10), place: map[*ptx.Var]uint64{}, barriers: map[*byte]*phases{}}
	b.layout(l.Func, map[*ptx.Func]bool{})
	for i := range l.Block[0] * l.Block[1] * l.Block[2] {
		t := &thread{b: b, index: i}
		t.tid = [3]uint32{i % l.Block[0], i / l.Block[0] % l.Block[1], i / l.Block[0] / l.Block[1]}
		t.push(l.Func)
		b.threads = append(b.threads, t)
	}
	steps := l.Steps
	if steps == 0 {
		steps = 100_000_000
	}
	for {
		live, ran := 0, false
		for _, t := range b.threads {
			if t.state == ended {
				continue
			}
			live++
			for n := 0; n < quantum && t.state == running; n++ {
				in := t.inst()
				ran = true
				if steps--; steps < 0 {
					return errSteps
				}
				if err := t.step(); err != nil {
					return t.failed(in, err)
				}
			}
		}
		if live == 0 {
			return nil
		}
		if released, err := b.meet(); err != nil {
			return err
		} else if !released && !ran {
			return errors.New("deadlock: all threads that have not ended wait")
		}
	}
}

// layout assigns offsets to the static shared variables of a function and of the
// functions that it calls.
func (b *block) layout(f *ptx.Func, seen map[*ptx.Func]bool) {
	if seen[f] {
		return
	}
	seen[f] = true
	var operand func(o *ptx.Operand)
	place := func(v *ptx.Var) {
		if _, ok := b.place[v]; ok || v.Extern || v.Space != ptx.Shared {
			return
		}
		b.static = (b.static + uint64(v.Align) - 1) / uint64(v.Align) * uint64(v.Align)
		b.place[v] = b.static
		b.static += v.Size
	}
	operand = func(o *ptx.Operand) {
		if o.Kind == ptx.KindVar {
			place(o.Var)
		}
		if o.Kind == ptx.KindFunc {
			b.layout(o.Func, seen)
		}
		for i := range o.List {
			operand(&o.List[i])
		}
	}
	for _, v := range f.Vars {
		place(v)
	}
	for i := range f.Body {
		for j := range f.Body[i].Args {
			operand(&f.Body[i].Args[j])
		}
	}
}
