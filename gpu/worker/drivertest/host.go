package drivertest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// hostMemory is memory of a guest, mapped twice: where the device accesses it,
// and as the guest sees it.
type hostMemory struct {
	address uint64
	device  []byte
	guest   []byte
}

// hostPages is its size: some pages that are not contiguous in their file, like
// those of a VM.
const hostPages = 16

// HostMemory maps memory in the host part of a window at an offset, until the
// test ends. It must not be in use any more by then.
func HostMemory(t testing.TB, w *worker.Window, offset uint64) (address uint64, device, guest []byte) {
	t.Helper()
	fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd) // the mappings keep the memory alive
	if err := unix.Ftruncate(fd, 2*hostPages*abi.PageSize); err != nil {
		t.Fatal(err)
	}
	var extents []shm.Extent
	for i := range uint64(hostPages) {
		extents = append(extents, shm.Extent{FD: fd, Offset: 2 * (hostPages - 1 - i) * abi.PageSize, Length: abi.PageSize})
	}
	address = w.Host().Base + offset
	here, err := w.Place(address, extents)
	if err != nil {
		t.Fatal(err)
	}
	there, err := shm.Map(extents)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		there.Close()
		if err := w.Remove(address, here); err != nil {
			t.Error(err)
		}
	})
	return address, here.Bytes(0, here.Size()), there.Bytes(0, there.Size())
}

func (x *tester) host(offset uint64) hostMemory {
	x.Helper()
	address, device, guest := HostMemory(x.T, x.window, offset)
	return hostMemory{address, device, guest}
}

// sees checks the contents of the guest's memory. A device that computes nothing
// has written nothing there.
func (x *tester) sees(h hostMemory, off int, want []byte) {
	x.Helper()
	if got := h.guest[off : off+len(want)]; !x.o.NoData && !bytes.Equal(got, want) {
		x.Errorf("bytes in the guest at offset %d = % x, want % x", off, got, want)
	}
}

// testHostMemory checks that kernels, copies and memsets use host memory by its
// address, that the guest sees what they write without a copy, and that they read
// what the guest writes.
func testHostMemory(x *tester) {
	ctx := x.context()
	h := x.host(1 << 20)
	size := uint64(len(h.device))
	if err := ctx.HostUnregister(h.address, func() {}); err == nil {
		x.Error("HostUnregister of memory that is not registered returned no error")
	}
	x.check(ctx.HostRegister(h.address, h.device))
	if err := ctx.HostRegister(h.address, h.device); err == nil {
		x.Error("second HostRegister of the same memory returned no error")
	}
	k := x.kernels(ctx)
	p := x.alloc(ctx, size)
	at := size - 8 // on the last page
	x.check(x.await(func(done func(error)) error {
		return ctx.Launch(nil, k["store"], one(h.address+at, 0x1122334455667788), done)
	}))
	x.sees(h, int(at), params(0x1122334455667788))
	x.check(x.await(func(done func(error)) error { return ctx.Memset(nil, h.address+abi.PageSize-4, 0xab, 1, 8, done) }))
	x.sees(h, abi.PageSize-4, bytes.Repeat([]byte{0xab}, 8))
	x.write(ctx, nil, h.address+64, []byte("to the host"))
	x.sees(h, 64, []byte("to the host"))

	copy(h.guest, pattern(len(h.guest), 5))
	if got := x.read(ctx, nil, h.address, size); !bytes.Equal(got, x.kept(h.guest)) {
		x.Error("bytes read from host memory are not those that the guest wrote")
	}
	x.check(x.await(func(done func(error)) error { return ctx.CopyDtoD(nil, p, h.address, size, done) }))
	if got := x.read(ctx, nil, p, size); !bytes.Equal(got, x.kept(h.guest)) {
		x.Error("bytes copied from host memory by address differ")
	}
	x.write(ctx, nil, p, h.device[8:]) // a host slice that the device can access itself
	x.check(x.await(func(done func(error)) error { return ctx.CopyDtoH(nil, h.device[:size-8], p, done) }))
	x.sees(h, 0, pattern(len(h.guest), 5)[8:])
	x.beyond(ctx, h)
	x.check(x.await(x.unregister(ctx, h)))
	if err := ctx.CopyHtoD(nil, h.address, []byte("gone"), nil); err == nil {
		x.Error("a copy to unregistered host memory returned no error")
	}
}

// hostAttributes are CAN_MAP_HOST_MEMORY, MANAGED_MEMORY and CONCURRENT_MANAGED_ACCESS
// (cuda.h, CUdevice_attribute).
var hostAttributes = [...]int{19, 83, 89}

// testHostMemoryOrSaysNot checks that a device which cannot access host memory
// reports that in its attributes, and when it is asked.
func testHostMemoryOrSaysNot(x *tester) {
	if !x.o.NoHostMemory {
		return
	}
	for _, a := range hostAttributes {
		if got := x.driver.Info().Attributes[a]; got != 0 {
			x.Errorf("attribute %d = %d, want 0", a, got)
		}
	}
	h := x.host(0)
	x.want(x.context().HostRegister(h.address, h.device), abi.ErrNotSupported)
}

