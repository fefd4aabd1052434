package guests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

func TestNext(t *testing.T) {
	const grace = time.Minute
	for _, c := range []struct {
		state          hypervisor.State
		pressed, since time.Duration
		want           act
	}{
		{hypervisor.Running, -1, 0, actPress},
		{hypervisor.Running, 0, 9 * time.Second, actNone},
		{hypervisor.Running, 0, 10 * time.Second, actPress},
		{hypervisor.Running, 50 * time.Second, grace - 1, actNone},
		{hypervisor.Running, 50 * time.Second, grace, actPull},
		{hypervisor.Running, -1, grace, actPull},
		{hypervisor.Paused, -1, 0, actNone},
		{hypervisor.Paused, -1, grace, actPull},
		{hypervisor.Incoming, -1, 2 * grace, actNone},
		{hypervisor.Outgoing, -1, 2 * grace, actNone},
		{hypervisor.Stopped, -1, 0, actNone},
		{hypervisor.Crashed, -1, 2 * grace, actNone},
		{hypervisor.Missing, -1, 0, actNone},
	} {
		if got := next(c.state, c.pressed, c.since, grace); got != c.want {
			t.Errorf("next(%s, pressed at %s, after %s) = %q, want %q", c.state, c.pressed, c.since, got, c.want)
		}
	}
}

// testMachines is a fake of a node's machines in virtual time, which advances when the
// stopper sleeps.
type testMachines struct {
	mu       sync.Mutex
	now      time.Time
	machines map[api.InstanceID]*machine
	did      []string
	noted    []api.InstanceID
	away     bool
}

type machine struct {
	state hypervisor.State
	off   time.Duration // when it turns off after the first press of its button; 0 for never
	at    time.Time     // when its button was first pressed
}

func (h *testMachines) List(context.Context) (all []hypervisor.Status, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away {
		return nil, api.Errorf(api.CodeUnavailable, "libvirtd does not answer")
	}
	for id, m := range h.machines {
		if !m.at.IsZero() && h.now.Sub(m.at) >= m.off && m.off > 0 {
			m.state = hypervisor.Stopped
		}
		all = append(all, hypervisor.Status{ID: id, State: m.state})
	}
	slices.SortFunc(all, func(a, b hypervisor.Status) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return all, nil
}

func (h *testMachines) Shutdown(_ context.Context, id api.InstanceID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.did = append(h.did, "press "+string(id))
	if m := h.machines[id]; m.at.IsZero() {
		m.at = h.now
	}
	return nil
}

func (h *testMachines) Destroy(_ context.Context, id api.InstanceID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.did = append(h.did, "pull "+string(id))
	h.machines[id].state = hypervisor.Stopped
	return nil
}

// stop runs Stop with the directory; each round is a second after the one before.
func (h *testMachines) stop(ctx context.Context, run string) error {
	return Stop(ctx, Options{Machines: h, Run: run, Grace: time.Minute, Log: slog.New(slog.DiscardHandler),
		Note: func(id api.InstanceID) error { h.noted = append(h.noted, id); return nil },
		now:  func() time.Time { h.mu.Lock(); defer h.mu.Unlock(); return h.now },
		sleep: func(context.Context, time.Duration) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.now = h.now.Add(time.Second)
		}})
}

func newTestMachines() *testMachines {
	return &testMachines{now: time.Now().Add(time.Second), machines: map[api.InstanceID]*machine{}}
}

func count(did []string, what string) (n int) {
	for _, d := range did {
		if d == what {
			n++
		}
	}
	return n
}

