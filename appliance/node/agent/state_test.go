package agent_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/machinestate"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
	sdsfake "github.com/basalt-gpu/basalt/sds/fake"
)

func uefi(s *api.InstanceSpec, _ *api.InstanceAssignment) { s.Firmware = api.FirmwareUEFI }

func withTPM(s *api.InstanceSpec, _ *api.InstanceAssignment) {
	s.Firmware, s.TPM = api.FirmwareUEFI, true
}

// stateFiles returns the paths of ins-1's UEFI variables and TPM on the node.
func (h *testNode) stateFiles() (variables, tpm string) {
	return filepath.Join(h.dir, "instances", "ins-1", "nvram.fd"), hypervisor.TPMState(filepath.Join(h.dir, "tpm"), "ins-1")
}

func flash(what string) []byte { return append(bytes.Repeat([]byte{0xff}, 528<<10), what...) }

// setState writes ins-1's UEFI variables and TPM as a guest does.
func (h *testNode) setState(what string) {
	h.t.Helper()
	variables, tpm := h.stateFiles()
	err := errors.Join(os.MkdirAll(filepath.Dir(tpm), 0o711), os.WriteFile(variables, flash(what), 0o600), os.WriteFile(tpm, []byte("keys "+what), 0o600))
	if err != nil {
		h.t.Fatal(err)
	}
}

// wantState checks ins-1's state on the node: its UEFI variables, and, if tpm is set,
// its TPM.
func (h *testNode) wantState(when, want string, tpm bool) {
	h.t.Helper()
	ofVariables, ofTPM := h.stateFiles()
	got, err := os.ReadFile(ofVariables)
	if err != nil || !bytes.Equal(got, flash(want)) {
		h.t.Errorf("variables %s: error %v, %d bytes ending in %q, want %q", when, err, len(got), got[max(0, len(got)-8):], want)
	}
	if !tpm {
		return
	}
	if got, err := os.ReadFile(ofTPM); err != nil || string(got) != "keys "+want {
		h.t.Errorf("TPM %s: error %v, %q, want %q", when, err, got, "keys "+want)
	}
}

// storedState returns the epoch of the state beside the root volume, 0 if there is none,
// and what it contains.
func (h *testNode) storedState(p *sdsfake.Store) (epoch int64, s machinestate.State) {
	h.t.Helper()
	raw, epoch, err := p.KeptState(context.Background(), "vol-ins-1")
	if err != nil || raw == nil {
		return 0, s
	}
	return epoch, h.opened(raw)
}

