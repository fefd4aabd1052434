// Package ops implements the arithmetic of PTX: the results of instructions, as loops
// over lanes that ops.txt describes and gen writes, and as functions of one lane's
// values. It is independent of registers and memory.
package ops

import "math"

//go:generate go run ./gen

// Predicate holds one bit per lane, 32 lanes a word.
type Predicate []uint32

// The most frequent floating-point instruction has a handwritten loop, because fmaF32
// is too large to be inlined into a generated one.
func init() {
	for _, k := range []string{"fma.rn.f32", "mad.rn.f32"} {
		vectorOps[k] = fmaLoop
	}
}

func fmaLoop(d, as, bs, cs []uint32) {
	as, bs, cs = as[:len(d)], bs[:len(d)], cs[:len(d)]
	for i := range d {
		s := float64(f32(as[i]))*float64(f32(bs[i])) + float64(f32(cs[i]))
		r := float32(s)
		if math.Float64bits(s)&0x0fffffff == 0 && float64(r) != s {
			d[i] = fmaTie(as[i], bs[i], cs[i])
			continue
		}
		d[i] = math.Float32bits(r)
	}
}
