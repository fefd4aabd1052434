package agent

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// CopyRequest asks a target how far it is with the volumes of a stopped instance, or a
// volume without one.
type CopyRequest struct {
	Migration api.MigrationID `json:"migration"`
}

// CopyReply is how far a target is.
type CopyReply struct {
	DoneBytes int64 `json:"doneBytes"`
	// Waits is why it is not receiving now, for users.
	Waits string `json:"waits,omitempty"`
	// Complete means that it has all volumes, on its disks.
	Complete bool `json:"complete,omitempty"`
}

// VolumeRequest asks a source for the content of one of a migration's volumes.
type VolumeRequest struct {
	Migration api.MigrationID `json:"migration"`
	Volume    api.VolumeID    `json:"volume"`
}

// askTimeout limits one query of a target's progress, which is repeated.
const askTimeout = 10 * time.Second

// offline is what this process knows of a migration without a running machine from this
// node.
type offline struct {
	stowed   bool
	refused  string
	reply    CopyReply
	asked    bool
	progress time.Time // when the target last made progress
}

// sendOffline performs one step of the migration of a stopped instance from this node, or
// of a volume without an instance; in is the zero value then.
func (rec *migrationReconciler) sendOffline(ctx context.Context, m api.Migration, in api.Instance) (time.Duration, error) {
	s, err := rec.observeOffline(ctx, m, in)
	if err != nil {
		return 0, err
	}
	d := nextOffline(m, s, rec.o.Now())
	if d.step == offlineHold {
		return d.again, rec.holdOffline(ctx, m, in, d.status)
	}
	if err := rec.writeStatus(ctx, m, d.status); err != nil {
		return 0, err
	}
	switch d.step {
	case offlineStow:
		err = rec.stowOffline(ctx, m, in)
	case offlineAsk:
		err = rec.askTarget(ctx, m)
	case offlineNone, offlineHold:
	}
	if err != nil {
		return 0, fmt.Errorf("step %s: %w", d.step, err)
	}
	if d.status.Phase.Ended() {
		rec.log.Info("offline migration ended", "id", m.Meta.ID, "of", m.Spec.Subject(), "target", m.Assignment.Target, "phase", d.status.Phase, "reason", d.status.LastError)
		rec.trigger(key(api.KindMigration, m.Meta.ID))
	}
	return d.again, nil
}

func (rec *migrationReconciler) observeOffline(ctx context.Context, m api.Migration, in api.Instance) (s offlineSeen, err error) {
	if m.Spec.Volume != "" {
		s.stop, s.stopPhase = rec.stopVolume(m)
	} else {
		status, err := rec.domain.status(ctx, api.InstanceID(in.Meta.ID))
		if err != nil {
			return s, err
		}
		s.domain = status.State
		s.stop, s.stopPhase = stopMigration(m, in)
	}
	if rec.o.Peers == nil {
		s.unable = "this node has no other nodes to send anything to"
	}
	now := rec.o.Now()
	rec.learn(m, func(mv *move) {
		x := &mv.offline
		if x.progress.IsZero() {
			x.progress = now
		}
		s.stowed, s.refused, s.reply, s.asked, s.still = x.stowed || m.Spec.Volume != "", x.refused, x.reply, x.asked, now.Sub(x.progress)
	})
	for _, id := range m.Assignment.Volumes {
		v, ok := get(rec.cache, rec.cache.volumes, string(id))
		if !ok {
			return s, errStale
		}
		s.total += max(v.Status.AllocatedBytes, 1)
	}
	return s, nil
}

