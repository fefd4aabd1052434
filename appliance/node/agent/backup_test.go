package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/backup"
)

// vault is an in-memory backup target.
type vault struct {
	ready bool // the target has a repository
	away  error
	kept  map[api.BackupID][]byte
	calls []string
	held  func(h *testNode, v string) // called in the middle of a run, while the snapshot exists
	// states are the machine states that were stored with the disks.
	states map[api.BackupID][]byte
}

func newVault() *vault {
	return &vault{kept: map[api.BackupID][]byte{}, states: map[api.BackupID][]byte{}}
}

// kept is the vault as one node accesses it. It implements agent.Backups.
type kept struct {
	*vault
	h *testNode
}

func (k kept) record(what string, id any) error {
	k.calls = append(k.calls, fmt.Sprintf("%s %s %v", k.h.id, what, id))
	k.h.moment(what)
	return k.away
}

func (k kept) Prepare(_ context.Context, t api.BackupTarget) error {
	if err := k.record("prepare", t.Meta.ID); err != nil {
		return err
	}
	k.ready = true
	return nil
}

func (k kept) Answers(_ context.Context, t api.BackupTarget) error {
	if err := k.record("ask", t.Meta.ID); err != nil || k.ready {
		return err
	}
	return api.Errorf(api.CodeUnavailable, "there is no repository")
}

func (k kept) pool(d backup.Disk) interface {
	ReadAt(sds.Source, *sds.Encryption, []byte, int64) error
	WriteAt(sds.Source, *sds.Encryption, []byte, int64) error
} {
	if k.h.shared != nil && strings.Contains(d.Source.Path, "shared") {
		return k.h.shared
	}
	return k.h.local
}

func (k kept) Run(ctx context.Context, _ api.BackupTarget, d backup.Disk, id api.BackupID, p func(backup.Progress)) (backup.Result, error) {
	if err := k.record("run", id); err != nil {
		return backup.Result{}, err
	}
	if have, there := k.kept[id]; there {
		return backup.Result{TotalBytes: int64(len(have)), AddedBytes: -1}, nil
	}
	data := make([]byte, d.SizeBytes)
	if err := k.pool(d).ReadAt(d.Source, d.Encryption, data, 0); err != nil {
		return backup.Result{}, err
	}
	p(backup.Progress{DoneBytes: d.SizeBytes / 2, TotalBytes: d.SizeBytes})
	if k.held != nil {
		k.held(k.h, string(id))
	}
	if err := errors.Join(ctx.Err(), k.away); err != nil {
		return backup.Result{}, err
	}
	k.kept[id], k.states[id] = data, d.MachineState
	return backup.Result{TotalBytes: d.SizeBytes, AddedBytes: d.SizeBytes / 4}, k.record("ran", id)
}

func (k kept) Restore(_ context.Context, _ api.BackupTarget, id api.BackupID, d backup.Disk, _ func(backup.Progress)) error {
	if err := k.record("restore", id); err != nil {
		return err
	}
	return k.pool(d).WriteAt(d.Source, d.Encryption, k.kept[id], 0)
}

func (k kept) MachineState(_ context.Context, _ api.BackupTarget, id api.BackupID) ([]byte, error) {
	return k.states[id], k.record("state", id)
}

func (k kept) Delete(_ context.Context, _ api.BackupTarget, id api.BackupID) error {
	if err := k.record("delete", id); err != nil {
		return err
	}
	delete(k.kept, id)
	return nil
}

// withVault returns a cluster whose nodes have a backup target, "bt-1".
func withVault(t *testing.T, nodes int) (*testCluster, *vault) {
	w, x := newTestCluster(t, nodes, false), newVault()
	for _, h := range w.nodes {
		h.kill()
		h.vault = x
		h.start()
	}
	w.report()
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindBackupTarget, ID: "bt-1", Name: "bt-1", Data: api.Encode(api.BackupTargetSpec{Directory: "/srv/backup"})})
	return w, x
}

