package conformance

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"os"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/cuda"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
)

// open is a gate that always admits work and never expires.
type open struct{}

func (open) Enter() error         { return nil }
func (open) Expired() bool        { return false }
func (open) Leave(uint64, uint64) {}

// one is a kernel (a, b, out *T, n u32) with its expected output.
type one struct {
	kernel string
	n      uint32
	grid   uint32 // blocks of 256 threads
	out    int    // in bytes
	want   func(a, b []byte, n uint32) []byte
}

// u32s, f32s and f64s interpret bytes of the buffers.
func u32s(b []byte, i uint32) uint32  { return binary.LittleEndian.Uint32(b[4*i:]) }
func f32s(b []byte, i uint32) float32 { return math.Float32frombits(u32s(b, i)) }
func f64s(b []byte, i uint32) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
}

// fma32 rounds once: the product of two float32 is exact in float64, and for the
// numbers of these tests the sum is exact too.
func fma32(a, b, c float32) float32 { return float32(float64(a)*float64(b) + float64(c)) }

func each(width int, f func(i uint32) uint64) func(n uint32) []byte {
	return func(n uint32) (out []byte) {
		for i := range n {
			out = append(out, binary.LittleEndian.AppendUint64(nil, f(i))[:width]...)
		}
		return out
	}
}

const side = 64 // size of the matrices

var cases = []one{
	{"add", 1000, 4, 4000, func(a, b []byte, n uint32) []byte {
		return each(4, func(i uint32) uint64 { return uint64(math.Float32bits(f32s(a, i) + f32s(b, i))) })(n)
	}},
	{"saxpy", 1000, 4, 4000, func(a, b []byte, n uint32) []byte {
		return each(4, func(i uint32) uint64 { return uint64(math.Float32bits(fma32(2.5, f32s(a, i), f32s(b, i)))) })(n)
	}},
	{"daxpy", 1000, 4, 8000, func(a, b []byte, n uint32) []byte {
		return each(8, func(i uint32) uint64 { return math.Float64bits(math.FMA(-0.75, f64s(a, i), f64s(b, i))) })(n)
	}},
	{"matmul", side, side * side / 256, side * side * 4, func(a, b []byte, n uint32) []byte {
		return each(4, func(i uint32) uint64 {
			var sum float32
			for k := range n {
				sum = fma32(f32s(a, i/n*n+k), f32s(b, k*n+i%n), sum)
			}
			return uint64(math.Float32bits(sum))
		})(n * n)
	}},
	{"sum", 1000, 4, 4, func(a, _ []byte, n uint32) []byte {
		var sum uint32
		for i := range n {
			sum += u32s(a, i)
		}
		return binary.LittleEndian.AppendUint32(nil, sum)
	}},
	{"collatz", 1000, 4, 4000, func(a, _ []byte, n uint32) []byte {
		return each(4, func(i uint32) (steps uint64) {
			for x := uint64(u32s(a, i)%10000 + 1); x != 1 && steps < 1000; steps++ {
				if x&1 == 1 {
					x = 3*x + 1
				} else {
					x /= 2
				}
			}
			return steps
		})(n)
	}},
	{"reverse", 1024, 4, 4096, func(a, _ []byte, n uint32) []byte {
		return each(4, func(i uint32) uint64 { return uint64(u32s(a, i/256*256+255-i%256)) })(n)
	}},
	{"integers", 1000, 4, 4000, func(a, b []byte, n uint32) []byte {
		return each(4, func(i uint32) uint64 {
			x, y := int32(u32s(a, i)), int32(u32s(b, i)%1000)+1
			high := uint32(uint64(u32s(a, i)) * uint64(u32s(b, i)) >> 32)
			return uint64(uint32(x/y) ^ uint32(x%y) ^ high ^ uint32(bits.OnesCount32(u32s(a, i))) ^ uint32(bits.LeadingZeros32(u32s(a, i))))
		})(n)
	}},
}

// inputs returns small whole numbers if a kernel reads floats (so that sums are
// exact in any order and width), and mixed bits if it reads integers.
func inputs(kernel string) (a, b []byte) {
	for i := range uint32(side * side) {
		x, y := i*2654435761, (i+7)*2246822519
		switch kernel {
		case "add", "saxpy", "matmul":
			x, y = math.Float32bits(float32(x%64)-32), math.Float32bits(float32(y%64)-32)
		case "daxpy":
			a = binary.LittleEndian.AppendUint64(a, math.Float64bits(float64(x)/3))
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(y)/7))
			continue
		}
		a, b = binary.LittleEndian.AppendUint32(a, x), binary.LittleEndian.AppendUint32(b, y)
	}
	return a, b
}

// run runs a kernel on a device and returns what it wrote.
func run(t *testing.T, d worker.Driver, c one) []byte {
	t.Helper()
	ctx, err := d.NewContext(0, open{}, drivertest.Window(t, abi.MaxWindow))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := ctx.Destroy(); err != nil {
			t.Error(err)
		}
	}()
	_, functions, info, err := ctx.ModuleLoad(Kernels, worker.ModuleOptions{OptLevel: 4})
	if err != nil {
		t.Fatalf("ModuleLoad: %v\n%s", err, info.ErrorLog)
	}
	a, b := inputs(c.kernel)
	var params []byte
	alloc := func(size int, content []byte) uint64 {
		p, err := ctx.MemAlloc(uint64(size))
		if err == nil && content != nil {
			err = ctx.CopyHtoD(nil, p, content, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		params = binary.LittleEndian.AppendUint64(params, p)
		return p
	}
	alloc(len(a), a)
	alloc(len(b), b)
	p := alloc(c.out, nil)
	params = binary.LittleEndian.AppendUint32(params, c.n)
	for i, f := range info.Functions {
		if f.Name == c.kernel {
			if err := ctx.Launch(nil, functions[i], worker.Launch{Grid: [3]uint32{c.grid, 1, 1}, Block: [3]uint32{256, 1, 1}, Params: params}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, done := make([]byte, c.out), make(chan error, 1)
	if err := ctx.CopyDtoH(nil, out, p, func(err error) { done <- err }); err != nil {
		t.Fatal(err)
	}
	if err := patience.Receive(t, time.Minute, "it is done", done); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestKernels compares the soft GPU with Go, and the card with the soft GPU.
func TestKernels(t *testing.T) {
	oracle, err := device.New(device.Options{VRAM: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer oracle.Close()
	card, err := cuda.Open(cuda.Options{Library: os.Getenv("BASALT_CUDA_LIBRARY")})
	if err != nil {
		t.Logf("only the soft GPU is checked: there is no card (%v)", err)
		if os.Getenv("BASALT_CHECK_CARD") != "" {
			t.Fatal("BASALT_CHECK_CARD is set")
		}
	} else {
		defer card.Close()
	}
	for _, c := range cases {
		t.Run(c.kernel, func(t *testing.T) {
			a, b := inputs(c.kernel)
			want := c.want(a, b, c.n)
			got := run(t, oracle, c)
			compare(t, "the soft GPU", got, want)
			if card != nil {
				compare(t, "the card", run(t, card, c), got)
			}
		})
	}
}

func compare(t *testing.T, who string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	for i := 0; i+4 <= len(want); i += 4 {
		if !bytes.Equal(got[i:i+4], want[i:i+4]) {
			t.Errorf("output of %s at byte %d = % x, want % x", who, i, got[i:i+4], want[i:i+4])
			return
		}
	}
	t.Errorf("output of %s has %d bytes, want %d", who, len(got), len(want))
}