// beyond checks that a copy beyond the end of the memory is refused.
func (x *tester) beyond(ctx worker.Context, h hostMemory) {
	x.Helper()
	end := h.address + uint64(len(h.device))
	for _, bad := range []uint64{h.address - 1, end - 7, end, end + 1<<20} {
		var r abi.Result
		if err := ctx.Memset(nil, bad, 0, 1, 8, nil); !errors.As(err, &r) {
			x.Errorf("memset at %#x beyond host memory from %#x to %#x = %v, want an error", bad, h.address, end, err)
		}
	}
}

// unregister returns HostUnregister as an operation.
func (x *tester) unregister(ctx worker.Context, h hostMemory) func(done func(error)) error {
	return func(done func(error)) error { return ctx.HostUnregister(h.address, func() { done(nil) }) }
}

// testHostMemoryOfTwoContexts checks that every context can use the memory, and
// keeps it when another unregisters it or is destroyed.
func testHostMemoryOfTwoContexts(x *tester) {
	a, b, c := x.context(), x.context(), x.context()
	h := x.host(0)
	for i, ctx := range []worker.Context{a, b, c} {
		x.check(ctx.HostRegister(h.address, h.device))
		x.write(ctx, nil, h.address, params(uint64(i)))
		x.sees(h, 0, params(uint64(i)))
	}
	x.forget(a)
	x.check(a.Destroy())
	x.check(x.await(x.unregister(b, h)))
	x.write(c, nil, h.address, params(77))
	x.sees(h, 0, params(77))
	x.check(x.await(x.unregister(c, h)))
	x.check(b.HostRegister(h.address, h.device)) // a second time
	x.check(x.await(x.unregister(b, h)))
}

// testHostMemoryInUse checks that memory which is unregistered while work uses it
// stays registered until that work is done.
func testHostMemoryInUse(x *tester) {
	ctx := x.context()
	h := x.host(0)
	x.check(ctx.HostRegister(h.address, h.device))
	k, s := x.kernels(ctx), x.stream(ctx, worker.StreamNonBlocking)
	x.check(ctx.Launch(s, k["delay"], one(h.address, 1, x.o.Loops), nil))
	x.check(ctx.Launch(s, k["delay"], one(h.address+8, 2, x.o.Loops), nil))
	var first, second uint64
	x.check(x.await(func(done func(error)) error {
		return ctx.HostUnregister(h.address, func() {
			first, second = binary.LittleEndian.Uint64(h.guest), binary.LittleEndian.Uint64(h.guest[8:])
			done(nil)
		})
	}))
	if first != x.kept64(1) || second != x.kept64(2) {
		x.Errorf("values at the end of HostUnregister = %d and %d, want 1 and 2, which its kernels store", first, second)
	}
	x.check(x.sync(ctx))
}

// testDestroyWithHostMemory checks that a destroyed context releases its host
// memory, even while work is in progress.
func testDestroyWithHostMemory(x *tester) {
	ctx := x.context()
	h, kept := x.host(0), x.host(1<<20)
	x.check(ctx.HostRegister(h.address, h.device))
	x.check(ctx.HostRegister(kept.address, kept.device))
	k := x.kernels(ctx)
	for range 3 {
		x.check(ctx.Launch(nil, k["delay"], one(h.address, 1, x.o.Loops), nil))
	}
	gone := make(chan struct{})
	x.check(ctx.HostUnregister(h.address, func() { close(gone) }))
	x.forget(ctx)
	x.check(ctx.Destroy())
	select {
	case <-gone:
	case <-time.After(patience):
		x.Error("HostUnregister's done was not called by Destroy")
	}
	again := x.context()
	x.check(again.HostRegister(kept.address, kept.device))
	x.check(x.await(x.unregister(again, kept)))
}

// testEvictedHostMemory checks that host memory is not evicted.
func testEvictedHostMemory(x *tester) {
	ctx := x.context()
	h, later := x.host(0), x.host(1<<20)
	x.check(ctx.HostRegister(h.address, h.device))
	p := x.alloc(ctx, 1<<20)
	x.write(ctx, nil, p, pattern(1<<20, 3))
	copy(h.guest, pattern(len(h.guest), 9))
	x.check(x.sync(ctx))
	x.evict(ctx, everything)
	x.check(ctx.HostRegister(later.address, later.device))
	x.back(ctx)
	if got := x.read(ctx, nil, h.address, uint64(len(h.guest))); !bytes.Equal(got, x.kept(h.guest)) {
		x.Error("host memory changed while the context was evicted")
	}
	x.write(ctx, nil, later.address, []byte("here"))
	x.sees(later, 0, []byte("here"))
	x.check(x.await(x.unregister(ctx, h)))
	x.check(x.await(x.unregister(ctx, later)))
}