func (w *testCluster) target() api.BackupTarget {
	t, _ := read[api.BackupTarget](w, api.KindBackupTarget, "bt-1")
	return t
}

func (w *testCluster) backup(h *testNode, id, volume string) {
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindBackup, ID: id, Name: id, Organization: "org-1", Project: "prj-1",
		Finalizers: []string{api.FinalizerAgent}, Data: api.Encode(api.BackupSpec{Volume: api.VolumeID(volume), Target: "bt-1", SizeBytes: 2 << 20})})
	w.assign(api.KindBackup, id, api.BackupAssignment{Node: h.id})
}

func (w *testCluster) bak(id string) api.BackupStatus {
	b, _ := read[api.Backup](w, api.KindBackup, id)
	return b.Status
}

func (w *testCluster) phase(id string, p api.BackupPhase) {
	w.t.Helper()
	w.until(id+" is "+string(p), func() bool { return w.bak(id).Phase == p })
}

func (h *testNode) write(id string, data string) {
	h.t.Helper()
	v, err := h.local.Volume(context.Background(), api.VolumeID(id))
	if err == nil {
		err = h.local.WriteAt(v.Source, nil, []byte(data), 1000)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *testNode) holds(id string, key *sds.Encryption, data string) {
	h.t.Helper()
	got := make([]byte, len(data))
	v, err := h.local.Volume(context.Background(), api.VolumeID(id))
	if err == nil {
		err = h.local.ReadAt(v.Source, key, got, 1000)
	}
	if err != nil || string(got) != data {
		h.t.Errorf("content of %s = %q, error %v; want %q", id, got, err, data)
	}
}

// unread fails the test if the volume has a snapshot left that no object in the
// store describes.
func (h *testNode) unread(id string) {
	h.t.Helper()
	snaps, err := h.local.Snapshots(context.Background(), api.VolumeID(id))
	if err != nil || len(snaps) > 0 {
		h.t.Errorf("snapshots of %s = %v, error %v; want none", id, snaps, err)
	}
}

func (w *testCluster) ready(id string) {
	w.t.Helper()
	w.until(id+" is ready", func() bool { return w.vol(id).Status.Phase == api.VolumeReady })
}

func (w *testCluster) drop(kind api.Kind, id string) {
	w.apply(api.Command{Op: api.OpDelete, Kind: kind, ID: id, Expect: api.AnyRevision})
}

// TestBackupAndRestore backs up a volume that a running machine writes to: the
// backup must have the content of the moment at which it started.
func TestBackupAndRestore(t *testing.T) {
	w, x := withVault(t, 1)
	h := w.nodes[0]
	w.upload(h, "img-1")
	w.create(h, "ins-1", api.PoolLocal, nil)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", h) })
	w.volume(h, "vol-2", api.PoolLocal, attachTo("ins-1"))
	w.until("vol-2 attached", func() bool { return slices.Contains(h.disks("ins-1"), "vol-2") })
	h.write("vol-2", "first")
	h.local.SetUsed("vol-2", true)
	x.held = func(h *testNode, _ string) { h.write("vol-2", "later") }
	w.backup(h, "bak-1", "vol-2")
	w.phase("bak-1", api.BackupSucceeded)
	st := w.bak("bak-1")
	if st.StartedAt == nil || st.EndedAt == nil || st.StartedAt.Location() != time.UTC || st.ProgressBytes != 2<<20 || st.TotalBytes != 2<<20 || st.AddedBytes != 2<<18 || st.LastError != "" {
		t.Errorf("status of bak-1 = %+v, want UTC start and end, all of 2 MiB done, 512 KiB added and no error", st)
	}
	h.unread("vol-2")
	h.holds("vol-2", nil, "later")

	w.volume(h, "vol-3", api.PoolLocal, func(s *api.VolumeSpec) { s.Backup, s.Encrypted = "bak-1", true })
	w.ready("vol-3")
	h.holds("vol-3", &sds.Encryption{Passphrase: []byte("the-passphrase-of-a-volume")}, "first")
	// The volume is restored, so its backup can be deleted.
	w.drop(api.KindBackup, "bak-1")
	w.until("bak-1 removed from store and target", func() bool {
		_, there := read[api.Backup](w, api.KindBackup, "bak-1")
		return !there && len(x.kept) == 0
	})
	w.pass(2 * time.Minute)
	if v := w.vol("vol-3"); v.Status.Phase != api.VolumeReady || v.Status.LastError != "" {
		t.Errorf("status of vol-3 without its backup = %+v, want phase %s and no error", v.Status, api.VolumeReady)
	}
}

// TestTargetGoesAway makes a target unavailable in the middle of a backup: the
// status must give the reason, and nothing may be left over.
func TestTargetGoesAway(t *testing.T) {
	w, x := withVault(t, 1)
	h := w.nodes[0]
	w.volume(h, "vol-2", api.PoolLocal, nil)
	w.ready("vol-2")
	x.held = func(*testNode, string) {
		x.away = errors.Join(api.Errorf(api.CodeUnavailable, "the backup target is not available"), errors.New("restic: RESTIC_PASSWORD"))
	}
	w.backup(h, "bak-1", "vol-2")
	w.phase("bak-1", api.BackupFailed)
	if st := w.bak("bak-1"); st.LastError != "the backup target is not available" || st.EndedAt == nil || len(x.kept) > 0 {
		t.Errorf("status of bak-1 = %+v with %d backups in the target, want an end, only the safe message and none", st, len(x.kept))
	}
	h.unread("vol-2")
	// The backup is deleted when the target is available again, and no sooner.
	w.drop(api.KindBackup, "bak-1")
	w.until("bak-1 deleting with the reason why it waits", func() bool { return w.bak("bak-1").Phase == api.BackupDeleting && w.bak("bak-1").LastError != "" })
	x.away, x.held = nil, nil
	w.until("bak-1 removed", func() bool { _, there := read[api.Backup](w, api.KindBackup, "bak-1"); return !there })

	// A failed restore reports the reason and leaves no volume.
	w.backup(h, "bak-2", "vol-2")
	w.phase("bak-2", api.BackupSucceeded)
	x.away = api.Errorf(api.CodeForbidden, "the backup target rejected the password")
	w.volume(h, "vol-3", api.PoolLocal, func(s *api.VolumeSpec) { s.Backup = "bak-2" })
	w.until("vol-3 failed", func() bool { return w.vol("vol-3").Status.Phase == api.VolumeFailed })
	if e := w.vol("vol-3").Status.LastError; e != "the backup target rejected the password" {
		t.Errorf("lastError of vol-3 = %q, want that the target rejected the password", e)
	}
	if _, err := h.local.Volume(t.Context(), "vol-3"); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("Volume of the failed restore: error %v, want code %s", err, api.CodeNotFound)
	}
	x.away = nil
	w.ready("vol-3")
}