// holdOffline reports Preparing, from which on nothing of the instance starts or
// changes here, if all of its disks are closed and among those that are copied. No start
// is in progress meanwhile.
func (rec *migrationReconciler) holdOffline(ctx context.Context, m api.Migration, in api.Instance, st api.MigrationStatus) error {
	release, err := rec.disks.hold(m.Spec.Subject().ID)
	if err != nil {
		return err
	}
	defer release()
	if m.Spec.Volume == "" {
		status, err := rec.domain.status(ctx, api.InstanceID(in.Meta.ID))
		if err != nil {
			return err
		}
		if status.State.Active() {
			return errStale
		}
	}
	if why := rec.cannotCopy(ctx, m, in); why != nil {
		now := rec.o.Now().UTC()
		st.Phase, st.EndedAt, st.LastError = api.MigrationFailed, &now, userMessage(why)
		rec.log.Warn("migration cannot begin", "id", m.Meta.ID, "of", m.Spec.Subject(), "target", m.Assignment.Target, "error", why)
	}
	return rec.writeStatus(ctx, m, st)
}

// stopVolume returns why the migration of a volume must end, with the phase that this
// ends in. It ends when the volume is to be attached: until then it is not opened.
func (rec *migrationReconciler) stopVolume(m api.Migration) (why string, end api.MigrationPhase) {
	v, ok := get(rec.cache, rec.cache.volumes, string(m.Spec.Volume))
	switch {
	case m.Spec.Abort:
		return "aborted", api.MigrationAborted
	case m.Meta.DeletedAt != nil, m.Assignment.Phase.Ended():
		return "the cluster ended the migration", api.MigrationFailed
	case !ok || v.Meta.DeletedAt != nil:
		return "the volume is being deleted", api.MigrationFailed
	case v.Spec.Instance != "" || v.Status.Attached != "":
		return "the volume was attached to an instance", api.MigrationFailed
	}
	return "", ""
}

// cannotCopy returns why the volumes of a migration cannot be copied, or nil. They must
// be those that the instance has: others may be written to meanwhile. A migration of a
// volume has only that one.
func (rec *migrationReconciler) cannotCopy(ctx context.Context, m api.Migration, in api.Instance) error {
	for _, v := range all(rec.cache, rec.cache.volumes) {
		listed := slices.Contains(m.Assignment.Volumes, api.VolumeID(v.Meta.ID))
		belongs := string(v.Status.Attached) == in.Meta.ID || v.Meta.ID == string(in.Assignment.RootVolume)
		if m.Spec.Volume != "" {
			belongs = v.Meta.ID == string(m.Spec.Volume)
		}
		switch {
		case listed && !belongs:
			return api.Errorf(api.CodeState, "volume %s was detached meanwhile", v.Meta.Name).WithHint("migrate the instance again")
		case !listed && belongs && !rec.pools.shared(v.Assignment.Pool):
			return api.Errorf(api.CodeState, "volume %s was attached meanwhile", v.Meta.Name).WithHint("migrate the instance again")
		case !listed:
			continue
		case needsRollback(v):
			return api.Errorf(api.CodeState, "volume %s is being rolled back", v.Meta.Name).WithHint("migrate it again when that has ended")
		}
		p, err := rec.mover(v)
		if err != nil {
			return err
		}
		if err := p.Exportable(ctx, api.VolumeID(v.Meta.ID), m.Assignment.Volumes...); err != nil {
			return fmt.Errorf("volume %s cannot be copied: %w", v.Meta.ID, err)
		}
	}
	return nil
}

// mover returns the pool of a volume that can be copied to another node.
func (co *core) mover(v api.Volume) (sds.Mover, error) {
	p, err := co.pools.driver(v.Assignment.Pool)
	if err != nil {
		return nil, err
	}
	m, ok := p.(sds.Mover)
	if !ok || p.Capabilities().Shared {
		return nil, api.Errorf(api.CodeState, "volumes of storage pool %s cannot be copied to another node", v.Assignment.Pool)
	}
	return m, nil
}

// stowOffline stores the machine's state beside the root volume.
func (rec *migrationReconciler) stowOffline(ctx context.Context, m api.Migration, in api.Instance) error {
	err := rec.states.stow(ctx, in)
	code := api.CodeOf(err)
	if err != nil && code != api.CodeState && code != api.CodeTooLarge {
		return err // retried
	}
	rec.learn(m, func(mv *move) {
		mv.offline.stowed = err == nil
		if err != nil {
			mv.offline.refused = "its UEFI variables or its TPM cannot be copied: " + userMessage(err)
		}
	})
	if err != nil {
		rec.log.Warn("migration cannot begin", "id", m.Meta.ID, "instance", in.Meta.ID, "error", err)
	}
	return nil
}

