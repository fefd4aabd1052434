package drivertest

import (
	"bytes"
	"errors"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// virtualMemory is VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED (cuda.h, CUdevice_attribute).
const virtualMemory = 102

// granule is the size of a piece of memory in these tests, in bytes.
const granule = abi.MapGranule

// whereItMaps skips devices that report that they cannot map memory.
func whereItMaps(test func(*tester)) func(*tester) {
	return func(x *tester) {
		if a := x.driver.Info().Attributes; virtualMemory < len(a) && a[virtualMemory] != 0 {
			test(x)
		}
	}
}

// mapper is a context that supports mapping.
type mapper struct {
	worker.Context
	worker.Mapper
	x *tester
}

func (x *tester) mapper() mapper {
	x.Helper()
	ctx := x.context()
	m, ok := ctx.(worker.Mapper)
	if !ok {
		x.Fatalf("%T does not implement Mapper, but the device's attributes report mapping", ctx)
	}
	return mapper{ctx, m, x}
}

// reserve allocates n granules of the window, as a session does.
func (m mapper) reserve(n uint64) uint64 {
	m.x.Helper()
	at, err := m.x.window.Allocate(n*granule, granule)
	m.x.check(err)
	return at
}

func (m mapper) create(n uint64) uint64 {
	m.x.Helper()
	memory, err := m.MemCreate(n * granule)
	m.x.check(err)
	return memory
}

// show maps n granules with access.
func (m mapper) show(at, n, memory uint64) {
	m.x.Helper()
	m.x.check(m.MemMap(at, n*granule, memory))
	m.x.check(m.MemSetAccess(at, worker.AccessReadWrite))
}

func (m mapper) unmap(at uint64) {
	m.x.Helper()
	m.x.check(m.x.await(func(done func(error)) error { return m.MemUnmap(at, func() { done(nil) }) }))
}

// refused checks that a copy of 8 bytes at an address fails.
func (m mapper) refused(at uint64, why string) {
	m.x.Helper()
	var r abi.Result
	if err := m.Memset(nil, at, 1, 1, 8, nil); !errors.As(err, &r) || r != abi.ErrInvalidValue {
		m.x.Errorf("memset at %#x, %s = %v, want %v", at, why, err, abi.ErrInvalidValue)
	}
}

// testReservedFirst checks that memory is not where addresses were reserved before there
// was a context.
func testReservedFirst(x *tester) {
	if k, ok := x.driver.(worker.Keeper); ok {
		k.KeepIn(x.window)
	}
	at, err := x.window.Allocate(4*granule, granule)
	x.check(err)
	m := x.mapper()
	if p := x.alloc(m, granule); p < at+4*granule && at < p+granule {
		x.Errorf("memory allocated at %#x, want it outside of the addresses that were reserved at %#x", p, at)
	}
	memory := m.create(4)
	m.show(at, 4, memory)
}

// testMappings checks that memory is used at the address where it is mapped, with the
// access that it has there, and that adjacent mappings form one buffer.
func testMappings(x *tester) {
	m := x.mapper()
	at := m.reserve(4)
	a, b := m.create(1), m.create(2)
	m.refused(at, "where nothing is mapped")
	x.check(m.MemMap(at, granule, a))
	m.refused(at, "without access")
	x.check(m.MemSetAccess(at, worker.AccessReadWrite))
	m.show(at+granule, 2, b)
	m.refused(at+3*granule-4, "across the end")
	if got := x.read(m, nil, at, 3*granule); !bytes.Equal(got, make([]byte, 3*granule)) {
		x.Error("new memory is not zero")
	}
	want := pattern(3*granule, 3)
	x.write(m, nil, at, want)
	if got := x.read(m, nil, at, 3*granule); !bytes.Equal(got, x.kept(want)) {
		x.Error("adjacent mappings do not contain what was written")
	}
	k := x.kernels(m)
	x.check(x.await(func(done func(error)) error { return m.Launch(nil, k["store"], one(at+granule, 77), done) }))
	if got := x.read64(m, nil, at+granule); got != x.kept64(77) {
		x.Errorf("value stored by a kernel = %d, want 77", got)
	}
	x.check(m.MemSetAccess(at+granule, worker.AccessNone))
	m.refused(at+granule-4, "into a piece without access")
	x.check(m.MemSetAccess(at+granule, worker.AccessRead))
	if got := x.read64(m, nil, at+granule); got != x.kept64(77) {
		x.Errorf("value after access was set again = %d, want 77", got)
	}
	m.unmap(at)
	m.refused(at, "after it was unmapped")
	m.show(at, 1, a)
	if got := x.read(m, nil, at, granule); !bytes.Equal(got, x.kept(want[:granule])) {
		x.Error("contents changed when the memory was mapped again")
	}
	m.unmap(at)
	m.unmap(at + granule)
	x.check(m.MemRelease(a))
	x.check(m.MemRelease(b))
}

// testMappedTwice checks that memory mapped at two addresses is the same memory.
func testMappedTwice(x *tester) {
	m := x.mapper()
	at := m.reserve(5)
	memory := m.create(2)
	m.show(at, 2, memory)
	m.show(at+3*granule, 2, memory)
	x.write(m, nil, at+8, params(5))
	if got := x.read64(m, nil, at+3*granule+8); got != x.kept64(5) {
		x.Errorf("value at the second address = %d, want 5", got)
	}
	m.unmap(at)
	if got := x.read64(m, nil, at+3*granule+8); got != x.kept64(5) {
		x.Errorf("value after one of two mappings was removed = %d, want 5", got)
	}
	m.unmap(at + 3*granule)
	x.check(m.MemRelease(memory))
}

// testMappingsOutside checks that memory is used at addresses outside of the window which
// a driver that is a Reserver has reserved, through an eviction too, and that they are free
// afterwards.
func testMappingsOutside(x *tester) {
	d, ok := x.driver.(worker.Reserver)
	if !ok {
		return // a guest gets other addresses
	}
	free := Window(x.T, abi.MinWindow) // a range in which nothing is mapped
	w := abi.Window{Base: free.Base + 5*granule, Size: 6 * granule}
	free.Close()
	m := x.mapper()
	for range 2 {
		x.check(d.Reserve(w))
		if d.Reserve(w) == nil {
			x.Fatalf("second Reserve of %v returned no error", w)
		}
		m.refused(w.Base, "where nothing is mapped")
		a, b := m.create(1), m.create(2)
		m.show(w.Base+granule, 1, a)
		m.show(w.Base+2*granule, 2, b)
		m.refused(w.Base+4*granule-4, "across the end")
		want := pattern(3*granule, 4)
		x.write(m, nil, w.Base+granule, want)
		k := x.kernels(m)
		x.check(x.await(func(done func(error)) error { return m.Launch(nil, k["store"], one(w.Base+2*granule, 77), done) }))
		copy(want[granule:], params(77))
		if x.driver.Evicts() {
			x.evict(m, everything)
			x.back(m)
		}
		if got := x.read(m, nil, w.Base+granule, 3*granule); !bytes.Equal(got, x.kept(want)) {
			x.Error("adjacent mappings outside of the window do not contain what was written")
		}
		m.unmap(w.Base + granule)
		m.unmap(w.Base + 2*granule)
		m.refused(w.Base+granule, "after it was unmapped")
		x.check(m.MemRelease(a))
		x.check(m.MemRelease(b))
		x.check(x.sync(m))
		x.check(d.Unreserve(w))
	}
}

// testMemoryToMapIsLimited checks that created memory is counted, and that
// released memory can be allocated again, zeroed.
func testMemoryToMapIsLimited(x *tester) {
	m := x.mapper()
	if _, err := m.MemCreate(1 << 60); !errors.Is(err, abi.ErrOutOfMemory) {
		x.Errorf("MemCreate of 2^60 bytes = %v, want %v", err, abi.ErrOutOfMemory)
	}
	at := m.reserve(8)
	for round := range 2 {
		var all []uint64
		for len(all) <= 64 { // enough, on a large card
			memory, err := m.MemCreate(8 * granule)
			if err != nil {
				x.want(err, abi.ErrOutOfMemory)
				break
			}
			all = append(all, memory)
		}
		if len(all) < 3 {
			x.Fatalf("round %d: only %d pieces of 16 MiB, want at least 3", round, len(all))
		}
		m.show(at, 8, all[0])
		if got := x.read64(m, nil, at+granule); got != 0 {
			x.Errorf("round %d: value in new memory = %d, want 0", round, got)
		}
		x.write(m, nil, at+granule, params(9))
		m.unmap(at)
		for _, memory := range all {
			x.check(m.MemRelease(memory))
		}
		x.check(x.sync(m))
	}
}

// testMappingInUse checks that a mapping that is removed while a kernel uses it stays
// until the kernel has ended.
func testMappingInUse(x *tester) {
	m := x.mapper()
	at := m.reserve(1)
	memory := m.create(1)
	m.show(at, 1, memory)
	k, s := x.kernels(m), x.stream(m, worker.StreamNonBlocking)
	ended := make(chan error, 1)
	x.check(m.Launch(s, k["delay"], one(at, 6, x.o.Loops), func(err error) { ended <- err }))
	m.unmap(at)
	select {
	case err := <-ended:
		x.check(err)
	case <-time.After(patience):
		x.Errorf("the kernel did not end within %v", patience)
	}
	m.show(at, 1, memory)
	if got := x.read64(m, nil, at); got != x.kept64(6) {
		x.Errorf("value stored by the kernel = %d, want 6", got)
	}
}

// testNoAccessFaults checks that a kernel which uses memory without access, or
// unmapped addresses, faults.
func testNoAccessFaults(x *tester) {
	for name, prepare := range map[string]func(m mapper, at uint64){
		"reserved":       func(mapper, uint64) {},
		"without access": func(m mapper, at uint64) { x.check(m.MemMap(at, granule, m.create(1))) },
		"unmapped": func(m mapper, at uint64) {
			m.show(at, 1, m.create(1))
			m.unmap(at)
		},
	} {
		m := x.mapper()
		at := m.reserve(1)
		prepare(m, at)
		k := x.kernels(m)
		err := x.await(func(done func(error)) error { return m.Launch(nil, k["store"], one(at, 1), done) })
		if !errors.Is(err, abi.ErrIllegalAddress) {
			x.Errorf("%s: launch = %v, want %v", name, err, abi.ErrIllegalAddress)
		}
		if x.o.FaultsEndAll {
			return
		}
	}
}

// testEvictedMappings checks that mapped memory is evicted and restored to all its
// addresses, and that it can be mapped and unmapped in the meantime.
func testEvictedMappings(x *tester) {
	m := x.mapper()
	at := m.reserve(6)
	a, b := m.create(2), m.create(1)
	m.show(at, 2, a)
	m.show(at+4*granule, 2, a)
	m.show(at+2*granule, 1, b)
	want := pattern(2*granule, 8)
	x.write(m, nil, at, want)
	x.check(x.sync(m))
	x.evict(m, everything)
	later := m.create(1)
	m.unmap(at + 2*granule)
	x.check(m.MemRelease(b))
	m.unmap(at + 4*granule)
	m.show(at+2*granule, 1, later)
	m.show(at+3*granule, 2, a)
	x.back(m)
	if got := x.read(m, nil, at, 2*granule); !bytes.Equal(got, x.kept(want)) {
		x.Error("contents changed during an eviction")
	}
	if got := x.read(m, nil, at+2*granule, 3*granule); !bytes.Equal(got, append(make([]byte, granule), x.kept(want)...)) {
		x.Error("contents of memory that was mapped during an eviction differ")
	}
	x.write(m, nil, at, params(3))
	if got := x.read64(m, nil, at+3*granule); got != x.kept64(3) {
		x.Errorf("value at the second address = %d, want 3", got)
	}
}

// testDestroyWithMappings checks that a destroyed context removes its mappings, even
// while work is in progress, and that the next context can use all of the memory.
func testDestroyWithMappings(x *tester) {
	for range 3 {
		m := x.mapper()
		at := m.reserve(8)
		memory := m.create(4)
		m.show(at, 4, memory)
		m.show(at+4*granule, 4, memory)
		k := x.kernels(m)
		for range 3 {
			x.check(m.Launch(nil, k["delay"], one(at, 1, x.o.Loops), nil))
		}
		gone := make(chan struct{})
		x.check(m.MemUnmap(at, func() { close(gone) }))
		x.forget(m.Context)
		x.check(m.Destroy())
		select {
		case <-gone:
		case <-time.After(patience):
			x.Error("MemUnmap's done was not called by Destroy")
		}
		x.check(x.window.Free(at))
	}
	x.alloc(x.context(), 16<<20)
}
