package ir_test

import (
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// TestLooping checks a loop of two blocks between others, and a call of a function.
func TestLooping(t *testing.T) {
	p := &ir.Program{Blocks: []ir.Block{{End: ir.Goto{To: 1}}, {End: ir.Branch{To: 2, Else: 3}}, {End: ir.Goto{To: 1}}, {End: ir.Exit{}}}}
	if got, want := ir.Looping(p), []bool{false, true, true, false}; !slices.Equal(got, want) {
		t.Errorf("Looping = %v, want %v", got, want)
	}
	p.Blocks[0].End = ir.Call{To: 2, Back: 1}
	if got, want := ir.Looping(p), []bool{true, true, true, true}; !slices.Equal(got, want) {
		t.Errorf("Looping with a call = %v, want %v", got, want)
	}
}
