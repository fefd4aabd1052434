package native

import (
	"fmt"
	"math"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// BenchmarkRun executes runs of several instructions over 256 lanes, with the loops of
// gpu/soft/ops and as machine code: dependent fmas, and a mix as in the computation of
// an index.
func BenchmarkRun(b *testing.B) {
	requireProcessor(b)
	const lanes = 256
	ref := func(n int) ir.Ref { return ir.Ref{Class: ir.Class32, Slot: n} }
	arith := func(d int, s []int, op string, mods ...string) ir.Inst {
		o, ok := ops.Find(op, mods...)
		if !ok {
			b.Fatalf("ops has no operation %s with modifiers %q", op, mods)
		}
		a := &ir.Arith{F: o, D: ref(d)}
		for _, x := range s {
			a.S = append(a.S, ref(x))
		}
		return ir.Inst{Op: a}
	}
	var chain, mix []ir.Inst
	for range 8 {
		chain = append(chain, arith(0, []int{0, 1, 2}, "fma", "rn", "f32"))
	}
	for i := range 4 {
		mix = append(mix, arith(3, []int{0, 1, 2}, "mad", "lo", "s32"), arith(4, []int{3, 5}, "shl", "b32"),
			arith(6, []int{4, 3}, "add", "s32"), arith(i+8, []int{6, 7}, "xor", "b32"))
	}
	for name, insts := range map[string][]ir.Inst{"fma": chain, "mix": mix} {
		f := &Files{R32: make([]uint32, 16*lanes), R64: make([]uint64, lanes), Preds: make([]uint32, 32), Active: make([]uint32, lanes/32)}
		for i := range f.R32 {
			f.R32[i] = math.Float32bits(0.5 + float32(i)/1e5)
		}
		rate := func(b *testing.B) {
			b.ReportMetric(float64(b.N)*lanes*float64(len(insts))/b.Elapsed().Seconds()/1e9, "Glane/s")
		}
		b.Run(name+"/loops", func(b *testing.B) {
			for b.Loop() {
				for i := range insts {
					o := insts[i].Op.(*ir.Arith)
					v := func(r ir.Ref) []uint32 { return f.R32[r.Slot*lanes:][:lanes] }
					switch loop := o.F.Loop.(type) {
					case func(d, a, b []uint32):
						loop(v(o.D), v(o.S[0]), v(o.S[1]))
					case func(d, a, b, c []uint32):
						loop(v(o.D), v(o.S[0]), v(o.S[1]), v(o.S[2]))
					}
				}
			}
			rate(b)
		})
		for _, masked := range []bool{false, true} {
			code, err := Compile(insts, Options{Lanes: lanes, Masked: masked})
			if err != nil {
				b.Fatal(err)
			}
			loaded, err := amd64.Load(code.Code)
			if err != nil {
				b.Fatal(err)
			}
			for i := range f.Active {
				f.Active[i] = 0x5555ffff
			}
			b.Run(fmt.Sprintf("%s/code,masked=%v", name, masked), func(b *testing.B) {
				c := new(Context)
				for b.Loop() {
					f.run(c, loaded.Function(0), 0, lanes/8)
				}
				rate(b)
			})
			if err := loaded.Close(); err != nil {
				b.Error(err)
			}
		}
	}
}

// BenchmarkCompile measures the compilation of a run of 64 instructions.
func BenchmarkCompile(b *testing.B) {
	o, _ := ops.Find("fma", "rn", "f32")
	var insts []ir.Inst
	for i := range 64 {
		r := func(n int) ir.Ref { return ir.Ref{Class: ir.Class32, Slot: n % 24} }
		insts = append(insts, ir.Inst{Op: &ir.Arith{F: o, D: r(i), S: []ir.Ref{r(i + 1), r(i + 5), r(i + 11)}}})
	}
	for b.Loop() {
		if _, err := Compile(insts, Options{Lanes: 256}); err != nil {
			b.Fatal(err)
		}
	}
}
