package server

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// backupSpec replaces names with IDs, fills in the volume's size and validates.
func (h *handlers) backupSpec(ctx context.Context, m api.Meta, old *api.Backup, s api.BackupSpec) (api.BackupSpec, error) {
	if old != nil {
		return h.sameBackup(ctx, *old, s)
	}
	if err := api.ValidateBackup(s); err != nil {
		return s, err
	}
	v, volumeErr := h.readyVolume(ctx, m, string(s.Volume))
	target, _, targetErr := clusterwide[api.BackupTarget](ctx, h, api.KindBackupTarget, "spec.target", string(s.Target))
	if err := api.Join(volumeErr, targetErr); err != nil {
		return s, err
	}
	s.Volume, s.Target = api.VolumeID(v.Meta.ID), api.BackupTargetID(target.Meta.ID)
	s.SizeBytes = max(v.Status.SizeBytes, v.Spec.SizeBytes)
	return s, nil
}

// sameBackup checks a change, which may only repeat the volume and the target, by name
// or ID.
func (h *handlers) sameBackup(ctx context.Context, old api.Backup, s api.BackupSpec) (api.BackupSpec, error) {
	if v, _, err := sibling[api.Volume](ctx, h, api.KindVolume, old.Meta, "spec.volume", string(s.Volume)); err == nil {
		s.Volume = api.VolumeID(v.Meta.ID)
	}
	if t, _, err := clusterwide[api.BackupTarget](ctx, h, api.KindBackupTarget, "spec.target", string(s.Target)); err == nil {
		s.Target = api.BackupTargetID(t.Meta.ID)
	}
	s.SizeBytes = old.Spec.SizeBytes
	return s, api.ChangeBackup(old.Spec, s)
}

// DeleteBackup deletes a backup that nothing uses. With forget the object is removed at
// once, and the data in the target is kept.
func (h *handlers) DeleteBackup(ctx context.Context, r in[api.DeleteBackupParams, none]) (*api.Backup, error) {
	if r.Params.Forget {
		b, err := h.forgetBackup(ctx, r.ID)
		return &b, err
	}
	o, err := remove[api.Backup](ctx, h, api.KindBackup, r.ID)
	return &o, err
}

// forgetBackup removes the agent's finalizer, which would otherwise wait for the
// target.
func (h *handlers) forgetBackup(ctx context.Context, ref string) (b api.Backup, err error) {
	if who(ctx).Role != api.RoleOperator {
		return b, api.Errorf(api.CodeForbidden, "only an operator may forget a backup and leave its data in the target").
			WithHint("delete it without forget, or ask your operator")
	}
	o, err := h.own(ctx, api.KindBackup, ref)
	if err != nil {
		return b, err
	}
	if b, err = api.Decode[api.Backup](o); err != nil {
		return b, err
	}
	if b.Meta.DeletedAt == nil && !b.Status.Phase.Ended() {
		return b, api.Errorf(api.CodeState, "cannot forget backup %s: it has not ended", b.Meta.Name).WithHint("delete it first, which stops it; then forget it")
	}
	forget := api.Command{Op: api.OpForget, Kind: api.KindBackup, ID: b.Meta.ID, Expect: api.AnyRevision, Finalizer: api.FinalizerAgent}
	if b.Meta.DeletedAt == nil {
		b, err = remove[api.Backup](ctx, h, api.KindBackup, b.Meta.ID, forget)
	} else {
		_, err = h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: []api.Command{forget}})
	}
	if err == nil {
		h.opts.Log.Warn("backup forgotten, its data stays in the target", "id", b.Meta.ID, "name", b.Meta.Name, "target", b.Spec.Target)
	}
	if err != nil {
		return b, fmt.Errorf("forget backup %s: %w", o.Meta.ID, err)
	}
	return b, nil
}