// opened returns the state that was stored as raw for the root volume of ins-1.
func (h *testNode) opened(raw []byte) machinestate.State {
	h.t.Helper()
	if machinestate.IsVariables(raw) {
		s, err := machinestate.DecodeVariables(raw)
		if err != nil {
			h.t.Fatal(err)
		}
		return s
	}
	plain, err := h.OpenState(context.Background(), "vol-ins-1", raw)
	if err != nil {
		h.t.Fatal(err)
	}
	s, err := machinestate.Decode(plain)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// isState reports whether the state is the one of setState, with its TPM if that is set.
func isState(s machinestate.State, what string, tpm bool) bool {
	want := ""
	if tpm {
		want = "keys " + what
	}
	return bytes.Equal(s.Variables, flash(what)) && string(s.TPM) == want
}

func (w *testCluster) movable() bool {
	in, _ := w.instance("ins-1")
	return api.Movable(in, w.vol("vol-ins-1"))
}

// stopped stops ins-1.
func (w *testCluster) stopped() {
	w.t.Helper()
	w.power(api.PowerStopped)
	w.until("ins-1 stopped", func() bool { in, _ := w.instance("ins-1"); return in.Status.Phase == api.InstanceStopped })
}

// rolledBack rolls the root volume of ins-1 back to a snapshot.
func (w *testCluster) rolledBack(to api.SnapshotID, count int64) {
	w.t.Helper()
	w.change("vol-ins-1", func(s *api.VolumeSpec) { s.Rollback = &api.VolumeRollback{Snapshot: to, Count: count} })
	w.until("the root volume rolled back", func() bool { st := w.vol("vol-ins-1").Status; return st.Rollbacks == count && st.LastError == "" })
}

func withState(t *testing.T, nodes int, pool string, change func(*api.InstanceSpec, *api.InstanceAssignment)) *testCluster {
	w := newTestCluster(t, nodes, pool == api.PoolShared)
	w.upload(w.nodes[0], "img-1")
	w.create(w.nodes[0], "ins-1", pool, change)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", w.nodes[0]) })
	return w
}

// TestMachineStateMigrates checks that an instance started on another node has its UEFI
// variables and its TPM there, after its node was lost or after it was stopped and
// released, and that a node with older ones gets the newer ones. An instance with a
// TPM is movable from the moment at which its state is stored.
func TestMachineStateMigrates(t *testing.T) {
	for name, change := range map[string]func(*api.InstanceSpec, *api.InstanceAssignment){"variables": uefi, "TPM": withTPM} {
		t.Run(name, func(t *testing.T) {
			tpm := name == "TPM"
			w := withState(t, 2, api.PoolShared, change)
			a, b := w.nodes[0], w.nodes[1]
			if got := w.movable(); got == tpm {
				t.Errorf("instance is movable before its state is stored: %v, want %v", got, !tpm)
			}
			a.setState("A1")
			w.until("the state stored in epoch 1", func() bool { epoch, s := a.storedState(w.shared); return epoch == 1 && isState(s, "A1", tpm) })
			w.until("the instance movable", w.movable)
			if raw, _, _ := w.shared.KeptState(context.Background(), "vol-ins-1"); bytes.Contains(raw, []byte("keys")) || machinestate.IsVariables(raw) {
				t.Errorf("state beside the volume begins with %q, want it sealed", raw[:16])
			}
			a.setState("A2")
			w.pass(time.Minute) // the next reconciles
			a.die()
			w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
			w.give("ins-1", b, nil)
			w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
			b.wantState("after the node is lost", "A2", tpm)

			b.setState("B")
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
				t.Errorf("status while the state cannot be stored = %+v, want not released and an error", in.Status)
			}
			b.shared.Fault(nil)
			w.until("ins-1 released", func() bool { in, _ = w.instance("ins-1"); return in.Status.Released })

			a.cut, a.lease = false, true
			a.start()
			w.node(a, api.NodeAssignment{State: api.NodeReady, Epoch: 1})
			a.setStateIfGone("old")
			w.give("ins-1", a, nil)
			w.until("ins-1 runs on a again", func() bool { return w.runsOn("ins-1", a) })
			a.wantState("after it was released", "B", tpm)
		})
	}
}

// setStateIfGone writes an old TPM where libvirt could have left one.
func (h *testNode) setStateIfGone(what string) {
	h.t.Helper()
	_, tpm := h.stateFiles()
	if err := errors.Join(os.MkdirAll(filepath.Dir(tpm), 0o711), os.WriteFile(tpm, []byte("keys "+what), 0o600)); err != nil {
		h.t.Fatal(err)
	}
}

// TestStateStays checks that the state of a BIOS guest and of a local volume is not
// stored, and that a stop and start on the same node keeps the files.
func TestStateStays(t *testing.T) {
	for _, c := range []struct {
		name, pool string
		change     func(*api.InstanceSpec, *api.InstanceAssignment)
		want       bool
	}{{"BIOS", api.PoolShared, nil, false}, {"local", api.PoolLocal, withTPM, false}, {"shared", api.PoolShared, withTPM, true}} {
		t.Run(c.name, func(t *testing.T) {
			w := withState(t, 1, c.pool, c.change)
			h, p := w.nodes[0], w.shared
			if c.pool == api.PoolLocal {
				p = w.nodes[0].local
			}
			h.setState("here")
			w.pass(time.Minute)
			epoch, _ := h.storedState(p)
			if in, _ := w.instance("ins-1"); (epoch != 0) != c.want || (in.Status.StateVolume != "") != c.want {
				t.Errorf("state stored in epoch %d, status.stateVolume %q; want stored: %v", epoch, in.Status.StateVolume, c.want)
			}
			w.stopped()
			h.setState("newer")
			w.power(api.PowerRunning)
			w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", h) })
			h.wantState("on the same node", "newer", true)
		})
	}
}

