package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Unwrap implements agent.Keys.
func (h *testNode) Unwrap(_ context.Context, v api.Volume) ([]byte, error) {
	return []byte("the-passphrase-of-a-volume" + v.Spec.WrappedKey), nil
}

// SealState implements agent.Keys: it marks the state and changes every byte.
func (h *testNode) SealState(_ context.Context, v api.VolumeID, state []byte) ([]byte, error) {
	return append([]byte("sealed for "+v+":"), inverted(state)...), nil
}

// OpenState implements agent.Keys.
func (h *testNode) OpenState(_ context.Context, v api.VolumeID, sealed []byte) ([]byte, error) {
	state, ok := bytes.CutPrefix(sealed, []byte("sealed for "+v+":"))
	if !ok {
		return nil, api.Errorf(api.CodeInvalid, "it was not sealed for %s", v)
	}
	return inverted(state), nil
}

func inverted(b []byte) []byte {
	b = bytes.Clone(b)
	for i := range b {
		b[i] = ^b[i]
	}
	return b
}

// Ceph implements agent.Keys.
func (h *testNode) Ceph(context.Context, string) ([]byte, error) { return []byte("key"), nil }

// Plug implements agent.Ports.
func (h *testNode) Plug(_ context.Context, p agent.Port, _ bool) (agent.Tap, error) {
	if h.ports == nil {
		h.ports = map[string]string{}
	}
	h.ports[p.ID] = fmt.Sprintf("tap%d", len(p.ID))
	return agent.Tap{Name: h.ports[p.ID], NoOffload: true, MTU: 1442}, nil
}

// Works implements agent.Ports.
func (h *testNode) Works(context.Context) error { return nil }

// Unplug implements agent.Ports.
func (h *testNode) Unplug(_ context.Context, id string) error {
	delete(h.ports, id)
	return nil
}

// Plugged implements agent.Ports.
func (h *testNode) Plugged(context.Context) ([]string, error) {
	return slices.Sorted(maps.Keys(h.ports)), nil
}

// volume creates a data volume, assigned to a node.
func (w *testCluster) volume(h *testNode, id, pool string, change func(*api.VolumeSpec)) {
	s := api.VolumeSpec{SizeBytes: 2 << 20}
	if change != nil {
		change(&s)
	}
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: id, Organization: "org-1", Project: "prj-1",
		Finalizers: []string{api.FinalizerAgent}, Data: api.Encode(s)})
	w.assign(api.KindVolume, id, api.VolumeAssignment{Node: h.id, Pool: pool, Epoch: 1})
}

func (w *testCluster) vol(id string) api.Volume {
	v, _ := read[api.Volume](w, api.KindVolume, id)
	return v
}

// change edits the spec of a volume.
func (w *testCluster) change(id string, f func(*api.VolumeSpec)) {
	w.t.Helper()
	v := w.vol(id)
	f(&v.Spec)
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: v.Meta.Name, Expect: v.Meta.Revision, Data: api.Encode(v.Spec)})
}

func (h *testNode) disks(id string) (serials []string) {
	all, err := h.machines.Disks(context.Background(), api.InstanceID(id))
	if err != nil {
		return nil
	}
	for _, k := range all {
		serials = append(serials, k.Serial)
	}
	return serials
}

// running returns a cluster of one node with a running instance.
func running(t *testing.T) (*testCluster, *testNode) {
	w := newTestCluster(t, 1, false)
	h := w.nodes[0]
	w.upload(h, "img-1")
	w.create(h, "ins-1", api.PoolLocal, nil)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", h) })
	return w, h
}

