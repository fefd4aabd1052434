package agent_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func uefi(s *api.InstanceSpec, _ *api.InstanceAssignment) { s.Firmware = api.FirmwareUEFI }

// variables of ins-1 on the node, as its guest has written them.
func (h *house) variables() string { return filepath.Join(h.dir, "instances", "ins-1", "nvram.fd") }

func (h *house) setVariables(t *testing.T, what string) {
	t.Helper()
	flash := append(bytes.Repeat([]byte{0xff}, 528<<10), what...)
	if err := os.WriteFile(h.variables(), flash, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (h *house) wantVariables(t *testing.T, when, want string) {
	t.Helper()
	got, err := os.ReadFile(h.variables())
	if err != nil || !bytes.HasSuffix(got, []byte("\xff"+want)) {
		t.Errorf("%s: %v, %d bytes that end with %q, want %q", when, err, len(got), got[max(0, len(got)-8):], want)
	}
}

func (h *house) keptVariables() int64 {
	state, epoch, err := h.shared.KeptState(context.Background(), "vol-ins-1")
	if err != nil || state == nil {
		return 0
	}
	return epoch
}

// UEFI variables go along when an instance is started on another node: its node is lost,
// or it was stopped and released. A node that has older ones takes the newer.
func TestUEFIVariablesGoAlong(t *testing.T) {
	w := newTown(t, 2, true)
	a, b := w.houses[0], w.houses[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, uefi)
	w.until("runs on a", func() bool { return w.runsOn("ins-1", a) })
	a.setVariables(t, "A1")
	w.until("kept", func() bool { return a.keptVariables() == 1 })
	w.pass(time.Second)
	a.setVariables(t, "A2")
	w.pass(time.Minute) // the next looks
	a.die()
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.give("ins-1", b, nil)
	w.until("runs on b", func() bool { return w.runsOn("ins-1", b) })
	b.wantVariables(t, "after the node is lost", "A2")

	b.setVariables(t, "B")
	b.shared.Fault(func(op, _ string) error {
		if op == "KeepState" {
			return errors.New("the pool is away")
		}
		return nil
	})
	in, _ := w.instance("ins-1")
	in.Assignment.Release = true
	w.assign(api.KindInstance, "ins-1", in.Assignment)
	w.pass(2 * time.Minute)
	if in, _ = w.instance("ins-1"); in.Status.Released || in.Status.LastError == "" {
		t.Errorf("released with variables that were not kept: %+v", in.Status)
	}
	b.shared.Fault(nil)
	w.until("released", func() bool { in, _ = w.instance("ins-1"); return in.Status.Released })

	a.cut, a.lease = false, true
	a.start()
	w.node(a, api.NodeAssignment{State: api.NodeReady, Epoch: 1})
	w.give("ins-1", a, nil)
	w.until("runs on a again", func() bool { return w.runsOn("ins-1", a) })
	a.wantVariables(t, "after it was released", "B")
}

// What is not kept: of a BIOS, of a volume that no other node has. A stop and a start on
// the same node changes nothing.
func TestUEFIVariablesStay(t *testing.T) {
	for _, c := range []struct {
		name, pool string
		change     func(*api.InstanceSpec, *api.InstanceAssignment)
		kept       bool
	}{{"BIOS", api.PoolShared, nil, false}, {"local", api.PoolLocal, uefi, false}, {"shared", api.PoolShared, uefi, true}} {
		t.Run(c.name, func(t *testing.T) {
			w := newTown(t, 1, true)
			h := w.houses[0]
			w.upload(h, "img-1")
			w.create(h, "ins-1", c.pool, c.change)
			w.until("runs", func() bool { return w.runsOn("ins-1", h) })
			h.setVariables(t, "here")
			w.pass(time.Minute)
			if got := h.keptVariables() != 0; got != c.kept {
				t.Errorf("kept: %v, want %v", got, c.kept)
			}
			w.power(api.PowerStopped)
			w.until("stopped", func() bool { in, _ := w.instance("ins-1"); return in.Status.Phase == api.InstanceStopped })
			h.setVariables(t, "newer")
			w.power(api.PowerRunning)
			w.until("runs again", func() bool { return w.runsOn("ins-1", h) })
			h.wantVariables(t, "on the same node", "newer")
		})
	}
}

// Variables that do not fit are not kept, and stop nothing.
func TestUEFIVariablesTooLarge(t *testing.T) {
	w := newTown(t, 1, true)
	h := w.houses[0]
	w.upload(h, "img-1")
	w.create(h, "ins-1", api.PoolShared, uefi)
	w.until("runs", func() bool { return w.runsOn("ins-1", h) })
	noise := make([]byte, 200<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	h.setVariables(t, string(noise))
	in, _ := w.instance("ins-1")
	in.Assignment.Release = true
	w.assign(api.KindInstance, "ins-1", in.Assignment)
	w.until("released", func() bool { in, _ = w.instance("ins-1"); return in.Status.Released })
	if h.keptVariables() != 0 {
		t.Error("200 KiB of noise were kept")
	}
}