// TestTargetInUse checks that a backup waits while another task uses the target.
func TestTargetInUse(t *testing.T) {
	w, x := withVault(t, 1)
	h := w.nodes[0]
	w.volume(h, "vol-2", api.PoolLocal, nil)
	w.ready("vol-2")
	w.until("bt-1 prepared", func() bool { return w.target().Status.Phase == api.TargetReady })
	x.away = api.Errorf(api.CodeInUse, "another is using the target")
	w.backup(h, "bak-1", "vol-2")
	w.until("bak-1 waiting with a reason", func() bool { return w.bak("bak-1").Phase == api.BackupRunning && w.bak("bak-1").LastError != "" })
	x.away = nil
	w.phase("bak-1", api.BackupSucceeded)
	if st := w.bak("bak-1"); st.LastError != "" {
		t.Errorf("status of the succeeded bak-1 = %+v, want no lastError", st)
	}
}

// TestBackupKilledAnywhere kills the agent at every step of a backup, a restore and
// two deletions; what exists in the end must be whole, and nothing else may.
func TestBackupKilledAnywhere(t *testing.T) {
	for n := 0; ; n++ {
		w, x := withVault(t, 1)
		h := w.nodes[0]
		w.volume(h, "vol-2", api.PoolLocal, nil)
		w.ready("vol-2")
		h.write("vol-2", "first")
		left := n
		h.step = func(string) {
			if left--; left == -1 {
				h.kill()
			}
		}
		alive := func() {
			if h.Stepper == nil {
				h.start()
			}
		}
		until := func(what string, f func() bool) {
			w.until(what, func() bool { alive(); return f() })
		}
		w.backup(h, "bak-1", "vol-2")
		until("bak-1 succeeded", func() bool { return w.bak("bak-1").Phase == api.BackupSucceeded })
		w.volume(h, "vol-3", api.PoolLocal, func(s *api.VolumeSpec) { s.Backup = "bak-1" })
		until("vol-3 restored", func() bool { return w.vol("vol-3").Status.Phase == api.VolumeReady })
		h.holds("vol-3", nil, "first")
		h.unread("vol-2")
		w.drop(api.KindBackup, "bak-1")
		w.drop(api.KindVolume, "vol-2")
		until("bak-1 and vol-2 removed", func() bool {
			_, b := read[api.Backup](w, api.KindBackup, "bak-1")
			_, v := read[api.Volume](w, api.KindVolume, "vol-2")
			return !b && !v
		})
		if len(x.kept) > 0 {
			t.Errorf("killed at step %d: %d backups left in the target, want none", n, len(x.kept))
		}
		if t.Failed() {
			t.Fatalf("killed at step %d", n)
		}
		if left >= 0 {
			if n < 20 {
				t.Errorf("the run took %d steps, want at least 20", n)
			}
			return
		}
	}
}

