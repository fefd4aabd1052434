package worker_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
)

// newNeighbour returns another session of r's vGPU.
func newNeighbour(t testing.TB, r *rig) *rig {
	t.Helper()
	d := fakedriver.New(fakedriver.Options{})
	return newRigOf(t, d, d, 0, worker.Options{}, func(h *worker.LocalHost) { h.Join(r.host) })
}

func (r *rig) alloc(ctx, size uint64) uint64 {
	r.Helper()
	p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: size})
	return p
}

func (r *rig) share(address uint64) (token [2]uint64) {
	r.Helper()
	token[0], token[1] = r.call(abi.OpMemShare, abi.MemShare{Address: address})
	return token
}

func (r *rig) open(ctx uint64, token [2]uint64) (address, size uint64) {
	r.Helper()
	return r.call(abi.OpMemOpen, abi.MemOpen{Ctx: ctx, Token0: token[0], Token1: token[1]})
}

// TestShare checks that two sessions use the same memory, that it counts once in both
// accounts, and that the owner's free leaves it to the other session.
func TestShare(t *testing.T) {
	const size = 1<<20 + 3
	a := newRig(t, fakedriver.Options{}, 0)
	b := newNeighbour(t, a)
	ca, cb := a.context(), b.context()
	p := a.alloc(ca, size)
	a.put(ca, p, 1)
	token := a.share(p)
	if again := a.share(p); again != token {
		t.Errorf("tokens of two MemShare commands = %x and %x, want the same", token, again)
	}
	if got, want := a.free(), vram-worker.Accounted(size); got != want {
		t.Errorf("%d bytes free after sharing, want %d", got, want)
	}
	a.fails(abi.ErrInvalidContext, abi.OpMemOpen, abi.MemOpen{Ctx: ca, Token0: token[0], Token1: token[1]})
	b.fails(abi.ErrInvalidHandle, abi.OpMemOpen, abi.MemOpen{Ctx: cb, Token0: token[0], Token1: token[1] + 1})
	q, n := b.open(cb, token)
	if again, _ := b.open(cb, token); n != size || again != q {
		t.Fatalf("opened %d bytes at %#x, and then at %#x; want %d bytes at the same address", n, q, again, size)
	}
	if got := b.get(cb, q); got != 1 {
		t.Errorf("value that the neighbour reads = %d, want 1", got)
	}
	b.put(cb, q+8, 2)
	if got := a.get(ca, p+8); got != 2 {
		t.Errorf("value that the owner reads = %d, want 2", got)
	}
	second := b.context() // with a mapping of its own
	if other, _ := b.open(second, token); other == q || b.get(second, other) != 1 {
		t.Errorf("address in a second context = %#x, want another than %#x and the value 1", other, q)
	}
	if left, _ := b.call(abi.OpMemClose, abi.MemClose{Address: q}); left != 1 {
		t.Errorf("%d opens left after a close, want 1", left)
	}
	a.call(abi.OpMemFree, abi.MemFree{Address: p})
	if got := a.free(); got != vram {
		t.Errorf("%d bytes free after the owner's free, want all %d", got, uint64(vram))
	}
	b.fails(abi.ErrInvalidHandle, abi.OpMemOpen, abi.MemOpen{Ctx: b.context(), Token0: token[0], Token1: token[1]})
	if got := b.get(cb, q); got != 1 {
		t.Errorf("value after the owner's free = %d, want 1", got)
	}
	b.fails(abi.ErrInvalidValue, abi.OpMemFree, abi.MemFree{Address: q})
	b.call(abi.OpMemClose, abi.MemClose{Address: q})
	b.fails(abi.ErrInvalidValue, abi.OpMemClose, abi.MemClose{Address: q})
	b.call(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: second})
	if got := b.free(); got != vram {
		t.Errorf("%d bytes free after the last close, want all %d", got, uint64(vram))
	}
}

// TestSharedMemoryStays checks that shared memory stays on the device when the
// session is evicted.
func TestSharedMemoryStays(t *testing.T) {
	a := newRig(t, fakedriver.Options{}, 0)
	b := newNeighbour(t, a)
	ca, cb := a.context(), b.context()
	p, own := a.alloc(ca, 1<<20), a.alloc(ca, 1<<20)
	a.put(ca, own, 5)
	q, _ := b.open(cb, a.share(p))
	if moved, err := a.host.Evict(1 << 40); err != nil || moved != 1<<20 {
		t.Fatalf("Evict = %d bytes, %v; want %d", moved, err, 1<<20)
	}
	b.put(cb, q, 7)
	if got := a.get(ca, p); got != 7 {
		t.Errorf("value that the owner reads after an eviction = %d, want 7", got)
	}
	if got := a.get(ca, own); got != 5 {
		t.Errorf("value in the owner's other memory = %d, want 5", got)
	}
	other := a.alloc(ca, 1<<20)
	if _, err := a.host.Evict(1 << 40); err != nil { // share while it is evicted
		t.Fatal(err)
	}
	q, _ = b.open(cb, a.share(other))
	a.put(ca, other, 9)
	if got := b.get(cb, q); got != 9 {
		t.Errorf("value shared during an eviction = %d, want 9", got)
	}
}

