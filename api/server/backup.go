package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// backupSpec turns names into ids, fills in the volume's size and validates.
func (h *handlers) backupSpec(ctx context.Context, m api.Meta, s api.BackupSpec) (api.BackupSpec, error) {
	if err := api.ValidateBackup(s); err != nil {
		return s, err
	}
	v, err := h.readyVolume(ctx, m, string(s.Volume))
	if err != nil {
		return s, err
	}
	target, _, err := clusterwide[api.BackupTarget](ctx, h, api.KindBackupTarget, "spec.target", string(s.Target))
	if err != nil {
		return s, err
	}
	s.Volume, s.Target = api.VolumeID(v.Meta.ID), api.BackupTargetID(target.Meta.ID)
	s.SizeBytes = max(v.Status.SizeBytes, v.Spec.SizeBytes)
	return s, nil
}

// ListBackups pages through what the caller sees.
func (h *handlers) ListBackups(ctx context.Context, r ListBackupsRequestObject) (ListBackupsResponseObject, error) {
	p, err := list[api.Backup](ctx, h, api.KindBackup, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, organization: r.Params.Organization, project: r.Params.Project})
	return ListBackups200JSONResponse(p), err
}

// CreateBackup makes one.
func (h *handlers) CreateBackup(ctx context.Context, r CreateBackupRequestObject) (CreateBackupResponseObject, error) {
	h.references.RLock()
	defer h.references.RUnlock()
	m, err := h.place(ctx, api.KindBackup, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := h.backupSpec(ctx, m, r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.Backup](ctx, h, api.KindBackup, newID(api.KindBackup), m, spec, r.Params.IdempotencyKey)
	return CreateBackup201JSONResponse(o), err
}

// GetBackup by id or name.
func (h *handlers) GetBackup(ctx context.Context, r GetBackupRequestObject) (GetBackupResponseObject, error) {
	o, err := get[api.Backup](ctx, h, api.KindBackup, r.ID, r.Params.Organization, r.Params.Project)
	return GetBackup200JSONResponse(o), err
}

// UpdateBackup changes name, labels and spec.
func (h *handlers) UpdateBackup(ctx context.Context, r UpdateBackupRequestObject) (UpdateBackupResponseObject, error) {
	h.references.RLock()
	defer h.references.RUnlock()
	o, err := update(ctx, h, api.KindBackup, r.ID, r.Body.Meta, func(old api.Backup) (any, error) {
		s := r.Body.Spec
		if v, _, err := sibling[api.Volume](ctx, h, api.KindVolume, old.Meta, "spec.volume", string(s.Volume)); err == nil {
			s.Volume = api.VolumeID(v.Meta.ID)
		}
		if t, _, err := clusterwide[api.BackupTarget](ctx, h, api.KindBackupTarget, "spec.target", string(s.Target)); err == nil {
			s.Target = api.BackupTargetID(t.Meta.ID)
		}
		s.SizeBytes = old.Spec.SizeBytes
		return s, api.ChangeBackup(old.Spec, s)
	})
	return UpdateBackup200JSONResponse(o), err
}

// DeleteBackup deletes one that nothing uses.
func (h *handlers) DeleteBackup(ctx context.Context, r DeleteBackupRequestObject) (DeleteBackupResponseObject, error) {
	o, err := remove[api.Backup](ctx, h, api.KindBackup, r.ID)
	return DeleteBackup200JSONResponse(o), err
}
