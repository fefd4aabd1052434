//go:build linux && amd64

package amd64

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// registersOf is the context of random functions: the values of the registers before
// and after.
type registersOf struct {
	vectors  [16][8]uint32
	generals [16]uint64
}

// used are the general registers that random functions compute in.
var used = []Reg{RAX, RCX, RDX, RBX, RSI, R8, R9, R10, R11, R12, R13}

func (c *registersOf) lane64(r Reg, i int) uint64 {
	return uint64(c.vectors[r][2*i]) | uint64(c.vectors[r][2*i+1])<<32
}

var lanes32 = []struct {
	in *Inst
	f  func(a, b uint32) uint32
}{
	{VPADDD, func(a, b uint32) uint32 { return a + b }},
	{VPSUBD, func(a, b uint32) uint32 { return a - b }},
	{VPMULLD, func(a, b uint32) uint32 { return a * b }},
	{VPANDN, func(a, b uint32) uint32 { return ^a & b }},
	{VPXOR, func(a, b uint32) uint32 { return a ^ b }},
	{VPSLLVD, func(a, b uint32) uint32 { return a << b }},
	{VPSRLVD, func(a, b uint32) uint32 { return a >> b }},
	{VPSRAVD, func(a, b uint32) uint32 { return uint32(int32(a) >> b) }},
	{VPMINUD, func(a, b uint32) uint32 { return min(a, b) }},
	{VPMAXSD, func(a, b uint32) uint32 { return uint32(max(int32(a), int32(b))) }},
	{VPCMPGTD, func(a, b uint32) uint32 { return all32(int32(a) > int32(b)) }},
	{VPCMPEQD, func(a, b uint32) uint32 { return all32(a == b) }},
}

func all32(b bool) uint32 {
	if b {
		return math.MaxUint32
	}
	return 0
}

var lanes64 = []struct {
	in *Inst
	f  func(a, b uint64) uint64
}{
	{VPADDQ, func(a, b uint64) uint64 { return a + b }},
	{VPSUBQ, func(a, b uint64) uint64 { return a - b }},
	{VPMULUDQ, func(a, b uint64) uint64 { return a & math.MaxUint32 * (b & math.MaxUint32) }},
	{VPMULDQ, func(a, b uint64) uint64 { return uint64(int64(int32(a)) * int64(int32(b))) }},
	{VPSLLVQ, func(a, b uint64) uint64 { return a << b }},
	{VPSRLVQ, func(a, b uint64) uint64 { return a >> b }},
}

var generals = []struct {
	in *Inst
	f  func(a, b uint64) uint64
}{
	{ADD, func(a, b uint64) uint64 { return a + b }},
	{SUB, func(a, b uint64) uint64 { return a - b }},
	{XOR, func(a, b uint64) uint64 { return a ^ b }},
	{AND, func(a, b uint64) uint64 { return a & b }},
	{IMUL, func(a, b uint64) uint64 { return a * b }},
	{MOV, func(_, b uint64) uint64 { return b }},
	{POPCNT, func(_, b uint64) uint64 { return uint64(bits.OnesCount64(b)) }},
	{LZCNT, func(_, b uint64) uint64 { return uint64(bits.LeadingZeros64(b)) }},
	{TZCNT, func(_, b uint64) uint64 { return uint64(bits.TrailingZeros64(b)) }},
}

// step appends a random instruction, and executes it on c.
func (c *registersOf) step(r *rand.Rand, a *Assembler) {
	d, x, y := Reg(r.IntN(16)), Reg(r.IntN(16)), Reg(r.IntN(16))
	switch r.IntN(3) {
	case 0:
		o := lanes32[r.IntN(len(lanes32))]
		a.Emit(o.in, Y(d), Y(x), Y(y))
		v, w := c.vectors[x], c.vectors[y]
		for i := range v {
			c.vectors[d][i] = o.f(v[i], w[i])
		}
	case 1:
		o := lanes64[r.IntN(len(lanes64))]
		a.Emit(o.in, Y(d), Y(x), Y(y))
		var results [8]uint32
		for i := range 4 {
			v := o.f(c.lane64(x, i), c.lane64(y, i))
			results[2*i], results[2*i+1] = uint32(v), uint32(v>>32)
		}
		c.vectors[d] = results
	case 2:
		o := generals[r.IntN(len(generals))]
		g, h := used[r.IntN(len(used))], used[r.IntN(len(used))]
		if r.IntN(2) == 0 {
			a.Emit(o.in, Q(g), Q(h))
			c.generals[g] = o.f(c.generals[g], c.generals[h])
			return
		}
		if v := uint32(o.f(c.generals[g]&math.MaxUint32, c.generals[h]&math.MaxUint32)); o.in != LZCNT && o.in != TZCNT {
			a.Emit(o.in, D(g), D(h))
			c.generals[g] = uint64(v)
		}
	}
}

// TestRandomFunctions compares random functions with the same computations in Go.
func TestRandomFunctions(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := &registersOf{}
		for i := range c.vectors {
			for j := range c.vectors[i] {
				c.vectors[i][j] = r.Uint32() >> r.IntN(32)
			}
			c.generals[i] = r.Uint64() >> r.IntN(64)
		}
		got := *c
		f := load(t, func(a *Assembler) {
			for i := range Reg(16) {
				a.Emit(VMOVDQU, Y(i), Mem(RDI, 32*int32(i)))
			}
			for _, g := range used {
				a.Emit(MOV, Q(g), Mem(RDI, 512+8*int32(g)))
			}
			for range r.IntN(200) {
				c.step(r, a)
			}
			for i := range Reg(16) {
				a.Emit(VMOVDQU, Mem(RDI, 32*int32(i)), Y(i))
			}
			for _, g := range used {
				a.Emit(MOV, Mem(RDI, 512+8*int32(g)), Q(g))
			}
			a.Emit(RET)
		})
		if seed%50 == 0 {
			runtime.GC()
		}
		f.Call(unsafe.Pointer(&got))
		if got != *c {
			t.Fatalf("seed %d: registers mismatch (-want +got):\n%s", seed, cmp.Diff(*c, got, cmp.AllowUnexported(got)))
		}
	}
}
