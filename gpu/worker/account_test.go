package worker_test

import (
	"math/rand"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

func TestAccountTakesWhatIsIdle(t *testing.T) {
	a := worker.NewAccount(1 << 30)
	if a.Want() != 32<<20 {
		t.Errorf("Want for a vGPU of 1 GiB = %d bytes, want 32 MiB", a.Want())
	}
	if a.Take(256) {
		t.Error("Take from an empty account succeeded")
	}
	a.Granted(1000, 2048, true)
	if !a.Take(2048) || a.Take(1) {
		t.Error("Take(2048) failed, or Take(1) after it succeeded; want exactly the 2048 idle bytes")
	}
	if free, ok := a.Free(10000); !ok || free != 10000-3048 {
		t.Errorf("Free = %d, %t, want 6952, true", free, ok)
	}
	if a.Put(2048) || a.DrainSurplus() != 0 {
		t.Error("Put within the idle limit left a surplus, want none")
	}
	if !a.Put(1000) || a.DrainSurplus() != 1000 || a.Used() != 0 {
		t.Error("Put of 1000 bytes beyond the idle limit did not leave exactly these as surplus")
	}
}

func TestAccountAfterARecall(t *testing.T) {
	a := worker.NewAccount(1 << 30)
	a.Granted(1000, 4096, true)
	if n := a.DrainIdle(); n != 4096 {
		t.Errorf("DrainIdle returned %d bytes, want 4096", n)
	}
	if _, ok := a.Free(1 << 30); ok || a.Take(1) {
		t.Error("after a recall the account has idle bytes, or Free answers without the host")
	}
	if !a.Put(500) || a.DrainSurplus() != 500 {
		t.Error("after a recall 500 freed bytes did not become surplus")
	}
	a.Granted(100, 256, false)
	if a.Put(600) != true || a.DrainSurplus() != 600 || !a.Take(256) {
		t.Error("the idle limit after a new grant is not the granted 256 bytes")
	}
}

func TestAccountRests(t *testing.T) {
	a := worker.NewAccount(1 << 30)
	a.Granted(0, 4096, true)
	if _, surplus := a.Rest(); surplus {
		t.Error("Rest turned new idle memory into surplus, want it kept")
	}
	if !a.Take(256) {
		t.Error("Take(256) of 4096 idle bytes failed")
	}
	if rests, surplus := a.Rest(); rests || surplus {
		t.Errorf("Rest of used idle memory = %t, %t, want false, false", rests, surplus)
	}
	if rests, surplus := a.Rest(); !rests || !surplus || a.DrainSurplus() != 4096-256 || a.IdleBytes() != 0 {
		t.Errorf("Rest of unused idle memory: rests %t, surplus %t, idle limit %d; want all of it as surplus", rests, surplus, a.IdleBytes())
	}
	if _, ok := a.Free(1 << 30); !ok {
		t.Error("Free after Rest does not answer without the host")
	}
}

// TestAccountKeepsItsSum checks that, whatever the order of operations, used and
// idle bytes together are those of the ledger, and that no more stay idle than was
// agreed to.
func TestAccountKeepsItsSum(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for range 200 {
		a := worker.NewAccount(1 << 20)
		var ledger, used uint64
		for range 500 {
			n := uint64(rnd.Intn(1 << 16))
			switch rnd.Intn(8) {
			case 0:
				spare := min(a.Want(), uint64(rnd.Intn(1<<16)))
				a.Granted(n, spare, rnd.Intn(2) == 0)
				ledger, used = ledger+n+spare, used+n
			case 1, 2:
				if a.Take(n) {
					used += n
				}
			case 3, 4:
				n = min(n, used)
				used -= n
				a.Put(n)
			case 5:
				ledger -= a.DrainSurplus()
			case 6:
				if rnd.Intn(10) == 0 {
					ledger -= a.DrainIdle()
					if ledger != used {
						t.Fatalf("after a recall %d bytes are held, want the %d in use", ledger, used)
					}
				}
			case 7:
				a.Rest()
			}
			if a.Used() != used || used > ledger {
				t.Fatalf("Used = %d bytes, want %d of %d", a.Used(), used, ledger)
			}
			if rnd.Intn(4) == 0 {
				ledger -= a.DrainSurplus()
				if idle := ledger - used; idle > 1<<20/32 {
					t.Fatalf("%d bytes idle after the surplus was given back, want at most %d", idle, 1<<20/32)
				}
			}
		}
	}
}

// TestWorkerAllocatesItsIdleMemory checks that idle memory is available to an
// allocation of all the remaining memory.
func TestWorkerAllocatesItsIdleMemory(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	for range 3 {
		var all []uint64
		for range 64 {
			p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
			all = append(all, p)
		}
		r.fails(abi.ErrOutOfMemory, abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1})
		for _, p := range all {
			r.call(abi.OpMemFree, abi.MemFree{Address: p})
		}
		p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: vram})
		r.call(abi.OpMemFree, abi.MemFree{Address: p})
	}
}

