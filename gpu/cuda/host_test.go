package cuda

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
)

// Host memory is registered once for all contexts, as portable and mapped, and
// copies from and to it are not staged.
func TestHostMemoryIsCopiedDirectly(t *testing.T) {
	d := newDouble(t)
	w := drivertest.Window(t, abi.MinWindow)
	address, device, _ := drivertest.HostMemory(t, w, 0)
	c := openIn(t, d, w)
	p := must[uint64](t)(c.MemAlloc(uint64(len(device))))
	if err := errors.Join(c.HostRegister(address, device), wait(t, c.Notify)); err != nil {
		t.Fatal(err)
	}
	if log := d.take(t); !slices.Contains(log, fmt.Sprintf("cuMemHostRegister %d flags 3", len(device))) {
		t.Errorf("calls = %q, want cuMemHostRegister of %d bytes with flags 3", log, len(device))
	}
	copied := func(n int, what string, start func(done func(error)) error) {
		t.Helper()
		if err := wait(t, start); err != nil {
			t.Fatal(err)
		}
		if log := d.take(t); !slices.Equal(log, []string{fmt.Sprintf("%s %d stream 0", what, n)}) {
			t.Errorf("%s of %d bytes: calls = %q, want only the copy", what, n, log)
		}
	}
	before := len(c.(*context).staging)
	copied(len(device), "HtoD", func(done func(error)) error { return c.CopyHtoD(nil, p, device, done) })
	copied(len(device)-100, "DtoH", func(done func(error)) error { return c.CopyDtoH(nil, device[100:], p, done) })
	if after := len(c.(*context).staging); after != before {
		t.Errorf("%d staging chunks are free, want all %d", after, before)
	}
	// Within the memory and beyond its end.
	if _, ok := c.(*context).hostAddress(device[:len(device):len(device)]); !ok {
		t.Error("hostAddress does not find the registered memory")
	}
	if err := wait(t, func(done func(error)) error { return c.HostUnregister(address, func() { done(nil) }) }); err != nil {
		t.Fatal(err)
	}
	if log := d.take(t); count(log, "cuMemHostUnregister") != 1 {
		t.Errorf("calls after the memory was unregistered = %q, want one cuMemHostUnregister", log)
	}
	if _, ok := c.(*context).hostAddress(device); ok {
		t.Error("hostAddress finds memory that was unregistered")
	}
}

// A card that maps the memory at another address cannot use the guest's pointers.
func TestHostMemoryElsewhere(t *testing.T) {
	d := newDouble(t)
	t.Setenv("DOUBLE_HOST_ELSEWHERE", "1")
	w := drivertest.Window(t, abi.MinWindow)
	address, device, _ := drivertest.HostMemory(t, w, 0)
	c := openIn(t, d, w)
	if err := c.HostRegister(address, device); !errors.Is(err, abi.ErrNotSupported) {
		t.Errorf("HostRegister = %v, want %v", err, abi.ErrNotSupported)
	}
	if log := d.take(t); count(log, "cuMemHostUnregister") != 1 {
		t.Errorf("calls = %q, want the memory unregistered", log)
	}
	if err := c.Memset(nil, address, 0, 1, 8, nil); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("memset there = %v, want %v", err, abi.ErrInvalidValue)
	}
}

