package soft_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// underLock returns the sum after the kernels with a lock, in which that many threads
// take turns.
func underLock(threads int, a []int32, rounds int) int32 {
	// All threads add the same numbers, but in an unknown order: with one number the order
	// does not matter.
	sum := int32(0)
	for range threads * rounds {
		sum = sum*3%1000003 + a[0]
	}
	return sum
}

// lockKernels are the kernels in which every thread takes a lock.
var lockKernels = []string{"locked", "trylocked", "tickets"}

func TestLocks(t *testing.T) {
	r := newRig(t, kernelFile(t, "wait"))
	a := []int32{7, 7, 7}
	for _, name := range lockKernels {
		for _, size := range [][3]int{{1, 32, 3}, {1, 128, 3}, {4, 128, 3}, {40, 64, 1}, {2, 1024, 1}} {
			rounds := size[2]
			l, sum := r.buffer(make([]byte, 8)), r.buffer(make([]byte, 4))
			r.launch(name, [3]uint32{uint32(size[0]), 1, 1}, [3]uint32{uint32(size[1]), 1, 1}, 0, l, sum, r.buffer(raw(a)), rounds)
			r.expect(sum, 1, func(int) uint32 { return uint32(underLock(size[0]*size[1], a, rounds)) })
		}
	}
}

// stencil returns the results of gridstencil.
func stencil(x []int32, block, rounds int) []int32 {
	n := len(x)
	for range rounds {
		y := make([]int32, n)
		for i := range y {
			y[i] = 3*x[i] + x[(i+n-1)%n] - 5*x[(i+block)%n]
		}
		x = y
	}
	return x
}

func numbers(n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(i*7919%1009 - 500)
	}
	return v
}

// TestGridBarrier checks that the blocks of a grid of any size may wait for each other;
// on a GPU those of one whose blocks are all resident.
func TestGridBarrier(t *testing.T) {
	r := newRig(t, kernelFile(t, "wait"))
	const rounds = 5
	for _, size := range [][2]int{{1, 64}, {2, 64}, {3, 100}, {64, 256}, {1000, 32}, {5000, 32}} {
		size[0] = r.together("gridstencil", size[0], size[1])
		x := numbers(size[0] * size[1])
		dx, dy := r.buffer(raw(x)), r.buffer(make([]byte, 4*len(x)))
		r.launch("gridstencil", [3]uint32{uint32(size[0]), 1, 1}, [3]uint32{uint32(size[1]), 1, 1}, 0, r.buffer(make([]byte, 4)), dx, dy, rounds)
		want := stencil(x, size[1], rounds)
		r.expect(dy, len(x), func(i int) uint32 { return uint32(want[i]) })
	}
}

func TestLookBack(t *testing.T) {
	r := newRig(t, kernelFile(t, "wait"))
	for _, size := range [][2]int{{1, 32}, {7, 64}, {2000, 64}, {300, 256}} {
		a := numbers(size[0] * size[1])
		c := r.buffer(make([]byte, 4*len(a)))
		r.launch("lookback", [3]uint32{uint32(size[0]), 1, 1}, [3]uint32{uint32(size[1]), 1, 1}, uint32(4*size[1]), r.buffer(raw(a)), r.buffer(make([]byte, 8*size[0])), c)
		want := make([]int32, len(a))
		for i, x := range a {
			want[i] = x + want[max(i-1, 0)]
		}
		r.expect(c, len(a), func(i int) uint32 { return uint32(want[i]) })
	}
}

func TestQueue(t *testing.T) {
	r := newRig(t, kernelFile(t, "wait"))
	for _, size := range [][3]int{{2, 1, 1}, {2, 32, 64}, {8, 64, 16}, {64, 64, 256}} {
		blocks, threads := size[0], size[1]
		sum := r.buffer(make([]byte, 4))
		r.launch("queue", [3]uint32{uint32(blocks), 1, 1}, [3]uint32{uint32(threads), 1, 1}, 0, r.buffer(make([]byte, 8)), r.buffer(make([]byte, 8*size[2])), sum, size[2])
		want := 0
		for i := range blocks / 2 * threads {
			for k := range 16 {
				want += i + 1000*k
			}
		}
		r.expect(sum, 1, func(int) uint32 { return uint32(want) })
	}
}

