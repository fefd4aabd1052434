package fake

import (
	"context"
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/drivertest"
)

func TestConformance(t *testing.T) {
	crash := func(_ *testing.T, d hypervisor.Driver, id api.InstanceID) { d.(*Driver).Crash(id, "injected") }
	drivertest.Subject{
		Open:  func(*testing.T) hypervisor.Driver { return New(Guest{}) },
		Kill:  crash,
		Panic: crash,
		Hold:  func(d hypervisor.Driver, id api.InstanceID, holds bool) { d.(*Driver).Hold(id, holds) },
	}.Run(t)
}

func TestPairConformance(t *testing.T) {
	drivertest.Pair{
		Open: func(*testing.T) (source, target drivertest.Machine) { return New(Guest{}), New(Guest{}) },
		Crawl: func(m drivertest.Machine) {
			if m == nil {
				return
			}
			once := true
			m.(*Driver).MigrationStep(func(ctx context.Context, _ api.InstanceID, p hypervisor.MigrationProgress) error {
				if once && p.Phase == hypervisor.MigrationCopying && p.TransferredBytes > 0 {
					once = false
					<-ctx.Done()
				}
				return nil
			})
		},
		CrashMigration: func(m drivertest.Machine) {
			m.(*Driver).Fault(func(op string, _ api.InstanceID) error {
				if op == "MigrateResume" {
					return errors.New("injected")
				}
				return nil
			})
		},
	}.Run(t)
}

func spec() hypervisor.Domain {
	return hypervisor.Domain{
		ID: "ins-1", Node: "node-1", VCPUs: 1, MemoryBytes: 64 << 20, Accelerator: hypervisor.TCG,
		SerialSocket: "/s", SerialLog: "/l",
	}
}

func TestSlowBootAndStubbornGuest(t *testing.T) {
	d := New(Guest{SlowBoot: true, IgnoreButton: true})
	ctx := t.Context()
	if err := errors.Join(d.Define(ctx, spec()), d.Start(ctx, "ins-1")); err != nil {
		t.Fatal(err)
	}
	if err := d.AgentPing(ctx, "ins-1"); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("AgentPing during boot = %v, want unavailable", err)
	}
	d.Boot("ins-1")
	if err := d.AgentPing(ctx, "ins-1"); err != nil {
		t.Errorf("AgentPing after boot: %v", err)
	}
	if err := d.Shutdown(ctx, "ins-1"); err != nil {
		t.Fatal(err)
	}
	if st, _ := d.Status(ctx, "ins-1"); st.State != hypervisor.Running {
		t.Errorf("state of a guest that ignores its button = %s, want Running", st.State)
	}
	d.DiskFull("ins-1")
	if st, _ := d.Status(ctx, "ins-1"); st.State != hypervisor.Paused {
		t.Errorf("state with a full disk = %s, want Paused", st.State)
	}
	if err := d.Start(ctx, "ins-1"); err != nil {
		t.Fatal(err)
	}
	if st, _ := d.Status(ctx, "ins-1"); st.State != hypervisor.Running {
		t.Errorf("state after Start of a paused domain = %s, want Running", st.State)
	}
}

func TestFaultsAndCalls(t *testing.T) {
	d := New(Guest{})
	broken := errors.New("injected")
	d.Fault(func(op string, id api.InstanceID) error {
		if op == "Start" && id == "ins-1" {
			return broken
		}
		return nil
	})
	if err := d.Define(t.Context(), spec()); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context(), "ins-1"); !errors.Is(err, broken) {
		t.Errorf("Start with a fault = %v, want %v", err, broken)
	}
	if calls := d.Calls(); len(calls) != 2 || calls[1] != "Start ins-1" {
		t.Errorf("Calls = %v, want Define ins-1 and Start ins-1", calls)
	}
}

// TestSlowReaderGetsResync checks that a reader that does not read receives a
// Resync, and that it does not block the driver.
func TestSlowReaderGetsResync(t *testing.T) {
	d := New(Guest{})
	ctx, cancel := context.WithCancel(t.Context())
	events, err := d.Events(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if err := d.Define(t.Context(), spec()); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	var last hypervisor.Event
	n := 0
	for e := range events {
		last = e
		n++
	}
	if last.Type != hypervisor.EventResync || n >= 1000 {
		t.Errorf("received %d events, the last %+v, want fewer than 1000 and a Resync at the end", n, last)
	}
}