// TestOpenFiles checks that files are opened with the node's cache and AIO modes,
// at the start and when a disk is attached.
func TestOpenFiles(t *testing.T) {
	var asked [][]string
	w := newTestCluster(t, 1, false)
	h := w.nodes[0]
	h.openFiles = func(_ context.Context, paths []string) (cache, aio string) {
		asked = append(asked, paths)
		return "none", "io_uring"
	}
	h.kill()
	h.start()
	w.upload(h, "img-1")
	w.create(h, "ins-1", api.PoolLocal, nil)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", h) })
	w.volume(h, "vol-2", api.PoolLocal, attachTo("ins-1"))
	w.until("vol-2 attached", func() bool { return slices.Equal(h.disks("ins-1"), []string{"root", "vol-2"}) })
	_, runs, _ := h.machines.Domain("ins-1")
	for _, k := range runs.Disks {
		if k.Cache != "none" || k.AIO != "io_uring" {
			t.Errorf("disk %s: cache %q, AIO %q, want none and io_uring", k.Serial, k.Cache, k.AIO)
		}
		if !slices.ContainsFunc(asked, func(paths []string) bool { return paths[0] == k.Path && len(paths) == 1+len(k.Backing) }) {
			t.Errorf("asked for %q, want %s and the %d files below it", asked, k.Path, len(k.Backing))
		}
	}
}

func (w *testCluster) power(p api.Power) {
	w.t.Helper()
	w.edit("ins-1", func(s *api.InstanceSpec) { s.Power = p })
}

func attachTo(id string) func(*api.VolumeSpec) {
	return func(s *api.VolumeSpec) { s.Instance = api.InstanceID(id) }
}

func TestAttachAndDetachWhileItRuns(t *testing.T) {
	w, h := running(t)
	w.volume(h, "vol-2", api.PoolLocal, attachTo("ins-1"))
	has := func(what string, want ...string) {
		t.Helper()
		w.until(what, func() bool { return slices.Equal(h.disks("ins-1"), want) })
	}
	has("attached", "root", "vol-2")
	if a := w.vol("vol-2").Status.Attached; a != "ins-1" {
		t.Errorf("vol-2 attached to %q, want ins-1", a)
	}
	h.kill()
	h.start()
	w.power(api.PowerStopped)
	w.until("ins-1 stopped", func() bool { in, _ := w.instance("ins-1"); return in.Status.Phase == api.InstanceStopped })
	w.power(api.PowerRunning)
	w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", h) })
	has("after a restart", "root", "vol-2")
	if n := len(slices.DeleteFunc(h.machines.Calls(), func(c string) bool { return c != "AttachDisk ins-1" })); n != 1 {
		t.Errorf("vol-2 attached live %d times, want once: the second start includes it", n)
	}
	h.machines.Hold("ins-1", true)
	w.change("vol-2", attachTo(""))
	w.until("vol-2 reported as not released by the guest", func() bool { return strings.Contains(w.vol("vol-2").Status.LastError, "did not release") })
	if a := w.vol("vol-2").Status.Attached; a != "ins-1" {
		t.Errorf("vol-2, which the guest holds, attached to %q, want ins-1", a)
	}
	h.machines.Hold("ins-1", false)
	has("detached", "root")
	w.until("vol-2 reported as detached", func() bool { st := w.vol("vol-2").Status; return st.Attached == "" && st.LastError == "" })
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-2", Expect: api.AnyRevision})
	w.until("vol-2 deleted", func() bool { _, there := read[api.Volume](w, api.KindVolume, "vol-2"); return !there })
}

// TestDeleteOfAnAttachedVolume deletes a volume that a machine has open: it must be
// detached first.
func TestDeleteOfAnAttachedVolume(t *testing.T) {
	w, h := running(t)
	w.volume(h, "vol-2", api.PoolLocal, attachTo("ins-1"))
	w.until("vol-2 attached", func() bool { return len(h.disks("ins-1")) == 2 })
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-2", Expect: api.AnyRevision, Cascade: true})
	w.until("vol-2 deleted", func() bool { _, there := read[api.Volume](w, api.KindVolume, "vol-2"); return !there })
	if got := h.disks("ins-1"); !slices.Equal(got, []string{"root"}) {
		t.Errorf("disks of ins-1 = %v, want root only", got)
	}
}

