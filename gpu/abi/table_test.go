package abi_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

func TestTable(t *testing.T) {
	names, numbers := map[string]bool{}, map[uint16]bool{}
	for _, c := range abi.Commands {
		if names[c.Name] || numbers[c.Op] {
			t.Errorf("command %s (%d): its name or number is used twice, want unique ones", c.Name, c.Op)
		}
		names[c.Name], numbers[c.Op] = true, true
		if got := abi.Op(c.Op).String(); got != c.Name {
			t.Errorf("Op(%d).String() = %s, want %s", c.Op, got, c.Name)
		}
		if n, ok := abi.Op(c.Op).ArgSize(); !ok || n%8 != 0 {
			t.Errorf("ArgSize of %s = %d, %v, want a multiple of 8", c.Name, n, ok)
		}
		if got := abi.Op(c.Op).TakesInline(); got != (c.Inline != "") {
			t.Errorf("TakesInline of %s = %v, want %v", c.Name, got, c.Inline != "")
		}
	}
	if _, ok := abi.Op(0xffff).ArgSize(); ok {
		t.Error("ArgSize of an unknown command reports ok, want false")
	}
}

func TestCommandRoundTrip(t *testing.T) {
	in := abi.Launch{Stream: 1, Function: 2, GridX: 3, BlockZ: 4, Shared: 5, Flags: 6}
	if got := abi.DecodeLaunch(in.Append(nil)); got != in {
		t.Errorf("decoded Launch = %+v, want %+v", got, in)
	}
	create := abi.StreamCreate{Ctx: 1, Stream: 2, Flags: 1, Priority: -5}
	if got := abi.DecodeStreamCreate(create.Append(nil)); got != create {
		t.Errorf("decoded StreamCreate = %+v, want %+v", got, create)
	}
}
