package agent_test

import (
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
func (h *house) Unwrap(_ context.Context, v api.Volume) ([]byte, error) {
	return []byte("the-passphrase-of-a-volume" + v.Spec.WrappedKey), nil
}

// Ceph implements agent.Keys.
func (h *house) Ceph(context.Context, string) ([]byte, error) { return []byte("key"), nil }

// Plug implements agent.Ports.
func (h *house) Plug(_ context.Context, p agent.Port, _ bool) (agent.Tap, error) {
	if h.ports == nil {
		h.ports = map[string]string{}
	}
	h.ports[p.ID] = fmt.Sprintf("tap%d", len(p.ID))
	return agent.Tap{Name: h.ports[p.ID], NoOffload: true, MTU: 1442}, nil
}

// Works implements agent.Ports.
func (h *house) Works(context.Context) error { return nil }

// Unplug implements agent.Ports.
func (h *house) Unplug(_ context.Context, id string) error {
	delete(h.ports, id)
	return nil
}

// Plugged implements agent.Ports.
func (h *house) Plugged(context.Context) ([]string, error) {
	return slices.Sorted(maps.Keys(h.ports)), nil
}

// volume makes a data volume, assigned to a node.
func (w *town) volume(h *house, id, pool string, change func(*api.VolumeSpec)) {
	s := api.VolumeSpec{SizeBytes: 2 << 20}
	if change != nil {
		change(&s)
	}
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: id, Organization: "org-1", Project: "prj-1",
		Finalizers: []string{api.FinalizerAgent}, Data: api.Encode(s)})
	w.assign(api.KindVolume, id, api.VolumeAssignment{Node: h.id, Pool: pool, Epoch: 1})
}

func (w *town) vol(id string) api.Volume {
	v, _ := read[api.Volume](w, api.KindVolume, id)
	return v
}

// change the spec of a volume.
func (w *town) change(id string, f func(*api.VolumeSpec)) {
	w.t.Helper()
	v := w.vol(id)
	f(&v.Spec)
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: v.Meta.Name, Expect: v.Meta.Revision, Data: api.Encode(v.Spec)})
}

func (h *house) disks(id string) (serials []string) {
	all, err := h.machines.Disks(context.Background(), api.InstanceID(id))
	if err != nil {
		return nil
	}
	for _, k := range all {
		serials = append(serials, k.Serial)
	}
	return serials
}

// running is a town with an instance that runs on its only node.
func running(t *testing.T) (*town, *house) {
	w := newTown(t, 1, false)
	h := w.houses[0]
	w.upload(h, "img-1")
	w.create(h, "ins-1", api.PoolLocal, nil)
	w.until("runs", func() bool { return w.runsOn("ins-1", h) })
	return w, h
}

// Files are opened as the node can: at the start, when a disk is attached, and not where
// the volume is in Ceph.
func TestOpenFiles(t *testing.T) {
	var asked [][]string
	w := newTown(t, 1, false)
	h := w.houses[0]
	h.openFiles = func(_ context.Context, paths []string) (cache, aio string) {
		asked = append(asked, paths)
		return "none", "io_uring"
	}
	h.kill()
	h.start()
	w.upload(h, "img-1")
	w.create(h, "ins-1", api.PoolLocal, nil)
	w.until("runs", func() bool { return w.runsOn("ins-1", h) })
	w.volume(h, "vol-2", api.PoolLocal, attachTo("ins-1"))
	w.until("attached", func() bool { return slices.Equal(h.disks("ins-1"), []string{"root", "vol-2"}) })
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

func (w *town) power(p api.Power) {
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
		t.Errorf("attached to %q", a)
	}
	h.kill()
	h.start()
	w.power(api.PowerStopped)
	w.until("stopped", func() bool { in, _ := w.instance("ins-1"); return in.Status.Phase == api.InstanceStopped })
	w.power(api.PowerRunning)
	w.until("runs again", func() bool { return w.runsOn("ins-1", h) })
	has("after a restart", "root", "vol-2")
	if n := len(slices.DeleteFunc(h.machines.Calls(), func(c string) bool { return c != "AttachDisk ins-1" })); n != 1 {
		t.Errorf("attached live %d times: the second start should have had it", n)
	}
	h.machines.Hold("ins-1", true)
	w.change("vol-2", attachTo(""))
	w.until("the guest is said to hold it", func() bool { return strings.Contains(w.vol("vol-2").Status.LastError, "did not release") })
	if a := w.vol("vol-2").Status.Attached; a != "ins-1" {
		t.Errorf("while the guest holds it, it is attached to %q", a)
	}
	h.machines.Hold("ins-1", false)
	has("detached", "root")
	w.until("and said so", func() bool { st := w.vol("vol-2").Status; return st.Attached == "" && st.LastError == "" })
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-2", Expect: api.AnyRevision})
	w.until("deleted", func() bool { _, there := read[api.Volume](w, api.KindVolume, "vol-2"); return !there })
}

