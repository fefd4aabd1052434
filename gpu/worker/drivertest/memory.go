package drivertest

import (
	"bytes"
	"errors"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

func testInfo(x *tester) {
	info := x.driver.Info()
	if info.Name == "" || info.TotalMemory < 64<<20 || info.CUDAVersion < 11000 || info.DriverVersion == "" {
		x.Errorf("info = %+v, want a name, at least 64 MiB, CUDA 11.0 and a driver version", info)
	}
	const maxThreadsPerBlock = 1 // CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK
	if len(info.Attributes) <= maxThreadsPerBlock || info.Attributes[maxThreadsPerBlock] <= 0 {
		x.Errorf("attributes = %v, want a positive maximum of threads per block", info.Attributes)
	}
}

func testMemory(x *tester) {
	a, b := x.context(), x.context()
	seen := map[uint64]bool{}
	for _, ctx := range []interface {
		MemAlloc(uint64) (uint64, error)
	}{a, b} {
		for _, size := range []uint64{1, 255, 256, 257, 1 << 20} {
			p, err := ctx.MemAlloc(size)
			x.check(err)
			if p == 0 || p%256 != 0 || seen[p] {
				x.Errorf("%d bytes at %#x, want a new aligned address", size, p)
			}
			seen[p] = true
		}
	}
	p := x.alloc(a, 1<<20)
	if b := x.read(a, nil, p, 1<<20); !bytes.Equal(b, make([]byte, 1<<20)) {
		x.Error("new memory is not zero")
	}
	x.write(a, nil, p, bytes.Repeat([]byte{0xff}, 1<<20))
	x.check(a.MemFree(p))
	x.check(x.sync(a))
	q := x.alloc(a, 1<<20)
	if b := x.read(a, nil, q, 1<<20); !bytes.Equal(b, make([]byte, 1<<20)) {
		x.Error("memory that was used before is not zero")
	}
	if err := a.MemFree(q + 8); err == nil {
		x.Error("MemFree in the middle of an allocation returned no error")
	}
	x.check(a.MemFree(q))
	if err := a.MemFree(q); err == nil {
		x.Error("second MemFree of an allocation returned no error")
	}
}

// inWindow fails unless all of an allocation is in the window.
func (x *tester) inWindow(w *worker.Window, what string, address, size uint64) {
	x.Helper()
	if !x.o.Unplaced && !w.Contains(address, size) {
		x.Errorf("%s: %d bytes at %#x, want them in address window %v", what, size, address, w.Window)
	}
}

func testAddressesLieInTheWindow(x *tester) {
	// The window of another process: one device may serve several.
	other := Window(x.T, abi.MaxWindow)
	elsewhere, err := x.driver.NewContext(0, x.gate, other)
	x.check(err)
	x.contexts = append(x.contexts, elsewhere)
	ctx := x.context()
	for range 3 {
		for _, size := range []uint64{1, 4096, 3 << 20, 7<<20 + 1} {
			p := x.alloc(ctx, size)
			x.inWindow(x.window, "memory", p, size)
			x.check(ctx.MemFree(p))
			x.check(x.sync(ctx))
			q := x.alloc(elsewhere, size)
			x.inWindow(other, "memory in another window", q, size)
			x.check(elsewhere.MemFree(q))
			x.check(x.sync(elsewhere))
		}
	}
	if x.driver.Evicts() {
		x.check(x.sync(ctx))
		x.evict(ctx, everything)
		for _, size := range []uint64{100, 5 << 20} {
			x.inWindow(x.window, "memory of an evicted context", x.alloc(ctx, size), size)
		}
		x.back(ctx)
	}
	if x.o.Image == nil && !x.o.LooseVariables {
		_, _, info, err := ctx.ModuleLoad([]byte(Kernels), worker.ModuleOptions{})
		x.check(err)
		for _, g := range info.Globals {
			x.inWindow(x.window, "variable "+g.Name, g.Address, g.Size)
		}
	}
}

// testSmallWindow checks the small window of a process that may use only few
// addresses: freed addresses can be allocated again, however often.
func testSmallWindow(x *tester) {
	w := Window(x.T, abi.MinWindow)
	ctx, err := x.driver.NewContext(0, x.gate, w)
	x.check(err)
	x.contexts = append(x.contexts, ctx)
	for range 10 {
		p := x.alloc(ctx, 32<<20)
		x.inWindow(w, "memory", p, 32<<20)
		x.check(ctx.MemFree(p))
		x.check(x.sync(ctx))
	}
}

func testMemoryIsLimited(x *tester) {
	ctx := x.context()
	_, err := ctx.MemAlloc(1 << 60)
	x.want(err, abi.ErrOutOfMemory)
	for round := range 2 { // freed memory can be allocated again
		var all []uint64
		for {
			p, err := ctx.MemAlloc(16 << 20)
			if err != nil {
				x.want(err, abi.ErrOutOfMemory)
				break
			}
			if all = append(all, p); len(all) > 64 {
				break // enough, on a large card
			}
		}
		if len(all) < 3 {
			x.Fatalf("round %d: only %d pieces of 16 MiB, want at least 3", round, len(all))
		}
		for _, p := range all {
			x.check(ctx.MemFree(p))
		}
		x.check(x.sync(ctx))
	}
}

func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + seed)
	}
	return b
}

