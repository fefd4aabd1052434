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

// hostMemory is a guest's memory, mapped twice: where the device reaches it, and
// as the guest sees it.
type hostMemory struct {
	address uint64
	device  []byte
	guest   []byte
}

// hostPages is how large it is: some pages that do not follow each other in their
// file, as a VM's do not.
const hostPages = 16

// HostMemory maps memory in the host part of a window at an offset, until the
// test ends. Nothing may use it any more by then.
func HostMemory(t testing.TB, w *worker.Window, offset uint64) (address uint64, device, guest []byte) {
	t.Helper()
	fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd) // the mappings keep the memory
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
		if err := w.Displace(address, here); err != nil {
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

// sees checks what the guest has in its memory. A device that computes nothing
// has not written there.
func (x *tester) sees(h hostMemory, off int, want []byte) {
	x.Helper()
	if got := h.guest[off : off+len(want)]; !x.o.NoData && !bytes.Equal(got, want) {
		x.Errorf("the guest has % x at offset %d, want % x", got, off, want)
	}
}

// Kernels, copies and memsets use host memory by its address, and the guest has
// what they write without a copy; what the guest writes they read.
func testHostMemory(x *tester) {
	ctx := x.context()
	h := x.host(1 << 20)
	size := uint64(len(h.device))
	if err := ctx.HostUnregister(h.address, func() {}); err == nil {
		x.Error("host memory is unregistered that was not registered")
	}
	x.check(ctx.HostRegister(h.address, h.device))
	if err := ctx.HostRegister(h.address, h.device); err == nil {
		x.Error("host memory is registered twice")
	}
	k := x.kernels(ctx)
	p := x.alloc(ctx, size)
	at := size - 8 // on the last page
	x.check(x.do(func(done func(error)) error {
		return ctx.Launch(nil, k["store"], one(h.address+at, 0x1122334455667788), done)
	}))
	x.sees(h, int(at), params(0x1122334455667788))
	x.check(x.do(func(done func(error)) error { return ctx.Memset(nil, h.address+abi.PageSize-4, 0xab, 1, 8, done) }))
	x.sees(h, abi.PageSize-4, bytes.Repeat([]byte{0xab}, 8))
	x.write(ctx, nil, h.address+64, []byte("to the host"))
	x.sees(h, 64, []byte("to the host"))

	copy(h.guest, pattern(len(h.guest), 5))
	if got := x.read(ctx, nil, h.address, size); !bytes.Equal(got, x.kept(h.guest)) {
		x.Error("what the guest wrote is not read")
	}
	x.check(x.do(func(done func(error)) error { return ctx.CopyDtoD(nil, p, h.address, size, done) }))
	if got := x.read(ctx, nil, p, size); !bytes.Equal(got, x.kept(h.guest)) {
		x.Error("host to device by address differs")
	}
	x.write(ctx, nil, p, h.device[8:]) // bytes that the device reaches by themselves
	x.check(x.do(func(done func(error)) error { return ctx.CopyDtoH(nil, h.device[:size-8], p, done) }))
	x.sees(h, 0, pattern(len(h.guest), 5)[8:])
	x.beyond(ctx, h)
	x.check(x.do(x.unregister(ctx, h)))
	if err := ctx.CopyHtoD(nil, h.address, []byte("gone"), nil); err == nil {
		x.Error("a copy to host memory that was taken back")
	}
}

// hostAttributes are CAN_MAP_HOST_MEMORY, MANAGED_MEMORY and CONCURRENT_MANAGED_ACCESS
// (cuda.h, CUdevice_attribute).
var hostAttributes = [...]int{19, 83, 89}

// A device that does not reach host memory says so in its attributes, and again
// when it is asked.
func testHostMemoryOrSaysNot(x *tester) {
	if !x.o.NoHostMemory {
		return
	}
	for _, a := range hostAttributes {
		if got := x.driver.Info().Attributes[a]; got != 0 {
			x.Errorf("attribute %d is %d, want 0", a, got)
		}
	}
	h := x.host(0)
	x.want(x.context().HostRegister(h.address, h.device), abi.ErrNotSupported)
}

// beyond: a copy that leaves the memory is refused.
func (x *tester) beyond(ctx worker.Context, h hostMemory) {
	x.Helper()
	end := h.address + uint64(len(h.device))
	for _, bad := range []uint64{h.address - 1, end - 7, end, end + 1<<20} {
		var r abi.Result
		if err := ctx.Memset(nil, bad, 0, 1, 8, nil); !errors.As(err, &r) {
			x.Errorf("memset at %#x, where host memory is at %#x to %#x: %v", bad, h.address, end, err)
		}
	}
}

// unregister is HostUnregister in the form of an operation.
func (x *tester) unregister(ctx worker.Context, h hostMemory) func(done func(error)) error {
	return func(done func(error)) error { return ctx.HostUnregister(h.address, func() { done(nil) }) }
}

// Every context has the memory, and keeps it when another lets go or ends.
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
	x.check(x.do(x.unregister(b, h)))
	x.write(c, nil, h.address, params(77))
	x.sees(h, 0, params(77))
	x.check(x.do(x.unregister(c, h)))
	x.check(b.HostRegister(h.address, h.device)) // and once more
	x.check(x.do(x.unregister(b, h)))
}

// Memory that is taken back while work uses it stays until that is done.
func testHostMemoryInUse(x *tester) {
	ctx := x.context()
	h := x.host(0)
	x.check(ctx.HostRegister(h.address, h.device))
	k, s := x.kernels(ctx), x.stream(ctx, worker.StreamNonBlocking)
	x.check(ctx.Launch(s, k["delay"], one(h.address, 1, x.o.Loops), nil))
	x.check(ctx.Launch(s, k["delay"], one(h.address+8, 2, x.o.Loops), nil))
	var first, second uint64
	x.check(x.do(func(done func(error)) error {
		return ctx.HostUnregister(h.address, func() {
			first, second = binary.LittleEndian.Uint64(h.guest), binary.LittleEndian.Uint64(h.guest[8:])
			done(nil)
		})
	}))
	if first != x.kept64(1) || second != x.kept64(2) {
		x.Errorf("host memory was let go of when its kernels had stored %d and %d, want 1 and 2", first, second)
	}
	x.check(x.sync(ctx))
}

// A context that ends lets go of its host memory, whatever is under way.
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
		x.Error("destroyed, and still holding host memory")
	}
	again := x.context()
	x.check(again.HostRegister(kept.address, kept.device))
	x.check(x.do(x.unregister(again, kept)))
}

// Host memory is none of the device's: it stays when that leaves.
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
	x.check(x.do(x.unregister(ctx, h)))
	x.check(x.do(x.unregister(ctx, later)))
}
