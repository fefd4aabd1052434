package drivertest

import (
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// These are values of CUstreamWaitValue_flags.
const (
	waitGEQ = 0
	waitEQ  = 1
)

// waiter returns ctx if its streams can wait for values, or nil.
func (x *tester) waiter(ctx worker.Context) worker.ValueWaiter {
	w, can := ctx.(worker.ValueWaiter)
	attributes := x.driver.Info().Attributes
	if says := len(attributes) > 92 && attributes[92] != 0; says != can {
		x.Errorf("CAN_USE_STREAM_MEM_OPS_V1 = %t, but the contexts implement ValueWaiter: %t", says, can)
	}
	if !can {
		return nil
	}
	return w
}

// testWaitValue checks that a stream waits for a value, and no other stream does.
func testWaitValue(x *tester) {
	ctx := x.context()
	w := x.waiter(ctx)
	if w == nil {
		return
	}
	waits, writes := x.stream(ctx, worker.StreamNonBlocking), x.stream(ctx, worker.StreamNonBlocking)
	p := x.alloc(ctx, 64)
	for _, width := range []uint32{4, 8} {
		x.write(ctx, writes, p, make([]byte, 64))
		done, over := x.done()
		x.check(w.StreamWaitValue(waits, p+8, 5, width, waitGEQ, nil))
		x.check(ctx.StreamWriteValue32(waits, p+16, 77, 0, done))
		if got := x.read64(ctx, writes, p+16); got != 0 {
			x.Errorf("width %d: value written by a waiting stream = %d, want 0", width, got)
		}
		x.check(ctx.StreamWriteValue32(writes, p+8, 6, 0, nil))
		x.check(over())
		if got := x.read64(ctx, writes, p+16); got != x.kept64(77) {
			x.Errorf("width %d: value written after the wait = %d, want 77", width, got)
		}
	}
	for _, bad := range []struct {
		address      uint64
		width, flags uint32
	}{{p + 2, 4, 0}, {p + 4, 8, 0}, {p, 2, 0}, {p, 4, 4}, {p, 4, 1 << 30}, {p + 1<<40, 4, 0}, {^uint64(0) - 7, 8, 0}} {
		x.want(w.StreamWaitValue(waits, bad.address, 0, bad.width, bad.flags, nil), abi.ErrInvalidValue)
	}
}

// testWaitValueEnds checks that a wait for a value that is never written lasts
// until the context ends.
func testWaitValueEnds(x *tester) {
	ctx := x.context()
	w := x.waiter(ctx)
	if w == nil {
		return
	}
	p := x.alloc(ctx, 4)
	x.write(ctx, nil, p, make([]byte, 4))
	var ends []func() error
	for range 50 {
		done, over := x.done()
		x.check(w.StreamWaitValue(x.stream(ctx, worker.StreamNonBlocking), p, 1, 4, waitEQ, done))
		ends = append(ends, over)
	}
	began := time.Now()
	x.check(ctx.Destroy())
	x.forget(ctx)
	for _, over := range ends {
		if over() == nil {
			x.Error("a wait for a value that was not written ended without an error")
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		x.Errorf("a context with waiting streams took %v to end, want at most 10s", took)
	}
}

// testEvictedWaitValue checks that a value which was written before its memory was
// evicted is seen there, without a restore.
func testEvictedWaitValue(x *tester) {
	ctx := x.context()
	w := x.waiter(ctx)
	if w == nil {
		return
	}
	p := x.alloc(ctx, 1<<20)
	x.write(ctx, nil, p, make([]byte, 64))
	x.check(x.await(func(done func(error)) error { return ctx.StreamWriteValue32(nil, p+32, 9, 0, done) }))
	x.evict(ctx, everything)
	x.check(x.await(func(done func(error)) error {
		return w.StreamWaitValue(x.stream(ctx, worker.StreamNonBlocking), p+32, 9, 4, waitEQ, done)
	}))
	x.back(ctx)
}
