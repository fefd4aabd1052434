package drivertest

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// whereItShares skips devices that cannot share memory: those that can map it can
// share it, with another process.
func whereItShares(test func(*tester)) func(*tester) {
	return func(x *tester) {
		if !x.o.OneProcess {
			whereItMaps(test)(x)
		}
	}
}

func (x *tester) sharer(ctx worker.Context) worker.Sharer {
	x.Helper()
	s, ok := ctx.(worker.Sharer)
	if !ok {
		x.Fatalf("%T does not implement Sharer", ctx)
	}
	return s
}

// share shares memory while no work runs, as a session does.
func (x *tester) share(ctx worker.Context, address uint64) worker.Shared {
	x.Helper()
	x.gate.hold(true)
	x.gate.settle()
	defer x.gate.hold(false)
	m, err := x.sharer(ctx).Share(address)
	x.check(err)
	return m
}

// allocate allocates addresses for shared memory, as a session does.
func (x *tester) allocate(w *worker.Window, size uint64) uint64 {
	x.Helper()
	at, err := w.Allocate((size+granule-1)/granule*granule, granule)
	x.check(err)
	return at
}

// neighbour returns a context of another process: of a different driver and
// window.
func (x *tester) neighbour() (worker.Context, *worker.Window) {
	x.Helper()
	d, w := x.newDriver(x.T), Window(x.T, abi.MaxWindow)
	ctx, err := d.NewContext(0, x.gate, w)
	x.check(err)
	x.Cleanup(func() { x.check(d.Close()) })
	x.contexts = append(x.contexts, ctx)
	return ctx, w
}

// testShare checks that two contexts of different drivers use the same memory,
// which its owner may free first.
func testShare(x *tester) {
	const size = 1<<20 + 1000
	a := x.context()
	b, theirs := x.neighbour()
	pad, p := x.alloc(a, 100), x.alloc(a, size)
	x.write(a, nil, pad, pattern(100, 2))
	want := pattern(size, 5)
	x.write(a, nil, p, want)
	m, again := x.share(a, p), x.share(a, p)
	if m.Size != size || again.Size != size {
		x.Errorf("%d and %d bytes shared, want %d", m.Size, again.Size, size)
	}
	q := x.allocate(theirs, size)
	x.check(x.sharer(b).OpenShared(q, again))
	x.check(m.File.Close())
	x.check(again.File.Close())
	for _, of := range []struct {
		ctx worker.Context
		at  uint64
	}{{a, p}, {b, q}} {
		if got := x.read(of.ctx, nil, of.at, size); !bytes.Equal(got, x.kept(want)) {
			x.Error("shared memory does not contain what was written before")
		}
	}
	x.write(b, nil, q+7, params(3))
	if got := x.read64(a, nil, p+7); got != x.kept64(3) {
		x.Errorf("value that the owner reads = %d, want 3", got)
	}
	k := x.kernels(b)
	x.check(x.await(func(done func(error)) error { return b.Launch(nil, k["store"], one(q+16, 77), done) }))
	if got := x.read64(a, nil, p+16); got != x.kept64(77) {
		x.Errorf("value stored by a kernel of the other context = %d, want 77", got)
	}
	x.want(b.Memset(nil, q+size-4, 1, 1, 8, nil), abi.ErrInvalidValue)
	if got := x.read(a, nil, pad, 100); !bytes.Equal(got, x.kept(pattern(100, 2))) {
		x.Error("contents of the preceding allocation changed")
	}
	x.check(a.MemFree(p))
	x.check(x.sync(a))
	if got := x.read64(b, nil, q+16); got != x.kept64(77) {
		x.Errorf("value after the owner's free = %d, want 77", got)
	}
	x.check(x.await(func(done func(error)) error {
		return x.sharer(b).CloseShared(q, func() { done(nil) })
	}))
	x.want(b.Memset(nil, q, 1, 1, 8, nil), abi.ErrInvalidValue)
	if got := x.read(a, nil, x.alloc(a, size), size); !bytes.Equal(got, make([]byte, size)) {
		x.Error("new memory is not zero after shared memory was freed")
	}
}

// testShareRefused checks that addresses that cannot be shared, and files that
// are not device memory, are refused.
func testShareRefused(x *tester) {
	ctx := x.context()
	s := x.sharer(ctx)
	p := x.alloc(ctx, 1<<20)
	for _, bad := range []uint64{0, p + 8, p + 1<<30} {
		if _, err := s.Share(bad); err == nil {
			x.Errorf("Share of %#x, where no allocation begins, returned no error", bad)
		}
	}
	m := x.share(ctx, p)
	defer m.File.Close()
	q := x.allocate(x.window, 4096)
	for _, wrong := range []worker.Shared{
		{Size: 1 << 40, File: m.File}, {Size: 0, File: m.File}, {Size: 1<<64 - 1, File: m.File}, {Size: 4096, File: null(x)}, {Size: 4096, File: unsealed(x)},
	} {
		if s.OpenShared(q, wrong) == nil {
			x.Errorf("OpenShared of %d bytes of %s returned no error", wrong.Size, wrong.File.Name())
		}
	}
	x.check(s.OpenShared(q, m))
	if s.OpenShared(q, m) == nil {
		x.Error("second OpenShared at the same address returned no error")
	}
}