// TestTargetIsPreparedOnce checks that one node prepares a target, and only once: a
// repository that is missing later is not created again.
func TestTargetIsPreparedOnce(t *testing.T) {
	w, x := withVault(t, 2)
	w.until("bt-1 ready", func() bool { return w.target().Status.Phase == api.TargetReady })
	if !slices.Equal(x.calls, []string{"node-1 prepare bt-1"}) {
		t.Errorf("calls to the target = %v, want one prepare by node-1", x.calls)
	}
	x.ready = false
	w.until("bt-1 failed after its repository was lost", func() bool { return w.target().Status.Phase == api.TargetFailed })
	if st := w.target().Status; !strings.Contains(st.LastError, "no repository") {
		t.Errorf("status of bt-1 = %+v, want an error about the missing repository", st)
	}
	x.ready = true
	w.until("bt-1 ready again", func() bool { return w.target().Status.Phase == api.TargetReady })
	if n := len(slices.DeleteFunc(slices.Clone(x.calls), func(c string) bool { return !strings.Contains(c, "prepare") })); n != 1 {
		t.Errorf("target prepared %d times, want once", n)
	}
	// A changed target is queried at once.
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindBackupTarget, ID: "bt-1", Name: "bt-1", Expect: w.target().Meta.Revision, Data: api.Encode(api.BackupTargetSpec{Directory: "/srv/other"})})
	w.turn()
	w.pass(2 * time.Second)
	if g := w.target(); g.Status.ObservedGeneration != g.Meta.Generation {
		t.Errorf("observedGeneration of the changed target = %d, want %d", g.Status.ObservedGeneration, g.Meta.Generation)
	}
}

