package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

func (h *handlers) volumeSpec(ctx context.Context, m api.Meta, old *api.Volume, s api.VolumeSpec) (api.VolumeSpec, error) {
	if old == nil {
		return h.newVolumeSpec(ctx, m, s)
	}
	return h.changedVolumeSpec(ctx, *old, s)
}

// volumeRefs replaces the names of the image and the instance with IDs. A root volume
// is only created with its instance.
func (h *handlers) volumeRefs(ctx context.Context, m api.Meta, s api.VolumeSpec) (api.VolumeSpec, error) {
	var imageErr, instanceErr error
	if s.Image != "" {
		s, imageErr = h.fromImage(ctx, m, s)
	}
	if s.Instance != "" && !s.Root {
		var o api.Object
		if _, o, instanceErr = sibling[api.Instance](ctx, h, api.KindInstance, m, "spec.instance", string(s.Instance)); instanceErr == nil {
			s.Instance = api.InstanceID(o.Meta.ID)
		}
	}
	return s, api.Join(imageErr, instanceErr)
}

// fromImage replaces the image's name with its ID, and fills in its size.
func (h *handlers) fromImage(ctx context.Context, m api.Meta, s api.VolumeSpec) (api.VolumeSpec, error) {
	image, err := h.diskImage(ctx, m, string(s.Image))
	if err != nil {
		return s, err
	}
	s.Image = api.ImageID(image.Meta.ID)
	if least := image.Status.VirtualBytes; s.SizeBytes == 0 {
		s.SizeBytes = least
	} else if s.SizeBytes < least {
		return s, api.Errorf(api.CodeInvalid, "size of %d bytes is too small for image %s: want at least %d bytes", s.SizeBytes, image.Meta.Name, least).At("spec.sizeBytes")
	}
	return s, nil
}

// madeFrom fills in what a new volume inherits from its snapshot or backup: size, pool,
// and for a clone the key.
func (h *handlers) madeFrom(ctx context.Context, m api.Meta, s api.VolumeSpec) (api.VolumeSpec, error) {
	var least int64
	switch {
	case s.Snapshot != "":
		snap, _, err := sibling[api.Snapshot](ctx, h, api.KindSnapshot, m, "spec.snapshot", string(s.Snapshot))
		if err != nil {
			return s, err
		}
		if snap.Status.Phase != api.SnapshotReady {
			return s, api.Errorf(api.CodeState, "snapshot %s is not ready", snap.Meta.Name).At("spec.snapshot")
		}
		from, _, err := sibling[api.Volume](ctx, h, api.KindVolume, m, "spec.snapshot", string(snap.Spec.Volume))
		if err != nil {
			return s, err
		}
		switch {
		case s.Encrypted && !from.Spec.Encrypted:
			return s, api.Errorf(api.CodeInvalid, "volume %s is not encrypted, so volumes from its snapshots cannot be encrypted", from.Meta.Name).At("spec.encrypted").
				WithHint("create an empty encrypted volume and copy the data")
		case s.Pool != "" && s.Pool != snap.Assignment.Pool:
			return s, api.Errorf(api.CodeInvalid, "the snapshot is in pool %s", snap.Assignment.Pool).At("spec.pool").WithHint("omit it")
		}
		s.Snapshot, s.Pool, least = api.SnapshotID(snap.Meta.ID), snap.Assignment.Pool, snap.Status.SizeBytes
		s.Encrypted, s.WrappedKey = from.Spec.Encrypted, from.Spec.WrappedKey
	case s.Backup != "":
		b, _, err := sibling[api.Backup](ctx, h, api.KindBackup, m, "spec.backup", string(s.Backup))
		if err != nil {
			return s, err
		}
		if b.Status.Phase != api.BackupSucceeded {
			return s, api.Errorf(api.CodeState, "backup %s has not succeeded", b.Meta.Name).At("spec.backup").WithHint("%s", b.Status.Cause.Text(b.Status.LastError))
		}
		s.Backup, least = api.BackupID(b.Meta.ID), max(b.Spec.SizeBytes, b.Status.TotalBytes) // the volume may have grown since the backup was requested
	}
	if s.SizeBytes == 0 {
		s.SizeBytes = least
	}
	if s.SizeBytes < least {
		return s, api.Errorf(api.CodeInvalid, "size of %d bytes is smaller than its source: want at least %d bytes", s.SizeBytes, least).At("spec.sizeBytes")
	}
	return s, nil
}

// withKey generates the key of an encrypted volume, unless it is a clone, which shares
// that of its source.
func (h *handlers) withKey(ctx context.Context, s api.VolumeSpec) (api.VolumeSpec, error) {
	if !s.Encrypted || s.WrappedKey != "" {
		return s, nil
	}
	if h.opts.NewVolumeKey == nil {
		return s, api.Errorf(api.CodeUnavailable, "volume encryption is not available: the cluster has no key").At("spec.encrypted")
	}
	var err error
	s.WrappedKey, err = h.opts.NewVolumeKey(ctx)
	return s, err
}

