package cuda

import (
	"errors"
	"strings"
	"testing"

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

// libcuda reserves the device part of a window once, whatever is allocated there by
// however many contexts, and gets it back after the last.
func TestWindowIsReservedOnce(t *testing.T) {
	d := newDouble(t)
	w := drivertest.Window(t, abi.MinWindow)
	dev := must[worker.Driver](t)(Open(Options{Library: d.library}))
	defer dev.Close()
	d.take(t)
	var contexts []worker.Context
	for range 2 {
		c := must[worker.Context](t)(dev.NewContext(0, &gate{}, w))
		contexts = append(contexts, c)
		for _, size := range []uint64{1000, 4 << 20, 24 << 20} {
			if p := must[uint64](t)(c.MemAlloc(size)); !w.Device().Contains(p, size) {
				t.Errorf("memory at %#x is outside of the device part of address window %v", p, w.Window)
			}
		}
	}
	log := d.take(t)
	if r := count(log, "cuMemAddressReserve"); r != 1 || count(log, "cuMemAddressFree") != 0 {
		t.Errorf("%d reservations, want 1 that is kept: %q", r, log)
	}
	for i, c := range contexts {
		if err := c.Destroy(); err != nil {
			t.Error(err)
		}
		if freed := count(d.take(t), "cuMemAddressFree"); freed != i {
			t.Errorf("after %d contexts the addresses were given back %d times, want %d", i+1, freed, i)
		}
	}
	if _, err := worker.ReserveWindow(w.Window); err == nil {
		t.Error("the address window is not reserved any more")
	}
}

// Where libcuda reserves other addresses than those of the window there is no context,
// the error says so, and the window is as it was.
func TestMovedReservationIsRefused(t *testing.T) {
	d := newDouble(t)
	w := drivertest.Window(t, abi.MinWindow)
	dev := must[worker.Driver](t)(Open(Options{Library: d.library}))
	defer func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}()
	d.take(t)
	t.Setenv("DOUBLE_MOVES", "1")
	if _, err := dev.NewContext(0, &gate{}, w); !errors.Is(err, abi.ErrOutOfMemory) || !strings.Contains(err.Error(), "address window") {
		t.Fatalf("a context gives %v; want out of memory that names the address window", err)
	}
	log := d.take(t)
	if count(log, "cuMemAddressReserve") != 1 || count(log, "cuMemAddressFree") != 1 || count(log, "cuCtxCreate") != 0 {
		t.Errorf("want one reservation that is given back, and no context: %q", log)
	}
	if _, err := worker.ReserveWindow(w.Window); err == nil {
		t.Error("the address window is not reserved any more")
	}
	t.Setenv("DOUBLE_MOVES", "0")
	must[worker.Context](t)(dev.NewContext(0, &gate{}, w))
}