func TestGrowAndBoundWhileItRuns(t *testing.T) {
	w, h := running(t)
	h.local.SetUsed("vol-ins-1", true)
	q := api.VolumeQoS{WriteIOPS: 50}
	w.change("vol-ins-1", func(s *api.VolumeSpec) { s.SizeBytes, s.Qos = 4<<20, &q })
	w.until("root volume grown to 4 MiB", func() bool {
		return w.vol("vol-ins-1").Status.SizeBytes == 4<<20 && h.machines.Grown("ins-1", "root") == 4<<20
	})
	w.until("root disk limited to 50 write IOPS", func() bool {
		all, err := h.machines.Disks(context.Background(), "ins-1")
		return err == nil && all[0].QoS == hypervisor.QoS{WriteIOPS: 50}
	})
	w.change("vol-ins-1", func(s *api.VolumeSpec) { s.Qos = nil })
	w.until("root disk without limits", func() bool {
		all, err := h.machines.Disks(context.Background(), "ins-1")
		return err == nil && all[0].QoS == hypervisor.QoS{}
	})
}

func (w *testCluster) snapshot(h *testNode, id, volume string) {
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindSnapshot, ID: id, Name: id, Organization: "org-1", Project: "prj-1",
		Finalizers: []string{api.FinalizerAgent}, Data: api.Encode(api.SnapshotSpec{Volume: api.VolumeID(volume)})})
	w.assign(api.KindSnapshot, id, api.SnapshotAssignment{Node: h.id, Pool: api.PoolLocal})
}

func (w *testCluster) snap(id string) api.Snapshot {
	s, _ := read[api.Snapshot](w, api.KindSnapshot, id)
	return s
}

// order returns the calls of the hypervisor with these verbs, in their order.
func (h *testNode) order(verbs ...string) (got []string) {
	for _, c := range h.machines.Calls() {
		if verb, _, _ := strings.Cut(c, " "); slices.Contains(verbs, verb) {
			got = append(got, verb)
		}
	}
	return got
}

func TestSnapshotCloneRollback(t *testing.T) {
	w, h := running(t)
	h.local.SetUsed("vol-ins-1", true)
	w.snapshot(h, "snap-1", "vol-ins-1")
	w.until("snap-1 ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
	if got := h.order("Freeze", "SnapshotDisk", "Thaw"); !slices.Equal(got, []string{"Freeze", "SnapshotDisk", "Thaw"}) || h.machines.Frozen("ins-1") {
		t.Errorf("calls = %v, guest frozen: %v; want Freeze, SnapshotDisk, Thaw and not frozen", got, h.machines.Frozen("ins-1"))
	}
	if st := w.snap("snap-1").Status; st.SizeBytes != 2<<20 || st.CreatedAt == nil {
		t.Errorf("status of snap-1 = %+v, want 2 MiB with createdAt", st)
	}
	w.volume(h, "vol-2", api.PoolLocal, func(s *api.VolumeSpec) { s.Snapshot = "snap-1" })
	w.until("vol-2 cloned", func() bool { return w.vol("vol-2").Status.Phase == api.VolumeReady })

	w.change("vol-ins-1", func(s *api.VolumeSpec) { s.Rollback = &api.VolumeRollback{Snapshot: "snap-1", Count: 1} })
	w.until("the rollback waiting for the instance", func() bool { return strings.Contains(w.vol("vol-ins-1").Status.LastError, "rolled back when") })
	w.power(api.PowerStopped)
	w.until("ins-1 stopped", func() bool { in, _ := w.instance("ins-1"); return in.Status.Phase == api.InstanceStopped })
	h.local.SetUsed("vol-ins-1", false)
	w.until("the root volume rolled back", func() bool { st := w.vol("vol-ins-1").Status; return st.Rollbacks == 1 && st.LastError == "" })

	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindSnapshot, ID: "snap-1", Expect: api.AnyRevision, Cascade: true})
	w.until("the deletion of snap-1 waiting for its clone", func() bool { return strings.Contains(w.snap("snap-1").Status.LastError, "cloned") })
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-2", Expect: api.AnyRevision})
	w.until("snap-1 deleted", func() bool { _, there := read[api.Snapshot](w, api.KindSnapshot, "snap-1"); return !there })
}

