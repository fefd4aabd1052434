package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// volumeReconciler creates, grows and deletes this node's volumes.
type volumeReconciler struct {
	*core
	fence      *fenceKeeper
	disks      *diskSet
	meter      *usageMeter
	retention  *retention
	migrations mover
	images     *imageReconciler
	backups    *backupReconciler
	attacher   *volumeAttacher
	restores   *copies
	states     *stateKeeper
	growths    growths
}

// reconcile creates, recreates, grows, attaches or deletes the volume.
func (rec *volumeReconciler) reconcile(ctx context.Context, id string) (time.Duration, error) {
	v, ok := get(rec.cache, rec.cache.volumes, id)
	if !ok {
		if rec.restores.cancel(key(api.KindVolume, id)) {
			return time.Second, nil
		}
		if m, comes := rec.volumeComesHere(api.VolumeID(id)); comes { // a task of the receiver has ended
			if !m.Status.Phase.Ended() {
				rec.trigger(key(api.KindMigration, m.Meta.ID))
			}
			return 0, nil
		}
		err := rec.leave(ctx, id)
		if api.CodeOf(err) == api.CodeInUse {
			return time.Second, nil // its instance is still being removed
		}
		return 0, err
	}
	if v.Meta.DeletedAt != nil {
		return rec.end(ctx, v)
	}
	if err := rec.fence.keep(false); err != nil {
		return 0, err
	}
	of := api.Tried(v.Meta, v.Assignment)
	if wait, held := rec.hold(v.Status.Retry, of, retryHere); held {
		return wait, nil
	}
	st := v.Status
	st.ObservedGeneration, st.Retry = v.Meta.Generation, nil
	if st.Phase == "" || st.Phase == api.VolumePending || st.Phase == api.VolumeFailed {
		st.Phase = api.VolumeCreating
	}
	have, wait, err := rec.ensure(ctx, v)
	if errors.Is(err, errLater) || errors.Is(err, errStale) {
		return 0, err
	}
	if err != nil {
		if api.CodeOf(err) != api.CodeUnavailable { // what does not answer now may answer later
			st.Phase = api.VolumeFailed
		}
		return rec.failed(ctx, v, st, err)
	}
	if wait.Text != "" && v.Status.Retry.Applies(of) {
		return time.Second, nil // the error stays until an attempt succeeds
	}
	if wait.Text != "" {
		st.Phase = api.VolumeCreating
		st.LastError, st.Cause = wait.Parts()
		return time.Second, rec.writeStatus(ctx, v, st)
	}
	st.Phase, st.LastError, st.SizeBytes, st.AllocatedBytes = api.VolumeReady, "", have.SizeBytes, have.AllocatedBytes
	if have.SizeBytes < v.Spec.SizeBytes {
		st.LastError, st.Cause = rec.noRoomToGrow(v).Parts()
	}
	st, again, err := rec.attacher.reconcile(ctx, v, st)
	if err != nil {
		if st.LastError != "" && !errors.Is(err, errStale) && !errors.Is(err, errLater) {
			return rec.failed(ctx, v, st, err)
		}
		return 0, err
	}
	if err := rec.writeStatus(ctx, v, st); err != nil {
		return 0, err
	}
	if v.Spec.Instance != "" && v.Status.Phase != api.VolumeReady {
		rec.trigger(key(api.KindInstance, string(v.Spec.Instance)))
	}
	if v.Status.Phase != api.VolumeReady || !rec.meter.isWatched(id) {
		v.Status = st
		return cmp.Or(again, time.Minute), rec.meter.recordVolume(ctx, v)
	}
	return cmp.Or(again, time.Minute), nil
}

// failed reports why the volume could not be created, attached or deleted, and when
// that is tried again.
func (rec *volumeReconciler) failed(ctx context.Context, v api.Volume, st api.VolumeStatus, err error) (time.Duration, error) {
	of := api.Tried(v.Meta, v.Assignment)
	st.LastError, st.Cause = reasonOf(err).Parts()
	st.Retry = v.Status.Retry.After(v.Meta.ID, of, rec.o.Now(), retryHere)
	if writeErr := rec.writeStatus(ctx, v, st); writeErr != nil {
		return 0, errors.Join(err, writeErr)
	}
	rec.log.Warn("volume failed, will try again", "id", v.Meta.ID, "error", err)
	return rec.next(st.Retry, of, retryHere), nil
}

