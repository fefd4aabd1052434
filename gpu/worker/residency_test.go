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

// put writes a number to the device, get reads it.
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

// Memory leaves an idle session, which goes on allocating and freeing, and is
// back before its next work.
func TestEvictedSessionGoesOn(t *testing.T) {
	r := newRig(t, fakedriver.Options{VRAM: 64 << 20, Global: 256}, 0)
	ctx := r.context()
	a, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	r.put(ctx, a, 42)
	r.idle()
	moved, err := r.host.Evict(1 << 40)
	if err != nil || moved != 1<<20 || r.driver.Used() != 0 {
		t.Fatalf("%d bytes moved, %v, %d left", moved, err, r.driver.Used())
	}
	b, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 10})
	second := r.context()
	c, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: second, Size: 1 << 10})
	r.module(second, "nop global")
	r.call(abi.OpMemFree, abi.MemFree{Address: b})
	r.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
	if n, _ := r.host.Restores(); n != 0 || r.driver.Used() != 0 {
		t.Errorf("restored %d times with nothing to do, %d bytes there", n, r.driver.Used())
	}
	if got := r.get(ctx, a); got != 42 {
		t.Errorf("%d came back", got)
	}
	r.put(second, c, 7)
	if got := r.get(second, c); got != 7 {
		t.Errorf("%d in the second context", got)
	}
	if n, err := r.host.Restores(); n != 1 || err != nil {
		t.Errorf("restored %d times, %v", n, err)
	}
}

// Evictions at any moment lose nothing and stop nobody.
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
			t.Errorf("%d, want %d", got, i)
			break
		}
	}
	over.Store(true)
	all.Wait()
}

// A restore that finds no room is tried again with the next lease.
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
		t.Errorf("%d restores, %v", n, err)
	}
	// For ever is an error of the work that waits, and the session goes on.
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

// The guest goes while its memory is away, or on its way.
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
		r.end() // nothing is left
		close(gate)
		<-evicted
	}
}