// askTarget learns how far the target is. One that cannot be reached is asked again.
func (rec *migrationReconciler) askTarget(ctx context.Context, m api.Migration) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	reply, err := rec.o.Peers.CopyProgress(ctx, m.Assignment.Target, CopyRequest{Migration: api.MigrationID(m.Meta.ID)})
	code, now := api.CodeOf(err), rec.o.Now()
	if err != nil && (code == api.CodeUnavailable || code == api.CodeInternal || code == api.CodeConflict) {
		return fmt.Errorf("ask node %s how far it is with %s: %w", m.Assignment.Target, m.Spec.Subject(), err)
	}
	if err != nil {
		rec.log.Warn("target refused the copy", "id", m.Meta.ID, "of", m.Spec.Subject(), "target", m.Assignment.Target, "error", err)
	}
	rec.learn(m, func(mv *move) {
		x := &mv.offline
		if err != nil {
			x.refused = "the target cannot receive it: " + userMessage(err)
			return
		}
		if !x.asked || reply.DoneBytes != x.reply.DoneBytes || (reply.Waits == "") != (x.reply.Waits == "") {
			x.progress = now
		}
		x.reply, x.asked = reply, true
	})
	return nil
}

// export writes one of a migration's volumes for its target. begin is called with what
// the volume is before anything is written.
func (rec *migrationReconciler) export(ctx context.Context, from api.NodeID, r VolumeRequest, w io.Writer, begin func(sds.Volume)) error {
	m, err := rec.leaving(ctx, from, r.Migration)
	if err != nil {
		return err
	}
	if !slices.Contains(m.Assignment.Volumes, r.Volume) {
		return api.Errorf(api.CodeForbidden, "volume %s does not belong to migration %s", r.Volume, r.Migration)
	}
	v, ok := get(rec.cache, rec.cache.volumes, string(r.Volume))
	if !ok {
		return api.Errorf(api.CodeNotFound, "volume %s does not exist on this node", r.Volume)
	}
	p, err := rec.mover(v)
	if err != nil {
		return err
	}
	d, err := rec.pools.driver(v.Assignment.Pool)
	if err != nil {
		return err
	}
	have, err := findVolume(ctx, d, r.Volume)
	if err != nil {
		return err
	}
	if err := p.Exportable(ctx, r.Volume, m.Assignment.Volumes...); err != nil {
		return fmt.Errorf("volume %s cannot be copied: %w", r.Volume, err)
	}
	rec.log.Info("sending volume", "id", r.Volume, "of", m.Spec.Subject(), "to", from)
	begin(have)
	return wrap(p.ExportVolume(ctx, r.Volume, w), "send volume %s to node %s", r.Volume, from)
}

// leaving returns a migration of closed volumes from this node to the given one, as the
// store has it now, if all that is copied has been stored.
func (rec *migrationReconciler) leaving(ctx context.Context, to api.NodeID, id api.MigrationID) (m api.Migration, err error) {
	o, err := rec.read(ctx, api.KindMigration, string(id))
	if err == nil {
		m, err = api.Decode[api.Migration](o)
	}
	if err != nil {
		return m, err
	}
	_, mine := get(rec.cache, rec.cache.instances, string(m.Spec.Instance))
	if m.Spec.Volume != "" {
		_, mine = get(rec.cache, rec.cache.volumes, string(m.Spec.Volume))
	}
	a := m.Assignment
	switch {
	case a.Source != rec.o.NodeID || a.Target != to || !m.Spec.Offline:
		return m, api.Errorf(api.CodeForbidden, "migration %s is not one of closed volumes from this node to node %s", id, to)
	case !mine || a.Phase.Ended() || m.Status.Phase != api.MigrationCopying:
		return m, api.Errorf(api.CodeUnavailable, "migration %s is not running", id)
	}
	return m, nil
}
