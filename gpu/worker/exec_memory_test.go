package worker_test

import (
	"errors"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// allocations are the commands for which a driver clears memory, of 1 MiB or less.
var allocations = map[string]func(r *rig, ctx uint64) (abi.Op, guesttest.Args){
	"MemAlloc": func(_ *rig, ctx uint64) (abi.Op, guesttest.Args) {
		return abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20}
	},
	"MemCreate": func(r *rig, ctx uint64) (abi.Op, guesttest.Args) {
		return abi.OpMemCreate, abi.MemCreate{Ctx: ctx, Memory: r.Handle(), Size: granule}
	},
	"ArrayCreate": func(r *rig, ctx uint64) (abi.Op, guesttest.Args) {
		a := plane
		a.Ctx, a.Array = ctx, r.Handle()
		return abi.OpArrayCreate, a
	},
}

// heldAllocations returns a rig whose driver, once hold is closed, begins an allocation
// and ends it when it receives the result.
func heldAllocations(t *testing.T) (r *rig, hold chan struct{}, begun <-chan struct{}, result chan<- error) {
	hold = make(chan struct{})
	begins, results := make(chan struct{}, 1), make(chan error)
	r = newRig(t, fakedriver.Options{FailAlloc: func() error {
		select {
		case <-hold:
			begins <- struct{}{}
			return <-results
		default:
			return nil
		}
	}}, 0)
	return r, hold, begins, results
}

// TestAllocationsDelayNoOthers checks that other commands are executed while the driver
// allocates and clears memory, and that the memory is known only after that.
func TestAllocationsDelayNoOthers(t *testing.T) {
	for name, of := range allocations {
		for _, result := range []error{nil, abi.ErrOutOfMemory} {
			r, hold, begun, results := heldAllocations(t)
			ctx := r.context()
			r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 4096})
			before := r.free()
			close(hold)
			op, args := of(r, ctx)
			slot, err := r.Start(op, 0, args, nil)
			if err != nil {
				t.Fatal(err)
			}
			patience.Receive(t, 20*time.Second, name+" begins", begun)
			r.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx}) // not executed if the issuer waits
			r.stream(ctx)
			if free := r.free(); free >= before {
				t.Errorf("%d bytes free during %s, want fewer than %d: they are taken first", free, name, before)
			}
			if state := r.Shm.Load32(r.Slots + uint64(slot)*abi.SlotSize + abi.SlotState); state == abi.SlotDone {
				t.Errorf("%s completed before the driver had cleared the memory", name)
			}
			results <- result
			if _, _, err := r.Wait(slot); !errors.Is(err, result) {
				t.Errorf("%s = %v, want %v", name, err, result)
			}
			if free := r.free(); (free == before) != (result != nil) {
				t.Errorf("%d bytes free after %s = %v, %d before", free, name, result, before)
			}
		}
	}
}

// TestContextEndsAfterAllocations checks that a context is destroyed after the
// allocations in it, and that they are given back.
func TestContextEndsAfterAllocations(t *testing.T) {
	for name, of := range allocations {
		r, hold, begun, results := heldAllocations(t)
		ctx := r.context()
		close(hold)
		op, args := of(r, ctx)
		allocation, err := r.Start(op, 0, args, nil)
		if err != nil {
			t.Fatal(err)
		}
		patience.Receive(t, 20*time.Second, name+" begins", begun)
		end, err := r.Start(abi.OpCtxDestroy, 0, abi.CtxDestroy{Ctx: ctx}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.context() // the issuer has handled the command
		if state := r.Shm.Load32(r.Slots + uint64(end)*abi.SlotSize + abi.SlotState); state == abi.SlotDone {
			t.Errorf("the context was destroyed during %s", name)
		}
		results <- nil
		if _, _, err := r.Wait(allocation); !errors.Is(err, abi.ErrInvalidContext) {
			t.Errorf("%s in a context that was destroyed = %v, want %v", name, err, abi.ErrInvalidContext)
		}
		if _, _, err := r.Wait(end); err != nil {
			t.Errorf("destroy the context: %v", err)
		}
		if free := r.free(); free != vram {
			t.Errorf("%d bytes free after the context's end, want all %d", free, vram)
		}
	}
}

// TestDeathDuringAllocation checks that a session that ends during an allocation leaves
// nothing behind (rig.end).
func TestDeathDuringAllocation(t *testing.T) {
	for name, of := range allocations {
		r, hold, begun, results := heldAllocations(t)
		ctx := r.context()
		close(hold)
		op, args := of(r, ctx)
		if err := r.Send(op, args, nil); err != nil {
			t.Fatal(err)
		}
		patience.Receive(t, 20*time.Second, name+" begins", begun)
		r.Close()
		results <- nil
		if err := r.end(); err != nil {
			t.Errorf("session that ended during %s: %v", name, err)
		}
	}
}
