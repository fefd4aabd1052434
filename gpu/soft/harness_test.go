package soft_test

import (
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"os"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// testWindow is the address window of the tests' contexts.
var testWindow = worker.NewWindow(abi.Windows()[0])

// rig is a context with a module, for tests.
type rig struct {
	testing.TB
	d      worker.Driver
	c      worker.Context
	module worker.Module // the module loaded last
	funcs  map[string]worker.Function
}

func newRig(t testing.TB, src string) *rig {
	t.Helper()
	return newRigOf(t, device.Options{VRAM: 256 << 20, SMs: 2, Engine: exec.Compiled}, src)
}

func newRigOf(t testing.TB, o device.Options, src string) *rig {
	t.Helper()
	return newGatedRig(t, o, nil, src)
}

func newGatedRig(t testing.TB, o device.Options, gate worker.Gate, src string) *rig {
	t.Helper()
	if d := card(t); d != nil {
		skipNewer(t, d, src)
		r := &rig{TB: t, d: d, c: onCard(t, d), funcs: map[string]worker.Function{}}
		r.load(src)
		return r
	}
	d, err := device.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := d.NewContext(0, gate, testWindow)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{TB: t, d: d, c: c, funcs: map[string]worker.Function{}}
	r.load(src)
	return r
}

// load loads a module and adds its kernels.
func (r *rig) load(src string) {
	r.Helper()
	module, funcs, info, err := r.c.ModuleLoad([]byte(src), worker.ModuleOptions{})
	r.module = module
	if err != nil {
		r.Fatalf("load module: %v\n%s", err, info.ErrorLog)
	}
	for i, f := range info.Functions {
		r.funcs[f.Name] = funcs[i]
	}
}

// refusal loads a module into a new context and returns the error log of the load and
// the error of the launch of its first kernel, or of the load if the PTX is invalid.
func refusal(t testing.TB, src string) (string, error) {
	t.Helper()
	r := newRig(t, ptxHead)
	_, funcs, info, err := r.c.ModuleLoad([]byte(src), worker.ModuleOptions{})
	if errors.Is(err, abi.ErrInvalidPTX) {
		return info.ErrorLog, err
	}
	if err != nil {
		t.Fatalf("load module: %v, want it loaded with a refused kernel", err)
	}
	return info.ErrorLog, r.c.Launch(nil, funcs[0], worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, nil)
}

func kernelFile(t testing.TB, name string) string {
	t.Helper()
	src, err := os.ReadFile("testdata/kernels/" + name + ".ptx")
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

func (r *rig) buffer(data []byte) uint64 {
	r.Helper()
	a, err := r.c.MemAlloc(uint64(len(data)))
	if err != nil {
		r.Fatal(err)
	}
	if err := r.c.CopyHtoD(nil, a, data, nil); err != nil {
		r.Fatal(err)
	}
	return a
}

// read copies memory to the host in the default stream, and waits for it.
func (r *rig) read(a uint64, n int) ([]byte, error) {
	defer limitKernel(r.TB)()
	out := make([]byte, n)
	ch := make(chan error, 1)
	if err := r.c.CopyDtoH(nil, out, a, func(err error) { ch <- err }); err != nil {
		return nil, err
	}
	return out, <-ch
}

// expect waits for the kernels launched so far and compares n words.
func (r *rig) expect(a uint64, n int, want func(i int) uint32) {
	r.Helper()
	got := make([]byte, 4*n)
	done := make(chan error, 1)
	if err := r.c.CopyDtoH(nil, got, a, func(err error) { done <- err }); err != nil {
		r.Fatal(err)
	}
	if err := patience.Receive(r.TB, time.Minute, "the kernel ends", done); err != nil {
		r.Fatal(err)
	}
	for i, v := range i32s(got) {
		if uint32(v) != want(i) {
			r.Errorf("word %d = %#x, want %#x", i, uint32(v), want(i))
		}
	}
}

// launch launches a kernel with arguments of type u64 and u32, given by the types of
// the values.
func (r *rig) launch(name string, grid, block [3]uint32, shared uint32, args ...any) {
	r.Helper()
	f := r.funcs[name]
	if f == nil {
		r.Fatalf("module has no kernel %s", name)
	}
	if err := r.c.Launch(nil, f, worker.Launch{Grid: grid, Block: block, Shared: shared, Params: pack(args...)}, nil); err != nil {
		r.Fatal(err)
	}
}

func pack(args ...any) []byte {
	var p []byte
	for _, a := range args {
		switch a := a.(type) {
		case uint64:
			for len(p)%8 != 0 {
				p = append(p, 0)
			}
			p = binary.LittleEndian.AppendUint64(p, a)
		case uint32:
			p = binary.LittleEndian.AppendUint32(p, a)
		case int:
			p = binary.LittleEndian.AppendUint32(p, uint32(a))
		case []byte:
			for len(p)%8 != 0 {
				p = append(p, 0)
			}
			p = append(p, a...)
		}
	}
	return p
}

// fmaOf returns a*b+c rounded once, computed exactly.
func fmaOf(a, b, c float32) float32 {
	x, y, z := float64(a), float64(b), float64(c)
	quick := math.FMA(x, y, z) // correct for special results: infinite, NaN, or a zero with its sign
	if quick-quick != 0 || quick == 0 {
		return float32(quick)
	}
	product := new(big.Float).SetPrec(64).Mul(big.NewFloat(x), big.NewFloat(y))
	once, _ := new(big.Float).SetPrec(1000).Add(product, big.NewFloat(z)).Float32()
	return once
}

// resultBits returns the bits of an f32 as instructions return it: there is one NaN.
func resultBits(x float32) uint32 {
	if x != x {
		return 0x7fffffff
	}
	return math.Float32bits(x)
}

// half returns the value of an f16.
func half(a uint32) float32 {
	sign, exp, frac := float64(1), int(a>>10&0x1f), float64(a&0x3ff)
	if a&0x8000 != 0 {
		sign = -1
	}
	switch {
	case exp == 0x1f && frac != 0:
		return float32(math.NaN())
	case exp == 0x1f:
		return float32(math.Inf(int(sign)))
	case exp == 0:
		return float32(math.Ldexp(sign*frac, -24))
	}
	return float32(math.Ldexp(sign*(1024+frac), exp-25))
}

// halfBits returns x rounded to the nearest f16, to even at a tie.
func halfBits(x float64) uint16 {
	if x != x {
		return 0x7fff
	}
	sign := uint16(0)
	if math.Signbit(x) {
		sign, x = 0x8000, -x
	}
	if x == 0 {
		return sign
	}
	if x >= 65520 {
		return sign | 0x7c00
	}
	_, exp := math.Frexp(x)
	unit := max(exp-11, -24) // of the last place
	return sign | (uint16(unit+24)<<10 + uint16(math.RoundToEven(math.Ldexp(x, -unit))))
}
