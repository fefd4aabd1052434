package worker_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/abi/carrier"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// protection returns this process's permissions at an address, as in
// /proc/PID/maps; it is empty when nothing is mapped there.
func protection(t testing.TB, address uint64) string {
	t.Helper()
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var from, to uint64
		var how string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &how); err == nil && from <= address && address < to {
			return how
		}
	}
	return ""
}

// shared reports whether the guest's memory is mapped at an address.
func shared(t testing.TB, address uint64) bool { return protection(t, address) == "rw-s" }

// place announces pages at an address and lets the contexts use them.
func (r *rig) place(number uint32, address, pages uint64) *shm.Mapping {
	r.Helper()
	m, err := r.RegionAt(number, address, pages)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(m.Close)
	r.call(abi.OpMemHostMap, abi.MemHostMap{Region: number})
	return m
}

// store launches a kernel that runs for the given time and then writes a value.
func (r *rig) store(ctx, function, address, value uint64, time time.Duration) {
	r.Helper()
	params := binary.LittleEndian.AppendUint64(nil, address)
	params = binary.LittleEndian.AppendUint64(params, value)
	params = binary.LittleEndian.AppendUint64(params, uint64(time))
	l := abi.Launch{Stream: ctx, Function: function, GridX: 1, GridY: 1, GridZ: 1, BlockX: 1, BlockY: 1, BlockZ: 1}
	if err := r.Send(abi.OpLaunch, l, params); err != nil {
		r.Fatal(err)
	}
}

// TestHostMemoryIsUsedInPlace checks that kernels and copies of every context use
// the guest's scattered pages at the guest's address, until they are unmapped.
func TestHostMemoryIsUsedInPlace(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	first := r.context()
	const pages = 48
	at := r.Window().Host().Base + 1<<20
	m := r.place(1, at, pages)
	second := r.context() // created after the memory
	for i, ctx := range []uint64{first, second} {
		_, f := r.module(ctx, fakedriver.KernelDelay)
		off := uint64(i*40)*abi.PageSize + 8
		r.store(ctx, f, at+off, uint64(77+i), 0)
		r.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
		if got := m.Load64(off); got != uint64(77+i) {
			t.Errorf("context %d: value in the guest = %d, want %d, which a kernel wrote", i, got, 77+i)
		}
	}
	m.Store64(16*abi.PageSize, 0x0102030405060708)
	v, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: first, Size: 8})
	r.call(abi.OpCopyDtoD, abi.CopyDtoD{Stream: first, Dst: v, Src: at + 16*abi.PageSize, Size: 8})
	r.call(abi.OpCopyDtoH, abi.CopyDtoH{Stream: first, Src: v, DstRegion: 1, DstOff: 4096, DstLen: 8})
	if got := m.Load64(4096); got != 0x0102030405060708 {
		t.Errorf("value copied by address and by region = %#x, want 0x0102030405060708", got)
	}
	r.fails(abi.ErrInvalidValue, abi.OpMemset, abi.Memset{Stream: first, Dst: at + pages*abi.PageSize - 4, Count: 2, Width: 4})
	r.call(abi.OpMemHostUnmap, abi.MemHostUnmap{Region: 1})
	r.fails(abi.ErrInvalidValue, abi.OpMemset, abi.Memset{Stream: first, Dst: at, Count: 2, Width: 4})
	if err := r.Drop(1); err != nil {
		t.Fatal(err)
	}
	// The address refers to other pages at once.
	again := r.place(2, at, pages)
	again.Store64(0, 5)
	r.call(abi.OpMemset, abi.Memset{Stream: second, Dst: at + 4, Count: 1, Width: 4, Value: 9})
	if got := again.Load64(0); got != 9<<32|5 {
		t.Errorf("value in the new region = %#x, want %#x", got, uint64(9<<32|5))
	}
	if err := r.Drop(2); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, time.Minute, "the reservation is back", func() bool { return protection(t, at) == "---p" })
	r.Close()
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if p := protection(t, at); p != "" {
		t.Errorf("%#x is mapped %s after the session's end, want not mapped", at, p)
	}
}

