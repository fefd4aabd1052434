package server_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// stopped stops an instance and reports the status that its agent would.
func (w *world) stopped(t *testing.T, c *client.API, id string) api.Instance {
	t.Helper()
	in := must(t, ret(c.StopInstance(t.Context(), id))).v
	st := api.InstanceStatus{Phase: api.InstanceStopped, ObservedGeneration: in.Meta.Generation}
	w.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: api.Encode(st)})
	return must(t, ret(client.Of[api.Instance](c).Get(t.Context(), id, client.Query{}))).v
}

// TestReinstallInstance checks that a reinstallation replaces the root volume of a
// stopped instance, keeps everything else, and needs no free quota; a refused one
// changes nothing.
func TestReinstallInstance(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	c := w.as(api.RoleMember, w.acme, w.web)
	in := must(t, ret(w.instance(c, "demo"))).v
	root := must(t, ret(client.Of[api.Volume](c).Get(ctx, in.Meta.ID+"-root", client.Query{}))).v
	_, err := c.ReinstallInstance(ctx, in.Meta.ID, api.InstanceReinstall{})
	wantErr(t, err, api.CodeState, "")
	in = w.stopped(t, c, in.Meta.ID)
	_, err = c.ReinstallInstance(ctx, in.Meta.ID, api.InstanceReinstall{Image: "none"})
	wantErr(t, err, api.CodeInvalid, "image")
	viewer := w.as(api.RoleViewer, w.acme, w.web)
	if _, err := viewer.ReinstallInstance(ctx, in.Meta.ID, api.InstanceReinstall{}); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("reinstall by a viewer: %v, want %s", err, api.CodeForbidden)
	}
	w.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindVolume, ID: root.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.VolumeStatus{Phase: api.VolumeReady, SizeBytes: 1 << 30})})
	snapshot := must(t, ret(client.Of[api.Snapshot](c).Create(ctx, api.Snapshot{Meta: api.Meta{Name: "kept"}, Spec: api.SnapshotSpec{Volume: api.VolumeID(root.Meta.ID)}}))).v
	if _, err := c.ReinstallInstance(ctx, in.Meta.ID, api.InstanceReinstall{}); api.CodeOf(err) != api.CodeInUse {
		t.Errorf("reinstall with a snapshot: %v, want %s", err, api.CodeInUse)
	}
	w.Apply(t, api.Command{Op: api.OpDelete, Kind: api.KindSnapshot, ID: snapshot.Meta.ID, Expect: api.AnyRevision})
	w.Apply(t, api.Command{Op: api.OpForget, Kind: api.KindSnapshot, ID: snapshot.Meta.ID, Expect: api.AnyRevision, Finalizer: api.FinalizerAgent})

	// The organization's storage quota is used up completely.
	o := must(t, ret(client.Of[api.Organization](w.op).Get(ctx, w.acme, client.Query{}))).v
	q := must(t, ret(w.op.OrganizationQuota(ctx, w.acme))).v
	o.Spec.Quota = api.Amounts{api.QuotaVolumes: q.Uses[api.QuotaVolumes], api.QuotaVCPUs: q.Uses[api.QuotaVCPUs]}
	must(t, ret(client.Of[api.Organization](w.op).Update(ctx, o.Meta.ID, o)))

	again := must(t, ret(c.ReinstallInstance(ctx, in.Meta.ID, api.InstanceReinstall{Image: "debian"}))).v
	if again.Spec.RootVolume == "" || string(again.Spec.RootVolume) == root.Meta.ID || again.Meta.Generation <= in.Meta.Generation || again.Spec.Power != api.PowerStopped {
		t.Errorf("reinstalled instance has spec %+v and generation %d after %d; want a new root volume and a higher generation", again.Spec, again.Meta.Generation, in.Meta.Generation)
	}
	fresh := must(t, ret(client.Of[api.Volume](c).Get(ctx, string(again.Spec.RootVolume), client.Query{}))).v
	if fresh.Spec.Instance != api.InstanceID(in.Meta.ID) || !fresh.Spec.Root || fresh.Spec.Image != in.Spec.Image || fresh.Spec.SizeBytes != root.Spec.SizeBytes {
		t.Errorf("new root volume = %+v, want one like the old %+v", fresh.Spec, root.Spec)
	}
	old := must(t, ret(client.Of[api.Volume](c).Get(ctx, root.Meta.ID, client.Query{}))).v
	if old.Meta.DeletedAt == nil || old.Spec.Root || old.Spec.Instance != "" {
		t.Errorf("old root volume = %+v, %+v; want it detached and being deleted", old.Meta, old.Spec)
	}
	if after := must(t, ret(w.op.OrganizationQuota(ctx, w.acme))).v; after.Uses[api.QuotaVolumes] != q.Uses[api.QuotaVolumes] {
		t.Errorf("storage use after the reinstallation = %d, want %d as before", after.Uses[api.QuotaVolumes], q.Uses[api.QuotaVolumes])
	}
	// Until its agent has seen the change, another reinstallation is refused.
	_, err = c.ReinstallInstance(ctx, in.Meta.ID, api.InstanceReinstall{})
	wantErr(t, err, api.CodeState, "")

	// A root volume cannot be chosen, and a change that leaves it out keeps it.
	again.Spec.RootVolume = api.VolumeID(root.Meta.ID)
	_, err = client.Of[api.Instance](c).Update(ctx, again.Meta.ID, again)
	wantErr(t, err, api.CodeInvalid, "spec.rootVolume")
	again.Spec.RootVolume = ""
	if kept := must(t, ret(client.Of[api.Instance](c).Update(ctx, again.Meta.ID, again))).v; kept.Spec.RootVolume != api.VolumeID(fresh.Meta.ID) {
		t.Errorf("root volume after a change = %q, want %s", kept.Spec.RootVolume, fresh.Meta.ID)
	}
	_, err = client.Of[api.Instance](c).Create(ctx, api.Instance{Meta: api.Meta{Name: "other", Project: w.web}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian", RootVolume: api.VolumeID(fresh.Meta.ID)}})
	wantErr(t, err, api.CodeInvalid, "spec.rootVolume")
}

// TestReinstallFromABackup checks that the new root volume is restored from the backup,
// which must have succeeded and be of the instance's project, and that the instance
// keeps its image.
func TestReinstallFromABackup(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	c := w.as(api.RoleMember, w.acme, w.web)
	in := must(t, ret(w.instance(c, "demo"))).v
	root := must(t, ret(client.Of[api.Volume](c).Get(ctx, in.Meta.ID+"-root", client.Query{}))).v
	w.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindVolume, ID: root.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.VolumeStatus{Phase: api.VolumeReady, SizeBytes: 1 << 30})})
	must(t, ret(client.Of[api.BackupTarget](w.op).Create(ctx, api.BackupTarget{Meta: api.Meta{Name: "nas"}, Spec: api.BackupTargetSpec{Directory: "/mnt/nas"}})))
	bak := must(t, ret(client.Of[api.Backup](c).Create(ctx, api.Backup{Meta: api.Meta{Name: "monday"}, Spec: api.BackupSpec{Volume: api.VolumeID(root.Meta.ID), Target: "nas"}}))).v
	in = w.stopped(t, c, in.Meta.ID)

	_, err := c.ReinstallInstance(ctx, in.Meta.ID, api.InstanceReinstall{Backup: "monday"})
	wantErr(t, err, api.CodeState, "backup")
	w.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindBackup, ID: bak.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.BackupStatus{Phase: api.BackupSucceeded, TotalBytes: 5 << 30})})
	_, err = c.ReinstallInstance(ctx, in.Meta.ID, api.InstanceReinstall{Backup: "monday", Image: "debian"})
	wantErr(t, err, api.CodeInvalid, "backup")
	_, err = c.ReinstallInstance(ctx, in.Meta.ID, api.InstanceReinstall{Backup: "tuesday"})
	wantErr(t, err, api.CodeInvalid, "backup")

	again := must(t, ret(c.ReinstallInstance(ctx, in.Meta.ID, api.InstanceReinstall{Backup: "monday"}))).v
	if again.Spec.RootVolume == "" || again.Spec.Image != in.Spec.Image {
		t.Errorf("reinstalled instance = %+v, want a new root volume and image %s", again.Spec, in.Spec.Image)
	}
	fresh := must(t, ret(client.Of[api.Volume](c).Get(ctx, string(again.Spec.RootVolume), client.Query{}))).v
	if string(fresh.Spec.Backup) != bak.Meta.ID || fresh.Spec.Image != "" || !fresh.Spec.Root || fresh.Spec.SizeBytes != 5<<30 {
		t.Errorf("new root volume = %+v, want one of 5 GiB from backup %s and no image", fresh.Spec, bak.Meta.ID)
	}
}
