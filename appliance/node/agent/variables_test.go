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

// variables returns the path of ins-1's UEFI variables on the node.
func (h *testNode) variables() string { return filepath.Join(h.dir, "instances", "ins-1", "nvram.fd") }

func (h *testNode) setVariables(t *testing.T, what string) {
	t.Helper()
	flash := append(bytes.Repeat([]byte{0xff}, 528<<10), what...)
	if err := os.WriteFile(h.variables(), flash, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (h *testNode) wantVariables(t *testing.T, when, want string) {
	t.Helper()
	got, err := os.ReadFile(h.variables())
	if err != nil || !bytes.HasSuffix(got, []byte("\xff"+want)) {
		t.Errorf("variables %s: error %v, %d bytes ending in %q, want %q", when, err, len(got), got[max(0, len(got)-8):], want)
	}
}

func (h *testNode) keptVariables() int64 {
	state, epoch, err := h.shared.KeptState(context.Background(), "vol-ins-1")
	if err != nil || state == nil {
		return 0
	}
	return epoch
}

// TestUEFIVariablesGoAlong checks that an instance started on another node has its
// UEFI variables there, after its node was lost or after it was stopped and
// released, and that a node with older ones gets the newer ones.
func TestUEFIVariablesGoAlong(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, uefi)
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	a.setVariables(t, "A1")
	w.until("the variables copied in epoch 1", func() bool { return a.keptVariables() == 1 })
	w.pass(time.Second)
	a.setVariables(t, "A2")
	w.pass(time.Minute) // the next reconciles
	a.die()
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.give("ins-1", b, nil)
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
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
		t.Errorf("status while the variables cannot be copied = %+v, want not released and an error", in.Status)
	}
	b.shared.Fault(nil)
	w.until("ins-1 released", func() bool { in, _ = w.instance("ins-1"); return in.Status.Released })

	a.cut, a.lease = false, true
	a.start()
	w.node(a, api.NodeAssignment{State: api.NodeReady, Epoch: 1})
	w.give("ins-1", a, nil)
	w.until("ins-1 runs on a again", func() bool { return w.runsOn("ins-1", a) })
	a.wantVariables(t, "after it was released", "B")
}

// TestUEFIVariablesStay checks that variables of a BIOS guest and of a local volume
// are not copied, and that a stop and start on the same node keeps them.
func TestUEFIVariablesStay(t *testing.T) {
	for _, c := range []struct {
		name, pool string
		change     func(*api.InstanceSpec, *api.InstanceAssignment)
		kept       bool
	}{{"BIOS", api.PoolShared, nil, false}, {"local", api.PoolLocal, uefi, false}, {"shared", api.PoolShared, uefi, true}} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestCluster(t, 1, true)
			h := w.nodes[0]
			w.upload(h, "img-1")
			w.create(h, "ins-1", c.pool, c.change)
			w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", h) })
			h.setVariables(t, "here")
			w.pass(time.Minute)
			if got := h.keptVariables() != 0; got != c.kept {
				t.Errorf("variables copied: %v, want %v", got, c.kept)
			}
			w.power(api.PowerStopped)
			w.until("ins-1 stopped", func() bool { in, _ := w.instance("ins-1"); return in.Status.Phase == api.InstanceStopped })
			h.setVariables(t, "newer")
			w.power(api.PowerRunning)
			w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", h) })
			h.wantVariables(t, "on the same node", "newer")
		})
	}
}

// TestUEFIVariablesTooLarge checks that variables that are too large are not copied
// and block nothing.
func TestUEFIVariablesTooLarge(t *testing.T) {
	w := newTestCluster(t, 1, true)
	h := w.nodes[0]
	w.upload(h, "img-1")
	w.create(h, "ins-1", api.PoolShared, uefi)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", h) })
	noise := make([]byte, 200<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	h.setVariables(t, string(noise))
	in, _ := w.instance("ins-1")
	in.Assignment.Release = true
	w.assign(api.KindInstance, "ins-1", in.Assignment)
	w.until("ins-1 released", func() bool { in, _ = w.instance("ins-1"); return in.Status.Released })
	if h.keptVariables() != 0 {
		t.Errorf("copy of 200 KiB of noise has epoch %d, want no copy", h.keptVariables())
	}
}
