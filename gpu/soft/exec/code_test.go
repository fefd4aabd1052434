package exec

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/native"
)

// TestLanesThatLeaveGoOnTogether stores to one address from all lanes of two warps,
// which leaves the code in each tile. The step makes it one store for a warp, if it
// receives all lanes of the warp at once.
func TestLanesThatLeaveGoOnTogether(t *testing.T) {
	if !amd64.Available() {
		t.Skip("this processor lacks AVX2, FMA, BMI2, LZCNT or F16C")
	}
	const lanes = 64
	base := ir.Ref{Class: ir.Class64}
	store := &ir.Store{Access: ir.Access{Space: ir.Global, Base: base, Size: 4, N: 1, Mask: 1<<32 - 1}, S: []ir.Ref{{Class: ir.Class32}}}
	f, err := native.Compile([]ir.Inst{{Op: store}}, native.Options{Lanes: lanes})
	if err != nil {
		t.Fatal(err)
	}
	code, err := amd64.Load(f.Code)
	if err != nil {
		t.Fatal(err)
	}
	defer code.Close()
	var calls [][]uint32
	one := masked(func(_ *machine, act []uint32) error {
		calls = append(calls, slices.Clone(act))
		return nil
	})
	m := &machine{warps: 2, lanes: lanes, r32: make([]uint32, lanes), r64: make([]uint64, lanes), preds: make([]uint32, maxWarps)}
	m.native = codeState{code: &machineCode{}, context: &native.Context{}, windows: make([][]native.Window, 1)}
	m.native.windows[0] = []native.Window{{Base: 0, Data: make([]byte, 64)}}
	m.native.context.Bind(&native.Files{R32: m.r32, R64: m.r64, Preds: m.preds})
	act := []uint32{^uint32(0), ^uint32(0)}
	r := &run{region: -1, steps: []step{one}, stores: true, all: code.Function(0)}
	r.windows[0] = f.Globals
	if err := m.runTiles(r, true, 0, lanes/ir.Tile, act, m.native.windowsOf(r)); err != nil {
		t.Fatal(err)
	}
	if len(calls) != 1 || !slices.Equal(calls[0], act) {
		t.Errorf("store interpreted %d times, for the lanes %#x; want once for %#x", len(calls), calls, act)
	}
}

// TestWhatTilesLearnThatLeave loads from consecutive addresses from all lanes of two
// warps, twice. The first time each tile leaves, as the load has no allocation yet; the
// pattern of its addresses is observed the second time.
func TestWhatTilesLearnThatLeave(t *testing.T) {
	if !amd64.Available() {
		t.Skip("this processor lacks AVX2, FMA, BMI2, LZCNT or F16C")
	}
	const lanes, at = 64, 1 << 20
	base := ir.Ref{Class: ir.Class64}
	load := &ir.Load{Access: ir.Access{Space: ir.Global, Base: base, Size: 4, N: 1, Mask: 1<<32 - 1}, D: []ir.Ref{{Class: ir.Class32}}}
	f, err := native.Compile([]ir.Inst{{Op: load}}, native.Options{Lanes: lanes})
	if err != nil {
		t.Fatal(err)
	}
	code, err := amd64.Load(f.Code)
	if err != nil {
		t.Fatal(err)
	}
	defer code.Close()
	memory := Region{Base: at, Data: make([]byte, 4*lanes)}
	interpreted := 0
	m := &machine{warps: 2, lanes: lanes, r32: make([]uint32, lanes), r64: make([]uint64, lanes), preds: make([]uint32, maxWarps)}
	m.native = codeState{code: &machineCode{learns: true}, context: &native.Context{}, windows: make([][]native.Window, 1)}
	m.native.context.Bind(&native.Files{R32: m.r32, R64: m.r64, Preds: m.preds})
	for l := range lanes {
		m.r64[l] = at + 4*uint64(l)
	}
	act := []uint32{^uint32(0), ^uint32(0)}
	r := &run{region: -1, all: code.Function(0), seen: make([]atomic.Uint32, f.Groups)}
	r.steps = []step{masked(func(m *machine, _ []uint32) error { interpreted++; m.cache = memory; return nil })}
	r.windows[0] = f.Globals
	for range 2 {
		if err := m.runTiles(r, true, 0, lanes/ir.Tile, act, m.native.windowsOf(r)); err != nil {
			t.Fatal(err)
		}
	}
	if interpreted != 1 {
		t.Fatalf("load interpreted %d times, want once", interpreted)
	}
	if kinds := native.Expected(r.seen); len(kinds) != 1 || kinds[0] == native.Unknown {
		t.Errorf("expected kinds of the load's addresses = %v, want one known kind", kinds)
	}
}
