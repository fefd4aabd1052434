package soft_test

import (
	"math"
	"math/rand"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/native"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
	"github.com/basalt-gpu/basalt/gpu/soft/simd"
	"golang.org/x/sys/unix"
)

// measuredOperations are the operations of BenchmarkOperations: those that are several
// instructions of the processor, or one after another.
var measuredOperations = []string{
	"sin.approx.f32", "cos.approx.f32", "tanh.approx.f32", "ex2.approx.f32", "lg2.approx.f32",
	"add.f16", "fma.rn.f16", "add.f16x2", "fma.rn.f16x2", "max.f16x2", "fma.rn.f16x2/ftz/sat",
	"add.bf16", "fma.rn.bf16", "add.bf16x2", "fma.rn.bf16x2", "cvt.rn.f16x2.f32", "cvt.rn.bf16x2.f32", "setp.lt.f16",
	"div.u64", "div.s64", "rem.u64", "div.u32", "rem.s32", "div.u16", "fma.rn.f32/ftz", "add.f32/sat", "div.full.f32/ftz",
	"cvt.rzi.s32.f32", "cvt.rmi.f32.f32",
}

// BenchmarkOperations measures single operations in the loops in Go, the vectors of the
// interpreter and machine code, in turn, and reports the medians of the processor time
// for a lane and of the ratios within each turn. Machine code is a run of that one
// instruction, so that its loads and stores of registers are included, as the loops
// include theirs.
func BenchmarkOperations(b *testing.B) {
	for _, name := range measuredOperations {
		b.Run(strings.ReplaceAll(name, "/", "_"), func(b *testing.B) { measureOperation(b, name) })
	}
}

const measuredLanes = 1024

func measureOperation(b *testing.B, name string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f := measuredFiles(name)
	op, loop := measuredOperation(name)
	forms := []func(){loopOn(loop, f), loopOn(simd.Find(name), f), codeOf(b, op, f)}
	times := make([][]float64, len(forms))
	for b.Loop() {
		for i, form := range forms {
			if form == nil {
				continue
			}
			start := threadTime(b)
			for range 32 {
				form()
			}
			times[i] = append(times[i], float64((threadTime(b)-start).Nanoseconds())/32/measuredLanes)
		}
	}
	for i, unit := range []string{"loop", "vector", "code"} {
		if forms[i] == nil {
			continue
		}
		b.ReportMetric(median(times[i]), unit+"-ns/lane")
		if i > 0 {
			ratios := make([]float64, len(times[0]))
			for n := range ratios {
				ratios[n] = times[0][n] / times[i][n]
			}
			b.ReportMetric(median(ratios), "loop/"+unit)
		}
	}
}

// measuredOperation returns an operation or conversion on the registers from 1 on, whose
// result is register 0, and its loop in Go.
func measuredOperation(name string) (ir.Op, any) {
	loop := ops.Operations()[name]
	if loop == nil {
		c, _ := ops.FindConversion(strings.Split(name, ".")[1:])
		return &ir.Convert{F: c, S: ir.Ref{Slot: 1}, Keep: 1<<32 - 1}, func(d, a []uint32) {
			for i, v := range a {
				d[i] = uint32(c.Convert(uint64(v)))
			}
		}
	}
	a := &ir.Arith{F: ops.Operation{Name: name, Loop: loop}}
	d, sources, _ := ir.ShapeOf(loop)
	a.D = ir.Ref{Class: d}
	for i, c := range sources {
		a.S = append(a.S, ir.Ref{Class: c, Slot: i + 1})
	}
	return a, loop
}

// measuredFiles returns registers with numbers of ordinary size: in 32 bits an f32, or
// two halves, in 64 an integer.
func measuredFiles(name string) *native.Files {
	const registers = 5
	r := rand.New(rand.NewSource(1))
	f := &native.Files{
		R32: make([]uint32, registers*measuredLanes), R64: make([]uint64, registers*measuredLanes),
		Preds: make([]uint32, registers*measuredLanes/32), Active: make([]uint32, measuredLanes/32),
	}
	for i := range f.R32 {
		f.R32[i] = math.Float32bits(float32(1.5 + r.NormFloat64()))
		if strings.Contains(name, "f16") && !strings.HasSuffix(name, ".f32") {
			f.R32[i] = (0x3c003c00 + r.Uint32()&0x01ff01ff) &^ 0x80008000
		}
		f.R64[i] = r.Uint64() >> r.Intn(60)
	}
	for i := range f.Active {
		f.Active[i] = ^uint32(0)
	}
	return f
}

// loopOn returns a loop applied to the registers, or nil if there is no loop.
func loopOn(loop any, f *native.Files) func() {
	v := func(i int) []uint32 { return f.R32[i*measuredLanes:][:measuredLanes] }
	w := func(i int) []uint64 { return f.R64[i*measuredLanes:][:measuredLanes] }
	p := ops.Predicate(f.Preds[:measuredLanes/32])
	switch loop := loop.(type) {
	case func(d, a []uint32):
		return func() { loop(v(0), v(1)) }
	case func(d, a, b []uint32):
		return func() { loop(v(0), v(1), v(2)) }
	case func(d, a, b, c []uint32):
		return func() { loop(v(0), v(1), v(2), v(3)) }
	case func(d, a, b []uint64):
		return func() { loop(w(0), w(1), w(2)) }
	case func(d ops.Predicate, a, b []uint32):
		return func() { loop(p, v(1), v(2)) }
	}
	return nil
}

// codeOf returns the machine code of one instruction, or nil without AVX2.
func codeOf(b *testing.B, op ir.Op, f *native.Files) func() {
	if !amd64.Available() {
		return nil
	}
	function, err := native.Compile([]ir.Inst{{Op: op}}, native.Options{Lanes: measuredLanes})
	if err != nil {
		b.Fatal(err)
	}
	code, err := amd64.Load(function.Code)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := code.Close(); err != nil {
			b.Error(err)
		}
	})
	c := new(native.Context)
	c.Bind(f)
	return func() { c.Run(code.Function(0), 1000, f.Active, nil, 0, measuredLanes/ir.Tile, false) }
}

func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

func median(list []float64) float64 {
	list = slices.Clone(list)
	slices.Sort(list)
	return list[len(list)/2]
}