// TestHostileHostMemory checks that a guest that announces memory where none is
// permitted is ended, and that the worker's own memory is not changed.
func TestHostileHostMemory(t *testing.T) {
	mine := make([]byte, 1<<20)
	for name, c := range map[string]struct {
		address func(w abi.Window) uint64
		want    string
	}{
		"no address":           {func(abi.Window) uint64 { return 0 }, "is not in the host part"},
		"below the window":     {func(w abi.Window) uint64 { return w.Base - 1<<20 }, "is not in the host part"},
		"device part":          {func(w abi.Window) uint64 { return w.Base + 1<<20 }, "is not in the host part"},
		"over the device part": {func(w abi.Window) uint64 { return w.Host().Base - abi.PageSize }, "is not in the host part"},
		"over the tail":        {func(w abi.Window) uint64 { return w.Host().Base + w.Host().Size - abi.PageSize }, "is not in the host part"},
		"tail":                 {func(w abi.Window) uint64 { return w.Base + w.Size - 1<<20 }, "is not in the host part"},
		"above the window":     {func(w abi.Window) uint64 { return w.Base + w.Size }, "is not in the host part"},
		"end of the numbers":   {func(abi.Window) uint64 { return ^uint64(abi.PageSize - 1) }, "is not in the host part"},
		"inside of a page":     {func(w abi.Window) uint64 { return w.Host().Base + 8 }, "is not page-aligned"},
		"own memory":           {func(abi.Window) uint64 { return addressOf(mine) &^ (abi.PageSize - 1) }, "is not in the host part"},
		"twice":                {func(w abi.Window) uint64 { return w.Host().Base + 1<<20 }, "overlaps region 1"},
		"over the end of one":  {func(w abi.Window) uint64 { return w.Host().Base + 1<<20 + 3*abi.PageSize }, "overlaps region 1"},
		"over the start":       {func(w abi.Window) uint64 { return w.Host().Base + 1<<20 - abi.PageSize }, "overlaps region 1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fakedriver.Options{}, 0)
			r.context()
			r.place(1, r.Window().Host().Base+1<<20, 4)
			m, err := r.RegionAt(2, c.address(r.Window()), 2)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			r.died(c.want)
		})
	}
	for i, b := range mine {
		if b != 0 {
			t.Fatalf("byte %d of the worker's own memory = %d, want 0", i, b)
		}
	}
}

