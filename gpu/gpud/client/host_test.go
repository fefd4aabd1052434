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

// gpud dies and another comes: the worker registers the same session again,
// with its token, what it holds and what it did; what was asked meanwhile is
// answered then.
func TestRegistersAgain(t *testing.T) {
	f := startFake(t)
	h := dial(t, f)
	if err := h.Reserve(100); err != nil {
		t.Fatal(err)
	}
	if err := h.Reserve(2 << 30); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("more than there is: %v", err)
	}
	h.Release(30)
	h.Report(worker.Totals{GPUNanos: 5, Launches: 1})
	h.SetProcess(8, "other")
	f.stop()
	reserved := make(chan error, 1)
	go func() { reserved <- h.Reserve(7) }() // while gpud is away
	f.start()
	if err := <-reserved; err != nil {
		t.Errorf("reserved without gpud: %v", err)
	}
	all := f.said(wire.OpRegister)
	if len(all) != 2 {
		t.Fatalf("%d registrations", len(all))
	}
	first, second := all[0].Register, all[1].Register
	if first.Token != "secret" || second.Token != "secret" || first.Session != second.Session || first.PID != 7 || second.PID != 8 || second.Name != "other" {
		t.Errorf("%+v, then %+v", first, second)
	}
	if first.Held != 0 || second.Held != 70 || second.Totals.GPUNanos != 5 {
		t.Errorf("told %+v", second)
	}
	if free, total, err := h.Memory(); err != nil || total != 1<<30 || free != total-5 {
		t.Errorf("memory %d, %d, %v", free, total, err)
	}
}

// What happens while a registration is under way is told when it is over: nobody
// may come after it who would tell it.
func TestToldDuringRegistration(t *testing.T) {
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
		told := f.said(wire.OpTotals)
		return len(told) > 0 && *told[len(told)-1].Totals == done
	})
	eventually(t, "gpud hears which process it is", func() bool {
		told := f.said(wire.OpProcess)
		return len(told) > 0 && told[len(told)-1].PID == 9
	})
}

// A lease goes on while gpud is away, and a worker without one gets one in the end.
func TestRunsWithoutGpud(t *testing.T) {
	f := startFake(t)
	had, had2 := dial(t, f), dial(t, f)
	if _, err := had.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.stop()
	for _, h := range []*Host{had, had2} {
		if l, err := h.Acquire(t.Context()); err != nil || l.Until.IsZero() {
			t.Errorf("%+v, %v", l, err)
		}
		h.Yield()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := had2.Acquire(ctx); err == nil {
		t.Error("a caller that has gone got a lease")
	}
}

// Close says what was done, once, and does not come back.
func TestBye(t *testing.T) {
	f := startFake(t)
	h := dial(t, f)
	h.Report(worker.Totals{Launches: 3})
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if bye := f.said(wire.OpBye); len(bye) != 1 || bye[0].Totals.Launches != 3 {
		t.Errorf("goodbyes = %+v, want one with 3 launches", bye)
	}
	if all := f.said(wire.OpRegister); len(all) != 1 {
		t.Errorf("%d registrations", len(all))
	}
	if err := h.Reserve(1); err == nil {
		t.Error("reserved after the end")
	}
}

// Without gpud Close gives up after its second.
func TestCloseWithoutGpud(t *testing.T) {
	f := startFake(t)
	h := dial(t, f)
	f.stop()
	if err := h.Close(); err == nil {
		t.Error("nobody took the bye")
	}
}

// What ends a worker: gpud says so, or will not have it back.
func TestLost(t *testing.T) {
	for name, lose := range map[string]func(*fakeGPUD){
		"told": func(f *fakeGPUD) { f.tell(wire.FromNode{Op: wire.OpLost, Message: "removed"}) },
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
			t.Errorf("%s: reserve: %v", name, err)
		}
		if _, err := h.Acquire(t.Context()); !errors.Is(err, abi.ErrUnavailable) {
			t.Errorf("%s: acquire: %v", name, err)
		}
		if err := h.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A gpud that cannot take it now is asked again.
func TestBusyIsNotLost(t *testing.T) {
	f := startFake(t)
	h := dial(t, f)
	f.stop()
	f.refuseWith(wire.CodeUnavailable)
	f.start()
	eventually(t, "asked twice more", func() bool { return len(f.said(wire.OpRegister)) >= 3 })
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

// A gpud of before accounts gives nothing to spare and tells nobody that it is
// alone: each allocation asks it, each free tells it, and the numbers are true.
func TestAccountWithAnOldGpud(t *testing.T) {
	f := startFake(t)
	h := dial(t, f)
	a := worker.NewAccount(1 << 30)
	h.Account(a)
	for range 3 {
		if a.Take(100) {
			t.Error("something is idle")
		}
		if err := h.Reserve(100); err != nil {
			t.Fatal(err)
		}
		if _, ok := a.Free(1 << 30); ok || a.Used() != 100 {
			t.Errorf("%d bytes used, alone %t", a.Used(), ok)
		}
		if !a.Put(100) {
			t.Error("a free stays idle")
		}
		h.Settle()
		if free, total, err := h.Memory(); err != nil || free != total-5 {
			t.Errorf("memory %d, %d, %v", free, total, err)
		}
	}
	released := uint64(0)
	for _, m := range f.said(wire.OpRelease) {
		released += m.Bytes
	}
	if released != 300 {
		t.Errorf("%d bytes given back, want 300", released)
	}
}

// What a recall takes is answered with it, and not held any more.
func TestRecall(t *testing.T) {
	f := startFake(t)
	h := dial(t, f)
	a := worker.NewAccount(1 << 30)
	h.Account(a)
	if err := h.Reserve(100); err != nil {
		t.Fatal(err)
	}
	a.Put(40)
	f.tell(wire.FromNode{Op: wire.OpRecall, ID: 7})
	eventually(t, "the answer", func() bool { return len(f.said(wire.OpRecalled)) == 1 })
	if m := f.said(wire.OpRecalled)[0]; m.ID != 7 || m.Bytes != 40 {
		t.Errorf("answered %+v", m)
	}
	f.stop()
	f.start()
	eventually(t, "it is back", func() bool { return len(f.said(wire.OpRegister)) == 2 })
	if r := f.said(wire.OpRegister)[1].Register; r.Held != 60 || !r.Account {
		t.Errorf("registered with %+v", r)
	}
}