func TestRelay(t *testing.T) {
	r := newRig(t, kernelFile(t, "wait"))
	blocks := r.together("relay", 3000, 32)
	c := r.buffer(make([]byte, 4*blocks))
	r.launch("relay", [3]uint32{uint32(blocks), 1, 1}, [3]uint32{32, 1, 1}, 0, c)
	r.expect(c, blocks, func(i int) uint32 { return uint32(blocks - i) })
}

// cooperate launches a kernel whose blocks are all resident.
func (r *rig) cooperate(name string, grid, block uint32, args ...any) error {
	l := worker.Launch{Grid: [3]uint32{grid, 1, 1}, Block: [3]uint32{block, 1, 1}, Cooperative: true, Params: pack(args...)}
	return r.c.Launch(nil, r.funcs[name], l, nil)
}

// TestCooperativeLaunch checks that as many blocks as the occupancy reports can use the
// workspace, in which cooperative groups have their barrier, and no more.
func TestCooperativeLaunch(t *testing.T) {
	r := newRig(t, kernelFile(t, "wait"))
	const rounds = 6
	for _, block := range []int{1024, 256, 100, 32} {
		each, err := r.c.OccupancyMaxActiveBlocksPerMultiprocessor(r.funcs["coopstencil"], int32(block), 0)
		if err != nil {
			t.Fatal(err)
		}
		if most := min(2048/((block+31)&^31), 32); each < 1 || int(each) > most {
			t.Fatalf("occupancy = %d blocks of %d threads, want 1 to %d", each, block, most)
		}
		grid := 2 * int(each)
		x := numbers(grid * block)
		dx, dy := r.buffer(raw(x)), r.buffer(make([]byte, 4*len(x)))
		for range 2 { // the second launch must find the workspace cleared
			if err := r.c.CopyHtoD(nil, dx, raw(x), nil); err != nil {
				t.Fatal(err)
			}
			if err := r.cooperate("coopstencil", uint32(grid), uint32(block), uint64(0), dx, dy, rounds-1); err != nil {
				t.Fatal(err)
			}
			want := stencil(x, block, rounds-1)
			r.expect(dy, len(x), func(i int) uint32 { return uint32(want[i]) })
		}
		if err := r.cooperate("coopstencil", uint32(grid+1), uint32(block), uint64(0), dx, dy, rounds); !errors.Is(err, abi.ErrCooperativeTooLarge) {
			t.Errorf("cooperative launch of %d blocks: error %v, want %v", grid+1, err, abi.ErrCooperativeTooLarge)
		}
	}
}

// TestWorkspace checks that only a cooperative launch has a workspace, by which
// programs know whether their grid can synchronize.
func TestWorkspace(t *testing.T) {
	r := newRig(t, kernelFile(t, "wait"))
	c := r.buffer(make([]byte, 4))
	r.launch("hasworkspace", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, c)
	r.expect(c, 1, func(int) uint32 { return 0 })
	if err := r.cooperate("hasworkspace", 1, 1, c); err != nil {
		t.Fatal(err)
	}
	r.expect(c, 1, func(int) uint32 { return 1 })
	r.launch("hasworkspace", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, c)
	r.expect(c, 1, func(int) uint32 { return 0 })
}

// TestGridSynchronizes checks that the blocks of a grid that call cudaCGSynchronize of a
// linked device runtime wait for each other each time, that a grid that was not launched for it
// has no handle and gets an error, and that the vendor's object with the function is left out.
func TestGridSynchronizes(t *testing.T) {
	const blocks, threads, rounds = 12, 40, 3
	r := newLinkedRig(t, gridPTX, ptxHead+`
.extern .func driverOnly(); .visible .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags) { call driverOnly; ret; }`)
	counts, sums := r.buffer(make([]byte, 4*rounds)), r.buffer(make([]byte, 4*blocks*threads))
	if err := r.cooperate("k", blocks, threads, counts, sums); err != nil {
		t.Fatal(err)
	}
	r.expect(sums, blocks*threads, func(int) uint32 { return rounds * blocks * threads })
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{threads, 1, 1}, 0, counts, sums)
	r.expect(sums, threads, func(int) uint32 { return 1 })
}

