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
// copies from and to it go without a stop in between.
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
		t.Errorf("libcuda was asked %q", log)
	}
	copied := func(n int, what string, start func(done func(error)) error) {
		t.Helper()
		if err := wait(t, start); err != nil {
			t.Fatal(err)
		}
		if log := d.take(t); !slices.Equal(log, []string{fmt.Sprintf("%s %d stream 0", what, n)}) {
			t.Errorf("%s of %d bytes: %q", what, n, log)
		}
	}
	before := len(c.(*context).staging)
	copied(len(device), "HtoD", func(done func(error)) error { return c.CopyHtoD(nil, p, device, done) })
	copied(len(device)-100, "DtoH", func(done func(error)) error { return c.CopyDtoH(nil, device[100:], p, done) })
	if after := len(c.(*context).staging); after != before {
		t.Errorf("%d of %d staging chunks are free", after, before)
	}
	// Within the memory and past its end.
	if _, ok := c.(*context).hostAddress(device[:len(device):len(device)]); !ok {
		t.Error("the memory is not found by its bytes")
	}
	if err := wait(t, func(done func(error)) error { return c.HostUnregister(address, func() { done(nil) }) }); err != nil {
		t.Fatal(err)
	}
	if log := d.take(t); count(log, "cuMemHostUnregister") != 1 {
		t.Errorf("after the memory was taken back: %q", log)
	}
	if _, ok := c.(*context).hostAddress(device); ok {
		t.Error("memory that was taken back is copied from directly")
	}
}

// A card that has the memory at another address cannot use the guest's pointers.
func TestHostMemoryElsewhere(t *testing.T) {
	d := newDouble(t)
	t.Setenv("DOUBLE_HOST_ELSEWHERE", "1")
	w := drivertest.Window(t, abi.MinWindow)
	address, device, _ := drivertest.HostMemory(t, w, 0)
	c := openIn(t, d, w)
	if err := c.HostRegister(address, device); !errors.Is(err, abi.ErrNotSupported) {
		t.Errorf("register gives %v, want not supported", err)
	}
	if log := d.take(t); count(log, "cuMemHostUnregister") != 1 {
		t.Errorf("the registration was not given back: %q", log)
	}
	if err := c.Memset(nil, address, 0, 1, 8, nil); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("memset there gives %v", err)
	}
}

// When the context that registered the memory ends, another registers it again.
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
		t.Errorf("registered %d times, want once by each: %q", count(log, "cuMemHostRegister"), log)
	}
	if err := wait(t, func(done func(error)) error { return b.Memset(nil, address, 3, 1, 8, done) }); err != nil || guest[7] != 3 {
		t.Errorf("the other context: %v, the guest has % x", err, guest[:8])
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	// A context that cannot register it is refused the memory.
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
		t.Errorf("memset in memory that no context has registered: %v", err)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
}

// What the card says of host and managed memory is what the driver does.
func TestHostMemoryAttributes(t *testing.T) {
	d := newDouble(t)
	dev := must[worker.Driver](t)(Open(Options{Library: d.library}))
	for _, a := range []int{attributeMapHostMemory, attributeManagedMemory, attributeConcurrentManaged} {
		if got := dev.Info().Attributes[a]; got != 1 {
			t.Errorf("attribute %d is %d, want 1", a, got)
		}
	}
	old := newDouble(t, "-DOLD")
	dev = must[worker.Driver](t)(Open(Options{Library: old.library}))
	w := drivertest.Window(t, abi.MinWindow)
	address, device, _ := drivertest.HostMemory(t, w, 0)
	c := must[worker.Context](t)(dev.NewContext(0, &gate{}, w))
	if err := c.HostRegister(address, device); !errors.Is(err, abi.ErrNotSupported) || dev.Info().Attributes[attributeManagedMemory] != 0 {
		t.Errorf("a libcuda without it: %v, managed memory %d", err, dev.Info().Attributes[attributeManagedMemory])
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
}

// Memory that copies pass through is registered with the first context, stays for those
// that come after, is copied from and to directly, and is no memory of the device.
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
		t.Errorf("want the memory registered once by each context: %q", log)
	}
	p := must[uint64](t)(b.MemAlloc(uint64(len(staged))))
	d.take(t)
	if err := wait(t, func(done func(error)) error { return b.CopyHtoD(nil, p, staged[16:4112], done) }); err != nil {
		t.Fatal(err)
	}
	if log := d.take(t); !slices.Equal(log, []string{"HtoD 4096 stream 0"}) || len(b.(*context).staging) != chunkCount {
		t.Errorf("%q, %d of %d chunks are free", log, len(b.(*context).staging), chunkCount)
	}
	if err := b.Memset(nil, address, 3, 1, 8, nil); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("memset there gives %v, want an invalid value", err)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
}
