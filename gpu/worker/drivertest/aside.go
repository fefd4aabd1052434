package drivertest

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// image returns an image with the suite's kernels.
func (x *tester) image() []byte {
	if x.o.Image != nil {
		return x.o.Image
	}
	return []byte(Kernels)
}

// testLoadsAside loads modules from several goroutines while the context works.
func testLoadsAside(x *tester) {
	ctx, other := x.context(), x.context()
	k := x.kernels(ctx)
	p := x.alloc(ctx, 8)
	var loaders sync.WaitGroup
	for range 4 {
		loaders.Go(func() {
			for range 5 {
				m, functions, _, err := ctx.ModuleLoad(x.image(), worker.ModuleOptions{})
				if err != nil || len(functions) == 0 {
					x.Errorf("ModuleLoad beside others: %d functions, %v", len(functions), err)
					return
				}
				if err := ctx.ModuleUnload(m); err != nil {
					x.Errorf("ModuleUnload beside others = %v, want no error", err)
				}
			}
		})
	}
	for i := range uint64(50) {
		x.check(ctx.Launch(nil, k["store"], one(p, i), nil))
		x.check(x.await(other.Notify))
	}
	loaders.Wait()
	if got := x.read64(ctx, nil, p); got != x.kept64(49) {
		x.Errorf("value stored by the last launch = %d, want 49", got)
	}
}

// testDestroyDuringLoads checks that a context that is destroyed while modules
// are loaded into it leaves nothing behind, and that another context works.
func testDestroyDuringLoads(x *tester) {
	neighbour := x.context()
	p := x.alloc(neighbour, 8)
	for i := range 5 {
		ctx, err := x.driver.NewContext(0, x.gate, x.window)
		x.check(err)
		var loaders sync.WaitGroup
		for range 2 {
			loaders.Go(func() {
				for {
					m, _, _, err := ctx.ModuleLoad(x.image(), worker.ModuleOptions{})
					if err != nil {
						if !errors.Is(err, abi.ErrInvalidContext) {
							x.Errorf("ModuleLoad into a context that is being destroyed = %v, want %v", err, abi.ErrInvalidContext)
						}
						return
					}
					_ = ctx.ModuleUnload(m) // which is allowed after Destroy
				}
			})
		}
		time.Sleep(time.Duration(i) * time.Millisecond)
		x.check(ctx.Destroy())
		loaders.Wait()
	}
	x.write(neighbour, nil, p, make([]byte, 8))
}

// testAllocationsAside allocates from several goroutines while the context works. All
// memory is zero, also where other memory has been freed.
func testAllocationsAside(x *tester) {
	ctx := x.context()
	p := x.alloc(ctx, 8)
	const size, threads, each = 300 << 10, 4, 4
	for range 3 {
		addresses := make(chan uint64, threads*each)
		var all sync.WaitGroup
		for range threads {
			all.Go(func() {
				for range each {
					a, err := ctx.MemAlloc(size)
					if err != nil {
						x.Errorf("MemAlloc beside others = %v, want no error", err)
						return
					}
					addresses <- a
				}
			})
		}
		for range 20 {
			x.check(ctx.Memset(nil, p, 1, 4, 2, nil))
			x.check(x.await(ctx.Notify))
		}
		all.Wait()
		close(addresses)
		for a := range addresses {
			if b := x.read(ctx, nil, a, size); !bytes.Equal(b, make([]byte, size)) {
				x.Errorf("memory at %#x, allocated beside others, is not zero", a)
			}
			x.check(ctx.Memset(nil, a, 0xff, 1, size, nil))
			x.check(ctx.MemFree(a))
		}
		x.check(x.sync(ctx))
	}
}

// testDestroyDuringAllocations checks that a context that is destroyed while memory is
// allocated in it leaves none behind.
func testDestroyDuringAllocations(x *tester) {
	for i := range 5 {
		ctx, err := x.driver.NewContext(0, x.gate, x.window)
		x.check(err)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				for range 50 {
					if _, err := ctx.MemAlloc(4096); err != nil {
						if !errors.Is(err, abi.ErrInvalidContext) {
							x.Errorf("MemAlloc in a context that is being destroyed = %v, want %v", err, abi.ErrInvalidContext)
						}
						return
					}
				}
			})
		}
		time.Sleep(time.Duration(i) * time.Millisecond)
		x.check(ctx.Destroy())
		all.Wait()
	}
	neighbour := x.context()
	x.write(neighbour, nil, x.alloc(neighbour, 1<<20), make([]byte, 1<<20))
}

// testManyCommands checks that no call blocks when as many commands are enqueued
// as the worker permits.
func testManyCommands(x *tester) {
	ctx := x.context()
	p := x.alloc(ctx, 4)
	const streams, each = 4, 4096
	var all [streams]worker.Stream
	for i := range all {
		s, err := ctx.StreamCreate(worker.StreamNonBlocking, 0)
		x.check(err)
		all[i] = s
	}
	x.gate.hold(true)
	for range each {
		for _, s := range all {
			x.check(ctx.Memset(s, p, 1, 4, 1, nil))
		}
	}
	x.gate.hold(false)
	x.check(x.await(ctx.Notify))
}