// TestBackupWaitsForItsTarget checks that a backup to a target that does not answer
// yet waits, with the reason in its status.
func TestBackupWaitsForItsTarget(t *testing.T) {
	w, x := withVault(t, 1)
	x.away = api.Errorf(api.CodeUnavailable, "its server is off")
	h := w.nodes[0]
	w.volume(h, "vol-2", api.PoolLocal, nil)
	w.ready("vol-2")
	w.backup(h, "bak-1", "vol-2")
	w.until("bak-1 waiting for its target", func() bool { return strings.Contains(w.bak("bak-1").LastError, "its server is off") })
	if p := w.bak("bak-1").Phase; p != api.BackupPending {
		t.Errorf("phase of bak-1 = %s, want %s", p, api.BackupPending)
	}
	x.away = nil
	w.phase("bak-1", api.BackupSucceeded)
}

// TestReadingOfADeletedBackup deletes a backup while its node is unreachable:
// another node has ended it, and the snapshot that it read from is deleted when its
// own node is back.
func TestReadingOfADeletedBackup(t *testing.T) {
	w, _ := withVault(t, 1)
	h := w.nodes[0]
	w.volume(h, "vol-2", api.PoolLocal, nil)
	w.ready("vol-2")
	if _, err := h.local.CreateSnapshot(t.Context(), sds.SnapshotCreate{ID: "bak-9", Volume: "vol-2"}, sds.Access{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.local.CreateSnapshot(t.Context(), sds.SnapshotCreate{ID: "snap-9", Volume: "vol-2"}, sds.Access{}); err != nil {
		t.Fatal(err)
	}
	h.try(h.Sweep(h.ctx))
	snaps, err := h.local.Snapshots(t.Context(), "vol-2")
	if err != nil || len(snaps) != 1 || snaps[0].ID != "snap-9" {
		t.Errorf("snapshots after the sweep = %v, error %v; want snap-9 only", snaps, err)
	}
}

// TestVolumeDeletedUnderItsBackup deletes a volume while it is copied: the backup
// must fail, and the volume be removed.
func TestVolumeDeletedUnderItsBackup(t *testing.T) {
	w, x := withVault(t, 1)
	h := w.nodes[0]
	w.volume(h, "vol-2", api.PoolLocal, nil)
	w.ready("vol-2")
	x.held = func(h *testNode, _ string) {
		w.drop(api.KindVolume, "vol-2")
		x.away = api.Errorf(api.CodeInUse, "for now")
	}
	w.backup(h, "bak-1", "vol-2")
	w.phase("bak-1", api.BackupFailed)
	if e := w.bak("bak-1").LastError; e != "its volume does not exist any more" {
		t.Errorf("lastError of bak-1 = %q, want that its volume does not exist", e)
	}
	w.until("vol-2 removed", func() bool { _, there := read[api.Volume](w, api.KindVolume, "vol-2"); return !there })
	if !bytes.Equal(x.kept["bak-1"], nil) {
		t.Errorf("target has %d bytes of bak-1, want none", len(x.kept["bak-1"]))
	}
}

// TestForgottenBackup leaves the snapshot of a backup that was removed while its
// target was unreachable: it must be deleted with its volume, in a shared pool too.
func TestForgottenBackup(t *testing.T) {
	w := newTestCluster(t, 1, true)
	h, x := w.nodes[0], newVault()
	h.kill()
	h.vault = x
	h.start()
	w.volume(h, "vol-2", api.PoolShared, nil)
	w.ready("vol-2")
	if _, err := h.shared.CreateSnapshot(t.Context(), sds.SnapshotCreate{ID: "bak-9", Volume: "vol-2"}, sds.Access{}); err != nil {
		t.Fatal(err)
	}
	w.drop(api.KindVolume, "vol-2")
	w.until("vol-2 removed", func() bool { _, there := read[api.Volume](w, api.KindVolume, "vol-2"); return !there })
	if all, err := h.shared.Volumes(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("volumes of the shared pool = %v, error %v; want none", all, err)
	}
}