func testCopies(x *tester) {
	ctx := x.context()
	s := x.stream(ctx, 0)
	const n = 100_003
	p, q := x.alloc(ctx, n), x.alloc(ctx, n)
	want := pattern(n, 1)
	x.write(ctx, s, p, want)
	x.write(ctx, s, p+1000, []byte("in the middle"))
	copy(want[1000:], "in the middle")
	x.check(x.await(func(done func(error)) error { return ctx.CopyDtoD(s, q+3, p+1, n-3, done) }))
	if got := x.read(ctx, s, q+3, n-3); !bytes.Equal(got, x.kept(want[1:n-2])) {
		x.Error("bytes copied from device to device differ")
	}
	if got := x.read(ctx, nil, p, n); !bytes.Equal(got, x.kept(want)) {
		x.Error("bytes copied to the device and back differ")
	}
	x.check(x.await(func(done func(error)) error { return ctx.CopyHtoD(s, p, nil, done) })) // an empty copy
	x.check(ctx.CopyHtoD(s, p, []byte("nobody waits"), nil))
	if got := x.read(ctx, s, p, 12); !bytes.Equal(got, x.kept([]byte("nobody waits"))) {
		x.Errorf("bytes of a copy without done = %q, want \"nobody waits\"", got)
	}
}

func testMemset(x *tester) {
	ctx := x.context()
	p := x.alloc(ctx, 64)
	for _, c := range []struct {
		value, width uint32
		element      []byte
	}{{0xaa, 1, []byte{0xaa}}, {0x1234, 2, []byte{0x34, 0x12}}, {0x01020304, 4, []byte{4, 3, 2, 1}}} {
		x.write(ctx, nil, p, make([]byte, 64))
		x.check(x.await(func(done func(error)) error { return ctx.Memset(nil, p+8, c.value, c.width, 5, done) }))
		want := append(make([]byte, 8), bytes.Repeat(c.element, 5)...)
		want = append(want, make([]byte, 64-len(want))...)
		if got := x.read(ctx, nil, p, 64); !bytes.Equal(got, x.kept(want)) {
			x.Errorf("bytes after a memset of width %d = % x, want % x", c.width, got, want)
		}
	}
}

// testBadAddresses checks that a copy from or to addresses outside memory is an
// error, of the call or of done, and affects nothing else.
func testBadAddresses(x *tester) {
	healthy := x.context()
	for name, bad := range map[string]uint64{"nothing": 0, "small": 16, "beyond all": 1<<64 - 64, "across the end": 0} {
		for direction := range 4 {
			ctx := x.context() // which an asynchronous error would poison
			mine := x.alloc(ctx, 4096)
			target := bad
			if name == "across the end" {
				target = mine + 4090
			}
			b := make([]byte, 1<<20)
			err := x.await(func(done func(error)) error {
				switch direction {
				case 0:
					return ctx.CopyHtoD(nil, target, b, done)
				case 1:
					return ctx.CopyDtoH(nil, b, target, done)
				case 2:
					return ctx.CopyDtoD(nil, mine, target, 1<<20, done)
				}
				return ctx.Memset(nil, target, 0, 4, 1<<18, done)
			})
			var r abi.Result
			if !errors.As(err, &r) || r == abi.Success {
				x.Errorf("%s, direction %d: copy = %v, want an error", name, direction, err)
			}
		}
	}
	x.check(x.sync(healthy))
}