// TestSnapshotKilledAnywhere kills the agent at each step of a snapshot: it must
// complete the snapshot after the restart, and not leave the guest frozen.
func TestSnapshotKilledAnywhere(t *testing.T) {
	for _, op := range []string{"Freeze", "SnapshotDisk", "Thaw"} {
		t.Run(op, func(t *testing.T) {
			w, h := running(t)
			h.local.SetUsed("vol-ins-1", true)
			dead := false
			h.machines.Fault(func(verb string, _ api.InstanceID) error {
				if verb == op && h.Stepper != nil {
					dead = true
				}
				if dead {
					return errors.New("killed")
				}
				return nil
			})
			w.snapshot(h, "snap-1", "vol-ins-1")
			for range 100 {
				if dead {
					break
				}
				h.receive()
				if !h.work() {
					w.now = w.now.Add(time.Second)
				}
			}
			if !dead {
				t.Fatalf("no call of %s in 100 turns, want the agent killed there", op)
			}
			h.kill()
			dead = false
			h.machines.Fault(nil)
			h.start()
			w.until("snap-1 ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
			w.until("the guest thawed", func() bool { return !h.machines.Frozen("ins-1") })
		})
	}
}

// TestSnapshotsOfForeignVolume checks that a volume which was assigned to
// another node is deleted together with its snapshots.
func TestSnapshotsOfForeignVolume(t *testing.T) {
	w := newTestCluster(t, 2, false)
	a, b := w.nodes[0], w.nodes[1]
	w.volume(a, "vol-2", api.PoolLocal, nil)
	w.snapshot(a, "snap-1", "vol-2")
	w.until("snap-1 ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
	w.assign(api.KindVolume, "vol-2", api.VolumeAssignment{Node: b.id, Pool: api.PoolLocal, Epoch: 2})
	w.until("the old node's copy deleted", func() bool {
		all, err := a.local.Volumes(context.Background())
		return err == nil && len(all) == 0
	})
}

func TestEncryptedVolume(t *testing.T) {
	w, h := running(t)
	w.volume(h, "vol-2", api.PoolLocal, func(s *api.VolumeSpec) { s.Encrypted, s.Instance = true, "ins-1" })
	w.until("vol-2 attached", func() bool { return len(h.disks("ins-1")) == 2 })
	_, runs, _ := h.machines.Domain("ins-1")
	if runs.Disks[1].Secret == "" {
		t.Errorf("disk of the encrypted vol-2 = %+v, want one with a secret", runs.Disks[1])
	}
	if left := h.machines.Secrets(); len(left) > 0 {
		t.Errorf("secrets left in the hypervisor = %v, want none", left)
	}
	h.kill()
	h.keyless = true
	h.start()
	w.volume(h, "vol-3", api.PoolLocal, func(s *api.VolumeSpec) { s.Encrypted = true })
	w.until("vol-3 reported as without a key", func() bool { return strings.Contains(w.vol("vol-3").Status.LastError, "no key") })
}

func TestPorts(t *testing.T) {
	w := newTestCluster(t, 1, false)
	h := w.nodes[0]
	w.upload(h, "img-1")
	w.create(h, "ins-1", api.PoolLocal, func(_ *api.InstanceSpec, a *api.InstanceAssignment) {
		a.Ports = []api.InstancePort{{Network: "net-1", Mac: "52:54:00:00:00:01"}}
	})
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", h) })
	_, runs, _ := h.machines.Domain("ins-1")
	if len(runs.NICs) != 1 || runs.NICs[0].MAC != "52:54:00:00:00:01" || runs.NICs[0].Tap != h.ports["port-ins-1-0"] || !runs.NICs[0].NoOffload {
		t.Errorf("NICs = %+v with ports %v, want one on the tap of port-ins-1-0 without offload", runs.NICs, h.ports)
	}
	w.power(api.PowerStopped)
	w.until("the port unplugged", func() bool { return len(h.ports) == 0 })
	w.power(api.PowerRunning)
	w.until("ins-1 runs again with its port", func() bool { return w.runsOn("ins-1", h) && len(h.ports) == 1 })
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision})
	w.until("ins-1 deleted and its port unplugged", func() bool { _, there := w.instance("ins-1"); return !there && len(h.ports) == 0 })

	h.ports = map[string]string{"port-ins-9-1": "tap9", "somebody's": "tap8"}
	h.try(h.Sweep(h.ctx))
	if got := slices.Sorted(maps.Keys(h.ports)); !slices.Equal(got, []string{"somebody's"}) {
		t.Errorf("ports after the sweep = %v, want somebody's only", got)
	}
}