// TestMemFreeAsync checks that a stream-ordered free is answered at once, while
// the stream's work runs, that the memory is freed when the work is done, and
// that an allocation waits for it.
func TestMemFreeAsync(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx, stream := r.context(), r.Handle()
	r.call(abi.OpStreamCreate, abi.StreamCreate{Ctx: ctx, Stream: stream})
	_, delay := r.module(ctx, fakedriver.KernelDelay)
	for range 3 {
		p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: vram})
		const nanos = uint64(50 * time.Millisecond)
		start := time.Now()
		if err := r.launch(stream, delay, p, 1, nanos); err != nil {
			t.Fatal(err)
		}
		r.call(abi.OpMemFreeAsync, abi.MemFreeAsync{Stream: stream, Address: p})
		if took := time.Since(start); took > time.Duration(nanos)/2 {
			t.Logf("the free was answered after %v, which shows nothing: the machine is busy", took)
		} else if free, _ := r.call(abi.OpMemInfo, guesttest.None{}); free != 0 {
			t.Errorf("%d bytes free before the stream has reached the free, want 0", free)
		}
		r.fails(abi.ErrInvalidValue, abi.OpMemFree, abi.MemFree{Address: p})
		q, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: vram})
		if took := time.Since(start); took < time.Duration(nanos) {
			t.Errorf("all memory was allocated again after %v, while it was in use, want at least %v", took, time.Duration(nanos))
		}
		r.call(abi.OpMemFree, abi.MemFree{Address: q})
	}
	r.fails(abi.ErrOutOfMemory, abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: vram + 1})
	r.fails(abi.ErrInvalidValue, abi.OpMemFreeAsync, abi.MemFreeAsync{Stream: stream, Address: 4096})
	other := r.context()
	p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: other, Size: 256})
	r.fails(abi.ErrInvalidContext, abi.OpMemFreeAsync, abi.MemFreeAsync{Stream: stream, Address: p})
}

// TestMemFreeAsyncOrder checks that after a stream's
// synchronization the memory that was freed in it is free.
func TestMemFreeAsyncOrder(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	for range 200 {
		p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
		r.call(abi.OpMemFreeAsync, abi.MemFreeAsync{Stream: ctx, Address: p})
		r.call(abi.OpStreamSynchronize, abi.StreamSynchronize{Stream: ctx})
		if free, _ := r.call(abi.OpMemInfo, guesttest.None{}); free != vram {
			t.Fatalf("%d of %d bytes free, want all", free, vram)
		}
	}
}

// TestDeathWithFreesUnderWay checks that a guest that exits with frees in
// progress, and a command waiting for them, leaves nothing behind.
func TestDeathWithFreesUnderWay(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	_, hang := r.module(ctx, fakedriver.KernelHang)
	p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: vram})
	if err := r.launch(ctx, hang); err != nil {
		t.Fatal(err)
	}
	r.call(abi.OpMemFreeAsync, abi.MemFreeAsync{Stream: ctx, Address: p})
	if err := r.Send(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20}, nil); err != nil {
		t.Fatal(err)
	}
	r.Close()
	_ = r.end()
}

// TestUnansweredFree checks that a free without a slot affects later commands: a
// query of the free memory and an allocation wait until it is done.
func TestUnansweredFree(t *testing.T) {
	for range 3 {
		h := &heldStream{}
		r, d := newDam(t, h)
		d.mu.Lock()
		d.held[contextNotify] = h
		d.mu.Unlock()
		ctx := r.context()
		p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: vram})
		if err := r.Send(abi.OpMemFree, abi.MemFree{Address: p}, nil); err != nil {
			t.Fatal(err)
		}
		question, err := r.Start(abi.OpMemInfo, 0, guesttest.None{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.stream(ctx) // the issuer has handled the query
		d.release(h)
		if free, _, err := r.Wait(question); err != nil || free != vram {
			t.Fatalf("%d bytes free, %v, want all %d", free, err, vram)
		}

		d.mu.Lock()
		h.open = false
		d.mu.Unlock()
		p, _ = r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: vram})
		if err := r.Send(abi.OpMemFree, abi.MemFree{Address: p}, nil); err != nil {
			t.Fatal(err)
		}
		again, err := r.Start(abi.OpMemAlloc, 0, abi.MemAlloc{Ctx: ctx, Size: vram}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.stream(ctx)
		d.release(h)
		if _, _, err := r.Wait(again); err != nil {
			t.Fatalf("allocate the memory that was freed: %v", err)
		}
	}
}
