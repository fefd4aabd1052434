package exec

import (
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// TestRegionBlocks compiles the region of a program with a block of each kind: a block
// that is not in it would be slow without a test failing, and a loop that polls must
// not be in it.
func TestRegionBlocks(t *testing.T) {
	if !amd64.Available() {
		t.Skip("this processor lacks AVX2, FMA, BMI2, LZCNT or F16C")
	}
	r0, r1, base := ir.Ref{Class: ir.Class32}, ir.Ref{Class: ir.Class32, Slot: 1}, ir.Ref{Class: ir.Class64}
	access := ir.Access{Space: ir.Global, Base: base, Size: 4, N: 1, Mask: 1<<32 - 1}
	strong := access
	strong.Strong = true
	pred := func(n int) ir.Ref { return ir.Ref{Class: ir.ClassPred, Slot: n} }
	both := ir.Inst{Op: &ir.Logic{F: "and", D: pred(1), A: ir.PredOf(pred(0), false), B: ir.PredOf(pred(1), false)}}
	store := ir.Inst{Op: &ir.Store{Access: access, S: []ir.Ref{r1}}}
	shuffle := ir.NewExchange("shfl.sync.up.b32")
	shuffle.What, shuffle.Constant, shuffle.Mask, shuffle.D, shuffle.S = ir.ShuffleUp, true, ^uint32(0), r1, []ir.Ref{r1, r0, r0}
	vote := ir.NewExchange("vote.sync.ballot.b32")
	vote.What, vote.D, vote.Members, vote.P = ir.Ballot, r1, r0, &ir.Pred{}
	program := &ir.Program{Regs32: 2, Regs64: 1, Preds: 2, Const32: map[int]uint32{0: 1}, Blocks: []ir.Block{
		0: {Insts: []ir.Inst{both}, End: ir.Branch{To: 1, Else: 2}},
		1: {Insts: []ir.Inst{store}, End: ir.Goto{To: 2}},
		2: {Sync: shuffle, Insts: []ir.Inst{store}, End: ir.Goto{To: 3}},
		3: {Sync: &ir.Barrier{Number: r0, Count: r0, D: ir.None}, Insts: []ir.Inst{store}, End: ir.Goto{To: 4}},
		4: {Sync: vote, Insts: []ir.Inst{store}, End: ir.Goto{To: 5}},
		5: {Insts: []ir.Inst{{Op: &ir.Load{Access: strong, D: []ir.Ref{r1}}}}, End: ir.Branch{To: 5, Else: 6}},
		6: {End: ir.Return{}},
	}}
	p := NewProgram(program)
	code := p.compile(1, nil)
	if code == nil {
		t.Fatal("compile returned no machine code, want some")
	}
	if code.region == nil {
		code = p.compile(1, code)
	}
	if code == nil || code.region == nil {
		t.Fatal("machine code has no region, want one")
	}
	want := []entry{atBlock, atBlock, atBlock, behindBarrier, notThere, notThere, notThere}
	if !slices.Equal(code.region.kinds, want) {
		t.Errorf("entries of the blocks in the region = %v, want %v", code.region.kinds, want)
	}
}