// ensure creates or grows the volume. wait is what it waits for, if it cannot
// continue now.
func (rec *volumeReconciler) ensure(ctx context.Context, v api.Volume) (have sds.Volume, wait api.Reason, err error) {
	id := api.VolumeID(v.Meta.ID)
	p, err := rec.pools.driver(v.Assignment.Pool)
	if err != nil {
		return have, wait, err
	}
	want := sds.VolumeCreate{ID: id, Image: v.Spec.Image, SizeBytes: v.Spec.SizeBytes, Epoch: v.Assignment.Recreate}
	if want.Encryption, err = rec.disks.encryption(ctx, v); err != nil {
		return have, wait, err
	}
	if v.Spec.Snapshot != "" {
		if want.Snapshot, wait, err = rec.original(ctx, v); wait.Text != "" || err != nil {
			return have, wait, err
		}
	}
	have, err = findVolume(ctx, p, id)
	missing := api.CodeOf(err) == api.CodeNotFound
	if err != nil && !missing {
		return have, wait, err
	}
	if v.Spec.Backup != "" && (missing || v.Status.Phase != api.VolumeReady && rec.states.missing(ctx, v, p)) {
		wait, err := rec.restore(ctx, v, p, want)
		return have, wait, err
	}
	rec.restores.discard(key(api.KindVolume, v.Meta.ID))
	if missing || have.Epoch < want.Epoch {
		if rec.inUse(ctx, v) {
			return have, plainly(api.CauseOpenElsewhere, "an earlier run has it open"), nil
		}
		if v.Spec.Image != "" {
			if wait, err := rec.imageFor(ctx, v); wait.Text != "" || err != nil {
				return have, wait, err
			}
		}
		if missing {
			have, err = p.CreateVolume(ctx, want)
		} else {
			have, err = p.RecreateVolume(ctx, want)
		}
	} else {
		have, err = p.CreateVolume(ctx, want) // checks that it is what was asked for
	}
	err = wrap(err, "create volume %s", id)
	if err == nil && have.SizeBytes < v.Spec.SizeBytes {
		if rec.noRoomToGrow(v).Text != "" {
			return have, wait, nil // reconcile reports why
		}
		have, err = rec.grow(ctx, v, have, p)
	}
	return have, wait, err
}

// grow grows the volume to the requested size: at once if the pool supports that,
// otherwise when no machine has it open.
func (rec *volumeReconciler) grow(ctx context.Context, v api.Volume, have sds.Volume, p sds.Driver) (sds.Volume, error) {
	open, holder, err := rec.disks.opener(ctx, v)
	if err != nil || open && !p.Capabilities().ResizeOnline {
		return have, err
	}
	id := api.VolumeID(v.Meta.ID)
	if rec.disks.moving(id, holder) {
		return have, nil
	}
	release, err := rec.disks.acquireVolume(id, holder)
	if err != nil {
		return have, err
	}
	defer release()
	access, err := rec.disks.access(ctx, v)
	if err != nil {
		return have, err
	}
	have, err = p.ResizeVolume(ctx, id, v.Spec.SizeBytes, access)
	return have, wrap(err, "grow volume %s to %d bytes", v.Meta.ID, v.Spec.SizeBytes)
}

// original returns the snapshot that the volume is cloned from, if it is ready.
func (rec *volumeReconciler) original(ctx context.Context, v api.Volume) (ref sds.SnapshotRef, wait api.Reason, err error) {
	o, err := rec.read(ctx, api.KindSnapshot, string(v.Spec.Snapshot))
	if api.CodeOf(err) == api.CodeNotFound && v.Status.Phase == api.VolumeReady {
		return ref, wait, nil // the volume does not depend on it any more
	} else if err != nil {
		return ref, wait, err
	}
	s, err := api.Decode[api.Snapshot](o)
	if err != nil {
		return ref, wait, err
	}
	if s.Status.Phase != api.SnapshotReady && s.Status.Phase != api.SnapshotDeleting {
		return ref, about(api.CauseSnapshotNotReady, "waiting for snapshot", s.Meta.Name), nil
	}
	of, here := get(rec.cache, rec.cache.volumes, string(s.Spec.Volume))
	if here && rec.disks.moving(s.Spec.Volume, cmp.Or(of.Status.Attached, of.Spec.Instance)) && v.Status.Phase != api.VolumeReady {
		return ref, plainly(api.CauseSnapshotMoving, "its snapshot is being moved to another node"), nil
	}
	return sds.SnapshotRef{Volume: s.Spec.Volume, ID: v.Spec.Snapshot}, wait, nil
}

