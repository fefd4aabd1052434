package soft_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand"
	"slices"
	"testing"
)

// kernelCase is a kernel with a reference in Go. ref receives the inputs and the block
// size and returns the expected output, all as raw little-endian bytes.
type kernelCase struct {
	file, name string
	elem       int // bytes per element
	ref        func(a, b []byte, n, block int) []byte
	extra      []byte // fifth parameter
	small      bool   // inputs are 0 … 1023 instead of arbitrary bits
	blocks     []int
	per        int // elements per thread; 0 means 1
}

func i32s(b []byte) []int32 {
	v := make([]int32, len(b)/4)
	for i := range v {
		v[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

func f32s(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i, x := range i32s(b) {
		v[i] = math.Float32frombits(uint32(x))
	}
	return v
}

func raw(v any) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, v)
	return b.Bytes()
}

// each returns the reference of a function of one element.
func each(f func(x, y int32) int32) func(a, b []byte, n, block int) []byte {
	return func(a, b []byte, n, _ int) []byte {
		x, y, out := i32s(a), i32s(b), make([]int32, n)
		for i := range out {
			out[i] = f(x[i], y[i])
		}
		return raw(out)
	}
}

func eachF(f func(x, y float32) uint32) func(a, b []byte, n, block int) []byte {
	return each(func(x, y int32) int32 {
		return int32(f(math.Float32frombits(uint32(x)), math.Float32frombits(uint32(y))))
	})
}

func sqrt32(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func pick(c bool, a, b int32) int32 {
	if c {
		return a
	}
	return b
}

var kernelCases = []kernelCase{
	{file: "basic", name: "vecadd", elem: 4, ref: eachF(func(x, y float32) uint32 { return resultBits(x + y) })},
	{file: "basic", name: "saxpy", elem: 4, ref: eachF(func(x, y float32) uint32 {
		return resultBits(fmaOf(2.5, x, y))
	})},
	{file: "basic", name: "intmath", elem: 4, ref: each(func(x, y int32) int32 {
		y |= 1
		ux, uy := uint32(x), uint32(y)
		return x*y + x/y - x%y + int32(ux/uy) + int32(ux%uy) + x>>3 + int32(ux>>5) + x<<2 + max(x, y) + pick(ux < uy, 1, 2)
	})},
	{file: "basic", name: "longmath", elem: 8, ref: func(a, b []byte, n, _ int) []byte {
		out := make([]int64, n)
		for i := range out {
			ux, uy := binary.LittleEndian.Uint64(a[8*i:]), binary.LittleEndian.Uint64(b[8*i:])|1
			x, y := int64(ux), int64(uy)
			out[i] = x*y + x/y - x%y + int64(ux/uy) + int64(ux%uy) + x>>3 + int64(ux>>37) + x<<21 + max(x, y)
		}
		return raw(out)
	}},
	{file: "basic", name: "doublemath", elem: 8, ref: func(a, b []byte, n, _ int) []byte {
		out := make([]float64, n)
		for i := range out {
			x, y := math.Float64frombits(binary.LittleEndian.Uint64(a[8*i:])), math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
			out[i] = math.FMA(x, y, x/y) + math.Sqrt(math.Abs(x)) - float64(y*y)
		}
		return raw(out)
	}},
	{file: "basic", name: "floatmath", elem: 4, ref: eachF(func(x, y float32) uint32 {
		return resultBits(float32(x/y) + sqrt32(float32(math.Abs(float64(x)))) - float32(x*y))
	})},
	{file: "basic", name: "bitops", elem: 4, ref: each(func(a, b int32) int32 {
		x, y := uint32(a), uint32(b)
		return int32((x & y) ^ (x | ^y) ^ uint32(bits.OnesCount32(x)) ^ uint32(bits.LeadingZeros32(x|1)) ^
			uint32(bits.TrailingZeros32(y|0x80000000)) ^ bits.Reverse32(x) ^ bits.RotateLeft32(x, int(y&31)))
	})},
	{file: "basic", name: "convert", elem: 4, small: true, ref: eachF(func(x, y float32) uint32 {
		x *= 100
		d := float64(y)
		s := int32(x)
		abs := uint32(float32(math.Abs(float64(x))))
		return uint32(s + int32(uint8(abs)) + int32(int16(s)) + int32(int64(d*1000)) + int32(float32(s)))
	})},
	{file: "basic", name: "halfmath", elem: 2, ref: func(a, b []byte, n, _ int) []byte {
		out := make([]uint16, n)
		for i := range out {
			x, y := half(uint32(binary.LittleEndian.Uint16(a[2*i:]))), half(uint32(binary.LittleEndian.Uint16(b[2*i:])))
			out[i] = halfBits(float64(half(uint32(halfBits(float64(x*y)))) + x))
		}
		return raw(out)
	}},
	{file: "basic", name: "structs", elem: 4, extra: append(raw([]any{float32(3.7)}[0]), append(raw(int32(11)), append([]byte{200, 0, 0, 0, 0, 0, 0, 0}, raw(int64(-5))...)...)...),
		ref: each(func(x, y int32) int32 { return x*11 + 3 + 200 - 5 + y })},
	{file: "basic", name: "vectors", elem: 4, per: 4, ref: func(a, b []byte, n, _ int) []byte {
		x, y := f32s(a), f32s(b)
		out := make([]uint32, n)
		for i := 0; i+3 < n; i += 4 {
			out[i], out[i+1] = resultBits(x[i]+y[i+3]), resultBits(x[i+1]*y[i+2])
			out[i+2], out[i+3] = resultBits(x[i+2]-y[i+1]), resultBits(x[i+3]+y[i])
		}
		return raw(out)
	}},
	{file: "basic", name: "constants", elem: 4, ref: each(func(x, y int32) int32 {
		return [8]int32{3, 1, 4, 1, 5, 9, 2, 6}[x&7] + [4]int32{10, 20, 30, 40}[y&3]
	})},
	{file: "flow", name: "diverge", elem: 4, ref: each(func(x, y int32) int32 {
		var r int32
		if x&1 != 0 {
			if x&2 != 0 {
				return x * 3
			}
			if x&4 != 0 {
				return -1
			}
			return x + 7
		}
		for k := range x & 31 {
			if k == y%13 {
				continue
			}
			if k > 20 {
				break
			}
			r += k * x
		}
		return r
	})},
	{file: "flow", name: "switches", elem: 4, ref: each(func(x, r int32) int32 {
		switch x & 15 {
		case 0:
			r += 5
		case 1:
			r = r*7 ^ 99
		case 2:
			r ^= 99
		case 3:
			r = -r
		case 5:
			for k := int32(0); k < r&7; k++ {
				r = r*3 + k
			}
		case 6:
			r -= x
		case 9:
			r /= 3
		case 12:
			r = 12
		default:
			r++
		}
		return r
	})},
	{file: "flow", name: "collatz", elem: 4, ref: each(func(x, y int32) int32 {
		k := y
		for v := uint32(x&1023) + 1; v != 1; k++ {
			if v&1 != 0 {
				v = 3*v + 1
			} else {
				v /= 2
			}
		}
		return k
	})},
	{file: "flow", name: "mandelbrot", elem: 4, ref: eachF(func(cx, cy float32) uint32 {
		var x, y float32
		k := uint32(0)
		for ; k < 100 && float32(x*x)+float32(y*y) < 4; k++ {
			t := float32(float32(x*x)-float32(y*y)) + cx
			y = float32(float32(2*x)*y) + cy
			x = t
		}
		return k
	})},
	{file: "flow", name: "calls", elem: 4, ref: each(func(x, y int32) int32 {
		r := y - x
		if x < y {
			r = x * 2
		}
		if x&1 != 0 {
			f := float32(1)
			for range x & 7 {
				f = float32(f*0.5) + 1
			}
			r += int32(f)
		}
		return r
	})},
	{file: "flow", name: "locals", elem: 4, ref: each(func(x, y int32) int32 {
		var v [16]int32
		for k := range int32(16) {
			v[k*5&15] = x + k
		}
		var r int32
		for k := range int32(16) {
			r = r*3 + v[(y+k)&15]
			v[r&15] = k
		}
		return r
	})},
	{file: "block", name: "reduce", elem: 4, blocks: []int{256}, ref: func(a, _ []byte, n, block int) []byte {
		out := make([]int32, n)
		for i, x := range i32s(a) {
			out[i/block] += x
		}
		return raw(out)
	}},
	{file: "block", name: "scan", elem: 4, ref: func(a, _ []byte, n, block int) []byte {
		out := i32s(a)
		for i := range out {
			if i%block != 0 {
				out[i] += out[i-1]
			}
		}
		return raw(out)
	}},
	{file: "block", name: "bitonic", elem: 4, blocks: []int{256}, ref: func(a, _ []byte, n, block int) []byte {
		out := i32s(a)
		for i := 0; i < n; i += block {
			slices.Sort(out[i : i+block])
		}
		return raw(out)
	}},
	{file: "block", name: "histogram", elem: 4, blocks: []int{64, 128, 256}, ref: func(a, _ []byte, n, _ int) []byte {
		out := make([]int32, n)
		for _, x := range i32s(a) {
			out[x&63]++
		}
		return raw(out)
	}},
	{file: "block", name: "atomics", elem: 4, ref: func(a, b []byte, n, _ int) []byte {
		out := make([]int32, n)
		y := i32s(b)
		for i, x := range i32s(a) {
			out[0] += x
			out[1], out[2] = max(out[1], x), min(out[2], x)
			out[3] |= x
			out[4] ^= y[i]
		}
		out[5], out[6] = int32(math.Float32bits(float32(n))), int32(3*n)
		return raw(out)
	}},
	{file: "block", name: "shuffles", elem: 4, blocks: []int{32, 64, 256}, ref: func(a, b []byte, n, block int) []byte {
		x, y, out := i32s(a), i32s(b), make([]int32, n)
		for w := 0; w < n; w += 32 {
			var s int32
			for l := range 32 {
				s += x[w+l]
			}
			up := func(l int) int32 { return y[w+max(l-1, 0)] }
			for l := range 32 {
				from := l
				if l+2 < 32 {
					from = l + 2
				}
				out[w+l] = s + 3*up(l) + 5*(s+int32((w+from)%block)) + 7*up(5)
			}
		}
		return raw(out)
	}},
	{file: "block", name: "votes", elem: 4, small: true, blocks: []int{32, 64, 256}, ref: func(a, _ []byte, n, _ int) []byte {
		x, out := i32s(a), make([]int32, n)
		for w := 0; w < n; w += 32 {
			var m uint32
			var over, all int32 = 0, 1
			for l := range 32 {
				m |= uint32(x[w+l]&1) << l
				if x[w+l] > 900 {
					over = 1
				}
				if x[w+l] < 0 {
					all = 0
				}
			}
			for l := range 32 {
				out[w+l] = int32(m) + 3*over + 5*all
			}
		}
		return raw(out)
	}},
	{file: "block", name: "splitbar", elem: 4, blocks: []int{32, 64, 256}, ref: func(a, b []byte, n, _ int) []byte {
		x, y, out := i32s(a), i32s(b), make([]int32, n)
		for i := range out {
			if i&1 != 0 {
				out[i] = y[i^1] * 2
			} else {
				out[i] = x[i^1] + 1
			}
		}
		return raw(out)
	}},
}

func TestKernels(t *testing.T) {
	rigs := map[string]*rig{}
	for _, k := range slices.Concat(tileCases, partitionCases, kernelCases) {
		if rigs[k.file] == nil {
			rigs[k.file] = newRig(t, kernelFile(t, k.file))
		}
		r := rigs[k.file]
		t.Run(k.name, func(t *testing.T) {
			r.TB = t
			blocks := k.blocks
			if blocks == nil {
				blocks = []int{1, 7, 32, 100, 256, 1024}
			}
			for _, block := range blocks {
				k.check(t, r, block, rand.New(rand.NewSource(int64(block))))
			}
		})
	}
}

func (k *kernelCase) check(t *testing.T, r *rig, block int, rnd *rand.Rand) {
	t.Helper()
	n := 768
	if block == 1024 {
		n = 2048
	}
	a, b := make([]byte, n*k.elem), make([]byte, n*k.elem)
	rnd.Read(a)
	rnd.Read(b)
	if k.small {
		for i := 0; i < n; i++ {
			if k.name == "convert" {
				binary.LittleEndian.PutUint32(a[4*i:], math.Float32bits(rnd.Float32()*2000-1000))
				binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(rnd.Float32()*2000-1000))
			} else {
				binary.LittleEndian.PutUint32(a[4*i:], uint32(rnd.Intn(1024)))
			}
		}
	}
	da, db, dc := r.buffer(a), r.buffer(b), r.buffer(make([]byte, n*k.elem))
	args := []any{da, db, dc, n}
	if k.extra != nil {
		args = append(args, k.extra)
	}
	threads := n / max(k.per, 1)
	r.launch(k.name, [3]uint32{uint32((threads + block - 1) / block), 1, 1}, [3]uint32{uint32(block), 1, 1}, uint32(4*block), args...)
	got, err := r.read(dc, n*k.elem)
	if err != nil {
		t.Fatal(err)
	}
	want := k.ref(a, b, n, block)
	for i := 0; i < n*k.elem; i += k.elem {
		if !bytes.Equal(got[i:i+k.elem], want[i:i+k.elem]) && !bothNaN(k, got[i:], want[i:]) {
			t.Fatalf("block size %d: element %d = %x, want %x (a %x, b %x)", block, i/k.elem, got[i:i+k.elem], want[i:i+k.elem], a[i:i+k.elem], b[i:i+k.elem])
		}
	}
	for _, x := range []uint64{da, db, dc} {
		if err := r.c.MemFree(x); err != nil {
			t.Fatal(err)
		}
	}
}

// bothNaN reports whether both values are NaNs of f64, whose bits are undefined.
func bothNaN(k *kernelCase, x, y []byte) bool {
	nan := func(b []byte) bool { v := math.Float64frombits(binary.LittleEndian.Uint64(b)); return v != v }
	return k.name == "doublemath" && nan(x) && nan(y)
}

func TestMatmulAndTranspose(t *testing.T) {
	r := newRig(t, kernelFile(t, "block"))
	const n = 48
	a, b := make([]float32, n*n), make([]float32, n*n)
	for i := range a {
		a[i], b[i] = rand.Float32(), rand.Float32()
	}
	da, db, dc := r.buffer(raw(a)), r.buffer(raw(b)), r.buffer(make([]byte, 4*n*n))
	r.launch("matmul", [3]uint32{n / 16, n / 16, 1}, [3]uint32{16, 16, 1}, 0, da, db, dc, n)
	got, err := r.read(dc, 4*n*n)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range f32s(got) {
		var want float32
		for k := range n {
			want = fmaOf(a[i/n*n+k], b[k*n+i%n], want)
		}
		if math.Float32bits(x) != math.Float32bits(want) {
			t.Fatalf("element %d of the product = %v, want %v", i, x, want)
		}
	}
	r.launch("transpose", [3]uint32{n / 16, n / 16, 1}, [3]uint32{16, 16, 1}, 0, da, db, dc, n)
	if got, err = r.read(dc, 4*n*n); err != nil {
		t.Fatal(err)
	}
	for i, x := range f32s(got) {
		if x != a[i%n*n+i/n] {
			t.Fatalf("element %d of the transpose = %v, want %v", i, x, a[i%n*n+i/n])
		}
	}
}

func TestGrid3D(t *testing.T) {
	r := newRig(t, kernelFile(t, "flow"))
	const n = 12 * 6 * 4
	a, b := make([]int32, n), make([]int32, n)
	for i := range a {
		a[i], b[i] = int32(i), int32(7*i)
	}
	dc := r.buffer(make([]byte, 4*n))
	r.launch("grid3d", [3]uint32{3, 2, 2}, [3]uint32{4, 3, 2}, 0, r.buffer(raw(a)), r.buffer(raw(b)), dc, n)
	got, err := r.read(dc, 4*n)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range i32s(got) {
		if want := int32(8*i + i%12 + 100*(i/12%6) + 10000*(i/72)); v != want {
			t.Fatalf("element %d = %d, want %d", i, v, want)
		}
	}
}
