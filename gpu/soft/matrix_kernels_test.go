package soft_test

import (
	"errors"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// TestMatrixKernels executes the kernels of matrix.cu, compiled by clang, on matrices
// of small integers, whose products are exact in all types.
func TestMatrixKernels(t *testing.T) {
	const n = 128
	for _, c := range []struct {
		name       string
		grid       [3]uint32
		threads    uint32
		rows       bool // b is stored by rows
		convert    func(v []int) any
		add, scale int
		result     func(sum int) any
	}{
		{"wmmahalf", [3]uint32{n / 16, n / 16, 1}, 32, false, halves, 0, 2, func(x int) any { return float32(x) }},
		{"wmmachar", [3]uint32{n / 16, n / 16, 1}, 32, false, func(v []int) any { return converted(v, func(x int) int8 { return int8(x) }) }, 3, 1, func(x int) any { return int32(x) }},
		{"wmmadouble", [3]uint32{n / 8, n / 8, 1}, 32, false, func(v []int) any { return converted(v, func(x int) float64 { return float64(x) }) }, 0, 1, func(x int) any { return float64(x) }},
		{"wgmmapipe", [3]uint32{n / 64, n / 64, 1}, 128, false, halves, 0, 1, func(x int) any { return float32(x) }},
		{"mmapipe", [3]uint32{n / 16, n / 32, 1}, 128, true, halves, 0, 1, func(x int) any { return float32(x) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, kernelFile(t, "matrix"))
			rnd := rand.New(rand.NewSource(1))
			a, b := make([]int, n*n), make([]int, n*n)
			for i := range a {
				a[i], b[i] = rnd.Intn(17)-8, rnd.Intn(17)-8
			}
			var want []byte
			for i := range n {
				for j := range n {
					sum := c.add
					for k := range n {
						if c.rows {
							sum += a[i*n+k] * b[k*n+j]
						} else {
							sum += a[i*n+k] * b[j*n+k]
						}
					}
					want = append(want, raw(c.result(sum*c.scale))...)
				}
			}
			dc := r.buffer(make([]byte, len(want)))
			r.launch(c.name, c.grid, [3]uint32{c.threads, 1, 1}, 0, r.buffer(raw(c.convert(a))), r.buffer(raw(c.convert(b))), dc, n)
			got, err := r.read(dc, len(want))
			if err != nil {
				t.Fatal(err)
			}
			size := len(want) / (n * n)
			for i := range n * n {
				if string(got[i*size:][:size]) != string(want[i*size:][:size]) {
					t.Fatalf("element (%d, %d) of the product = %x, want %x", i/n, i%n, got[i*size:][:size], want[i*size:][:size])
				}
			}
		})
	}
}

func converted[T any](v []int, f func(int) T) []T {
	out := make([]T, len(v))
	for i, x := range v {
		out[i] = f(x)
	}
	return out
}

func halves(v []int) any {
	return converted(v, func(x int) uint16 { return halfBits(float64(x)) })
}

// TestLargeSharedMemory checks that a kernel may have 227 KiB of shared memory after it
// has requested it, and no more.
func TestLargeSharedMemory(t *testing.T) {
	const most = 227 << 10
	r := newRig(t, ptxHead+`.extern .shared .align 16 .b8 dyn[]; .entry k(.param .u64 out) { .reg .b64 %o; .reg .b32 %r<3>;
ld.param.u64 %o, [out]; mov.u32 %r0, %tid.x; st.shared.u32 [dyn+232444], 77; ld.shared.u32 %r1, [dyn+232444]; st.global.u32 [%o], %r1; ret; }`)
	out := r.buffer(make([]byte, 4))
	l := worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Shared: most, Params: pack(out)}
	done := make(chan error, 1)
	err := r.c.Launch(nil, r.funcs["k"], l, func(err error) { done <- err })
	if err == nil { // a GPU reports it later
		err = patience.Receive(t, time.Minute, "the launch fails", done)
	}
	if !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("launch without the attribute: error %v, want %v", err, abi.ErrInvalidValue)
	}
	if err := r.c.FuncSetAttribute(r.funcs["k"], 8, most+1); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("FuncSetAttribute with %d bytes: error %v, want %v", most+1, err, abi.ErrInvalidValue)
	}
	if err := r.c.FuncSetAttribute(r.funcs["k"], 8, most); err != nil {
		t.Fatal(err)
	}
	if err := r.c.Launch(nil, r.funcs["k"], l, nil); err != nil {
		t.Fatal(err)
	}
	r.expect(out, 1, func(int) uint32 { return 77 })
}

// TestAtomicHalves checks that atomic operations on halves work also where an
// allocation ends with one.
func TestAtomicHalves(t *testing.T) {
	r := newRig(t, ptxHead+`.entry k(.param .u64 out) { .reg .b64 %o; .reg .b16 %h<3>; ld.param.u64 %o, [out]; mov.b16 %h1, 0x3c00;
red.global.add.noftz.f16 [%o], %h1; red.global.add.noftz.f16 [%o+2], %h1; red.global.add.noftz.f16 [%o+4], %h1; ret; }`)
	out := r.buffer(make([]byte, 6))
	r.launch("k", [3]uint32{8, 1, 1}, [3]uint32{64, 1, 1}, 0, out)
	got, err := r.read(out, 6)
	if want := raw([]uint16{0x6000, 0x6000, 0x6000}); err != nil || string(got) != string(want) { // 512
		t.Errorf("halves = %x, error %v; want %x", got, err, want)
	}
}

// BenchmarkMatrices reports multiply-adds per second of processor time of the kernels of
// matrix.cu, with and without vectors.
func BenchmarkMatrices(b *testing.B) {
	const n = 256
	for _, c := range []struct {
		name    string
		grid    [3]uint32
		threads uint32
		size    int // bytes of an element
	}{
		{"wmmahalf", [3]uint32{n / 16, n / 16, 1}, 32, 2}, {"wmmachar", [3]uint32{n / 16, n / 16, 1}, 32, 1},
		{"wmmadouble", [3]uint32{n / 8, n / 8, 1}, 32, 8}, {"mmapipe", [3]uint32{n / 16, n / 32, 1}, 128, 2},
	} {
		for _, vectors := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/vectors=%v", c.name, vectors), func(b *testing.B) {
				before := exec.UseVectors(vectors)
				defer exec.UseVectors(before)
				r := newRigOf(b, device.Options{VRAM: 64 << 20, SMs: 2}, kernelFile(b, "matrix"))
				x, y, z := r.buffer(make([]byte, n*n*c.size)), r.buffer(make([]byte, n*n*c.size)), r.buffer(make([]byte, n*n*8))
				b.ResetTimer()
				start := cpuTime(b)
				for range b.N {
					r.launch(c.name, c.grid, [3]uint32{c.threads, 1, 1}, 0, x, y, z, n)
					if _, err := r.read(z, 4); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)*n*n*n/(cpuTime(b)-start).Seconds()/1e9, "GFMA/s")
			})
		}
	}
}
