package worker_test

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
)

func (r *rig) event(ctx uint64) uint64 {
	r.Helper()
	e := r.Handle()
	r.call(abi.OpEventCreate, abi.EventCreate{Ctx: ctx, Event: e, Flags: 6})
	return e
}

func (r *rig) record(e, stream uint64) {
	r.Helper()
	r.call(abi.OpEventRecord, abi.EventRecord{Event: e, Stream: stream})
}

func (r *rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// TestShareEvent checks that a record by either session is the one that both
// query, from its command on.
func TestShareEvent(t *testing.T) {
	a := newRig(t, fakedriver.Options{}, 0)
	b := newNeighbour(t, a)
	ca, cb := a.context(), b.context()
	e := a.event(ca)
	t0, t1 := a.call(abi.OpEventShare, abi.EventShare{Event: e})
	a.fails(abi.ErrInvalidContext, abi.OpEventOpen, abi.EventOpen{Ctx: ca, Event: a.Handle(), Token0: t0, Token1: t1})
	b.fails(abi.ErrInvalidHandle, abi.OpEventOpen, abi.EventOpen{Ctx: cb, Event: b.Handle(), Token0: t0 + 1, Token1: t1})
	b.fails(abi.ErrInvalidValue, abi.OpMemOpen, abi.MemOpen{Ctx: cb, Token0: t0, Token1: t1})
	theirs := b.Handle()
	b.call(abi.OpEventOpen, abi.EventOpen{Ctx: cb, Event: theirs, Token0: t0, Token1: t1})
	b.fails(abi.ErrInvalidHandle, abi.OpEventShare, abi.EventShare{Event: theirs})
	for _, turn := range []struct {
		of, other             *rig
		ctx, event, theirsToo uint64
	}{{a, b, ca, e, theirs}, {b, a, cb, theirs, e}} {
		of, other := turn.of, turn.other
		_, function := of.module(turn.ctx, fakedriver.KernelSleep)
		of.check(of.launch(turn.ctx, function, uint64(50*time.Millisecond)))
		of.record(turn.event, turn.ctx)
		of.fails(abi.ErrNotReady, abi.OpEventQuery, abi.EventQuery{Event: turn.event})
		other.fails(abi.ErrNotReady, abi.OpEventQuery, abi.EventQuery{Event: turn.theirsToo})
		other.call(abi.OpEventSynchronize, abi.EventSynchronize{Event: turn.theirsToo})
		of.call(abi.OpEventQuery, abi.EventQuery{Event: turn.event})
	}
	b.call(abi.OpEventDestroy, abi.EventDestroy{Event: theirs})
	b.call(abi.OpEventOpen, abi.EventOpen{Ctx: cb, Event: b.Handle(), Token0: t0, Token1: t1}) // destroyed with its context
	b.call(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: cb})
	a.call(abi.OpEventDestroy, abi.EventDestroy{Event: e})
	b.fails(abi.ErrInvalidHandle, abi.OpEventOpen, abi.EventOpen{Ctx: b.context(), Event: b.Handle(), Token0: t0, Token1: t1})
}

// TestShareEventEnds ends a session while it waits for a record that never
// completes.
func TestShareEventEnds(t *testing.T) {
	a := newRig(t, fakedriver.Options{}, 0)
	b := newNeighbour(t, a)
	ca, cb := a.context(), b.context()
	e, theirs := a.event(ca), b.Handle()
	t0, t1 := a.call(abi.OpEventShare, abi.EventShare{Event: e})
	b.call(abi.OpEventOpen, abi.EventOpen{Ctx: cb, Event: theirs, Token0: t0, Token1: t1})
	_, function := a.module(ca, fakedriver.KernelHang)
	a.check(a.launch(ca, function, 0))
	a.record(e, ca)
	if _, err := b.Start(abi.OpEventSynchronize, 0, abi.EventSynchronize{Event: theirs}, nil); err != nil {
		t.Fatal(err)
	}
	b.fails(abi.ErrNotReady, abi.OpEventQuery, abi.EventQuery{Event: theirs})
	b.Close()
	if err := b.end(); err != nil {
		t.Error(err)
	}
}
