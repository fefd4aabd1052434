package cuda

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// heldMemsets makes the double hold memsets until release.
func heldMemsets(t *testing.T) (release func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hold")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOUBLE_HOLD", file)
	release = func() { _ = os.Remove(file) }
	t.Cleanup(release)
	return release
}

// allocated is what an allocation in another goroutine returned.
type allocated struct {
	address uint64
	err     error
}

func allocating(t *testing.T, d *double, ask func(size uint64) (uint64, error), size uint64) <-chan allocated {
	t.Helper()
	got := make(chan allocated, 1)
	go func() {
		address, err := ask(size)
		got <- allocated{address, err}
	}()
	var log []string
	patience.Until(t, 20*time.Second, "the memory is being cleared", func() bool {
		log = append(log, d.take(t)...)
		return slices.Contains(log, "memset waits")
	})
	return got
}

// While new memory is being cleared, work of the context is submitted and memory is
// freed; the allocation returns after it is zero.
func TestZeroingDelaysNoOthers(t *testing.T) {
	for _, size := range []uint64{1000, 70 << 20} {
		d := newDouble(t)
		c := open(t, d, &gate{})
		_, f, _, err := c.ModuleLoad([]byte(source), worker.ModuleOptions{})
		if err != nil {
			t.Fatal(err)
		}
		used, other := must[uint64](t)(c.MemAlloc(4096)), must[uint64](t)(c.MemAlloc(4096))
		release := heldMemsets(t)
		got := allocating(t, d, c.MemAlloc, size)
		one := worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
		host := make([]byte, 4096)
		if err := errors.Join(
			wait(t, func(done func(error)) error { return c.Launch(nil, f[0], one, done) }),
			wait(t, func(done func(error)) error { return c.CopyDtoH(nil, host, used, done) }),
			c.MemFree(other), wait(t, c.Notify),
		); err != nil {
			t.Error(err)
		}
		select {
		case a := <-got:
			t.Errorf("an allocation of %d bytes returned %#x, %v before its memory was zero", size, a.address, a.err)
		default:
		}
		release()
		a := patience.Receive(t, 20*time.Second, "the allocation returns", got)
		if a.err != nil {
			t.Fatal(a.err)
		}
		zero(t, c, a.address, size)
	}
}

// zero checks that memory is zero.
func zero(t *testing.T, c worker.Context, address, size uint64) {
	t.Helper()
	host := bytes.Repeat([]byte{1}, int(size))
	if err := wait(t, func(done func(error)) error { return c.CopyDtoH(nil, host, address, done) }); err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(host, func(b byte) bool { return b != 0 }); i >= 0 {
		t.Errorf("byte %d of %d bytes of new memory = %#x, want 0", i, size, host[i])
	}
}

// Memory is not evicted before it is zero: the copy on the host would have another
// guest's bytes.
func TestEvictWaitsForZeroing(t *testing.T) {
	d := newDouble(t)
	g := &gate{}
	c := open(t, d, g)
	release := heldMemsets(t)
	const size = 70 << 20
	got := allocating(t, d, c.MemAlloc, size)
	evicted := make(chan error, 1)
	go func() {
		_, err := c.Evict(1 << 40)
		evicted <- err
	}()
	patience.Until(t, 20*time.Second, "Evict waits", func() bool {
		m := &c.(*context).virtual.move
		if m.TryRLock() { // it fails as soon as there is a writer
			m.RUnlock()
			return false
		}
		return true
	})
	if log := d.take(t); slices.ContainsFunc(log, func(l string) bool { return l == "cuMemUnmap 67108864" }) {
		t.Errorf("libcuda received %q while the memory was being cleared, want no unmapping", log)
	}
	release()
	a := patience.Receive(t, 20*time.Second, "the allocation returns", got)
	if err := errors.Join(a.err, patience.Receive(t, 20*time.Second, "Evict returns", evicted), c.Restore()); err != nil {
		t.Fatal(err)
	}
	zero(t, c, a.address, size)
}

// A context that is destroyed while memory is being cleared frees it.
func TestDestroyDuringZeroing(t *testing.T) {
	for _, flags := range [][]string{nil, {"-DPINNED"}} {
		d := newDouble(t, flags...)
		c := open(t, d, &gate{})
		release := heldMemsets(t)
		got := allocating(t, d, c.MemAlloc, 4<<20)
		ended := make(chan error, 1)
		go func() { ended <- c.Destroy() }()
		patience.Until(t, 20*time.Second, "the context ends", c.(*context).quitting)
		release()
		a := patience.Receive(t, 20*time.Second, "the allocation returns", got)
		if a.err != nil && !errors.Is(a.err, abi.ErrInvalidContext) {
			t.Errorf("allocation in a context that is being destroyed = %v, want no error or %v", a.err, abi.ErrInvalidContext)
		}
		if err := patience.Receive(t, 20*time.Second, "Destroy returns", ended); err != nil {
			t.Error(err)
		}
		if log := d.take(t); flags == nil && !slices.Contains(log, "cuMemUnmap 4194304") {
			t.Errorf("libcuda received %q, want that the memory is unmapped", log)
		}
	}
}
