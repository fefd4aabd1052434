package cuda

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
)

// openIn is a context whose addresses lie in w.
func openIn(t *testing.T, d *double, w *worker.Window) worker.Context {
	t.Helper()
	dev := must[worker.Driver](t)(Open(Options{Library: d.library}))
	c := must[worker.Context](t)(dev.NewContext(0, &gate{}, w))
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func count(lines []string, prefix string) (n int) {
	for _, l := range lines {
		if strings.HasPrefix(l, prefix) {
			n++
		}
	}
	return n
}

// libcuda may reserve other addresses than it was asked for: they are given
// back and the next place is tried.
func TestMovedReservationIsTriedElsewhere(t *testing.T) {
	d := newDouble(t)
	w := drivertest.Window(t, abi.MinWindow)
	c := openIn(t, d, w)
	t.Setenv("DOUBLE_MOVES", "2")
	p := must[uint64](t)(c.MemAlloc(4 << 20))
	if !w.Contains(p, 4<<20) {
		t.Errorf("memory at %#x is outside of address window %v", p, w.Window)
	}
	log := d.take(t)
	if moved := count(log, "cuMemAddressReserve 4194304 elsewhere"); moved != 2 || count(log, "cuMemAddressFree") != 2 {
		t.Errorf("%d reservations were moved, want 2, each given back: %q", moved, log)
	}
	if err := errors.Join(c.MemFree(p), wait(t, c.Notify)); err != nil {
		t.Error(err)
	}
}

// When libcuda refuses every place there is no memory to be had, and the window
// is as it was.
func TestRefusedReservationsAreOutOfMemory(t *testing.T) {
	d := newDouble(t)
	w := drivertest.Window(t, abi.MinWindow)
	c := openIn(t, d, w)
	t.Setenv("DOUBLE_MOVES", strconv.Itoa(1<<20))
	if p, err := c.MemAlloc(4 << 20); !errors.Is(err, abi.ErrOutOfMemory) || !strings.Contains(err.Error(), "address window") {
		t.Fatalf("allocation gives %#x, %v; want out of memory that names the address window", p, err)
	}
	log := d.take(t)
	if r, f := count(log, "cuMemAddressReserve"), count(log, "cuMemAddressFree"); r != maxHoles || f != r {
		t.Errorf("%d reservations and %d frees, want %d of both", r, f, maxHoles)
	}
	if slices.ContainsFunc(log, func(l string) bool { return strings.HasPrefix(l, "cuMemCreate") }) {
		t.Error("memory was created without an address")
	}
	if _, err := worker.ReserveWindow(w.Window); err == nil {
		t.Error("the address window is not reserved any more")
	}
	t.Setenv("DOUBLE_MOVES", "0")
	p := must[uint64](t)(c.MemAlloc(4 << 20))
	if err := errors.Join(c.MemFree(p), wait(t, c.Notify)); err != nil {
		t.Error(err)
	}
}

// Somebody else in the process may take a place in the moment when it is lent.
func TestTakenPlaceIsPassedOver(t *testing.T) {
	d := newDouble(t)
	w := drivertest.Window(t, abi.MinWindow)
	c := openIn(t, d, w)
	at, err := w.Lend(4<<20, 2<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
	if _, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(at), 4096, unix.PROT_NONE, flags, ^uintptr(0), 0); errno != 0 {
		t.Fatal(errno)
	}
	if err := w.Return(at); err == nil {
		t.Error("a place with something in it was taken back")
	}
	for range 100 { // once around the window
		p := must[uint64](t)(c.MemAlloc(4 << 20))
		if p >= at && p < at+4<<20 || !w.Contains(p, 4<<20) {
			t.Fatalf("memory at %#x, where %#x is taken in address window %v", p, at, w.Window)
		}
		if err := errors.Join(c.MemFree(p), wait(t, c.Notify)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_MUNMAP, uintptr(at), 4096, 0); errno != 0 {
		t.Error(errno)
	}
}