// testEvictShared checks that shared memory is not evicted, and that the rest is.
func testEvictShared(x *tester) {
	a := x.context()
	b, theirs := x.neighbour()
	p, own := x.alloc(a, 4<<20), x.alloc(a, 4<<20)
	x.write(a, nil, own, params(1))
	m := x.share(a, p)
	q := x.allocate(theirs, m.Size)
	x.check(x.sharer(b).OpenShared(q, m))
	x.check(m.File.Close())
	if moved := x.evict(a, everything); moved != 4<<20 {
		x.Errorf("%d bytes evicted, want the %d that are not shared", moved, 4<<20)
	}
	x.gate.hold(false) // b can work
	x.write(b, nil, q, params(2))
	x.gate.hold(true)
	x.gate.settle()
	x.back(a)
	if got := x.read64(a, nil, p); got != x.kept64(2) {
		x.Errorf("value in shared memory = %d, want 2, written during the eviction", got)
	}
	if got := x.read64(a, nil, own); got != x.kept64(1) {
		x.Errorf("value in the owner's other memory = %d, want 1", got)
	}
}

// testDestroyShared destroys contexts that have shared memory which work uses.
func testDestroyShared(x *tester) {
	a := x.context()
	b, theirs := x.neighbour()
	p := x.alloc(a, 1<<20)
	m := x.share(a, p)
	q := x.allocate(theirs, m.Size)
	x.check(x.sharer(b).OpenShared(q, m))
	x.check(m.File.Close())
	for _, of := range []struct {
		ctx worker.Context
		at  uint64
	}{{a, p}, {b, q}} {
		done, wait := x.done()
		x.check(of.ctx.Memset(nil, of.at, 1, 1, 1<<20, done))
		x.forget(of.ctx)
		x.check(of.ctx.Destroy())
		_ = wait()
	}
}

// descriptors is HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: another process's memory can be
// mapped.
const descriptors = 103

// testShareMapped checks that mapped memory is moved into a file at all its
// addresses and that another context can map it at any address. On a device that
// reports that it cannot do this, it is an error.
func testShareMapped(x *tester) {
	a := x.mapper()
	b, theirs := x.neighbour()
	at := a.reserve(5)
	memory := a.create(2)
	a.show(at, 2, memory)
	a.show(at+3*granule, 2, memory)
	want := pattern(2*granule, 9)
	x.write(a, nil, at, want)
	m := x.share(a.Context, memory)
	defer m.File.Close()
	if m.Size != 2*granule {
		x.Errorf("%d bytes shared, want %d", m.Size, 2*granule)
	}
	if got := x.read(a, nil, at, 2*granule); !bytes.Equal(got, x.kept(want)) {
		x.Error("contents changed when the memory was shared")
	}
	x.write(a, nil, at+8, params(4))
	if got := x.read64(a, nil, at+3*granule+8); got != x.kept64(4) {
		x.Errorf("value at the second address = %d, want 4", got)
	}
	imported, err := x.sharer(b).ImportShared(m)
	if x.driver.Info().Attributes[descriptors] == 0 {
		x.want(err, abi.ErrNotSupported)
		return
	}
	x.check(err)
	other := mapper{b, b.(worker.Mapper), x}
	q := x.allocate(theirs, 8*granule)
	other.show(q, 2, imported)
	other.show(q+3*granule, 2, imported)
	if other.MemMap(q+5*granule, 3*granule, imported) == nil {
		x.Error("MemMap of more than the memory's size returned no error")
	}
	x.write(b, nil, q+16, params(6))
	for _, of := range []struct {
		ctx worker.Context
		at  uint64
	}{{a, at + 16}, {a, at + 3*granule + 16}, {b, q + 3*granule + 16}} {
		if got := x.read64(of.ctx, nil, of.at); got != x.kept64(6) {
			x.Errorf("value at %#x = %d, want 6", of.at, got)
		}
	}
	for _, address := range []uint64{at, at + 3*granule} {
		a.unmap(address)
	}
	x.check(a.MemRelease(memory))
	other.unmap(q)
	if got := x.read64(b, nil, q+3*granule+16); got != x.kept64(6) {
		x.Errorf("value after the owner's release = %d, want 6", got)
	}
	other.unmap(q + 3*granule)
	x.check(other.MemRelease(imported))
	if other.MemMap(q, granule, imported) == nil {
		x.Error("MemMap of released memory returned no error")
	}
}

// null returns a file that is not memory.
func null(x *tester) *os.File {
	x.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	x.check(err)
	x.Cleanup(func() { _ = f.Close() })
	return f
}

// unsealed returns memory that its creator could shrink.
func unsealed(x *tester) *os.File {
	x.Helper()
	fd, err := unix.MemfdCreate("unsealed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	x.check(err)
	f := os.NewFile(uintptr(fd), "a file that can shrink")
	x.Cleanup(func() { _ = f.Close() })
	x.check(f.Truncate(1 << 20))
	return f
}
