package worker_test

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// keep writes the addresses of kept memory, as the guest library does, and sets
// the remaining words to zero.
func (r *rig) keep(addresses ...uint64) {
	for i := range uint64(abi.MaxKept) {
		address := uint64(0)
		if i < uint64(len(addresses)) {
			address = addresses[i]
		}
		r.Shm.Store64(abi.OffKept+8*i, address)
	}
}

func (r *rig) kept(i uint64) uint64 { return r.Shm.Load64(abi.OffKept + 8*i) }

// TestKeptMemoryIsFree checks that a guest may keep as much as its idle limit, and that
// kept memory counts as free: it is reported as free, and is used for an allocation
// that needs it.
func TestKeptMemoryIsFree(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	if most := r.Shm.Load64(abi.OffKeepMost); most == 0 || most > vram/32 {
		t.Errorf("keep limit = %d bytes, want more than 0 and at most a 32nd of %d", most, vram)
	}
	q, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	r.keep(p)
	if free, _ := r.call(abi.OpMemInfo, guesttest.None{}); free != vram-1<<20 {
		t.Errorf("%d bytes free with 1 MiB used and 1 MiB kept, want %d", free, vram-1<<20)
	}
	if r.kept(0) != p {
		t.Error("a query of the free memory freed the kept memory")
	}
	r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: vram - 1<<20})
	if r.kept(0) != 0 {
		t.Error("the word still has the address of memory that was reclaimed")
	}
	r.fails(abi.ErrInvalidValue, abi.OpMemFree, abi.MemFree{Address: p})
	r.call(abi.OpMemFree, abi.MemFree{Address: q})
}

// TestKeptMemoryRests checks that memory which a guest keeps and does not use
// again is freed after a while.
func TestKeptMemoryRests(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	r.keep(p)
	patience.Until(t, 10*time.Second, "the worker frees what is kept", func() bool {
		return r.kept(0) == 0 && r.Shm.Load64(abi.OffKeepMost) == 0 && r.driver.Used() == 0
	})
}

// TestKeptWordsAreNotBelieved checks that a guest that writes arbitrary values into
// the words only loses its own allocations at these addresses.
func TestKeptWordsAreNotBelieved(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	gone := r.context()
	left, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: gone, Size: 1 << 20})
	r.call(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: gone})
	var all []uint64
	for range abi.MaxKept - 4 {
		all = append(all, p)
	}
	r.keep(append(all, left, 1, ^uint64(0), p+256)...)
	if free, total := r.call(abi.OpMemInfo, guesttest.None{}); free != total {
		t.Errorf("%d of %d bytes free, want all", free, total)
	}
	q, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: vram})
	r.fails(abi.ErrInvalidValue, abi.OpMemFree, abi.MemFree{Address: p})
	r.call(abi.OpMemFree, abi.MemFree{Address: q})
	if used := r.driver.Used(); used != 0 {
		t.Errorf("%d bytes of device memory in use, want 0", used)
	}
	if free, total := r.call(abi.OpMemInfo, guesttest.None{}); free != total {
		t.Errorf("%d of %d bytes free at the end, want all", free, total)
	}
}

// TestKeptMemoryOfABusyContext checks that memory which is kept while work of its
// context runs is freed when that work is done, and that an allocation that needs it
// waits.
func TestKeptMemoryOfABusyContext(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	_, delay := r.module(ctx, fakedriver.KernelDelay)
	p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	q, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	const nanos = uint64(50 * time.Millisecond)
	start := time.Now()
	if err := r.launch(ctx, delay, q, 1, nanos); err != nil {
		t.Fatal(err)
	}
	r.keep(p)
	r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: vram - 1<<20})
	if took := time.Since(start); took < time.Duration(nanos) {
		t.Errorf("the memory was allocated again after %v, while a kernel ran that may use it; want at least %v", took, time.Duration(nanos))
	}
}
