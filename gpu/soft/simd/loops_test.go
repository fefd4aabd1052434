package simd_test

import (
	"math"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
	"github.com/basalt-gpu/basalt/gpu/soft/simd"
)

// special32 and special64 are values that operations treat specially.
var special32 = []uint32{
	0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7ffffffe, 0x7fffffff, 0x80000000,
	0x80000001, 0xfffffffe, 0xffffffff, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7f7fffff, 0xff7fffff,
	0x00800000, 0x007fffff, 0x807fffff, 0x80800000, 0x7f800001, 0xff800001, 0x7fc00000, 0xffc00000, 0x7fc12345,
	0xffffffff, 0x34000000, 0x33800000, 0x4b7fffff, 0x4b800000, 0x5f7fffff, 0x1f800000,
}

var special64 = []uint64{
	0, 1, 2, 31, 32, 33, 63, 64, 65, 0xffff, 1 << 31, 1<<31 - 1, 1 << 32, 1<<32 - 1, 1<<63 - 1, 1 << 63, 1<<63 + 1,
	math.MaxUint64, math.MaxUint64 - 1, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000, 0xfff0000000000000,
	0x7fefffffffffffff, 0x0010000000000000, 0x000fffffffffffff, 0x800fffffffffffff, 0x7ff0000000000001,
	0xfff0000000000001, 0x7ff8000000000000, 0xfff8000000000000, 0x7ff8000012345678, 0xfff7ffffffffffff,
	0x3ca0000000000000, 0x47efffffefffffff, 0x47efffffe0000000, 0x47effffff0000000, 0x36a0000000000000, 0x380fffffffffffff,
}

// value returns a random value: special, near a power of two, small, or any bits.
func value[T uint32 | uint64](r *rand.Rand, special []T, bits int) T {
	any := T(r.Uint64())
	switch r.Intn(5) {
	case 0:
		return special[r.Intn(len(special))]
	case 1:
		return special[r.Intn(len(special))] ^ 1<<r.Intn(bits)
	case 2:
		return any >> r.Intn(bits)
	case 3: // an ordinary number: as f32 or f64 between 2^-8 and 2^8
		if bits == 32 {
			return T(math.Float32bits(float32(math.Ldexp(r.Float64()*2-1, r.Intn(17)-8))))
		}
		return T(math.Float64bits(math.Ldexp(r.Float64()*2-1, r.Intn(17)-8)))
	}
	return any
}

// lanes returns an argument of a loop. Its capacity equals its length.
func lanes(r *rand.Rand, t reflect.Type, warps int) reflect.Value {
	switch t {
	case reflect.TypeFor[[]uint32]():
		v := make([]uint32, warps*32)
		for i := range v {
			v[i] = value(r, special32, 32)
		}
		return reflect.ValueOf(v)
	case reflect.TypeFor[[]uint64]():
		v := make([]uint64, warps*32)
		for i := range v {
			v[i] = value(r, special64, 64)
		}
		return reflect.ValueOf(v)
	}
	return reflect.ValueOf(make(ops.Predicate, warps))
}

func copied(v reflect.Value) reflect.Value {
	c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(c, v)
	return c
}

// differs executes a loop of ops and the one of this package on the same lanes, and
// returns the first element that differs, or -1. With an alias the result is one of the
// sources.
func differs(r *rand.Rand, loop, vector any, warps, alias int) (at int, args []reflect.Value, got, want reflect.Value) {
	f, g := reflect.ValueOf(loop), reflect.ValueOf(vector)
	for i := range f.Type().NumIn() {
		args = append(args, lanes(r, f.Type().In(i), warps))
	}
	before := slices.Clone(args)
	run := func(f reflect.Value) reflect.Value {
		list := make([]reflect.Value, len(before))
		for i, v := range before {
			list[i] = copied(v)
		}
		if alias > 0 {
			list[0] = list[alias]
		}
		f.Call(list)
		return list[0]
	}
	want, got = run(f), run(g)
	for i := range want.Len() {
		if want.Index(i).Uint() != got.Index(i).Uint() {
			return i, args, got, want
		}
	}
	return -1, args, got, want
}

// TestLoopsAgainstGo compares every loop of this package with that of ops.
func TestLoopsAgainstGo(t *testing.T) {
	if !simd.Available() {
		t.Log("this processor has no AVX2: the package is not used")
		return
	}
	r := rand.New(rand.NewSource(56))
	for _, name := range simd.Names() {
		vector, loop := simd.Find(name), loopOf(name)
		if loop == nil {
			continue // TestNamesAreOperations
		}
		if reflect.TypeOf(vector) != reflect.TypeOf(loop) {
			t.Errorf("%s: type of the vector loop = %T, want that of ops, %T", name, vector, loop)
			continue
		}
		for round := range 60 {
			alias := round % reflect.TypeOf(loop).NumIn()
			if alias > 0 && reflect.TypeOf(loop).In(alias) != reflect.TypeOf(loop).In(0) {
				alias = 0
			}
			at, args, got, want := differs(r, loop, vector, 1+round%9, alias)
			if at < 0 {
				continue
			}
			var of []uint64
			for _, a := range args[1:] {
				if at < a.Len() {
					of = append(of, a.Index(at).Uint())
				}
			}
			t.Errorf("%s of %#x: element %d = %#x, want %#x", name, of, at, got.Index(at).Uint(), want.Index(at).Uint())
			break
		}
	}
	if n := len(simd.Names()); n < 200 {
		t.Errorf("%d operations have a vector loop, want at least 200", n)
	}
}

// loopOf returns the loop in Go of an operation of ops.txt or of a conversion, or nil.
func loopOf(name string) any {
	if f := ops.Operations()[name]; f != nil {
		return f
	}
	mods, ok := strings.CutPrefix(name, "cvt.")
	c, known := ops.FindConversion(strings.Split(mods, "."))
	switch {
	case !ok || !known:
		return nil
	case c.From.Size() == 8:
		return func(d []uint32, a []uint64) {
			for i, v := range a {
				d[i] = uint32(c.Convert(v))
			}
		}
	}
	return func(d, a []uint32) {
		for i, v := range a {
			d[i] = uint32(c.Convert(uint64(v)))
		}
	}
}

// TestNamesAreOperations checks that every name of avx2.txt is one of ops.txt or a
// conversion.
func TestNamesAreOperations(t *testing.T) {
	for _, name := range simd.Names() {
		if loopOf(name) == nil {
			t.Errorf("avx2.txt has %s, which is neither in ops.txt nor a conversion", name)
		}
	}
}
