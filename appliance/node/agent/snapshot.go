package agent

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// snapStep is one idempotent step of a snapshot.
type snapStep string

const (
	snapNone   snapStep = ""
	snapWait   snapStep = "wait"   // wait for the volume
	snapCreate snapStep = "create" // create it, or complete one that was begun
	snapDelete snapStep = "delete"
	snapForget snapStep = "forget" // remove the finalizer
)

// snapSeen is what was observed about a snapshot.
type snapSeen struct {
	volume bool // the volume is this node's and ready
	gone   bool // the volume does not exist any more
	able   bool // the pool supports snapshots
}

// snapDecision is the status to write, and the step to perform after that.
type snapDecision struct {
	step   snapStep
	status api.SnapshotStatus
}

// nextSnapshot decides the next step. Creating is reported before anything is
// created, so that a snapshot left incomplete by a crash is completed or deleted.
//
//	Pending ─► Creating ─► Ready ─┐
//	              │ ▲             │ delete
//	              ▼ │ again       ▼
//	            Failed ───────► Deleting ─► removed
func nextSnapshot(s api.Snapshot, seen snapSeen) snapDecision {
	st := s.Status
	switch {
	case s.Meta.DeletedAt != nil && seen.gone:
		return snapDecision{snapForget, st}
	case s.Meta.DeletedAt != nil:
		if st.Phase != api.SnapshotDeleting {
			st.Phase, st.LastError, st.Retry = api.SnapshotDeleting, "", nil
		}
		if !seen.volume {
			st.LastError, st.Cause = volumeNotReady.Parts()
			return snapDecision{snapWait, st}
		}
		return snapDecision{snapDelete, st}
	case st.Phase == api.SnapshotReady:
		return snapDecision{snapNone, st}
	case seen.gone:
		st.Phase = api.SnapshotFailed
		st.LastError, st.Cause = volumeGone.Parts()
		return snapDecision{snapNone, st}
	case !seen.volume:
		if st.Phase == "" {
			st.Phase = api.SnapshotPending
		}
		st.LastError, st.Cause = volumeNotReady.Parts()
		return snapDecision{snapWait, st}
	case !seen.able:
		st.Phase = api.SnapshotFailed
		st.LastError, st.Cause = plainly(api.CauseNoSnapshots, "the volume's storage pool cannot keep snapshots").Parts()
		return snapDecision{snapNone, st}
	}
	if st.Phase != api.SnapshotFailed { // the error stays until an attempt succeeds
		st.Phase, st.LastError = api.SnapshotCreating, ""
	}
	return snapDecision{snapCreate, st}
}

const snapWaits = 2 * time.Second

// triedSnapshot returns what an attempt belongs to, for Retry.
func triedSnapshot(s api.Snapshot) string {
	return api.Tried(s.Meta, [2]string{string(s.Assignment.Node), s.Assignment.Pool})
}

// snapshotReconciler creates and deletes snapshots of this node's volumes.
type snapshotReconciler struct {
	*core
	disks  *diskSet
	states *stateKeeper
}

func (rec *snapshotReconciler) reconcile(ctx context.Context, id string) (time.Duration, error) {
	s, ok := get(rec.cache, rec.cache.snapshots, id)
	if !ok {
		return 0, nil // another node's, or removed; its data is deleted with the volume
	}
	v, mine := get(rec.cache, rec.cache.volumes, string(s.Spec.Volume))
	seen := snapSeen{volume: mine && v.Status.Phase == api.VolumeReady && rec.pools.hasVolume(ctx, v)}
	var p sds.Driver
	if mine {
		var err error
		if p, err = rec.pools.driver(v.Assignment.Pool); err != nil {
			if s.Meta.DeletedAt != nil && rec.contentLost(v.Assignment.Pool) {
				return 0, rec.forget(ctx, api.KindSnapshot, id) // it was lost with its disk
			}
			return 0, err
		}
		seen.able = p.Capabilities().Snapshots
	} else {
		_, err := rec.read(ctx, api.KindVolume, string(s.Spec.Volume))
		if seen.gone = api.CodeOf(err) == api.CodeNotFound; err != nil && !seen.gone {
			return 0, err
		}
	}
	d := nextSnapshot(s, seen)
	if err := rec.writeStatus(ctx, s, d.status); err != nil {
		return 0, err
	}
	switch d.step {
	case snapWait:
		return snapWaits, nil
	case snapCreate, snapDelete:
		if wait, held := rec.hold(s.Status.Retry, triedSnapshot(s), retryHere); held {
			return wait, nil
		}
		return rec.perform(ctx, s, v, p, d)
	case snapForget:
		return 0, rec.forget(ctx, api.KindSnapshot, id)
	}
	return 0, nil
}

