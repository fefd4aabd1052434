//go:build linux && amd64

package amd64

import (
	"math"
	"testing"
	"unsafe"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// fmaContext is four registers of 256 lanes.
type fmaContext struct{ d, a, b, c [256]uint32 }

// fmaLoop returns the code of a loop with fused dependent fmas for each vector.
func fmaLoop(fused int) func(a *Assembler) {
	const d, x, y, z = 0, 1024, 2048, 3072
	return func(a *Assembler) {
		a.Emit(XOR, D(RCX), D(RCX))
		turn := a.Label()
		a.Bind(turn)
		at := func(o int32) Arg { return Mem(RDI, o).Index(RCX, 1) }
		a.Emit(VMOVUPS, Y(1), at(y))
		a.Emit(VMOVUPS, Y(2), at(z))
		a.Emit(VMOVUPS, Y(0), at(x))
		for range fused {
			a.Emit(VFMADD213PS, Y(0), Y(1), Y(2))
		}
		a.Emit(VMOVUPS, at(d), Y(0))
		a.Emit(ADD, D(RCX), Imm(32))
		a.Emit(CMP, D(RCX), Imm(1024))
		a.JumpIf(CondB, turn)
		a.Emit(RET)
	}
}

// BenchmarkFMA measures fma.rn.f32 over 256 lanes in the L1 cache: with the loop of
// gpu/soft/ops, with generated code once for each lane, and 8 times in registers.
func BenchmarkFMA(b *testing.B) {
	c := &fmaContext{}
	for i := range c.a {
		c.a[i], c.b[i], c.c[i] = math.Float32bits(float32(i)/7), math.Float32bits(0.9), math.Float32bits(1.5)
	}
	found, _ := ops.Find("fma", "rn", "f32")
	loop := found.Loop.(func(d, a, b, c []uint32))
	rate := func(b *testing.B, each int) {
		b.ReportMetric(float64(b.N)*256*float64(each)/b.Elapsed().Seconds()/1e9, "Glane/s")
	}
	b.Run("ops", func(b *testing.B) {
		for b.Loop() {
			loop(c.d[:], c.a[:], c.b[:], c.c[:])
		}
		rate(b, 1)
	})
	for name, fused := range map[string]int{"code": 1, "code-fused-8": 8} {
		f := load(b, fmaLoop(fused))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f.Call(unsafe.Pointer(c))
			}
			rate(b, fused)
		})
	}
}
