package exec

import (
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// straight returns a program of n additions in blocks of each.
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

// TestMachineCodeHasLimits checks that programs that are too large, and variants beyond
// the maximum, are interpreted.
func TestMachineCodeHasLimits(t *testing.T) {
	if !amd64.Available() {
		t.Skip("this processor lacks AVX2, FMA, BMI2, LZCNT or F16C")
	}
	if straight(maxInsts+1, maxBlockInsts).warm(Compiled, 1, 1) != nil {
		t.Errorf("warm compiled a program of %d instructions, want it interpreted", maxInsts+1)
	}
	if straight(maxBlockInsts+1, maxBlockInsts+1).warm(Compiled, 1, 1) != nil {
		t.Errorf("warm compiled a block of %d instructions, want it interpreted", maxBlockInsts+1)
	}
	p := straight(10, 10)
	for warps := 1; warps <= maxVariants+2; warps++ {
		if made := p.warm(Compiled, warps, 1) != nil; made != (warps <= maxVariants) {
			t.Errorf("variant of %d warps compiled = %v, want %v", warps, made, warps <= maxVariants)
		}
	}
	if codeBytes.Load() == 0 {
		t.Error("codeBytes = 0 after a compilation, want the size of the code")
	}
}