// TestStateOfAnEarlierRun checks that an instance in its first assignment, which ran
// under an earlier version, is started again with the files on its node, and not with
// the older state beside its root volume.
func TestStateOfAnEarlierRun(t *testing.T) {
	w := withState(t, 1, api.PoolShared, func(s *api.InstanceSpec, a *api.InstanceAssignment) { withTPM(s, a); a.Epoch = 0 })
	h := w.nodes[0]
	h.setState("older")
	w.until("the instance movable", w.movable)
	w.stopped()
	h.kill()
	h.setState("newer")
	run := filepath.Join(h.dir, "instances", "ins-1", "run.json")
	raw, err := os.ReadFile(run)
	if err == nil {
		raw = bytes.ReplaceAll(raw, []byte(`"root":"vol-ins-1"`), []byte(`"boot":"boot-1"`))
		err = os.WriteFile(run, raw, 0o600)
	}
	if err != nil || bytes.Contains(raw, []byte("vol-ins-1")) {
		t.Fatalf("file of the run: %s, error %v; want no root volume in it", raw, err)
	}
	w.shared.Fault(func(op, _ string) error { // so that the newer one is not stored
		if op == "KeepState" {
			return errors.New("the pool is read-only")
		}
		return nil
	})
	h.start()
	w.power(api.PowerRunning)
	w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", h) })
	h.wantState("after the start", "newer", true)
}

// TestStateTooLarge checks that variables that are too large are not stored and block
// nothing, unless a TPM would be lost.
func TestStateTooLarge(t *testing.T) {
	noise := make([]byte, 200<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*api.InstanceSpec, *api.InstanceAssignment){"variables": uefi, "TPM": withTPM} {
		t.Run(name, func(t *testing.T) {
			w := withState(t, 1, api.PoolShared, change)
			h := w.nodes[0]
			h.setState("small")
			w.until("the state stored", func() bool { in, _ := w.instance("ins-1"); return in.Status.StateVolume == "vol-ins-1" })
			h.setState(string(noise))
			w.until("the state not stored any more", func() bool { in, _ := w.instance("ins-1"); return in.Status.StateVolume == "" })
			in, _ := w.instance("ins-1")
			in.Assignment.Release = true
			w.assign(api.KindInstance, "ins-1", in.Assignment)
			w.pass(3 * time.Minute)
			in, _ = w.instance("ins-1")
			if name == "TPM" && (in.Status.Released || !strings.Contains(in.Status.LastError, "want 1 to 65536 bytes")) || name != "TPM" && !in.Status.Released {
				t.Errorf("released: %v, last error %q; want not released with the sizes only with a TPM", in.Status.Released, in.Status.LastError)
			}
			if _, s := h.storedState(w.shared); !isState(s, "small", name == "TPM") {
				t.Errorf("state beside the volume has %d and %d bytes, want the last one that fitted", len(s.Variables), len(s.TPM))
			}
		})
	}
}

// TestStateBelowItsLevel checks that nodes of an earlier version in the cluster can
// read what is stored, that an instance with a TPM is not movable then, and that the
// state is stored again, sealed, when the cluster reaches the level.
func TestStateBelowItsLevel(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	a.old, b.old = true, true
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, withTPM)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
	a.setState("A")
	w.pass(time.Minute)
	raw, _, err := w.shared.KeptState(context.Background(), "vol-ins-1")
	if err != nil || !machinestate.IsVariables(raw) || w.movable() {
		t.Errorf("state below the level: error %v, variables alone: %v, movable: %v; want variables alone and not movable", err, machinestate.IsVariables(raw), w.movable())
	}
	a.old, b.old = false, false
	w.until("the instance movable", w.movable)
	if epoch, s := a.storedState(w.shared); epoch != 1 || !isState(s, "A", true) {
		t.Errorf("state at the level: epoch %d, %d and %d bytes; want epoch 1 with the TPM", epoch, len(s.Variables), len(s.TPM))
	}
}

// TestVariablesOfAnEarlierVersion checks that a node starts an instance with the
// variables that a node of an earlier version has stored.
func TestVariablesOfAnEarlierVersion(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	a.old = true
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, uefi)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
	a.setState("A")
	w.pass(time.Minute)
	a.die()
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.give("ins-1", b, nil)
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	b.wantState("after the node is lost", "A", false)
}