// TestRegion0HasNoAddress checks that region 0 cannot have an address: there is
// no address window yet.
func TestRegion0HasNoAddress(t *testing.T) {
	a, b, err := guesttest.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s, err := worker.NewSession(b, fakedriver.New(fakedriver.Options{}), worker.NewLocalHost(worker.Limits{VRAM: vram}), worker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	g, fd, err := guesttest.Prepare(a, guesttest.DefaultLayout)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Shm.Close()
	defer unix.Close(fd)
	body := abi.Region{Size: g.Shm.Size(), Placed: true, Address: 0x400000000000, Extents: []abi.Extent{{Length: g.Shm.Size()}}}
	for _, m := range []carrier.Message{
		{Type: abi.MsgHello, Body: guesttest.Hello().Append(nil)},
		{Type: abi.MsgRegion, Flags: body.Flags(), Body: body.Append(nil), FDs: []int{fd}},
	} {
		if err := carrier.Write(a, m); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := g.Receive(); err != nil || m.Type != abi.MsgRefused || !strings.Contains(string(m.Body), "there is no address window yet") {
		t.Errorf("answer to the announcement = %d %q, %v, want a refusal because there is no address window yet", m.Type, m.Body, err)
	}
	var broken *worker.ProtocolError
	if err := <-ended; !errors.As(err, &broken) {
		t.Errorf("session ended with %v, want a protocol error", err)
	}
}

// TestHostMemoryCommands checks that invalid commands about host memory fail by
// themselves.
func TestHostMemoryCommands(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	if _, err := r.Region(1, 4096); err != nil {
		t.Fatal(err)
	}
	r.fails(abi.ErrInvalidValue, abi.OpMemHostMap, abi.MemHostMap{Region: 1}) // it has no address
	r.fails(abi.ErrInvalidValue, abi.OpMemHostMap, abi.MemHostMap{Region: 7})
	r.fails(abi.ErrInvalidValue, abi.OpMemHostMap, abi.MemHostMap{Region: 0})
	r.fails(abi.ErrInvalidValue, abi.OpMemHostUnmap, abi.MemHostUnmap{Region: 1})
	r.fails(abi.ErrInvalidValue, abi.OpMemHostUnmap, abi.MemHostUnmap{Region: ^uint32(0)})
	r.place(2, r.Window().Host().Base, 1)
	r.fails(abi.ErrInvalidValue, abi.OpMemHostMap, abi.MemHostMap{Region: 2})
	r.call(abi.OpMemHostUnmap, abi.MemHostUnmap{Region: 2})
	r.fails(abi.ErrInvalidValue, abi.OpMemHostUnmap, abi.MemHostUnmap{Region: 2})
	r.call(abi.OpMemHostMap, abi.MemHostMap{Region: 2}) // again
}

// TestHostMemoryDroppedInUse checks that memory that is dropped while a kernel
// uses it stays mapped until the kernel is done, and that nothing else is mapped
// at its address in the meantime.
func TestHostMemoryDroppedInUse(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	_, f := r.module(ctx, fakedriver.KernelDelay)
	at := r.Window().Host().Base
	m := r.place(1, at, 2)
	r.store(ctx, f, at, 11, 300*time.Millisecond)
	r.store(ctx, f, at+abi.PageSize, 22, 300*time.Millisecond)
	if err := r.Drop(1); err != nil {
		t.Fatal(err)
	}
	if _, err := r.RegionAt(2, at, 2); err != nil {
		t.Fatal(err)
	}
	r.fails(abi.ErrOutOfMemory, abi.OpMemHostMap, abi.MemHostMap{Region: 2}) // in use: not mapped
	if m.Load64(abi.PageSize) == 0 && !shared(t, at) {
		t.Error("the memory was unmapped while a kernel used it")
	}
	r.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
	if a, b := m.Load64(0), m.Load64(abi.PageSize); a != 11 || b != 22 {
		t.Errorf("values in the guest = %d and %d, want 11 and 22", a, b)
	}
	patience.Until(t, time.Minute, "the reservation is back", func() bool { return !shared(t, at) })
	if p := protection(t, at); p != "---p" {
		t.Errorf("%#x is mapped %q, want the reservation ---p", at, p)
	}
	r.place(3, at+64*abi.PageSize, 2)
}

// TestRegionsThatGoAreReadOf checks that a guest which gives up one region after
// another is notified of each in time, however busy the session is: a device allows
// only a limited number to wait.
func TestRegionsThatGoAreReadOf(t *testing.T) {
	d := fakedriver.New(fakedriver.Options{})
	r := newRigOf(t, d, d, abi.HelloWakeByMessage, worker.Options{Spin: time.Hour}, func(*worker.LocalHost) {}) // it never sleeps
	const many, behind = 20, 3
	r.context()
	for n := range uint32(many) {
		r.place(n+1, r.Window().Host().Base+1<<20+uint64(n)*abi.PageSize, 1)
	}
	for n := range uint32(many) {
		r.call(abi.OpMemHostUnmap, abi.MemHostUnmap{Region: n + 1})
		if err := r.Drop(n + 1); err != nil {
			t.Fatal(err)
		}
		if n < behind {
			continue
		}
		for {
			m, err := r.Receive()
			if err != nil {
				t.Fatalf("region %d was dropped, and no message says that region %d was: %v", n+1, n+1-behind, err)
			}
			if m.Type == abi.MsgDropped && m.Argument == n+1-behind {
				break
			}
		}
	}
}

// TestHostUnmapWaits checks that MemHostUnmap completes when no kernel uses the
// memory any more.
func TestHostUnmapWaits(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	_, f := r.module(ctx, fakedriver.KernelDelay)
	at := r.Window().Host().Base
	m := r.place(1, at, 2)
	r.store(ctx, f, at, 11, 200*time.Millisecond)
	r.call(abi.OpMemHostUnmap, abi.MemHostUnmap{Region: 1})
	if got := m.Load64(0); got != 11 {
		t.Errorf("value at the unmapping = %d, want 11, which the kernel stores", got)
	}
}

// TestHostMemoryOfAHangingKernel checks that a kernel that never ends keeps its
// memory mapped, and that the guest's end frees everything.
func TestHostMemoryOfAHangingKernel(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	_, f := r.module(ctx, fakedriver.KernelHang)
	at := r.Window().Host().Base
	r.place(1, at, 2)
	r.place(2, at+1<<20, 2)
	r.store(ctx, f, 0, 0, 0)
	if err := r.Drop(1); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Start(abi.OpMemHostUnmap, 0, abi.MemHostUnmap{Region: 2}, nil); err != nil {
		t.Fatal(err)
	}
	r.call(abi.OpMemInfo, guesttest.None{})
	if !shared(t, at) || !shared(t, at+1<<20) {
		t.Error("memory was unmapped although a kernel may use it")
	}
	r.Close()
	if err := r.end(); err != nil {
		t.Error(err)
	}
	for _, a := range []uint64{at, at + 1<<20} {
		if p := protection(t, a); p != "" {
			t.Errorf("%#x is mapped %s after the session's end, want not mapped", a, p)
		}
	}
}

// TestHostMemoryInTooManyPieces checks that memory in more pieces than a process
// may have mappings is not mapped, that the guest is notified, and that everything
// else works.
func TestHostMemoryInTooManyPieces(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	at := r.Window().Host().Base
	const pages = 150_000 // more than vm.max_map_count usually allows
	if text, err := os.ReadFile("/proc/sys/vm/max_map_count"); err != nil || len(strings.TrimSpace(string(text))) > 5 {
		t.Logf("vm.max_map_count = %q, %v", text, err)
	}
	m, err := r.RegionAt(1, at, pages)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, _, err = r.Call(abi.OpMemHostMap, abi.MemHostMap{Region: 1}, nil)
	if err == nil { // this machine allows so many
		return
	}
	if !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("MemHostMap of %d pieces = %v, want %v", pages, err, abi.ErrOutOfMemory)
	}
	v, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 64})
	r.fails(abi.ErrOutOfMemory, abi.OpCopyHtoD, abi.CopyHtoD{Stream: ctx, Dst: v, SrcRegion: 1, SrcLen: 64})
	if err := r.Drop(1); err != nil {
		t.Fatal(err)
	}
	r.place(2, at, 1000)
	r.call(abi.OpCopyHtoD, abi.CopyHtoD{Stream: ctx, Dst: v, SrcRegion: 2, SrcLen: 64})
}

