package soft_test

import (
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
)

// TestLoopsInGo checks that the interpreter has the same results without vector
// instructions. The other tests use those that the processor has.
func TestLoopsInGo(t *testing.T) {
	if card(t) != nil {
		t.Skip("GPU: this test is for the interpreter only")
	}
	before := exec.UseVectors(false)
	defer exec.UseVectors(before)
	engines := randEngines(t, exec.Interpreted)
	n := int64(30)
	if testing.Short() {
		n = 12
	}
	for seed := range n {
		differ(t, engines, randomProgram(seed), seed)
	}
	for seed := range n / 5 {
		src, threads := randomRegions(seed)
		differOf(t, engines, regionBlocks, threads, src, seed)
		g := newRandSteady(seed)
		steadyAgree(t, engines, g, g.program(), seed)
	}
	for _, k := range slices.Concat(kernelCases, tileCases, partitionCases) {
		kernelAgainstOracle(t, &k, exec.Interpreted)
	}
}

// TestWideAccesses compares loads and stores of whole warps, with all patterns of
// addresses, with those of single lanes: at the boundaries of an allocation and across
// two of them.
func TestWideAccesses(t *testing.T) {
	if card(t) != nil {
		t.Skip("GPU: accesses outside of an allocation are undefined")
	}
	const src = ptxHead + `.visible .entry k(.param .u64 p, .param .u64 q, .param .u64 at, .param .u32 step, .param .u32 bend) {
	.reg .u64 %p, %q, %a, %x, %y; .reg .u32 %t, %s, %b, %v; .reg .pred %c;
	ld.param.u64 %p, [p]; ld.param.u64 %q, [q]; ld.param.u64 %a, [at]; ld.param.u32 %s, [step]; ld.param.u32 %b, [bend];
	mov.u32 %t, %tid.x;
	mul.lo.u32 %v, %t, %s;
	setp.ge.u32 %c, %t, %b;
	@%c add.u32 %v, %v, 4;
	cvt.s64.s32 %x, %v;
	add.u64 %x, %x, %a;
	ld.global.u32 %v, [%x];
	xor.b32 %v, %v, %t;
	st.global.u32 [%x], %v;
	mul.wide.u32 %y, %t, 4;
	add.u64 %y, %y, %q;
	st.global.u32 [%y], %v;
	ret;
}`
	const size, threads = 4096, 96
	var r [2]*rig // without vectors, and with
	begin := func() {
		for i := range r {
			before := exec.UseVectors(i == 1)
			r[i] = newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 1, Engine: exec.Interpreted}, src)
			r[i].wide(t, size, threads, 0, 4, 1000) // compiles the program
			exec.UseVectors(before)
		}
	}
	begin()
	right, wrong := 0, 0
	for _, step := range []int32{0, 4, 8, -4, 3, 1 << 20} {
		for _, at := range []int{0, 4, 1, size - 4, size - 4*threads, size - 4*32, size - 4*33, 2048} {
			for _, bend := range []uint32{0, 1, 33, 95, 1000} {
				want, failed := r[0].wide(t, size, threads, at, step, bend)
				got, fails := r[1].wide(t, size, threads, at, step, bend)
				if fails != failed || !slices.Equal(got, want) {
					t.Fatalf("accesses from %d in steps of %d, bent at %d: failed = %t, want %t and the same bytes as without vectors", at, step, bend, fails, failed)
				}
				right++
				if failed { // the contexts are destroyed
					wrong++
					begin()
				}
			}
		}
	}
	if right -= wrong; right < 50 || wrong < 20 {
		t.Errorf("%d launches succeeded and %d failed, want at least 50 and 20", right, wrong)
	}
}

// wide executes the kernel of TestWideAccesses on new memory, and returns the memory
// after it, or whether it failed.
func (r *rig) wide(t *testing.T, size, threads, at int, step int32, bend uint32) (left []byte, failed bool) {
	t.Helper()
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i*7 + i>>8)
	}
	p, q := r.buffer(data), r.buffer(make([]byte, 4*threads))
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{uint32(threads), 1, 1}, 0, p, q, p+uint64(at), uint32(step), bend)
	left, err := r.read(p, size)
	if err != nil {
		return nil, true
	}
	out, err := r.read(q, 4*threads)
	if err != nil {
		return nil, true
	}
	for _, a := range []uint64{p, q} {
		if err := r.c.MemFree(a); err != nil {
			t.Fatal(err)
		}
	}
	return append(left, out...), false
}