// A volume that is deleted while a machine has it is detached first.
func TestDeleteOfAnAttachedVolume(t *testing.T) {
	w, h := running(t)
	w.volume(h, "vol-2", api.PoolLocal, attachTo("ins-1"))
	w.until("attached", func() bool { return len(h.disks("ins-1")) == 2 })
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-2", Expect: api.AnyRevision, Cascade: true})
	w.until("deleted", func() bool { _, there := read[api.Volume](w, api.KindVolume, "vol-2"); return !there })
	if got := h.disks("ins-1"); !slices.Equal(got, []string{"root"}) {
		t.Errorf("the machine has %v", got)
	}
}

func TestGrowAndBoundWhileItRuns(t *testing.T) {
	w, h := running(t)
	h.local.SetUsed("vol-ins-1", true)
	q := api.VolumeQoS{WriteIOPS: 50}
	w.change("vol-ins-1", func(s *api.VolumeSpec) { s.SizeBytes, s.Qos = 4<<20, &q })
	w.until("grown", func() bool {
		return w.vol("vol-ins-1").Status.SizeBytes == 4<<20 && h.machines.Grown("ins-1", "root") == 4<<20
	})
	w.until("bounded", func() bool {
		all, err := h.machines.Disks(context.Background(), "ins-1")
		return err == nil && all[0].QoS == hypervisor.QoS{WriteIOPS: 50}
	})
	w.change("vol-ins-1", func(s *api.VolumeSpec) { s.Qos = nil })
	w.until("unbounded", func() bool {
		all, err := h.machines.Disks(context.Background(), "ins-1")
		return err == nil && all[0].QoS == hypervisor.QoS{}
	})
}

func (w *town) snapshot(h *house, id, volume string) {
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindSnapshot, ID: id, Name: id, Organization: "org-1", Project: "prj-1",
		Finalizers: []string{api.FinalizerAgent}, Data: api.Encode(api.SnapshotSpec{Volume: api.VolumeID(volume)})})
	w.assign(api.KindSnapshot, id, api.SnapshotAssignment{Node: h.id, Pool: api.PoolLocal})
}

func (w *town) snap(id string) api.Snapshot {
	s, _ := read[api.Snapshot](w, api.KindSnapshot, id)
	return s
}