// TestMigrateWithAnAttachedVolume migrates an instance with an attached shared
// volume: the volume moves with the machine, the target has its key during the
// migration, and no hypervisor has it afterwards.
func TestMigrateWithAnAttachedVolume(t *testing.T) {
	w, a, b := migrating(t, api.PoolShared)
	w.volume(a, "vol-2", api.PoolShared, func(s *api.VolumeSpec) { s.Encrypted, s.Instance = true, "ins-1" })
	w.until("vol-2 attached", func() bool { return len(a.disks("ins-1")) == 2 })
	w.moveTo(a, b)
	w.until("the migration ended", func() bool {
		v := w.vol("vol-2")
		if !w.follow() {
			return false
		}
		v.Assignment.Node, v.Assignment.Epoch = b.id, v.Assignment.Epoch+1
		w.assign(api.KindVolume, "vol-2", v.Assignment)
		return true
	})
	if p := w.migration().Assignment.Phase; p != api.MigrationSucceeded {
		t.Fatalf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
	}
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	w.pass(time.Minute)
	if got := b.disks("ins-1"); !slices.Equal(got, []string{"root", "vol-2"}) || w.vol("vol-2").Status.Attached != "ins-1" {
		t.Errorf("disks on the target = %v, status of vol-2 = %+v; want root and vol-2, attached to ins-1", got, w.vol("vol-2").Status)
	}
	if left := append(a.machines.Secrets(), b.machines.Secrets()...); len(left) > 0 {
		t.Errorf("secrets left in the hypervisors = %v, want none", left)
	}
	w.change("vol-2", attachTo(""))
	w.until("vol-2 detached on the target", func() bool { return len(b.disks("ins-1")) == 1 && w.vol("vol-2").Status.Attached == "" })
}

func TestMigrateRefusesALocalVolume(t *testing.T) {
	w, a, b := migrating(t, api.PoolShared)
	w.volume(a, "vol-2", api.PoolLocal, attachTo("ins-1"))
	w.until("vol-2 attached", func() bool { return len(a.disks("ins-1")) == 2 })
	w.moveTo(a, b)
	if p := w.ended(); p != api.MigrationFailed || !strings.Contains(w.migration().Status.LastError, "local to its node") {
		t.Errorf("migration phase = %s (%s), want %s because a volume is local", p, w.migration().Status.LastError, api.MigrationFailed)
	}
	if !w.runsOn("ins-1", a) {
		t.Error("ins-1 does not run on the source after the refused migration, want it to")
	}
}

// TestVolumeOfAnInstanceThatWaits has volumes attached to an instance that is
// pending without a node: they are not open, so they can be deleted, or
// detached.
func TestVolumeOfAnInstanceThatWaits(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	for _, id := range []string{"vol-2", "vol-3"} {
		w.volume(a, id, api.PoolShared, func(s *api.VolumeSpec) { s.Instance = "ins-1" })
	}
	w.until("both volumes attached", func() bool { return len(a.disks("ins-1")) == 3 })
	a.die()
	in, _ := w.instance("ins-1")
	in.Assignment.Node, in.Assignment.Epoch = "", in.Assignment.Epoch+1
	w.assign(api.KindInstance, "ins-1", in.Assignment)
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-2", Expect: api.AnyRevision, Cascade: true})
	v := w.vol("vol-3")
	v.Spec.Instance = ""
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-3", Expect: v.Meta.Revision, Data: api.Encode(v.Spec)})
	for _, id := range []string{"vol-2", "vol-3"} {
		w.assign(api.KindVolume, id, api.VolumeAssignment{Node: b.id, Pool: api.PoolShared, Epoch: 2})
	}
	w.until("vol-2 deleted and vol-3 detached", func() bool {
		_, there := read[api.Volume](w, api.KindVolume, "vol-2")
		return !there && w.vol("vol-3").Status.Attached == ""
	})
}