// TestShareFails checks that a driver that cannot share leaves the memory as it
// was.
func TestShareFails(t *testing.T) {
	var works atomic.Bool
	a := newRig(t, fakedriver.Options{FailShare: func() error {
		if works.Load() {
			return nil
		}
		return errors.New("no file")
	}}, 0)
	ctx := a.context()
	p := a.alloc(ctx, 1<<20)
	if _, _, err := a.Call(abi.OpMemShare, abi.MemShare{Address: p}, nil); err == nil {
		t.Fatal("MemShare returned no error although the driver cannot share")
	}
	works.Store(true)
	a.share(p)
	a.call(abi.OpMemFree, abi.MemFree{Address: p})
	if got := a.free(); got != vram {
		t.Errorf("%d bytes free, want all %d", got, uint64(vram))
	}
	a.fails(abi.ErrInvalidValue, abi.OpMemShare, abi.MemShare{Address: p})
	a.fails(abi.ErrInvalidValue, abi.OpMemShare, abi.MemShare{Address: p + 1})
}

// TestShareEnds ends a context, frees memory and ends a session while memory is
// being shared or opened.
func TestShareEnds(t *testing.T) {
	a := newRig(t, fakedriver.Options{}, 0)
	b := newNeighbour(t, a)
	for range 20 {
		ca, cb := a.context(), b.context()
		p := a.alloc(ca, 4096)
		share, err := a.Start(abi.OpMemShare, 0, abi.MemShare{Address: p}, nil)
		if err != nil {
			t.Fatal(err)
		}
		gone, err := a.Start(abi.OpCtxDestroy, 0, abi.CtxDestroy{Ctx: ca}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t0, t1, err := a.Wait(share)
		if err != nil && !errors.Is(err, abi.ErrInvalidContext) && !errors.Is(err, abi.ErrInvalidValue) && !errors.Is(err, abi.ErrDeinitialized) {
			t.Errorf("MemShare while the context is destroyed = %v, want success or an error about the context", err)
		}
		open, err := b.Start(abi.OpMemOpen, 0, abi.MemOpen{Ctx: cb, Token0: t0, Token1: t1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.call(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: cb})
		_, _, _ = b.Wait(open)
		if _, _, err := a.Wait(gone); err != nil {
			t.Error(err)
		}
	}
	for _, r := range []*rig{a, b} {
		if got := r.free(); got != vram {
			t.Errorf("%d bytes free, want all %d", got, uint64(vram))
		}
	}
}

// TestSharesAreLimited checks the limit of what a session shares and opens.
func TestSharesAreLimited(t *testing.T) {
	a := newRig(t, fakedriver.Options{}, 0)
	ctx := a.context()
	for range 128 {
		a.share(a.alloc(ctx, 256))
	}
	p := a.alloc(ctx, 256)
	a.fails(abi.ErrOutOfMemory, abi.OpMemShare, abi.MemShare{Address: p})
	a.fails(abi.ErrOutOfMemory, abi.OpMemOpen, abi.MemOpen{Ctx: ctx, Token0: 1})
}

// TestShareMapped checks that mapped memory counts once, and is freed with the
// last of its sessions.
func TestShareMapped(t *testing.T) {
	a := newRig(t, fakedriver.Options{}, 0)
	b := newNeighbour(t, a)
	ca, cb := a.context(), b.context()
	memory := a.create(ca, 2*granule)
	t0, t1 := a.call(abi.OpMemExport, abi.MemExport{Memory: memory})
	a.fails(abi.ErrNotSupported, abi.OpMemImport, abi.MemImport{Ctx: ca, Memory: a.Handle(), Token0: t0, Token1: t1})
	b.fails(abi.ErrInvalidHandle, abi.OpMemImport, abi.MemImport{Ctx: cb, Memory: b.Handle(), Token0: t0, Token1: t0})
	theirs := b.Handle()
	if size, _ := b.call(abi.OpMemImport, abi.MemImport{Ctx: cb, Memory: theirs, Token0: t0, Token1: t1}); size != 2*granule {
		t.Errorf("%d bytes imported, want %d", size, 2*granule)
	}
	b.fails(abi.ErrInvalidHandle, abi.OpMemImport, abi.MemImport{Ctx: cb, Memory: theirs, Token0: t0, Token1: t1})
	b.fails(abi.ErrInvalidValue, abi.OpMemExport, abi.MemExport{Memory: theirs})
	for _, r := range []*rig{a, b} {
		if got, want := r.free(), uint64(vram-2*granule); got != want {
			t.Errorf("%d bytes free, want %d", got, want)
		}
	}
	a.call(abi.OpMemDestroy, abi.MemDestroy{Memory: memory})
	at := b.reserve(2*granule, 0, 0)
	b.call(abi.OpMemMap, abi.MemMap{Memory: theirs, Address: at, Size: 2 * granule})
	b.fails(abi.ErrInvalidValue, abi.OpMemDestroy, abi.MemDestroy{Memory: theirs})
	b.call(abi.OpMemUnmap, abi.MemUnmap{Address: at, Size: 2 * granule})
	b.call(abi.OpMemDestroy, abi.MemDestroy{Memory: theirs})
	memory = a.create(ca, granule) // both are destroyed with their contexts
	t0, t1 = a.call(abi.OpMemExport, abi.MemExport{Memory: memory})
	b.call(abi.OpMemImport, abi.MemImport{Ctx: cb, Memory: b.Handle(), Token0: t0, Token1: t1})
	p := b.alloc(cb, granule) // memory that is not of MemExport
	u0, u1 := b.call(abi.OpMemShare, abi.MemShare{Address: p})
	_, _, err := a.Call(abi.OpMemImport, abi.MemImport{Ctx: ca, Memory: a.Handle(), Token0: u0, Token1: u1}, nil)
	if err != nil {
		t.Errorf("MemImport of whole granules of MemShare = %v, want no error", err)
	}
	a.call(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: ca})
	b.call(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: cb})
	for _, r := range []*rig{a, b} {
		if got := r.free(); got != vram {
			t.Errorf("%d bytes free, want all %d", got, uint64(vram))
		}
	}
}
