package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

func dial(t *testing.T, f *fakeGPUD) *Host {
	t.Helper()
	h, err := DialWorker(t.Context(), f.socket, "v", Options{Token: "secret", PID: 7, Name: "program"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	patience.Until(t, 20*time.Second, what, ok)
}

// TestRegistersAgain checks that after gpud is replaced the worker registers the
// same session again, with its token, the memory that it holds and its totals;
// requests from the meantime are answered then.
func TestRegistersAgain(t *testing.T) {
	f := startFake(t)
	h := dial(t, f)
	if err := h.Reserve(100); err != nil {
		t.Fatal(err)
	}
	if err := h.Reserve(2 << 30); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("reserve over the limit = %v, want %v", err, abi.ErrOutOfMemory)
	}
	h.Release(30)
	h.Report(worker.Totals{GPUNanos: 5, Launches: 1})
	h.SetProcess(8, "other")
	f.stop()
	reserved := make(chan error, 1)
	go func() { reserved <- h.Reserve(7) }() // while gpud is not running
	f.start()
	if err := <-reserved; err != nil {
		t.Errorf("reserve without gpud = %v, want no error once it is back", err)
	}
	all := f.received(wire.OpRegister)
	if len(all) != 2 {
		t.Fatalf("%d registrations, want 2", len(all))
	}
	first, second := all[0].Register, all[1].Register
	if first.Token != "secret" || second.Token != "secret" || first.Session != second.Session || first.PID != 7 || second.PID != 8 || second.Name != "other" {
		t.Errorf("registrations = %+v, then %+v; want the same session and token, first PID 7, then PID 8 and the name other", first, second)
	}
	if first.Held != 0 || second.Held != 70 || second.Totals.GPUNanos != 5 {
		t.Errorf("second registration = %+v, want 70 bytes held and 5 ns of GPU time; the first had %d bytes held", second, first.Held)
	}
	if free, total, err := h.Memory(); err != nil || total != 1<<30 || free != total-5 {
		t.Errorf("memory = %d free of %d, %v, want all but 5 bytes free", free, total, err)
	}
}

// TestChangeDuringRegistration checks that a change during a registration is
// reported when it is over: there may be no later change that would report it.
func TestChangeDuringRegistration(t *testing.T) {
	f := startFake(t)
	h := dial(t, f)
	done := worker.Totals{GPUNanos: 9, Launches: 3}
	f.mu.Lock()
	f.before = func() {
		h.Report(done)
		h.SetProcess(9, "later")
		patience.Until(t, 20*time.Second, "the report has found nobody", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return !h.sending
		})
	}
	f.mu.Unlock()
	f.stop()
	f.start()
	eventually(t, "gpud hears the totals", func() bool {
		told := f.received(wire.OpTotals)
		return len(told) > 0 && *told[len(told)-1].Totals == done
	})
	eventually(t, "gpud hears which process it is", func() bool {
		told := f.received(wire.OpProcess)
		return len(told) > 0 && told[len(told)-1].PID == 9
	})
}