// perform creates or deletes the snapshot. Deletion may merge what a running
// machine has written, which takes long, so it is a job.
func (rec *snapshotReconciler) perform(ctx context.Context, s api.Snapshot, v api.Volume, p sds.Driver, d snapDecision) (time.Duration, error) {
	rec.log.Info("snapshot step started", "id", s.Meta.ID, "volume", v.Meta.ID, "step", string(d.step))
	id := api.SnapshotID(s.Meta.ID)
	if d.step == snapDelete {
		ref := sds.SnapshotRef{Volume: s.Spec.Volume, ID: id}
		err := findSnapshot(ctx, p, ref)
		if api.CodeOf(err) == api.CodeNotFound {
			if err := rec.states.dropSnapshot(ctx, p, ref); err != nil {
				return rec.failed(ctx, s, d.status, err)
			}
			return 0, rec.forget(ctx, api.KindSnapshot, s.Meta.ID)
		}
		if err == nil {
			k := key(api.KindSnapshot, s.Meta.ID)
			err = rec.jobs.start(ctx, k, k, func(ctx context.Context) error {
				return rec.disks.withVolume(ctx, v, func(access sds.Access) error { return deleteSnapshot(ctx, p, ref, access) })
			})
		}
		if err != nil {
			return rec.failed(ctx, s, d.status, err)
		}
		return snapWaits, nil
	}
	var have sds.Snapshot
	err := rec.disks.withVolume(ctx, v, func(access sds.Access) (err error) {
		have, err = rec.states.snapshot(ctx, v, p, id, access)
		return err
	})
	if err != nil {
		return rec.failed(ctx, s, d.status, err)
	}
	at := have.CreatedAt.UTC()
	return 0, rec.writeStatus(ctx, s, api.SnapshotStatus{Phase: api.SnapshotReady, SizeBytes: have.SizeBytes, CreatedAt: &at})
}

// failed reports the error in the status, and returns when to try again.
func (rec *snapshotReconciler) failed(ctx context.Context, s api.Snapshot, st api.SnapshotStatus, err error) (time.Duration, error) {
	if errors.Is(err, errLater) {
		return 0, err
	}
	of := triedSnapshot(s)
	st.LastError, st.Cause = reasonOf(err).Parts()
	st.Retry = st.Retry.After(s.Meta.ID, of, rec.o.Now(), retryHere)
	if st.Phase != api.SnapshotDeleting {
		st.Phase = api.SnapshotFailed
	}
	if writeErr := rec.writeStatus(ctx, s, st); writeErr != nil {
		return 0, errors.Join(err, writeErr)
	}
	rec.log.Warn("snapshot failed, will try again", "id", s.Meta.ID, "error", err)
	return rec.next(st.Retry, of, retryHere), nil
}

func (rec *snapshotReconciler) writeStatus(ctx context.Context, s api.Snapshot, st api.SnapshotStatus) error {
	st.Cause = causeBeside(st.LastError, st.Cause)
	now, ok := get(rec.cache, rec.cache.snapshots, s.Meta.ID)
	if !ok || now.Assignment != s.Assignment {
		return errStale
	}
	if reflect.DeepEqual(now.Status, st) {
		return nil
	}
	return rec.report(ctx, api.KindSnapshot, s.Meta.ID, now.Meta.Revision, st)
}