// order of what the hypervisor was asked, of those verbs.
func (h *house) order(verbs ...string) (got []string) {
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
	w.until("ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
	if got := h.order("Freeze", "SnapshotDisk", "Thaw"); !slices.Equal(got, []string{"Freeze", "SnapshotDisk", "Thaw"}) || h.machines.Frozen("ins-1") {
		t.Errorf("the guest: %v, frozen %v", got, h.machines.Frozen("ins-1"))
	}
	if st := w.snap("snap-1").Status; st.SizeBytes != 2<<20 || st.CreatedAt == nil {
		t.Errorf("%+v", st)
	}
	w.volume(h, "vol-2", api.PoolLocal, func(s *api.VolumeSpec) { s.Snapshot = "snap-1" })
	w.until("cloned", func() bool { return w.vol("vol-2").Status.Phase == api.VolumeReady })

	w.change("vol-ins-1", func(s *api.VolumeSpec) { s.Rollback = &api.VolumeRollback{Snapshot: "snap-1", Count: 1} })
	w.until("it waits", func() bool { return strings.Contains(w.vol("vol-ins-1").Status.LastError, "rolled back when") })
	w.power(api.PowerStopped)
	w.until("stopped", func() bool { in, _ := w.instance("ins-1"); return in.Status.Phase == api.InstanceStopped })
	h.local.SetUsed("vol-ins-1", false)
	w.until("rolled back", func() bool { st := w.vol("vol-ins-1").Status; return st.Rollbacks == 1 && st.LastError == "" })

	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindSnapshot, ID: "snap-1", Expect: api.AnyRevision, Cascade: true})
	w.until("it says why not", func() bool { return strings.Contains(w.snap("snap-1").Status.LastError, "cloned") })
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-2", Expect: api.AnyRevision})
	w.until("deleted", func() bool { _, there := read[api.Snapshot](w, api.KindSnapshot, "snap-1"); return !there })
}

// Killed at any moment of a snapshot the agent ends it, and the guest is not
// left frozen.
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
				h.hear()
				if !h.work() {
					w.now = w.now.Add(time.Second)
				}
			}
			if !dead {
				t.Fatal("nothing was done")
			}
			h.kill()
			dead = false
			h.machines.Fault(nil)
			h.start()
			w.until("ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
			w.until("thawed", func() bool { return !h.machines.Frozen("ins-1") })
		})
	}
}

// What a lost node's volume had of snapshots goes with it.
func TestSnapshotsOfAVolumeThatIsAnothersGo(t *testing.T) {
	w := newTown(t, 2, false)
	a, b := w.houses[0], w.houses[1]
	w.volume(a, "vol-2", api.PoolLocal, nil)
	w.snapshot(a, "snap-1", "vol-2")
	w.until("ready", func() bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady })
	w.assign(api.KindVolume, "vol-2", api.VolumeAssignment{Node: b.id, Pool: api.PoolLocal, Epoch: 2})
	w.until("gone there", func() bool {
		all, err := a.local.Volumes(context.Background())
		return err == nil && len(all) == 0
	})
}

func TestEncryptedVolume(t *testing.T) {
	w, h := running(t)
	w.volume(h, "vol-2", api.PoolLocal, func(s *api.VolumeSpec) { s.Encrypted, s.Instance = true, "ins-1" })
	w.until("attached", func() bool { return len(h.disks("ins-1")) == 2 })
	_, runs, _ := h.machines.Domain("ins-1")
	if runs.Disks[1].Secret == "" {
		t.Errorf("%+v", runs.Disks[1])
	}
	if left := h.machines.Secrets(); len(left) > 0 {
		t.Errorf("passphrases are left with the hypervisor: %v", left)
	}
	h.kill()
	h.keyless = true
	h.start()
	w.volume(h, "vol-3", api.PoolLocal, func(s *api.VolumeSpec) { s.Encrypted = true })
	w.until("it says that it has no key", func() bool { return strings.Contains(w.vol("vol-3").Status.LastError, "no key") })
}