// TestHalfRestoredState kills a node while it restores a state, after the variables
// and before the TPM: the instance must not start with them, and starts with both
// when the node can write.
func TestHalfRestoredState(t *testing.T) {
	w := withState(t, 2, api.PoolShared, withTPM)
	a, b := w.nodes[0], w.nodes[1]
	a.setState("A")
	w.until("the instance movable", w.movable)
	a.die()
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	// An older state of an earlier run, and a TPM that cannot be replaced.
	variables, tpm := b.stateFiles()
	if err := errors.Join(os.MkdirAll(filepath.Dir(variables), 0o755), os.WriteFile(variables, flash("B"), 0o600), os.MkdirAll(filepath.Join(tpm, "in the way"), 0o755)); err != nil {
		t.Fatal(err)
	}
	w.give("ins-1", b, nil)
	w.until("an attempt failed", func() bool { in, _ := w.instance("ins-1"); return in.Status.Node == b.id && in.Status.LastError != "" })
	if n := b.starts("ins-1"); n != 0 {
		t.Fatalf("starts with a part of the state = %d, want 0", n)
	}
	b.wantState("after the attempt", "A", false) // so it failed between the two
	b.kill()
	if err := os.RemoveAll(tpm); err != nil {
		t.Fatal(err)
	}
	b.start()
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	b.wantState("after the restart", "A", true)
}

// TestLostFilesOfAState removes the state's files on its own node, and kills the node
// while it restores them from beside the volume: both parts come back.
func TestLostFilesOfAState(t *testing.T) {
	w := withState(t, 1, api.PoolShared, withTPM)
	h := w.nodes[0]
	h.setState("A")
	w.until("the instance movable", w.movable)
	w.stopped()
	variables, tpm := h.stateFiles()
	if err := errors.Join(os.Remove(variables), os.Remove(tpm), os.MkdirAll(filepath.Join(tpm, "in the way"), 0o755)); err != nil {
		t.Fatal(err)
	}
	w.power(api.PowerRunning)
	w.until("an attempt failed", func() bool { in, _ := w.instance("ins-1"); return in.Status.LastError != "" })
	h.wantState("after the attempt", "A", false)
	h.kill()
	if err := os.RemoveAll(tpm); err != nil {
		t.Fatal(err)
	}
	h.start()
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", h) })
	h.wantState("after the restart", "A", true)
}

// TestDamagedStateStartsNothing checks that an instance waits, with an error, if the
// state beside its volume cannot be used: it was changed, or is another volume's.
func TestDamagedStateStartsNothing(t *testing.T) {
	for _, c := range []struct{ name, of, want string }{{"changed", "vol-ins-1", "damaged"}, {"of another volume", "vol-2", "not sealed for vol-ins-1"}} {
		t.Run(c.name, func(t *testing.T) {
			w := withState(t, 2, api.PoolShared, withTPM)
			a, b := w.nodes[0], w.nodes[1]
			a.setState("A")
			w.until("the instance movable", w.movable)
			a.die()
			w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
			raw, err := (machinestate.State{Variables: flash("evil"), TPM: []byte("evil")}).Encode()
			if err != nil {
				t.Fatal(err)
			}
			if c.of == "vol-ins-1" {
				raw[len(raw)-1] ^= 1
			}
			raw, _ = b.SealState(t.Context(), api.VolumeID(c.of), raw)
			if err := w.shared.KeepState(t.Context(), "vol-ins-1", 1, raw); err != nil {
				t.Fatal(err)
			}
			w.give("ins-1", b, nil)
			w.until("an attempt failed", func() bool { in, _ := w.instance("ins-1"); return in.Status.Node == b.id && in.Status.LastError != "" })
			w.pass(time.Minute)
			if n := b.starts("ins-1"); n != 0 {
				t.Errorf("starts with a state that is %s = %d, want 0", c.name, n)
			}
			variables, _ := b.stateFiles()
			if _, err := os.Stat(variables); !os.IsNotExist(err) {
				t.Errorf("variables on the node: %v, want none", err)
			}
		})
	}
}

