package drivertest

import (
	"encoding/binary"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// addition issues add over n elements in blocks of 64 threads and returns the
// address of the sums of i and 2·i.
func addition(x *tester, ctx worker.Context, k map[string]worker.Function, n int, done func(error)) (out uint64) {
	x.Helper()
	a, b := make([]byte, 4*n), make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(a[4*i:], uint32(i))
		binary.LittleEndian.PutUint32(b[4*i:], uint32(2*i))
	}
	pa, pb := x.alloc(ctx, uint64(4*n)), x.alloc(ctx, uint64(4*n))
	out = x.alloc(ctx, uint64(4*n))
	x.write(ctx, nil, pa, a)
	x.write(ctx, nil, pb, b)
	l := worker.Launch{Grid: [3]uint32{uint32(n+63) / 64, 1, 1}, Block: [3]uint32{64, 1, 1}}
	l.Params = binary.LittleEndian.AppendUint32(params(pa, pb, out), uint32(n))
	x.check(ctx.Launch(nil, k["add"], l, done))
	clear(l.Params) // the driver has its own copy
	return out
}

func checkSums(x *tester, ctx worker.Context, out uint64, n int) {
	x.Helper()
	sums := x.read(ctx, nil, out, uint64(4*n))
	for i := range n {
		if got := binary.LittleEndian.Uint32(sums[4*i:]); uint64(got) != x.kept64(uint64(3*i)) {
			x.Errorf("sum %d = %d, want %d", i, got, x.kept64(uint64(3*i)))
			return
		}
	}
}

func testGrid(x *tester) {
	ctx := x.context()
	const n = 10_000
	checkSums(x, ctx, addition(x, ctx, x.kernels(ctx), n, nil), n)
	out := x.alloc(ctx, 8)
	f := x.kernels(ctx)["store"]
	x.check(ctx.FuncSetAttribute(f, 9, 50)) // CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: a hint
	if blocks, err := ctx.OccupancyMaxActiveBlocksPerMultiprocessor(f, 128, 0); err != nil || blocks == 0 {
		x.Errorf("occupancy = %d blocks, %v, want at least 1", blocks, err)
	}
	x.check(x.await(func(done func(error)) error { return ctx.Launch(nil, f, one(out, 77), done) }))
	if got := x.read64(ctx, nil, out); got != x.kept64(77) {
		x.Errorf("value stored by the kernel = %d, want 77", got)
	}
}

func testGateCounts(x *tester) {
	ctx := x.context()
	k := x.kernels(ctx)
	p := x.alloc(ctx, 8)
	const n = 25
	for i := range n {
		x.check(ctx.Launch(nil, k["store"], one(p, uint64(i)), nil))
	}
	x.check(ctx.Launch(nil, k["delay"], one(p, 1, x.o.Loops), nil))
	x.check(x.sync(ctx))
	// A driver may leave the gate slightly after it has called done.
	x.gate.settle()
	x.gate.mu.Lock()
	defer x.gate.mu.Unlock()
	if x.gate.launches != n+1 || x.gate.nanos == 0 || x.gate.entered != x.gate.left {
		x.Errorf("%d launches in %d ns, gate entered %d times and left %d times; want %d launches and as many leaves as entries", x.gate.launches, x.gate.nanos, x.gate.entered, x.gate.left, n+1)
	}
}

// testGateExpires checks that work whose lease expires repeatedly is completed,
// and counted once.
func testGateExpires(x *tester) {
	turn := 0
	x.gate.expired = func() bool { turn++; return turn%2 == 0 }
	ctx := x.context()
	k := x.kernels(ctx)
	if x.o.Image == nil {
		const n = 10_000
		checkSums(x, ctx, addition(x, ctx, k, n, nil), n)
	} else {
		p := x.alloc(ctx, 8)
		x.check(ctx.Launch(nil, k["store"], one(p, 1), nil))
		x.check(x.sync(ctx))
	}
	x.gate.settle()
	x.gate.mu.Lock()
	defer x.gate.mu.Unlock()
	if x.gate.launches != 1 {
		x.Errorf("%d launches, want 1", x.gate.launches)
	}
}

// testGateEnds checks that when the session ends, work that has not begun fails,
// and Destroy returns.
func testGateEnds(x *tester) {
	ctx := x.context()
	k := x.kernels(ctx)
	p := x.alloc(ctx, 8)
	x.gate.close()
	err := x.await(func(done func(error)) error { return ctx.Launch(nil, k["store"], one(p, 1), done) })
	x.want(err, abi.ErrUnavailable)
}

func testDestroyFreesAll(x *tester) {
	for round := range 8 { // 8 × 24 MiB are more than the device has
		ctx, err := x.driver.NewContext(0, x.gate, x.window)
		x.check(err)
		k := x.kernels(ctx)
		p, err := ctx.MemAlloc(24 << 20)
		if err != nil {
			x.Fatalf("round %d: MemAlloc of 24 MiB = %v, want no error", round, err)
		}
		s := x.stream(ctx, 0)
		x.event(ctx)
		x.check(ctx.Launch(s, k["store"], one(p, 1), nil))
		x.check(ctx.Destroy())
	}
}

// testDestroyWhileRunning checks that Destroy stops running work, and that every
// done is called.
func testDestroyWhileRunning(x *tester) {
	ctx := x.context()
	k := x.kernels(ctx)
	p := x.alloc(ctx, 8)
	s := x.stream(ctx, 0)
	e := x.event(ctx)
	var waits []func() error
	for i := range 10 {
		done, wait := x.done()
		waits = append(waits, wait)
		x.check(ctx.Launch(s, k["delay"], one(p, uint64(i), x.o.Loops), done))
	}
	x.check(ctx.EventRecord(e, s))
	done, wait := x.done()
	x.check(ctx.EventNotify(e, done))
	x.forget(ctx)
	destroyed := make(chan error, 1)
	go func() { destroyed <- ctx.Destroy() }()
	select {
	case err := <-destroyed:
		x.check(err)
	case <-time.After(patience):
		x.Fatalf("Destroy did not return within %v", patience)
	}
	for _, wait := range append(waits, wait) {
		_ = wait() // with or without an error; done is called once each
	}
}
