package worker_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// taken maps a page of this process at an address, until the test ends.
func taken(t testing.TB, address uint64) {
	t.Helper()
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
	if _, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(address), 4096, unix.PROT_READ, flags, ^uintptr(0), 0); errno != 0 {
		t.Fatalf("map a page at %#x: %v", address, errno)
	}
	t.Cleanup(func() { _, _, _ = unix.Syscall(unix.SYS_MUNMAP, uintptr(address), 4096, 0) })
}

// isTaken reports whether anything is mapped in the page at address.
func isTaken(address uint64) bool {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
	_, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(address), 4096, unix.PROT_NONE, flags, ^uintptr(0), 0)
	if errno == 0 {
		_, _, _ = unix.Syscall(unix.SYS_MUNMAP, uintptr(address), 4096, 0)
	}
	return errno == unix.EEXIST
}

// offering starts a session whose guest is of version 1.minor and has these
// values in the header. err is the refusal that the guest received.
func offering(t testing.TB, minor uint16, windows ...abi.Window) (g *guesttest.Guest, end func() error, err error) {
	t.Helper()
	a, b, err := guesttest.Pair()
	if err != nil {
		t.Fatal(err)
	}
	s, err := worker.NewSession(b, fakedriver.New(fakedriver.Options{}), worker.NewLocalHost(worker.Limits{VRAM: vram}), worker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	g, fd, err := guesttest.Prepare(a, guesttest.DefaultLayout)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd) // the mapping keeps the memory alive
	h := g.Shm.Bytes(0, abi.HeaderSize)
	binary.LittleEndian.PutUint16(h[abi.OffMinor:], minor)
	g.Offer(windows...)
	hello := guesttest.Hello()
	hello.Minor = minor
	err = g.Announce(hello, 0, fd)
	return g, func() error { g.Close(); return <-ended }, err
}

// small returns a window at addresses that nothing else uses.
func small(i uint64) abi.Window {
	return abi.Window{Base: 0x690000000000 + i*abi.MinWindow, Size: abi.MinWindow}
}

// TestFirstFreeWindowIsChosen checks that the worker chooses the first window
// that is free in its process, and that all memory is in it until the session
// ends.
func TestFirstFreeWindowIsChosen(t *testing.T) {
	taken(t, small(0).Base+abi.MinWindow-4096)
	g, end, err := offering(t, abi.Minor, small(0), small(1), small(2))
	if err != nil {
		t.Fatal(err)
	}
	if w := g.Window(); w != small(1) {
		t.Errorf("the worker chose address window %v, want %v", w, small(1))
	}
	if !isTaken(small(1).Base) || isTaken(small(2).Base) {
		t.Errorf("the reserved addresses are not those of the chosen window %v", small(1))
	}
	ctx := g.Handle()
	if _, _, err := g.Call(abi.OpCtxCreate, abi.CtxCreate{Ctx: ctx}, nil); err != nil {
		t.Fatal(err)
	}
	if p, _, err := g.Call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20}, nil); err != nil || !small(1).Contains(p, 1<<20) {
		t.Errorf("memory at %#x, %v; want it in address window %v", p, err, small(1))
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if isTaken(small(1).Base) || isTaken(small(1).Base+small(1).Size-4096) {
		t.Error("the address window is still reserved after the session's end")
	}
}

func TestNoWindowIsFree(t *testing.T) {
	taken(t, small(0).Base)
	taken(t, small(1).Base+1<<20)
	g, end, err := offering(t, abi.Minor, small(0), small(1))
	var refused *guesttest.Refused
	if !errors.As(err, &refused) || refused.Result != abi.ErrOutOfMemory || !strings.Contains(refused.Why, "none of 2 address windows") {
		t.Errorf("error in the guest = %v, want out of memory and the reason", err)
	}
	// The refusal is sent first; a guest in a VM sees only the header.
	patience.Until(t, time.Minute, "the header holds the reason", func() bool {
		err := g.Dead()
		return err != nil && strings.Contains(err.Error(), "address windows")
	})
	if err := end(); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Error(err)
	}
}