func TestPorts(t *testing.T) {
	w := newTown(t, 1, false)
	h := w.houses[0]
	w.upload(h, "img-1")
	w.create(h, "ins-1", api.PoolLocal, func(_ *api.InstanceSpec, a *api.InstanceAssignment) {
		a.Ports = []api.InstancePort{{Network: "net-1", Mac: "52:54:00:00:00:01"}}
	})
	w.until("runs", func() bool { return w.runsOn("ins-1", h) })
	_, runs, _ := h.machines.Domain("ins-1")
	if len(runs.NICs) != 1 || runs.NICs[0].MAC != "52:54:00:00:00:01" || runs.NICs[0].Tap != h.ports["port-ins-1-0"] || !runs.NICs[0].NoOffload {
		t.Errorf("%+v of %v", runs.NICs, h.ports)
	}
	w.power(api.PowerStopped)
	w.until("unplugged", func() bool { return len(h.ports) == 0 })
	w.power(api.PowerRunning)
	w.until("runs again", func() bool { return w.runsOn("ins-1", h) && len(h.ports) == 1 })
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision})
	w.until("deleted", func() bool { _, there := w.instance("ins-1"); return !there && len(h.ports) == 0 })

	h.ports = map[string]string{"port-ins-9-1": "tap9", "somebody's": "tap8"}
	h.try(h.Sweep(h.ctx))
	if got := slices.Sorted(maps.Keys(h.ports)); !slices.Equal(got, []string{"somebody's"}) {
		t.Errorf("after the sweep: %v", got)
	}
}

// A shared volume that is attached moves with the machine; its key is with the
// target before, and with nobody afterwards.
func TestMigrateWithAnAttachedVolume(t *testing.T) {
	w, a, b := migrating(t, api.PoolShared)
	w.volume(a, "vol-2", api.PoolShared, func(s *api.VolumeSpec) { s.Encrypted, s.Instance = true, "ins-1" })
	w.until("attached", func() bool { return len(a.disks("ins-1")) == 2 })
	w.moveTo(a, b)
	w.until("the migration has ended", func() bool {
		v := w.vol("vol-2")
		if !w.follow() {
			return false
		}
		v.Assignment.Node, v.Assignment.Epoch = b.id, v.Assignment.Epoch+1
		w.assign(api.KindVolume, "vol-2", v.Assignment)
		return true
	})
	if p := w.migration().Assignment.Phase; p != api.MigrationSucceeded {
		t.Fatalf("%s: %s", p, w.migration().Status.LastError)
	}
	w.until("runs on b", func() bool { return w.runsOn("ins-1", b) })
	w.pass(time.Minute)
	if got := b.disks("ins-1"); !slices.Equal(got, []string{"root", "vol-2"}) || w.vol("vol-2").Status.Attached != "ins-1" {
		t.Errorf("it has %v; %+v", got, w.vol("vol-2").Status)
	}
	if left := append(a.machines.Secrets(), b.machines.Secrets()...); len(left) > 0 {
		t.Errorf("passphrases are left with the hypervisors: %v", left)
	}
	w.change("vol-2", attachTo(""))
	w.until("detached there", func() bool { return len(b.disks("ins-1")) == 1 && w.vol("vol-2").Status.Attached == "" })
}

func TestMigrateRefusesALocalVolume(t *testing.T) {
	w, a, b := migrating(t, api.PoolShared)
	w.volume(a, "vol-2", api.PoolLocal, attachTo("ins-1"))
	w.until("attached", func() bool { return len(a.disks("ins-1")) == 2 })
	w.moveTo(a, b)
	if p := w.ended(); p != api.MigrationFailed || !strings.Contains(w.migration().Status.LastError, "local to its node") {
		t.Errorf("%s: %s", p, w.migration().Status.LastError)
	}
	if !w.runsOn("ins-1", a) {
		t.Error("it does not run on any more")
	}
}

// A volume that is attached to an instance which no node has, since it waits for
// room: nobody has it open, so it can be deleted, or taken off.
func TestVolumeOfAnInstanceThatWaits(t *testing.T) {
	w := newTown(t, 2, true)
	a, b := w.houses[0], w.houses[1]
	w.upload(a, "img-1")
	w.create(a, "ins-1", api.PoolShared, nil)
	for _, id := range []string{"vol-2", "vol-3"} {
		w.volume(a, id, api.PoolShared, func(s *api.VolumeSpec) { s.Instance = "ins-1" })
	}
	w.until("attached", func() bool { return len(a.disks("ins-1")) == 3 })
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
	w.until("one is deleted, the other nobody's", func() bool {
		_, there := read[api.Volume](w, api.KindVolume, "vol-2")
		return !there && w.vol("vol-3").Status.Attached == ""
	})
}