// TestRunsWithoutGpud checks that a lease continues while gpud is not running, and
// that a worker without one gets one eventually.
func TestRunsWithoutGpud(t *testing.T) {
	f := startFake(t)
	had, had2 := dial(t, f), dial(t, f)
	if _, err := had.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.stop()
	for _, h := range []*Host{had, had2} {
		if l, err := h.Acquire(t.Context()); err != nil || l.Until.IsZero() {
			t.Errorf("acquire without gpud = %+v, %v, want a lease with an end", l, err)
		}
		h.Yield()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := had2.Acquire(ctx); err == nil {
		t.Error("acquire with a cancelled context returned a lease")
	}
}

// TestBye checks that Close reports the totals once and does not reconnect.
func TestBye(t *testing.T) {
	f := startFake(t)
	h := dial(t, f)
	h.Report(worker.Totals{Launches: 3})
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if bye := f.received(wire.OpBye); len(bye) != 1 || bye[0].Totals.Launches != 3 {
		t.Errorf("byes = %+v, want one with 3 launches", bye)
	}
	if all := f.received(wire.OpRegister); len(all) != 1 {
		t.Errorf("%d registrations, want 1", len(all))
	}
	if err := h.Reserve(1); err == nil {
		t.Error("reserve after Close returned no error")
	}
}

// TestCloseWithoutGpud checks that Close without gpud fails after a second.
func TestCloseWithoutGpud(t *testing.T) {
	f := startFake(t)
	h := dial(t, f)
	f.stop()
	if err := h.Close(); err == nil {
		t.Error("Close without gpud returned no error")
	}
}

// TestLost checks what ends a worker: gpud tells it to, or refuses it when it
// reconnects.
func TestLost(t *testing.T) {
	for name, lose := range map[string]func(*fakeGPUD){
		"told": func(f *fakeGPUD) { f.broadcast(wire.FromNode{Op: wire.OpLost, Message: "removed"}) },
		"not let back in": func(f *fakeGPUD) {
			f.stop()
			f.refuseWith(wire.CodeForbidden)
			f.start()
		},
	} {
		f := startFake(t)
		h := dial(t, f)
		lose(f)
		patience.Receive(t, 20*time.Second, name+": it knows", h.Lost())
		if err := h.Reserve(1); !errors.Is(err, abi.ErrUnavailable) {
			t.Errorf("%s: reserve = %v, want %v", name, err, abi.ErrUnavailable)
		}
		if _, err := h.Acquire(t.Context()); !errors.Is(err, abi.ErrUnavailable) {
			t.Errorf("%s: acquire = %v, want %v", name, err, abi.ErrUnavailable)
		}
		if err := h.Close(); err != nil {
			t.Errorf("%s: Close = %v, want no error", name, err)
		}
	}
}

// TestBusyIsNotLost checks that a gpud which temporarily refuses a registration
// is asked again.
func TestBusyIsNotLost(t *testing.T) {
	f := startFake(t)
	h := dial(t, f)
	f.stop()
	f.refuseWith(wire.CodeUnavailable)
	f.start()
	eventually(t, "asked twice more", func() bool { return len(f.received(wire.OpRegister)) >= 3 })
	f.refuseWith("")
	if err := h.Reserve(1); err != nil {
		t.Error(err)
	}
}

func TestRefusedAtFirst(t *testing.T) {
	f := startFake(t)
	f.refuseWith(wire.CodeForbidden)
	_, err := DialWorker(t.Context(), f.socket, "v", Options{})
	var refused *wire.Error
	if !errors.As(err, &refused) || refused.Code != wire.CodeForbidden {
		t.Errorf("error = %v, want code %s", err, wire.CodeForbidden)
	}
}

// TestAccountWithAnOldGpud checks an account with a gpud that does not support
// accounts: it grants no spare memory and tells no session that it is alone, so
// each allocation is requested, each free is reported, and the numbers are right.
func TestAccountWithAnOldGpud(t *testing.T) {
	f := startFake(t)
	h := dial(t, f)
	a := worker.NewAccount(1 << 30)
	h.Account(a)
	for range 3 {
		if a.Take(100) {
			t.Error("Take(100) from the account succeeded, want no unused memory in it")
		}
		if err := h.Reserve(100); err != nil {
			t.Fatal(err)
		}
		if _, ok := a.Free(1 << 30); ok || a.Used() != 100 {
			t.Errorf("%d bytes used, alone %t; want 100 bytes, false", a.Used(), ok)
		}
		if !a.Put(100) {
			t.Error("Put(100) kept the memory, want it to be given back")
		}
		h.Settle()
		if free, total, err := h.Memory(); err != nil || free != total-5 {
			t.Errorf("memory = %d free of %d, %v, want all but 5 bytes free", free, total, err)
		}
	}
	released := uint64(0)
	for _, m := range f.received(wire.OpRelease) {
		released += m.Bytes
	}
	if released != 300 {
		t.Errorf("%d bytes released, want 300", released)
	}
}

// TestRecall checks that memory given back by a recall is reported in its answer,
// and is not held any more.
func TestRecall(t *testing.T) {
	f := startFake(t)
	h := dial(t, f)
	a := worker.NewAccount(1 << 30)
	h.Account(a)
	if err := h.Reserve(100); err != nil {
		t.Fatal(err)
	}
	a.Put(40)
	f.broadcast(wire.FromNode{Op: wire.OpRecall, ID: 7})
	eventually(t, "the answer", func() bool { return len(f.received(wire.OpRecalled)) == 1 })
	if m := f.received(wire.OpRecalled)[0]; m.ID != 7 || m.Bytes != 40 {
		t.Errorf("answer to the recall = %+v, want ID 7 and 40 bytes", m)
	}
	f.stop()
	f.start()
	eventually(t, "it is back", func() bool { return len(f.received(wire.OpRegister)) == 2 })
	if r := f.received(wire.OpRegister)[1].Register; r.Held != 60 || !r.Account {
		t.Errorf("registration = %+v, want 60 bytes held and an account", r)
	}
}