// TestOldLibraryHasNoWindows checks that for a library of version 1.0, which does
// not support windows, these words of its header have no effect, and that its
// memory is in a window that the worker chooses.
func TestOldLibraryHasNoWindows(t *testing.T) {
	g, end, err := offering(t, 0, abi.Window{Base: 12345, Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx := g.Handle()
	if _, _, err := g.Call(abi.OpCtxCreate, abi.CtxCreate{Ctx: ctx}, nil); err != nil {
		t.Fatal(err)
	}
	if p, _, err := g.Call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20}, nil); err != nil || p > abi.WindowEnd {
		t.Errorf("memory allocated at %#x, %v, want at most %#x", p, err, uint64(abi.WindowEnd))
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// TestHostileWindows checks that a guest that offers an invalid window is
// refused, and that the worker's own memory is not changed.
func TestHostileWindows(t *testing.T) {
	const base = 0x690000000000
	for name, w := range map[string]abi.Window{
		"unaligned base":  {Base: base + 4096, Size: abi.MinWindow},
		"unaligned size":  {Base: base, Size: abi.MinWindow + 1},
		"no size":         {Base: base},
		"tiny":            {Base: base, Size: 4096},
		"huge":            {Base: base, Size: 1 << 46},
		"everything":      {Base: abi.WindowUnit, Size: ^uint64(abi.WindowUnit - 1)},
		"overflow":        {Base: ^uint64(abi.MinWindow - 1), Size: abi.MinWindow},
		"the kernel's":    {Base: 0xffff888000000000, Size: abi.MinWindow},
		"loader's":        {Base: 0x7f0000000000, Size: abi.MaxWindow},
		"around the page": {Base: 0, Size: abi.MinWindow},
	} {
		// The first window is valid, so that all are checked.
		_, end, err := offering(t, abi.Minor, small(3), w)
		if w.Base == 0 { // ends the list
			if err != nil {
				t.Errorf("%s: refusal = %v, want none", name, err)
			}
			_ = end()
			continue
		}
		var refused *guesttest.Refused
		if !errors.As(err, &refused) || refused.Result != abi.ErrInvalidValue || !strings.Contains(refused.Why, "address window") {
			t.Errorf("%s: refusal = %v, want an invalid value and the reason", name, err)
		}
		var p *worker.ProtocolError
		if err := end(); !errors.As(err, &p) {
			t.Errorf("%s: session ended with %v, want a protocol error", name, err)
		}
		if isTaken(small(3).Base) {
			t.Fatalf("%s: a window is reserved although the session was refused", name)
		}
	}
}

// TestWindowNeverReplacesMemory checks that an offer which overlaps the worker's
// own memory replaces nothing.
func TestWindowNeverReplacesMemory(t *testing.T) {
	mine := make([]byte, 1<<20) // in Go's heap
	for i := range mine {
		mine[i] = byte(i)
	}
	address := addressOf(mine)
	w := abi.Window{Base: address &^ (abi.WindowUnit - 1), Size: abi.MinWindow}
	if w.Check() != nil {
		w.Base = small(4).Base
		taken(t, w.Base+1<<20)
	}
	if _, err := worker.ReserveWindow(w); err == nil || !strings.Contains(err.Error(), "address range is already in use") {
		t.Errorf("ReserveWindow over own memory = %v, want that the range is in use", err)
	}
	for i := range mine {
		if mine[i] != byte(i) {
			t.Fatalf("byte %d of own memory = %d, want %d", i, mine[i], byte(i))
		}
	}
}

// TestWindowAllocateAndFree checks that allocated ranges do not overlap.
func TestWindowAllocateAndFree(t *testing.T) {
	w, err := worker.ReserveWindow(small(5))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	rnd := rand.New(rand.NewSource(1))
	allocated := map[uint64]uint64{}
	for range 2000 {
		if len(allocated) > 0 && rnd.Intn(2) == 0 {
			for at := range allocated {
				if err := w.Free(at); err != nil {
					t.Fatal(err)
				}
				delete(allocated, at)
				break
			}
			continue
		}
		size := uint64(1+rnd.Intn(8)) << 21
		at, err := w.Allocate(size, 2<<20)
		if errors.Is(err, abi.ErrOutOfMemory) {
			continue
		}
		if err != nil || at%(2<<20) != 0 || !w.Contains(at, size) {
			t.Fatalf("Allocate of %d bytes = %#x, %v, want a multiple of 2 MiB in the window", size, at, err)
		}
		for other, n := range allocated {
			if at < other+n && other < at+size {
				t.Fatalf("ranges %#x+%#x and %#x+%#x are allocated at the same time, want them disjoint", at, size, other, n)
			}
		}
		allocated[at] = size
	}
	if err := w.Free(w.Base + 4096); err == nil {
		t.Error("Free accepted an address that was never allocated")
	}
	if _, err := w.Allocate(abi.MinWindow+abi.WindowUnit, 2<<20); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("Allocate of more than the window = %v, want %v", err, abi.ErrOutOfMemory)
	}
}

// TestWindowGivesTheDevicePart checks that the device part is given to a library and
// reserved again as a whole; while something is mapped in it, it is not, and Close
// leaves it unchanged.
func TestWindowGivesTheDevicePart(t *testing.T) {
	w, err := worker.ReserveWindow(small(6))
	if err != nil {
		t.Fatal(err)
	}
	last := w.Device().Base + w.Device().Size - 4096
	give := func(given bool) {
		t.Helper()
		if err := errors.Join(w.GiveDevice(), w.GiveDevice()); err != nil {
			t.Fatal(err)
		}
		if isTaken(w.Base) != given || isTaken(last) || !isTaken(w.Host().Base) || !isTaken(w.Base+w.Size-4096) {
			t.Errorf("after GiveDevice: base of the device part in use = %t, want %t, and everything outside it reserved", isTaken(w.Base), given)
		}
	}
	give(false)
	if err := errors.Join(w.TakeDevice(), w.TakeDevice()); err != nil || !isTaken(w.Base) || !isTaken(last) {
		t.Errorf("TakeDevice = %v, want the device part reserved", err)
	}
	give(false)
	taken(t, w.Base)
	if err := w.TakeDevice(); err == nil {
		t.Error("TakeDevice of a part with a mapping in it returned no error")
	}
	give(true)
	w.Close()
	w.Close()
	if !isTaken(w.Base) || isTaken(last) || isTaken(w.Host().Base) || isTaken(w.Base+w.Size-4096) {
		t.Error("Close unmapped memory of a library, or did not unmap the rest")
	}
	if err := w.TakeDevice(); err != nil || isTaken(last) {
		t.Errorf("TakeDevice of a closed window = %v, want an error and nothing reserved", err)
	}
}

// FuzzReserveWindow checks that no pair of numbers makes the worker reserve an
// invalid window, or replace an existing mapping.
func FuzzReserveWindow(f *testing.F) {
	f.Add(uint64(0x690000000000), uint64(abi.MinWindow))
	f.Add(uint64(0x7f0000000000), uint64(abi.MaxWindow))
	f.Add(^uint64(0), ^uint64(0))
	f.Fuzz(func(t *testing.T, base, size uint64) {
		w, err := worker.ReserveWindow(abi.Window{Base: base, Size: size})
		if err != nil {
			return
		}
		defer w.Close()
		if base < abi.WindowLowest || base+size > abi.WindowEnd || base+size < base || size < abi.MinWindow {
			t.Fatalf("ReserveWindow accepted address window %v", w.Window)
		}
	})
}
