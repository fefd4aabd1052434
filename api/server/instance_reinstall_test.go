package server_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// stopped stops an instance, and says what its agent would.
func (w *world) stopped(t *testing.T, c *client.API, id string) api.Instance {
	t.Helper()
	in := must(t, ret(c.StopInstance(t.Context(), id))).v
	st := api.InstanceStatus{Phase: api.InstanceStopped, ObservedGeneration: in.Meta.Generation}
	w.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: api.Encode(st)})
	return must(t, ret(client.Of[api.Instance](c).Get(t.Context(), id, client.Query{}))).v
}

// A reinstall replaces the root volume of an instance that is stopped, keeps all else,
// and takes nothing more of a quota that is used up; what is refused changes nothing.
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
		t.Errorf("by a viewer: %v", err)
	}
	w.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindVolume, ID: root.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.VolumeStatus{Phase: api.VolumeReady, SizeBytes: 1 << 30})})
	snapshot := must(t, ret(client.Of[api.Snapshot](c).Create(ctx, api.Snapshot{Meta: api.Meta{Name: "kept"}, Spec: api.SnapshotSpec{Volume: api.VolumeID(root.Meta.ID)}}))).v
	if _, err := c.ReinstallInstance(ctx, in.Meta.ID, api.InstanceReinstall{}); api.CodeOf(err) != api.CodeInUse {
		t.Errorf("with a snapshot: %v", err)
	}
	w.Apply(t, api.Command{Op: api.OpDelete, Kind: api.KindSnapshot, ID: snapshot.Meta.ID, Expect: api.AnyRevision})
	w.Apply(t, api.Command{Op: api.OpForget, Kind: api.KindSnapshot, ID: snapshot.Meta.ID, Expect: api.AnyRevision, Finalizer: api.FinalizerAgent})

	// Not one byte of the organization's quota is left.
	o := must(t, ret(client.Of[api.Organization](w.op).Get(ctx, w.acme, client.Query{}))).v
	q := must(t, ret(w.op.OrganizationQuota(ctx, w.acme))).v
	o.Spec.Quota = api.Amounts{api.QuotaVolumes: q.Uses[api.QuotaVolumes], api.QuotaVCPUs: q.Uses[api.QuotaVCPUs]}
	must(t, ret(client.Of[api.Organization](w.op).Update(ctx, o.Meta.ID, o)))

	again := must(t, ret(c.ReinstallInstance(ctx, in.Meta.ID, api.InstanceReinstall{Image: "debian"}))).v
	if again.Spec.RootVolume == "" || string(again.Spec.RootVolume) == root.Meta.ID || again.Meta.Generation <= in.Meta.Generation || again.Spec.Power != api.PowerStopped {
		t.Errorf("reinstalled: %+v, generation %d after %d", again.Spec, again.Meta.Generation, in.Meta.Generation)
	}
	fresh := must(t, ret(client.Of[api.Volume](c).Get(ctx, string(again.Spec.RootVolume), client.Query{}))).v
	if fresh.Spec.Instance != api.InstanceID(in.Meta.ID) || !fresh.Spec.Root || fresh.Spec.Image != in.Spec.Image || fresh.Spec.SizeBytes != root.Spec.SizeBytes {
		t.Errorf("new root volume %+v, old %+v", fresh.Spec, root.Spec)
	}
	old := must(t, ret(client.Of[api.Volume](c).Get(ctx, root.Meta.ID, client.Query{}))).v
	if old.Meta.DeletedAt == nil || old.Spec.Root || old.Spec.Instance != "" {
		t.Errorf("the old root volume: %+v, %+v; want one that is nobody's and goes", old.Meta, old.Spec)
	}
	if after := must(t, ret(w.op.OrganizationQuota(ctx, w.acme))).v; after.Uses[api.QuotaVolumes] != q.Uses[api.QuotaVolumes] {
		t.Errorf("volumes take %d, before %d", after.Uses[api.QuotaVolumes], q.Uses[api.QuotaVolumes])
	}
	// Its agent has not seen it: not twice at once.
	_, err = c.ReinstallInstance(ctx, in.Meta.ID, api.InstanceReinstall{})
	wantErr(t, err, api.CodeState, "")

	// Nothing else names a root volume, and a change that leaves it out keeps it.
	again.Spec.RootVolume = api.VolumeID(root.Meta.ID)
	_, err = client.Of[api.Instance](c).Update(ctx, again.Meta.ID, again)
	wantErr(t, err, api.CodeInvalid, "spec.rootVolume")
	again.Spec.RootVolume = ""
	if kept := must(t, ret(client.Of[api.Instance](c).Update(ctx, again.Meta.ID, again))).v; kept.Spec.RootVolume != api.VolumeID(fresh.Meta.ID) {
		t.Errorf("a change has made the root volume %q, want %s", kept.Spec.RootVolume, fresh.Meta.ID)
	}
	_, err = client.Of[api.Instance](c).Create(ctx, api.Instance{Meta: api.Meta{Name: "other", Project: w.web}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian", RootVolume: api.VolumeID(fresh.Meta.ID)}})
	wantErr(t, err, api.CodeInvalid, "spec.rootVolume")
}
