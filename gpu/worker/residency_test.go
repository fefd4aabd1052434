package worker_test

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
)

// put writes a number to the device; get reads it.
func (r *rig) put(ctx, address, value uint64) {
	r.Helper()
	if _, _, err := r.Call(abi.OpCopyHtoDInline, abi.CopyHtoDInline{Stream: ctx, Dst: address}, binary.LittleEndian.AppendUint64(nil, value)); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) get(ctx, address uint64) uint64 {
	r.Helper()
	at := r.Arena
	r.call(abi.OpCopyDtoH, abi.CopyDtoH{Stream: ctx, Src: address, DstOff: at, DstLen: 8})
	return binary.LittleEndian.Uint64(r.Shm.Bytes(at, 8))
}

func (r *rig) idle() {
	r.Helper()
	patience.Until(r.TB, 20*time.Second, "the lease is given back", func() bool { return !r.host.Leased() })
}

// TestEvictedSessionGoesOn checks that memory is evicted from an idle session,
// which continues to allocate and free, and that it is restored before the next
// work.
func TestEvictedSessionGoesOn(t *testing.T) {
	r := newRig(t, fakedriver.Options{VRAM: 64 << 20, Global: 256}, 0)
	ctx := r.context()
	a, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	r.put(ctx, a, 42)
	r.idle()
	moved, err := r.host.Evict(1 << 40)
	if err != nil || moved != 1<<20 || r.driver.Used() != 0 {
		t.Fatalf("Evict = %d bytes, %v, %d left on the device; want %d and 0", moved, err, r.driver.Used(), 1<<20)
	}
	b, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 10})
	second := r.context()
	c, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: second, Size: 1 << 10})
	r.module(second, "nop global")
	r.call(abi.OpMemFree, abi.MemFree{Address: b})
	r.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
	if n, _ := r.host.Restores(); n != 0 || r.driver.Used() != 0 {
		t.Errorf("%d restores without work, %d bytes on the device, want none", n, r.driver.Used())
	}
	if got := r.get(ctx, a); got != 42 {
		t.Errorf("value after the restore = %d, want 42", got)
	}
	r.put(second, c, 7)
	if got := r.get(second, c); got != 7 {
		t.Errorf("value in the second context = %d, want 7", got)
	}
	if n, err := r.host.Restores(); n != 1 || err != nil {
		t.Errorf("%d restores, %v, want 1 without an error", n, err)
	}
}

// TestEvictAgainAndAgain checks that evictions at any moment lose no data and
// stop no work.
func TestEvictAgainAndAgain(t *testing.T) {
	r := newRig(t, fakedriver.Options{VRAM: 64 << 20}, 0)
	contexts := []uint64{r.context(), r.context()}
	var at [2]uint64
	for i, ctx := range contexts {
		at[i], _ = r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	}
	var over atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		for n := uint64(1); !over.Load(); n *= 3 {
			if _, err := r.host.Evict(n % (3 << 20)); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(100 * time.Microsecond)
		}
	})
	for i := range uint64(300) {
		k := i % 2
		r.put(contexts[k], at[k], i)
		if got := r.get(contexts[k], at[k]); got != i {
			t.Errorf("value = %d, want %d", got, i)
			break
		}
	}
	over.Store(true)
	all.Wait()
}

// TestFailedRestoreIsTriedAgain checks that a restore without enough room is
// tried again with the next lease.
func TestFailedRestoreIsTriedAgain(t *testing.T) {
	var fails atomic.Int32
	r := newRig(t, fakedriver.Options{VRAM: 64 << 20, FailRestore: func() error {
		if fails.Add(-1) >= 0 {
			return abi.ErrOutOfMemory
		}
		return nil
	}}, 0)
	ctx := r.context()
	a, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	r.put(ctx, a, 1)
	r.idle()
	fails.Store(3)
	if _, err := r.host.Evict(1); err != nil {
		t.Fatal(err)
	}
	if got := r.get(ctx, a); got != 1 {
		t.Errorf("value = %d, want 1", got)
	}
	if n, err := r.host.Restores(); n != 4 || err != nil {
		t.Errorf("%d restores, %v, want 4 and the last without an error", n, err)
	}
	// If it always fails, the waiting work gets an error, and the session
	// continues.
	r.idle()
	fails.Store(1 << 20)
	if _, err := r.host.Evict(1); err != nil {
		t.Fatal(err)
	}
	r.fails(abi.ErrOutOfMemory, abi.OpCopyDtoH, abi.CopyDtoH{Stream: ctx, Src: a, DstOff: r.Arena, DstLen: 8})
	r.context()
}

func TestPinnedSessionIsNotEvicted(t *testing.T) {
	r := newRig(t, fakedriver.Options{Pinned: true}, 0)
	r.context()
	if _, err := r.host.Evict(1); !errors.Is(err, abi.ErrNotSupported) {
		t.Error(err)
	}
}

// TestDeathWhileEvicted ends the guest while its memory is evicted, or is being
// evicted.
func TestDeathWhileEvicted(t *testing.T) {
	for _, during := range []bool{false, true} {
		gate := make(chan struct{})
		r := newRig(t, fakedriver.Options{VRAM: 64 << 20, FailEvict: func() error {
			if during {
				<-gate
			}
			return nil
		}}, 0)
		ctx := r.context()
		_, f := r.module(ctx, "nop")
		r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
		evicted := make(chan struct{})
		go func() {
			_, _ = r.host.Evict(1 << 40)
			close(evicted)
		}()
		if !during {
			<-evicted
		}
		if err := r.launch(ctx, f); err != nil {
			t.Fatal(err)
		}
		r.Close()
		r.end() // checks that nothing is left
		close(gate)
		<-evicted
	}
}
