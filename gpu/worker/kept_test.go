package worker_test

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// keep writes what the guest keeps, as its library does, and ends the free words.
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

// A guest may keep as much as its cushion, and what it keeps is free: it is told so,
// and an allocation that finds no other memory gets it.
func TestKeptMemoryIsFree(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	if most := r.Shm.Load64(abi.OffKeepMost); most == 0 || most > vram/32 {
		t.Errorf("it may keep %d bytes, want some and at most a 32nd of %d", most, vram)
	}
	q, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	r.keep(p)
	if free, _ := r.call(abi.OpMemInfo, guesttest.None{}); free != vram-1<<20 {
		t.Errorf("%d bytes free with one MiB used and one kept, want %d", free, vram-1<<20)
	}
	if r.kept(0) != p {
		t.Error("a question for free memory took away what is kept")
	}
	r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: vram - 1<<20})
	if r.kept(0) != 0 {
		t.Error("the word still says that it is kept")
	}
	r.fails(abi.ErrInvalidValue, abi.OpMemFree, abi.MemFree{Address: p})
	r.call(abi.OpMemFree, abi.MemFree{Address: q})
}

// What a guest keeps and does not use again is freed after a while.
func TestKeptMemoryRests(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	r.keep(p)
	patience.Until(t, 10*time.Second, "the worker frees what is kept", func() bool {
		return r.kept(0) == 0 && r.Shm.Load64(abi.OffKeepMost) == 0 && r.driver.Used() == 0
	})
}

// A guest that writes anything into the words loses what it names there, and nobody
// else loses anything.
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
		t.Errorf("%d of %d bytes free", free, total)
	}
	q, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: vram})
	r.fails(abi.ErrInvalidValue, abi.OpMemFree, abi.MemFree{Address: p})
	r.call(abi.OpMemFree, abi.MemFree{Address: q})
	if used := r.driver.Used(); used != 0 {
		t.Errorf("%d bytes of device memory are used", used)
	}
	if free, total := r.call(abi.OpMemInfo, guesttest.None{}); free != total {
		t.Errorf("at the end %d of %d bytes free", free, total)
	}
}

// Memory that is kept while work of its context goes on comes back when that is done:
// an allocation that needs it waits.
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
		t.Errorf("the memory was allocated again after %v, while a kernel ran that may use it", took)
	}
}