// gridPTX is a kernel in which each thread adds 1 to each counter, waits for the grid, and
// adds the counter up, which by then has 1 of each thread. Without a handle it stores the
// error of the call.
const gridPTX = ptxHead + `
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.visible .entry k(.param .u64 counts, .param .u64 sums) {
	.reg .pred %p; .reg .b32 %i, %n, %sum, %code, %t; .reg .b64 %c, %s, %h, %at;
	ld.param.u64 %c, [counts]; ld.param.u64 %s, [sums];
	mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, %n, %t;
	mul.wide.u32 %at, %i, 4; add.u64 %s, %s, %at;
	{ .param .b32 scope; .param .b64 r; st.param.b32 [scope], 1; call (r), cudaCGGetIntrinsicHandle, (scope); ld.param.b64 %h, [r]; }
	mov.u32 %sum, 0; mov.u32 %i, 0;
AGAIN:
	red.global.add.u32 [%c], 1;
	{ .param .b64 h; .param .b32 flags, r; st.param.b64 [h], %h; st.param.b32 [flags], 0; call (r), cudaCGSynchronize, (h, flags); ld.param.b32 %code, [r]; }
	setp.ne.u32 %p, %code, 0; @%p bra END;
	ld.global.u32 %n, [%c]; add.u32 %sum, %sum, %n;
	add.u64 %c, %c, 4; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 3; @%p bra AGAIN;
	mov.u32 %code, %sum;
END:
	st.global.u32 [%s], %code;
	ret;
}`

// turnstile is a gate that can be closed, with work inside or not.
type turnstile struct {
	mu     sync.Mutex
	cond   sync.Cond
	shut   bool
	inside int
}

func (g *turnstile) Enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.shut {
		g.cond.Wait()
	}
	g.inside++
	return nil
}

func (g *turnstile) Expired() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

func (g *turnstile) Leave(uint64, uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
}

func (g *turnstile) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	g.cond.Broadcast()
}

func (g *turnstile) busy() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside > 0
}

// spinning returns a context in which blocks spin until the word at an address changes,
// and the channel that receives the error of the launch.
func spinning(t *testing.T, g *turnstile, blocks uint32) (r *rig, word uint64, ended chan error) {
	d, err := device.New(device.Options{VRAM: 64 << 20, SMs: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := d.NewContext(0, g, testWindow)
	if err != nil {
		t.Fatal(err)
	}
	r = &rig{TB: t, c: c, funcs: map[string]worker.Function{}}
	r.load(kernelFile(t, "wait"))
	word, ended = r.buffer(make([]byte, 4)), make(chan error, 1)
	s, err := c.StreamCreate(worker.StreamNonBlocking, 0)
	if err != nil {
		t.Fatal(err)
	}
	l := worker.Launch{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: pack(word)}
	if err := c.Launch(s, r.funcs["forever"], l, func(err error) { ended <- err }); err != nil {
		t.Fatal(err)
	}
	return r, word, ended
}

// TestSpinningKernelPauses checks that a kernel that spins leaves the device when its
// slice ends, and continues later.
func TestSpinningKernelPauses(t *testing.T) {
	for _, blocks := range []uint32{1, 2, 500} {
		g := &turnstile{}
		g.cond.L = &g.mu
		r, word, ended := spinning(t, g, blocks)
		for range 3 {
			patience.Until(t, time.Minute, "the kernel runs", g.busy)
			g.set(true)
			patience.Until(t, time.Minute, "the kernel pauses", func() bool { return !g.busy() })
			g.set(false)
		}
		if err := r.c.CopyHtoD(nil, word, []byte{1, 0, 0, 0}, nil); err != nil {
			t.Fatal(err)
		}
		if err := patience.Receive(t, time.Minute, "the kernel ends", ended); err != nil {
			t.Error(err)
		}
	}
}

// TestSpinningKernelStops checks that a kernel that spins ends with its context.
func TestSpinningKernelStops(t *testing.T) {
	for _, blocks := range []uint32{1, 2, 500} {
		g := &turnstile{}
		g.cond.L = &g.mu
		r, _, ended := spinning(t, g, blocks)
		patience.Until(t, time.Minute, "the kernel runs", g.busy)
		if err := r.c.Destroy(); err != nil {
			t.Fatal(err)
		}
		if err := patience.Receive(t, time.Minute, "the kernel ends", ended); err == nil {
			t.Error("error of the kernel of a destroyed context = nil, want one")
		}
	}
}
