package exec

import (
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// straight is a program of n additions in blocks of so many.
func straight(n, each int) *Program {
	add, _ := ops.Find("add", "u32")
	p := &ir.Program{Regs32: 2}
	for ; n > 0; n -= each {
		b := ir.Block{End: ir.Return{}}
		for range min(n, each) {
			b.Insts = append(b.Insts, ir.Inst{Op: &ir.Arith{F: add, D: ir.Ref{Slot: 0}, S: []ir.Ref{{Slot: 0}, {Slot: 1}}}})
		}
		p.Blocks = append(p.Blocks, b)
	}
	return NewProgram(p)
}

// What is too large, or too often asked for, stays interpreted.
func TestMachineCodeHasLimits(t *testing.T) {
	if !amd64.Available() {
		t.Skip("no AVX2")
	}
	if straight(maxInsts+1, maxBlockInsts).warm(Compiled, 1, 1) != nil {
		t.Error("a program that is too large was compiled")
	}
	if straight(maxBlockInsts+1, maxBlockInsts+1).warm(Compiled, 1, 1) != nil {
		t.Error("a block that is too large was compiled")
	}
	p := straight(10, 10)
	for warps := 1; warps <= maxVariants+2; warps++ {
		if made := p.warm(Compiled, warps, 1) != nil; made != (warps <= maxVariants) {
			t.Errorf("variant %d: made %v, want %v", warps, made, warps <= maxVariants)
		}
	}
	if codeBytes.Load() == 0 {
		t.Error("machine code does not count")
	}
}
