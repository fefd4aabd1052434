package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
)

// openIn returns a context whose addresses are in w.
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
// however many contexts, and releases it after the last one.
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
				t.Errorf("memory at %#x, want it in the device part of address window %v", p, w.Window)
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
			t.Errorf("addresses were freed %d times after %d contexts were destroyed, want %d", freed, i+1, i)
		}
	}
	if _, err := worker.ReserveWindow(w.Window); err == nil {
		t.Error("the address window is no longer reserved")
	}
}

// If libcuda reserves other addresses than those of the window, no context is created,
// the error names the window, and the window is unchanged.
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
		t.Fatalf("NewContext = %v, want out of memory with the address window", err)
	}
	log := d.take(t)
	if count(log, "cuMemAddressReserve") != 1 || count(log, "cuMemAddressFree") != 1 || count(log, "cuCtxCreate") != 0 {
		t.Errorf("calls = %q, want one reservation that is freed, and no context", log)
	}
	if _, err := worker.ReserveWindow(w.Window); err == nil {
		t.Error("the address window is no longer reserved")
	}
	t.Setenv("DOUBLE_MOVES", "0")
	must[worker.Context](t)(dev.NewContext(0, &gate{}, w))
}
