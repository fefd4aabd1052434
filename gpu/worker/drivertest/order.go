package drivertest

import (
	"errors"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

func testStreamOrder(x *tester) {
	ctx := x.context()
	k := x.kernels(ctx)
	p := x.alloc(ctx, 8)
	for _, s := range []worker.Stream{nil, x.stream(ctx, 0), x.stream(ctx, worker.StreamNonBlocking)} {
		x.check(ctx.Launch(s, k["delay"], one(p, 1, x.o.Loops), nil))
		x.check(ctx.Launch(s, k["store"], one(p, 2), nil))
		if got := x.read64(ctx, s, p); got != x.kept64(2) {
			x.Errorf("value after two launches in a stream = %d, want 2", got)
		}
		x.check(ctx.Launch(s, k["delay"], one(p, 3, x.o.Loops), nil))
		x.check(ctx.Memset(s, p, 4, 4, 1, nil))
		if got := x.read64(ctx, s, p); got != x.kept64(4) {
			x.Errorf("value after a memset = %d, want 4", got)
		}
	}
	// The done functions of one stream are called in its order.
	var mu sync.Mutex
	var order []int
	var waits []func() error
	for i := range 20 {
		done, wait := x.done()
		waits = append(waits, wait)
		x.check(ctx.Launch(nil, k["store"], one(p, uint64(i)), func(err error) {
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			done(err)
		}))
	}
	for _, wait := range waits {
		x.check(wait())
	}
	for i, n := range order {
		if i != n {
			x.Errorf("done functions were called in the order %v, want ascending", order)
			break
		}
	}
}

// testDefaultStreamWaits checks that work in the default stream begins when all
// work that was issued before it in blocking streams has ended.
func testDefaultStreamWaits(x *tester) {
	ctx := x.context()
	k := x.kernels(ctx)
	s, u := x.stream(ctx, 0), x.stream(ctx, 0)
	p, q := x.alloc(ctx, 8), x.alloc(ctx, 8)
	x.check(ctx.Launch(s, k["delay"], one(p, 5, x.o.Loops), nil))
	x.check(ctx.Launch(u, k["delay"], one(q, 6, x.o.Loops), nil))
	if got := x.read64(ctx, nil, p); got != x.kept64(5) {
		x.Errorf("value of the first stream = %d, want 5", got)
	}
	if got := x.read64(ctx, nil, q); got != x.kept64(6) {
		x.Errorf("value of the second stream = %d, want 6", got)
	}
}

// testStreamsWaitForDefault checks the reverse: work in blocking streams begins
// when earlier work of the default stream has ended.
func testStreamsWaitForDefault(x *tester) {
	ctx := x.context()
	k := x.kernels(ctx)
	s := x.stream(ctx, 0)
	p := x.alloc(ctx, 8)
	x.check(ctx.Launch(nil, k["delay"], one(p, 7, x.o.Loops), nil))
	if got := x.read64(ctx, s, p); got != x.kept64(7) {
		x.Errorf("value of the default stream = %d, want 7", got)
	}
	later := x.stream(ctx, 0) // a stream that did not exist when the work was issued
	x.check(ctx.Launch(nil, k["delay"], one(p, 8, x.o.Loops), nil))
	if got := x.read64(ctx, later, p); got != x.kept64(8) {
		x.Errorf("value of the default stream, read in a later stream = %d, want 8", got)
	}
}

// testNonBlockingStreams checks the order of non-blocking streams by events.
func testNonBlockingStreams(x *tester) {
	ctx := x.context()
	k := x.kernels(ctx)
	a, b := x.stream(ctx, worker.StreamNonBlocking), x.stream(ctx, worker.StreamNonBlocking)
	p := x.alloc(ctx, 8)
	e := x.event(ctx)
	x.check(ctx.StreamWaitEvent(b, e)) // never recorded: no wait
	x.check(ctx.Launch(a, k["delay"], one(p, 9, x.o.Loops), nil))
	x.check(ctx.EventRecord(e, a))
	x.check(ctx.StreamWaitEvent(b, e))
	x.check(ctx.EventDestroy(e)) // the wait remains in effect
	if got := x.read64(ctx, b, p); got != x.kept64(9) {
		x.Errorf("value after the event = %d, want 9", got)
	}
	// A destroyed stream's work still completes.
	x.check(ctx.Launch(a, k["delay"], one(p, 10, x.o.Loops), nil))
	x.check(ctx.StreamDestroy(a))
	x.check(x.sync(ctx))
	if got := x.read64(ctx, b, p); got != x.kept64(10) {
		x.Errorf("value of a destroyed stream's work = %d, want 10", got)
	}
}

func testNotify(x *tester) {
	ctx := x.context()
	k := x.kernels(ctx)
	x.check(x.sync(ctx)) // without work
	s := x.stream(ctx, worker.StreamNonBlocking)
	x.check(ctx.StreamQuery(s))
	p := x.alloc(ctx, 8)
	x.check(ctx.Launch(s, k["delay"], one(p, 1, x.o.Loops), nil))
	if err := ctx.StreamQuery(s); err != nil && !errors.Is(err, abi.ErrNotReady) {
		x.Error(err)
	}
	x.check(x.await(func(done func(error)) error { return ctx.StreamNotify(s, done) }))
	x.check(ctx.StreamQuery(s))
	if got := x.read64(ctx, nil, p); got != x.kept64(1) {
		x.Errorf("value after StreamNotify = %d, want 1", got)
	}
	x.check(ctx.Launch(s, k["delay"], one(p, 2, x.o.Loops), nil))
	x.check(x.sync(ctx)) // of all streams, including non-blocking ones
	if got := x.read64(ctx, nil, p); got != x.kept64(2) {
		x.Errorf("value after Notify = %d, want 2", got)
	}
}

func testEvents(x *tester) {
	ctx := x.context()
	k := x.kernels(ctx)
	s := x.stream(ctx, 0)
	p := x.alloc(ctx, 8)
	e := x.event(ctx)
	x.check(ctx.EventQuery(e))
	x.check(x.await(func(done func(error)) error { return ctx.EventNotify(e, done) }))
	for value := range uint64(3) { // recording again replaces the record
		x.check(ctx.EventRecord(e, s))
		x.check(ctx.Launch(s, k["delay"], one(p, value+1, x.o.Loops), nil))
		x.check(ctx.EventRecord(e, s))
		if err := ctx.EventQuery(e); err != nil && !errors.Is(err, abi.ErrNotReady) {
			x.Error(err)
		}
		x.check(x.await(func(done func(error)) error { return ctx.EventNotify(e, done) }))
		x.check(ctx.EventQuery(e))
		n := x.stream(ctx, worker.StreamNonBlocking)
		if got := x.read64(ctx, n, p); got != x.kept64(value+1) {
			x.Errorf("value after the event = %d, want %d", got, value+1)
		}
	}
	x.check(ctx.EventDestroy(e))
}

func testElapsed(x *tester) {
	ctx := x.context()
	k := x.kernels(ctx)
	p := x.alloc(ctx, 8)
	start, end, never := x.event(ctx), x.event(ctx), x.event(ctx)
	x.check(ctx.EventRecord(start, nil))
	x.check(ctx.Launch(nil, k["delay"], one(p, 1, x.o.Loops), nil))
	x.check(ctx.EventRecord(end, nil))
	x.check(x.sync(ctx))
	ms, err := ctx.EventElapsedTime(start, end)
	x.check(err)
	if back, err := ctx.EventElapsedTime(end, start); err != nil || ms <= 0 || back != -ms {
		x.Errorf("elapsed time = %g ms, in reverse %g ms, %v; want a positive time and its negative", ms, back, err)
	}
	_, err = ctx.EventElapsedTime(start, never)
	x.want(err, abi.ErrInvalidHandle)
}

// testWriteValue checks numbers written in the order of a stream, on devices that
// support that.
func testWriteValue(x *tester) {
	ctx := x.context()
	s := x.stream(ctx, worker.StreamNonBlocking)
	p := x.alloc(ctx, 16)
	err := ctx.StreamWriteValue64(s, p+8, 1<<40+5, 0, nil)
	if errors.Is(err, abi.ErrNotSupported) {
		return
	}
	x.check(err)
	x.check(ctx.StreamWriteValue32(s, p+8, 7, 0, nil))
	if got := x.read64(ctx, s, p+8); got != x.kept64(1<<40+7) {
		x.Errorf("value = %#x, want %#x", got, x.kept64(1<<40+7))
	}
	x.want(ctx.StreamWriteValue32(s, p+1<<40, 7, 0, nil), abi.ErrInvalidValue)
}

// testMemFreeAsync checks that a stream-ordered free waits for its stream, and
// frees once.
func testMemFreeAsync(x *tester) {
	ctx := x.context()
	k := x.kernels(ctx)
	for _, s := range []worker.Stream{nil, x.stream(ctx, 0), x.stream(ctx, worker.StreamNonBlocking)} {
		p := x.alloc(ctx, 8)
		launched, launch := x.done()
		freed, free := x.done()
		x.check(ctx.Launch(s, k["delay"], one(p, 1, x.o.Loops), launched))
		x.check(ctx.MemFreeAsync(s, p, freed))
		x.check(free())
		x.check(launch()) // before the free, so it may use the memory
		if err := ctx.MemFree(p); err == nil {
			x.Error("MemFree after MemFreeAsync returned no error")
		}
		if err := ctx.MemFreeAsync(s, p, func(error) {}); err == nil {
			x.Error("second MemFreeAsync returned no error")
		}
	}
	x.check(x.sync(ctx))
}