// TestStateInSnapshots checks that a rollback brings back the state that the machine
// had at the snapshot, on the node and beside the volume, and that the state goes
// with the snapshot.
func TestStateInSnapshots(t *testing.T) {
	for _, pool := range []string{api.PoolLocal, api.PoolShared} {
		t.Run(pool, func(t *testing.T) {
			w := withState(t, 1, pool, withTPM)
			h, p := w.nodes[0], w.shared
			if pool == api.PoolLocal {
				p = h.local
			}
			h.setState("one")
			p.SetUsed("vol-ins-1", true)
			w.snapshot(h, "snap-1", "vol-ins-1")
			w.until("snap-1 ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
			h.setState("two")
			w.stopped()
			p.SetUsed("vol-ins-1", false)
			w.snapshot(h, "snap-2", "vol-ins-1") // of a stopped machine
			w.until("snap-2 ready", func() bool { return w.snap("snap-2").Status.Phase == api.SnapshotReady })
			h.setState("three")
			w.pass(time.Minute)

			w.rolledBack("snap-1", 1)
			h.wantState("after the rollback to snap-1", "one", true)
			if epoch, s := h.storedState(p); pool == api.PoolShared && !isState(s, "one", true) || pool == api.PoolLocal && epoch != 0 {
				t.Errorf("state beside the volume after the rollback: epoch %d, %d and %d bytes; want that of snap-1 only in the shared pool", epoch, len(s.Variables), len(s.TPM))
			}
			w.rolledBack("snap-2", 2)
			h.wantState("after the rollback to snap-2", "two", true)
			w.power(api.PowerRunning)
			w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", h) })
			h.wantState("after the start", "two", true)

			w.drop(api.KindSnapshot, "snap-1")
			w.until("snap-1 deleted", func() bool { _, there := read[api.Snapshot](w, api.KindSnapshot, "snap-1"); return !there })
			for id, want := range map[api.SnapshotID]bool{"snap-1": false, "snap-2": true} {
				if raw, err := p.SnapshotState(t.Context(), sds.SnapshotRef{Volume: "vol-ins-1", ID: id}); err != nil || (raw != nil) != want {
					t.Errorf("state of %s after snap-1 was deleted = %d bytes, error %v; want stored: %v", id, len(raw), err, want)
				}
			}
		})
	}
}

// TestMigratedInstanceInSnapshot checks that a snapshot of an instance that was
// assigned to a node, and has not been started there, has the state beside the
// volume, and not what an earlier run has left on the node.
func TestMigratedInstanceInSnapshot(t *testing.T) {
	w := withState(t, 2, api.PoolShared, withTPM)
	a, b := w.nodes[0], w.nodes[1]
	a.setState("A")
	w.until("the instance movable", w.movable)
	w.stopped()
	w.give("ins-1", b, nil)
	w.until("the volume ready on b", func() bool {
		v := w.vol("vol-ins-1")
		return v.Assignment.Node == b.id && v.Status.Phase == api.VolumeReady
	})
	variables, _ := b.stateFiles()
	if err := os.MkdirAll(filepath.Dir(variables), 0o755); err != nil {
		t.Fatal(err)
	}
	b.setState("left on b")
	w.snapshot(b, "snap-1", "vol-ins-1")
	w.assign(api.KindSnapshot, "snap-1", api.SnapshotAssignment{Node: b.id, Pool: api.PoolShared})
	w.until("snap-1 ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
	raw, err := w.shared.SnapshotState(t.Context(), sds.SnapshotRef{Volume: "vol-ins-1", ID: "snap-1"})
	if err != nil || raw == nil || !isState(b.opened(raw), "A", true) {
		t.Errorf("state of the snapshot = %d bytes, error %v; want that of a", len(raw), err)
	}
}

// TestSnapshotNeverHasALaterState kills the agent between storing the state and
// creating the snapshot, and after the snapshot exists but before it is reported: the
// state is stored again in the first case, and stays in the second.
func TestSnapshotNeverHasALaterState(t *testing.T) {
	for name, want := range map[string]string{"before the snapshot": "later", "after the snapshot": "first"} {
		t.Run("killed "+name, func(t *testing.T) {
			w := withState(t, 1, api.PoolShared, withTPM)
			h := w.nodes[0]
			h.setState("first")
			dead := false
			h.shared.Fault(func(verb, _ string) error {
				dead = dead || want == "later" && verb == "CreateSnapshot"
				if dead {
					return errors.New("killed")
				}
				return nil
			})
			w.snapshot(h, "snap-1", "vol-ins-1")
			for range 100 {
				if dead || w.snap("snap-1").Status.Phase == api.SnapshotReady {
					break
				}
				h.receive()
				if !h.work() {
					w.now = w.now.Add(time.Second)
				}
			}
			h.kill()
			h.shared.Fault(nil)
			ref := sds.SnapshotRef{Volume: "vol-ins-1", ID: "snap-1"}
			if raw, err := w.shared.SnapshotState(t.Context(), ref); err != nil || !isState(h.opened(raw), "first", true) {
				t.Errorf("state when the agent is killed = %d bytes, error %v; want the first", len(raw), err)
			}
			w.apply(api.Command{Op: api.OpReport, Kind: api.KindSnapshot, ID: "snap-1", Expect: api.AnyRevision, Data: api.Encode(api.SnapshotStatus{Phase: api.SnapshotCreating})})
			h.setState("later")
			h.start()
			w.until("snap-1 ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
			raw, err := w.shared.SnapshotState(t.Context(), ref)
			if err != nil || !isState(h.opened(raw), want, true) {
				t.Errorf("state of the snapshot = %d bytes, error %v; want %q", len(raw), err, want)
			}
		})
	}
}

// TestStateInBackups checks that a backup of a root volume has the state of its
// machine, and one of another volume has none.
func TestStateInBackups(t *testing.T) {
	w, x := withVault(t, 1)
	h := w.nodes[0]
	w.upload(h, "img-1")
	w.create(h, "ins-1", api.PoolLocal, withTPM)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", h) })
	w.volume(h, "vol-2", api.PoolLocal, attachTo("ins-1"))
	h.setState("one")
	x.held = func(h *testNode, _ string) { h.setState("later") }
	for id, volume := range map[string]string{"bak-1": "vol-ins-1", "bak-2": "vol-2"} {
		w.backup(h, id, volume)
		w.phase(id, api.BackupSucceeded)
		x.held = nil
		h.setState("one")
	}
	if s, err := machinestate.Decode(x.states["bak-1"]); err != nil || !isState(s, "one", true) {
		t.Errorf("state in the backup of the root volume: error %v, %d and %d bytes; want the one before the backup", err, len(s.Variables), len(s.TPM))
	}
	if x.states["bak-2"] != nil {
		t.Errorf("state in the backup of another volume = %d bytes, want none", len(x.states["bak-2"]))
	}
	h.unread("vol-ins-1")
	if raw, err := h.local.SnapshotState(t.Context(), sds.SnapshotRef{Volume: "vol-ins-1", ID: "bak-1"}); err != nil || raw != nil {
		t.Errorf("state for the snapshot that the backup read from = %d bytes, error %v; want none", len(raw), err)
	}
}

// TestStateOfAMigratedInstance checks that a live migration leaves to the hypervisor
// what it moves: nothing is restored over it, and the target stores it as the newest.
func TestStateOfAMigratedInstance(t *testing.T) {
	w := withState(t, 2, api.PoolShared, withTPM)
	a, b := w.nodes[0], w.nodes[1]
	a.setState("A")
	w.until("the instance movable", w.movable)
	w.moveTo(a, b)
	a.machines.MigrationStep(func(context.Context, api.InstanceID, hypervisor.MigrationProgress) error {
		b.setState("moved") // as libvirt and swtpm do
		return nil
	})
	if p := w.ended(); p != api.MigrationSucceeded {
		t.Fatalf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
	}
	w.until("the target's state stored in epoch 2", func() bool { epoch, s := b.storedState(w.shared); return epoch == 2 && isState(s, "moved", true) })
	b.wantState("after the migration", "moved", true)
	w.stopped()
	w.power(api.PowerRunning)
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	b.wantState("after a restart", "moved", true)
}

// TestFenceOfAnInstanceWithTPM checks that the fence kills an instance with a TPM in a
// shared pool without a lease from its start, and not only when its state is stored:
// the planner may start it elsewhere as soon as it reads that.
func TestFenceOfAnInstanceWithTPM(t *testing.T) {
	for pool, want := range map[string]string{api.PoolShared: "[]", api.PoolLocal: "[ins-1]"} {
		w := withState(t, 1, pool, withTPM)
		if got := fmt.Sprint(w.nodes[0].kept); got != want || w.movable() {
			t.Errorf("instances that the fence keeps, with the root volume in %s = %s, movable: %v; want %s and not movable", pool, got, w.movable(), want)
		}
	}
}

// TestStateOfARestoredRootVolume checks that an instance that was reinstalled from a
// backup starts with the state in the backup, wherever the agent was killed, and that
// the state of the replaced root volume is not stored beside the new one. From an
// image or a backup without a state it keeps the state that it has.
func TestStateOfARestoredRootVolume(t *testing.T) {
	for name, c := range map[string]struct {
		spec api.VolumeSpec
		want string
	}{
		"backup":               {api.VolumeSpec{Backup: "bak-1"}, "saved"},
		"backup without state": {api.VolumeSpec{Backup: "bak-2"}, "lost"},
		"image":                {api.VolumeSpec{Image: "img-1"}, "lost"},
	} {
		for at := range 12 {
			t.Run(fmt.Sprintf("%s/killed at %d", name, at), func(t *testing.T) {
				w, x := withVault(t, 1)
				h := w.nodes[0]
				w.upload(h, "img-1")
				w.create(h, "ins-1", api.PoolLocal, func(s *api.InstanceSpec, a *api.InstanceAssignment) {
					withTPM(s, a)
					a.Epoch = int64(at % 2) // the planner's first one is 0
				})
				w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", h) })
				h.setState("saved")
				for _, id := range []string{"bak-1", "bak-2"} {
					w.backup(h, id, "vol-ins-1")
					w.phase(id, api.BackupSucceeded)
				}
				x.states["bak-2"] = nil // of an earlier version
				h.setState("lost")
				w.stopped()

				left := at
				h.step = func(string) {
					if left--; left == 0 {
						h.cut = true // the rest of this reconcile has no effect
					}
				}
				w.reinstall(h, "vol-new", c.spec)
				for range 200 {
					if h.cut {
						h.kill()
						h.cut = false
						h.start()
					}
					w.turn()
					w.now = w.now.Add(time.Second)
				}
				h.step = nil
				w.ready("vol-new")
				w.power(api.PowerRunning)
				w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", h) })
				h.wantState("after the reinstallation", c.want, true)
				h.setState("newer")
				w.stopped()
				w.power(api.PowerRunning)
				w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", h) })
				h.wantState("after another start", "newer", true)
			})
		}
	}
}

// reinstall gives ins-1 a new root volume, as the API and the planner do.
func (w *testCluster) reinstall(h *testNode, id string, s api.VolumeSpec) {
	w.t.Helper()
	s.Instance, s.Root, s.SizeBytes = "ins-1", true, 2<<20
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: id, Organization: "org-1", Project: "prj-1", Finalizers: []string{api.FinalizerAgent}, Data: api.Encode(s)})
	w.assign(api.KindVolume, id, api.VolumeAssignment{Node: h.id, Pool: api.PoolLocal, Epoch: 1})
	in, _ := w.instance("ins-1")
	in.Assignment.RootVolume = api.VolumeID(id)
	w.assign(api.KindInstance, "ins-1", in.Assignment)
}

// TestStateOfAReplacedRootVolume checks that the state of an earlier root volume is
// not stored beside the one that has replaced it, in a shared pool, before the
// instance has run with it.
func TestStateOfAReplacedRootVolume(t *testing.T) {
	w := withState(t, 1, api.PoolShared, withTPM)
	h := w.nodes[0]
	h.setState("old")
	w.until("the instance movable", w.movable)
	w.stopped()
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-new", Name: "vol-new", Organization: "org-1", Project: "prj-1", Finalizers: []string{api.FinalizerAgent},
		Data: api.Encode(api.VolumeSpec{Image: "img-1", Instance: "ins-1", Root: true, SizeBytes: 2 << 20})})
	w.assign(api.KindVolume, "vol-new", api.VolumeAssignment{Node: h.id, Pool: api.PoolShared, Epoch: 1})
	in, _ := w.instance("ins-1")
	in.Assignment.RootVolume = "vol-new"
	w.assign(api.KindInstance, "ins-1", in.Assignment)
	w.ready("vol-new")
	h.setState("old, changed")
	w.pass(time.Minute)
	if raw, _, err := w.shared.KeptState(t.Context(), "vol-new"); err != nil || raw != nil {
		t.Errorf("state beside the new root volume before its first run = %d bytes, error %v; want none", len(raw), err)
	}
	if in, _ := w.instance("ins-1"); api.Movable(in, w.vol("vol-new")) {
		t.Error("the instance is movable with a root volume that has no state beside it, want not")
	}
	w.power(api.PowerRunning)
	w.until("the instance movable with its new root volume", func() bool { in, _ := w.instance("ins-1"); return api.Movable(in, w.vol("vol-new")) })
}