// TestHostMemoryThatTheDeviceRefuses checks that copies by region work on a
// device that cannot access the memory in place.
func TestHostMemoryThatTheDeviceRefuses(t *testing.T) {
	var refuse atomic.Bool
	refuse.Store(true)
	r := newRig(t, fakedriver.Options{FailHost: func() error {
		if refuse.Load() {
			return abi.ErrNotSupported
		}
		return nil
	}}, 0)
	ctx := r.context()
	m, err := r.RegionAt(1, r.Window().Host().Base, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r.fails(abi.ErrNotSupported, abi.OpMemHostMap, abi.MemHostMap{Region: 1})
	v, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 64})
	r.call(abi.OpCopyHtoD, abi.CopyHtoD{Stream: ctx, Dst: v, SrcRegion: 1, SrcLen: 64})
	refuse.Store(false)
	r.call(abi.OpMemHostMap, abi.MemHostMap{Region: 1})
	refuse.Store(true)
	r.fails(abi.ErrNotSupported, abi.OpCtxCreate, abi.CtxCreate{Ctx: r.Handle()}) // a context that could not have the memory
	r.call(abi.OpMemHostUnmap, abi.MemHostUnmap{Region: 1})
	r.context()
}

// TestDeviceMemoryStaysInItsPart checks that device memory is never placed in the
// host part of the window.
func TestDeviceMemoryStaysInItsPart(t *testing.T) {
	w, err := worker.ReserveWindow(small(7))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var bytes uint64
	for {
		at, err := w.Allocate(4<<20, 2<<20)
		if err != nil {
			break
		}
		if !w.Device().Contains(at, 4<<20) {
			t.Fatalf("Allocate returned %#x of window %v, want an address in the device part %v", at, w.Window, w.Device())
		}
		bytes += 4 << 20
	}
	if bytes != w.Device().Size {
		t.Errorf("%d bytes could be allocated, want all %d", bytes, w.Device().Size)
	}
}

// TestWorkerReportsItsVersion checks that a worker writes its version to the
// header, also for an old library, which offers windows but does not support host
// memory.
func TestWorkerReportsItsVersion(t *testing.T) {
	for minor := range uint16(abi.Minor + 1) {
		g, end, err := offering(t, minor)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Shm.Load32(abi.OffWorkerMinor); got != abi.Minor {
			t.Errorf("minor version of the worker in the header = %d for a guest of version 1.%d, want %d", got, minor, abi.Minor)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}