// imageFor has the volume's image fetched into the volume's pool.
func (rec *volumeReconciler) imageFor(ctx context.Context, v api.Volume) (wait api.Reason, err error) {
	img, ok := get(rec.cache, rec.cache.images, string(v.Spec.Image))
	if !ok {
		return wait, nil // the driver may still have it, or returns an error
	}
	there, err := rec.images.need(ctx, v.Assignment.Pool, img, key(api.KindVolume, v.Meta.ID))
	if there || err != nil {
		return wait, err
	}
	if img.Status.Phase != api.ImageReady {
		return about(api.CauseImageNotReady, "waiting for image", img.Meta.Name), nil
	}
	return about(api.CauseImageCopying, "fetching image", img.Meta.Name), nil
}

func (rec *volumeReconciler) writeStatus(ctx context.Context, v api.Volume, st api.VolumeStatus) error {
	st.Cause = causeBeside(st.LastError, st.Cause)
	// AllocatedBytes changes all the time: only a change of 1 % is written.
	was := v.Status
	if diff := st.AllocatedBytes - was.AllocatedBytes; diff > -st.SizeBytes/100 && diff < st.SizeBytes/100 {
		st.AllocatedBytes = was.AllocatedBytes
	}
	if reflect.DeepEqual(was, st) {
		return nil
	}
	now, ok := get(rec.cache, rec.cache.volumes, v.Meta.ID)
	if !ok || now.Assignment != v.Assignment {
		return errStale
	}
	return rec.report(ctx, api.KindVolume, v.Meta.ID, now.Meta.Revision, st)
}

// inUse reports whether the hypervisor may have the volume open.
func (rec *volumeReconciler) inUse(ctx context.Context, v api.Volume) bool {
	holders := []api.InstanceID{v.Status.Attached}
	if v.Spec.Root {
		holders = append(holders, v.Spec.Instance)
	}
	for _, id := range holders {
		if id == "" {
			continue
		}
		if s, err := rec.domain.status(ctx, id); err != nil || s.State.Active() {
			return true
		}
	}
	return false
}

func (rec *volumeReconciler) end(ctx context.Context, v api.Volume) (time.Duration, error) {
	if rec.restores.cancel(key(api.KindVolume, v.Meta.ID)) {
		return time.Second, nil // until the restore has ended
	}
	if v.Status.Attached != "" { // detach it first
		v.Spec.Instance = ""
		st, again, err := rec.attacher.reconcile(ctx, v, v.Status)
		if err == nil {
			err = rec.writeStatus(ctx, v, st)
		}
		return again, err
	}
	if rec.inUse(ctx, v) {
		return time.Second, nil
	}
	if wait, held := rec.hold(v.Status.Retry, api.Tried(v.Meta, v.Assignment), retryHere); held {
		return wait, nil
	}
	if err := rec.meter.recordVolume(ctx, v); err != nil {
		return 0, err
	}
	p, err := rec.pools.driver(v.Assignment.Pool)
	if err != nil && rec.contentLost(v.Assignment.Pool) {
		if err := rec.meter.end(v.Meta.ID); err != nil {
			return 0, err
		}
		return 0, rec.forget(ctx, api.KindVolume, v.Meta.ID) // it was lost with its disk
	}
	if err != nil {
		return rec.failed(ctx, v, v.Status, err)
	}
	err = p.DeleteVolume(ctx, api.VolumeID(v.Meta.ID))
	if api.CodeOf(err) == api.CodeInUse { // its snapshots must be deleted first
		if err := rec.backups.dropReadings(ctx, v, p); err != nil { // left by a removed backup
			return 0, err
		}
		st := v.Status
		st.LastError, st.Cause = reasonOf(err).Parts()
		return snapWaits, rec.writeStatus(ctx, v, st)
	}
	if err != nil && api.CodeOf(err) != api.CodeNotFound {
		return rec.failed(ctx, v, v.Status, fmt.Errorf("delete volume %s: %w", v.Meta.ID, err))
	}
	if err := rec.meter.end(v.Meta.ID); err != nil {
		return 0, err
	}
	return 0, rec.forget(ctx, api.KindVolume, v.Meta.ID)
}