// TestStop checks that guests are shut down concurrently: ten guests of 30 s take
// 30 s. A guest that ignores the button is switched off.
func TestStop(t *testing.T) {
	h, run := newTestMachines(), t.TempDir()
	for i := range 10 {
		h.machines[api.InstanceID(fmt.Sprintf("ins-%d", i))] = &machine{state: hypervisor.Running, off: 30 * time.Second}
	}
	h.machines["ins-deaf"] = &machine{state: hypervisor.Running}
	h.machines["ins-off"] = &machine{state: hypervisor.Stopped}
	h.machines["ins-stuck"] = &machine{state: hypervisor.Paused}
	began := h.now
	if err := h.stop(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if took := h.now.Sub(began); took > 61*time.Second {
		t.Errorf("Stop took %s, want the grace time of the guest that ignores its button", took)
	}
	for i := range 10 {
		if got := count(h.did, fmt.Sprintf("pull ins-%d", i)); got != 0 {
			t.Errorf("ins-%d was switched off %d times, want never", i, got)
		}
	}
	for what, want := range map[string]int{"press ins-0": 3, "press ins-deaf": 6, "pull ins-deaf": 1, "pull ins-stuck": 1, "press ins-stuck": 0, "press ins-off": 0} {
		if got := count(h.did, what); got != want {
			t.Errorf("%s happened %d times, want %d", what, got, want)
		}
	}
	if len(h.noted) != 12 || slices.Contains(h.noted, "ins-off") {
		t.Errorf("recorded ends of runs = %v, want the 12 instances that ran, once each", h.noted)
	}
	if !Leaving(run) {
		t.Error("Leaving after Stop = false, want true: basaltd would start the guests again")
	}
	for range 2 {
		if err := Start(run); err != nil {
			t.Fatal(err)
		}
	}
	if Leaving(run) {
		t.Error("Leaving after Start = true, want false")
	}
}

// TestStopGoesOn kills Stop at any moment: another one must continue with the time
// that is left.
func TestStopGoesOn(t *testing.T) {
	for killed := range 70 {
		h, run := newTestMachines(), t.TempDir()
		h.machines["ins-deaf"] = &machine{state: hypervisor.Running}
		began := h.now
		ctx, cancel := context.WithCancel(t.Context())
		err := Stop(ctx, Options{Machines: h, Run: run, Grace: time.Minute, Log: slog.New(slog.DiscardHandler),
			now: func() time.Time { return h.now },
			sleep: func(context.Context, time.Duration) {
				if h.now = h.now.Add(time.Second); h.now.Sub(began) >= time.Duration(killed)*time.Second {
					cancel()
				}
			}})
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := h.stop(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		if took := h.now.Sub(began); took > 62*time.Second || h.machines["ins-deaf"].state != hypervisor.Stopped {
			t.Errorf("Stop killed after %d s: both took %s, want a minute; guest is %s, want off", killed, took, h.machines["ins-deaf"].state)
		}
	}
}

// TestStopIsBounded checks that a guest which cannot be shut down does not delay
// the node for ever, and is named in the error.
func TestStopIsBounded(t *testing.T) {
	h := newTestMachines()
	h.machines["ins-moving"] = &machine{state: hypervisor.Outgoing}
	began := h.now
	err := h.stop(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "ins-moving") {
		t.Errorf("Stop with a migrating instance: error %v, want one that names ins-moving", err)
	}
	if took := h.now.Sub(began); took > 92*time.Second {
		t.Errorf("Stop with a migrating instance took %s, want the grace time and half a minute", took)
	}
	h = newTestMachines()
	h.away = true
	began = h.now
	err = h.stop(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "libvirtd does not answer") {
		t.Errorf("Stop without a hypervisor: error %v, want that libvirtd does not answer", err)
	}
	if took := h.now.Sub(began); took > awayTime+time.Second {
		t.Errorf("Stop without a hypervisor took %s, want %s", took, awayTime)
	}
	for _, grace := range []time.Duration{0, -1, MaxGrace + 1} {
		if err := Stop(t.Context(), Options{Machines: h, Run: t.TempDir(), Grace: grace}); err == nil {
			t.Errorf("Stop with a grace time of %s returned nil, want an error", grace)
		}
	}
}

// TestMark checks that a second begin keeps the time of the first mark.
func TestMark(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	if Leaving(run) {
		t.Error("Leaving without a directory = true, want false")
	}
	first, err := begin(run)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(run, markFile), time.Time{}, first.Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	again, err := begin(run)
	if err != nil || !again.Equal(first.Add(-time.Minute)) || !Leaving(run) {
		t.Errorf("second begin = %v, error %v; want the time of the first mark %v", again, err, first.Add(-time.Minute))
	}
}
