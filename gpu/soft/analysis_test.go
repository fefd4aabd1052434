package soft_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/rand"
	"sync/atomic"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/compile"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// flat is the Memory of a module whose variables are not accessed.
type flat struct{ next uint64 }

func (f *flat) Place(_ string, size uint64) (uint64, error) {
	f.next += (size + 255) &^ 255
	return f.next, nil
}
func (f *flat) PlaceManaged(name string, size uint64) (uint64, error) { return f.Place(name, size) }
func (f *flat) Bytes(uint64) []byte                                   { return nil }
func (f *flat) Code() uint64                                          { f.next += 16; return f.next }

// programOf compiles the only kernel of a module.
func programOf(t testing.TB, src string) *ir.Program {
	t.Helper()
	m, err := compile.DefaultCapability.Parse([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	w := abi.Windows()[0]
	if err := m.Link(ir.NewSpaces(w), &flat{w.Base}); err != nil {
		t.Fatal(err)
	}
	k := m.Kernels()[0]
	if k.Err != nil {
		t.Fatal(k.Err)
	}
	return k.Program
}

// runProgram executes one block of a program with two buffers, which it changes.
func runProgram(t testing.TB, p *ir.Program, threads uint32, regs, scratch []byte) {
	t.Helper()
	w := abi.Windows()[0]
	params := binary.LittleEndian.AppendUint64(nil, w.Base)
	params = binary.LittleEndian.AppendUint64(params, w.Base+1<<30)
	r := exec.NewRun(exec.NewProgram(p), &exec.Launch{
		Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{threads, 1, 1}, Params: params, Spaces: ir.NewSpaces(w),
		Stop: &atomic.Bool{}, Clock: func() int64 { return 0 }, SMs: 1,
	}, 1, func() bool { return false }, &exec.MachinePool{})
	r.Slice([]exec.Region{{Base: w.Base, Data: regs}, {Base: w.Base + 1<<30, Data: scratch}}, 1)
	if done, err := r.Finished(); !done || err != nil {
		t.Fatalf("program finished = %v with error %v, want it finished without an error", done, err)
	}
}

// spoil returns the program with garbage in every register of a block's function that
// is not live, at the beginning of each block. Registers of callers are unchanged.
func spoil(p *ir.Program) *ir.Program {
	live := ir.FindLive(p)
	q := *p
	q.Blocks = append([]ir.Block{}, p.Blocks...)
	fixed := map[ir.Ref]bool{}
	for slot := range p.Const32 {
		fixed[ir.Ref{Class: ir.Class32, Slot: slot}] = true
	}
	for slot := range p.Const64 {
		fixed[ir.Ref{Class: ir.Class64, Slot: slot}] = true
	}
	for _, slot := range p.Specials {
		fixed[ir.Ref{Class: ir.Class32, Slot: slot}] = true
	}
	own := ownRegisters(p)
	for i := range q.Blocks {
		var first []ir.Inst
		alive := live.At(i, 0)
		for c, n := range [3]int{p.Regs32, p.Regs64, p.Preds} {
			for slot := range n {
				if r := (ir.Ref{Class: ir.Class(c), Slot: slot}); !fixed[r] && own[i][r] && !alive.Has(r) {
					first = append(first, ir.Inst{Op: garbage(r)})
				}
			}
		}
		q.Blocks[i].Insts = append(first, p.Blocks[i].Insts...)
	}
	return &q
}

// ownRegisters returns, for each block, the registers that are named by blocks that
// lead to it or to which it leads.
func ownRegisters(p *ir.Program) []map[ir.Ref]bool {
	of := make([]map[ir.Ref]bool, len(p.Blocks))
	for i := range p.Blocks {
		of[i] = map[ir.Ref]bool{}
		for j := range p.Blocks[i].Insts {
			results, sources := p.Blocks[i].Insts[j].Op.Registers()
			for _, r := range append(results, sources...) {
				of[i][r] = true
			}
		}
	}
	for again := true; again; {
		again = false
		for i := range p.Blocks {
			for _, n := range p.Blocks[i].End.Next() {
				size := len(of[i]) + len(of[n])
				maps.Copy(of[i], of[n])
				maps.Copy(of[n], of[i])
				again = again || len(of[i])+len(of[n]) > size
			}
		}
	}
	return of
}

// garbage returns an operation that changes the value of a register.
func garbage(r ir.Ref) ir.Op {
	switch r.Class {
	case ir.ClassPred:
		return &ir.Logic{F: "not", D: r, A: ir.PredOf(r, false), B: ir.PredOf(r, false)}
	case ir.Class64:
		f, _ := ops.Find("not", "b64")
		return &ir.Arith{F: f, D: r, S: []ir.Ref{r}}
	}
	f, _ := ops.Find("not", "b32")
	return &ir.Arith{F: f, D: r, S: []ir.Ref{r}}
}

// TestLiveIsEnough checks that a program has the same results with other values in its
// dead registers. It makes no calls, as a function does not know which registers of its
// callers are live.
func TestLiveIsEnough(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 15
	}
	for seed := range int64(seeds) {
		g := &randProg{rnd: rand.New(rand.NewSource(seed))}
		src := g.program(func() { g.body(randDepth, 12+g.rnd.Intn(24)) })
		p := programOf(t, src)
		rnd := rand.New(rand.NewSource(seed))
		const threads = 40
		regs, scratch := make([]byte, threads*randSlots*8), make([]byte, threads*randScratch)
		for i := range threads * randSlots {
			regs[8*i] = byte(rnd.Intn(2))
		}
		rnd.Read(scratch)
		spoiled, spoiledScratch := bytes.Clone(regs), bytes.Clone(scratch)
		runProgram(t, p, threads, regs, scratch)
		runProgram(t, spoil(p), threads, spoiled, spoiledScratch)
		if !bytes.Equal(regs, spoiled) || !bytes.Equal(scratch, spoiledScratch) {
			t.Fatalf("seed %d: results differ with garbage in registers that are not live, want the same\n%s", seed, src)
		}
	}
}