// changedVolume checks what depends on the volume's state: it is attached to one
// instance at a time, and not rolled back while that is running.
func (h *handlers) changedVolume(ctx context.Context, old api.Volume, s api.VolumeSpec) error {
	open := old.Status.Attached
	if s.Instance != "" && s.Instance != old.Spec.Instance && open != "" && open != s.Instance {
		return api.Errorf(api.CodeInUse, "volume %s is still being detached from its previous instance", old.Meta.Name).At("spec.instance").
			WithHint("wait until it is: basalt volume get %s", old.Meta.Name)
	}
	r := s.Rollback
	if r == nil || old.Spec.Rollback != nil && *old.Spec.Rollback == *r {
		return nil
	}
	snap, _, err := sibling[api.Snapshot](ctx, h, api.KindSnapshot, old.Meta, "spec.rollback.snapshot", string(r.Snapshot))
	switch {
	case err != nil:
		return err
	case string(snap.Spec.Volume) != old.Meta.ID:
		return api.Errorf(api.CodeInvalid, "snapshot %s belongs to another volume", snap.Meta.Name).At("spec.rollback.snapshot").WithHint("basalt snapshot list")
	case snap.Status.Phase != api.SnapshotReady:
		return api.Errorf(api.CodeState, "snapshot %s is not ready", snap.Meta.Name).At("spec.rollback.snapshot")
	case open != "":
		return api.Errorf(api.CodeInUse, "cannot roll back volume %s: it is in use by an instance", old.Meta.Name).At("spec.rollback").
			WithHint("stop the instance, or detach the volume")
	}
	r.Snapshot = api.SnapshotID(snap.Meta.ID)
	return nil
}

func (h *handlers) newVolumeSpec(ctx context.Context, m api.Meta, s api.VolumeSpec) (api.VolumeSpec, error) {
	if s.Root {
		return s, api.Errorf(api.CodeInvalid, "a root volume is created with its instance").At("spec.root").WithHint("create an instance")
	}
	if s.WrappedKey != "" {
		return s, api.Errorf(api.CodeInvalid, "must be empty: the cluster generates the key").At("spec.wrappedKey").WithHint("omit it")
	}
	if s.Rollback != nil {
		return s, api.Errorf(api.CodeInvalid, "a new volume has no snapshot to roll back to").At("spec.rollback")
	}
	invalid := api.ValidateVolume(s)
	s, sourceErr := h.madeFrom(ctx, m, s)
	s, refErr := h.volumeRefs(ctx, m, s)
	if err := api.Join(invalid, sourceErr, refErr, h.diskPool(ctx, "spec.pool", s.Pool)); err != nil {
		return s, err
	}
	if err := api.ValidateVolume(s); err != nil { // with its current size
		return s, err
	}
	return h.withKey(ctx, s)
}

func (h *handlers) changedVolumeSpec(ctx context.Context, old api.Volume, s api.VolumeSpec) (api.VolumeSpec, error) {
	s.WrappedKey = old.Spec.WrappedKey
	if s.Pool == "" { // as it was filled in for a clone
		s.Pool = old.Spec.Pool
	}
	s.Encrypted = s.Encrypted || old.Spec.Encrypted && old.Spec.Snapshot != ""
	s, err := h.sameSource(ctx, old, s)
	if err != nil {
		return s, err
	}
	if err := api.ChangeVolume(old.Spec, s); err != nil && s.Image == old.Spec.Image {
		return s, err
	}
	invalid := api.ValidateVolume(s)
	s, refErr := h.volumeRefs(ctx, old.Meta, s)
	if err := api.Join(invalid, refErr); err != nil {
		return s, err
	}
	if err := api.ValidateVolume(s); err != nil {
		return s, err
	}
	if err := api.ChangeVolume(old.Spec, s); err != nil {
		return s, err
	}
	return s, h.changedVolume(ctx, old, s)
}

// sameSource replaces names of the volume's source with the IDs that it has, so that a
// file can be applied again.
func (h *handlers) sameSource(ctx context.Context, old api.Volume, s api.VolumeSpec) (api.VolumeSpec, error) {
	if s.Snapshot != "" && s.Snapshot != old.Spec.Snapshot {
		o, err := h.find(ctx, api.KindSnapshot, string(s.Snapshot), old.Meta.Organization, old.Meta.Project)
		if err != nil {
			return s, at(err, "spec.snapshot")
		}
		s.Snapshot = api.SnapshotID(o.Meta.ID)
	}
	if s.Backup != "" && s.Backup != old.Spec.Backup {
		o, err := h.find(ctx, api.KindBackup, string(s.Backup), old.Meta.Organization, old.Meta.Project)
		if err != nil {
			return s, at(err, "spec.backup")
		}
		s.Backup = api.BackupID(o.Meta.ID)
	}
	if s.SizeBytes == 0 && (s.Snapshot != "" || s.Backup != "") {
		s.SizeBytes = old.Spec.SizeBytes
	}
	if s.Rollback == nil {
		s.Rollback = old.Spec.Rollback
	}
	return s, nil
}

// DeleteVolume deletes a volume that is not in use; with cascade also its snapshots,
// unless volumes were made from them.
func (h *handlers) DeleteVolume(ctx context.Context, r in[api.DeleteVolumeParams, none]) (*api.Volume, error) {
	var with []api.Command // in one batch: nothing is deleted while a snapshot has a clone
	if r.Params.Cascade {
		v, err := h.own(ctx, api.KindVolume, r.ID)
		if err != nil {
			return nil, err
		}
		all, err := all[api.Snapshot](ctx, h, api.ListQuery{Kind: api.KindSnapshot, Project: v.Meta.Project})
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			if string(s.Spec.Volume) == v.Meta.ID {
				with = append(with, api.Command{Op: api.OpDelete, Kind: api.KindSnapshot, ID: s.Meta.ID, Expect: api.AnyRevision})
			}
		}
	}
	o, err := remove[api.Volume](ctx, h, api.KindVolume, r.ID, with...)
	return &o, err
}