// When the context that registered the memory is destroyed, another registers it
// again.
func TestHostMemoryOutlivesItsContext(t *testing.T) {
	d := newDouble(t)
	w := drivertest.Window(t, abi.MinWindow)
	address, device, guest := drivertest.HostMemory(t, w, 0)
	dev := must[worker.Driver](t)(Open(Options{Library: d.library}))
	a, b := must[worker.Context](t)(dev.NewContext(0, &gate{}, w)), must[worker.Context](t)(dev.NewContext(0, &gate{}, w))
	if err := errors.Join(a.HostRegister(address, device), b.HostRegister(address, device), a.Destroy()); err != nil {
		t.Fatal(err)
	}
	if log := d.take(t); count(log, "cuMemHostRegister") != 2 {
		t.Errorf("%d registrations, want one by each context: %q", count(log, "cuMemHostRegister"), log)
	}
	if err := wait(t, func(done func(error)) error { return b.Memset(nil, address, 3, 1, 8, done) }); err != nil || guest[7] != 3 {
		t.Errorf("memset in the other context = %v, the guest has % x", err, guest[:8])
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	// The memory is not available to a context that cannot register it.
	dev = must[worker.Driver](t)(Open(Options{Library: d.library}))
	a, b = must[worker.Context](t)(dev.NewContext(0, &gate{}, w)), must[worker.Context](t)(dev.NewContext(0, &gate{}, w))
	if err := errors.Join(a.HostRegister(address, device), b.HostRegister(address, device)); err != nil {
		t.Fatal(err)
	}
	d.play(t, "cuMemHostRegister 2\n")
	if err := a.Destroy(); err != nil {
		t.Fatal(err)
	}
	if err := b.Memset(nil, address, 0, 1, 8, nil); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("memset in memory that no context has registered = %v, want %v", err, abi.ErrInvalidValue)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
}

// The card's attributes of host and managed memory match what the driver
// supports.
func TestHostMemoryAttributes(t *testing.T) {
	d := newDouble(t)
	dev := must[worker.Driver](t)(Open(Options{Library: d.library}))
	for _, a := range []int{attributeMapHostMemory, attributeManagedMemory, attributeConcurrentManaged} {
		if got := dev.Info().Attributes[a]; got != 1 {
			t.Errorf("attribute %d = %d, want 1", a, got)
		}
	}
	old := newDouble(t, "-DOLD")
	dev = must[worker.Driver](t)(Open(Options{Library: old.library}))
	w := drivertest.Window(t, abi.MinWindow)
	address, device, _ := drivertest.HostMemory(t, w, 0)
	c := must[worker.Context](t)(dev.NewContext(0, &gate{}, w))
	if err := c.HostRegister(address, device); !errors.Is(err, abi.ErrNotSupported) || dev.Info().Attributes[attributeManagedMemory] != 0 {
		t.Errorf("HostRegister with a libcuda without it = %v, managed memory %d; want %v and 0", err, dev.Info().Attributes[attributeManagedMemory], abi.ErrNotSupported)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
}

// Memory that copies pass through is registered with the first context, remains
// registered for later ones, is copied from and to directly, and is not memory of the
// device.
func TestStagedMemoryIsCopiedDirectly(t *testing.T) {
	d := newDouble(t)
	w := drivertest.Window(t, abi.MinWindow)
	address, staged, _ := drivertest.HostMemory(t, w, 0)
	dev := must[worker.Driver](t)(Open(Options{Library: d.library}))
	dev.(worker.Stager).Stage(staged)
	a, b := must[worker.Context](t)(dev.NewContext(0, &gate{}, w)), must[worker.Context](t)(dev.NewContext(0, &gate{}, w))
	if err := a.Destroy(); err != nil {
		t.Fatal(err)
	}
	if log := d.take(t); count(log, fmt.Sprintf("cuMemHostRegister %d flags 3", len(staged))) != 2 {
		t.Errorf("calls = %q, want the memory registered once by each context", log)
	}
	p := must[uint64](t)(b.MemAlloc(uint64(len(staged))))
	d.take(t)
	if err := wait(t, func(done func(error)) error { return b.CopyHtoD(nil, p, staged[16:4112], done) }); err != nil {
		t.Fatal(err)
	}
	if log := d.take(t); !slices.Equal(log, []string{"HtoD 4096 stream 0"}) || len(b.(*context).staging) != chunkCount {
		t.Errorf("calls = %q, %d of %d chunks are free; want one copy and all free", log, len(b.(*context).staging), chunkCount)
	}
	if err := b.Memset(nil, address, 3, 1, 8, nil); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("memset there = %v, want %v", err, abi.ErrInvalidValue)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
}
