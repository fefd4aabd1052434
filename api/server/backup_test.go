package server_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestForgetBackup checks that an operator can forget a backup whose target is lost,
// but not while it is being created.
func TestForgetBackup(t *testing.T) {
	w := newNetworkWorld(t)
	ctx := t.Context()
	member := w.as(api.RoleMember, w.acme, w.web)
	v := must(t, ret(client.Of[api.Volume](w.op).Create(ctx, api.Volume{Meta: api.Meta{Name: "data", Project: w.web}, Spec: api.VolumeSpec{SizeBytes: 1 << 30}}))).v
	w.status(api.KindVolume, v.Meta.ID, api.VolumeAssignment{Node: "node-1", Pool: api.PoolLocal}, api.VolumeStatus{Phase: api.VolumeReady, SizeBytes: 1 << 30})
	must(t, ret(client.Of[api.BackupTarget](w.op).Create(ctx, api.BackupTarget{Meta: api.Meta{Name: "nas"}, Spec: api.BackupTargetSpec{Directory: "/srv/backup"}})))
	for _, deleted := range []bool{false, true} {
		b := must(t, ret(client.Of[api.Backup](member).Create(ctx, api.Backup{Meta: api.Meta{Name: "b", Project: w.web}, Spec: api.BackupSpec{Volume: "data", Target: "nas"}}))).v
		_, err := w.op.DeleteBackup(ctx, b.Meta.ID, true)
		wantCode(t, "one that is under way", api.CodeState, err)
		w.status(api.KindBackup, b.Meta.ID, api.BackupAssignment{Node: "node-1"}, api.BackupStatus{Phase: api.BackupSucceeded})
		if deleted {
			must(t, ret(client.Of[api.Backup](member).Delete(ctx, b.Meta.ID)))
		}
		_, err = member.DeleteBackup(ctx, b.Meta.ID, true)
		wantCode(t, "a member", api.CodeForbidden, err)
		must(t, ret(w.op.DeleteBackup(ctx, b.Meta.ID, true)))
		_, err = client.Of[api.Backup](w.op).Get(ctx, b.Meta.ID, client.Query{})
		wantCode(t, "a forgotten one", api.CodeNotFound, err)
	}
}
