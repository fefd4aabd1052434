package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// volumeAttacher brings existing volumes to where they should be: attached to a
// machine, or detached.
type volumeAttacher struct {
	*core
	fence      *fenceKeeper
	disks      *diskSet
	states     *stateKeeper
	migrations mover
	volumes    interface {
		writeStatus(ctx context.Context, v api.Volume, st api.VolumeStatus) error
	}
}

// reconcile performs one step for the volume, which exists, and returns the status
// to write.
func (a *volumeAttacher) reconcile(ctx context.Context, v api.Volume, st api.VolumeStatus) (api.VolumeStatus, time.Duration, error) {
	s, err := a.observe(ctx, v)
	if err != nil {
		return st, 0, err
	}
	d := nextDisk(v, s)
	st.Attached = d.attached
	if d.waits.Text != "" {
		st.LastError, st.Cause = d.waits.Parts()
	}
	switch d.step {
	case diskNone:
		return st, 0, nil
	case diskWait:
		return st, time.Second, nil
	}
	holder := v.Status.Attached
	if v.Spec.Root {
		holder = v.Spec.Instance
	}
	release, err := a.disks.acquireVolume(api.VolumeID(v.Meta.ID), holder)
	if err != nil {
		return st, 0, err
	}
	defer release()
	if d.step == diskReport { // written while no migration of the volume can begin
		return st, time.Millisecond, a.volumes.writeStatus(ctx, v, st)
	}
	a.log.Info("volume step started", "id", v.Meta.ID, "step", string(d.step), "instance", holder)
	if err := a.perform(ctx, v, holder, d.step, &st); err != nil {
		if errors.Is(err, errStale) {
			return st, 0, err
		}
		st.LastError, st.Cause = reasonOf(err).Parts()
		if code := api.CodeOf(err); code == api.CodeInUse || code == api.CodeState || code == api.CodeUnavailable {
			return st, 5 * time.Second, nil // retried
		}
		return st, 0, fmt.Errorf("step %s: %w", d.step, err)
	}
	if d.step == diskDetach { // written while the instance cannot start
		return st, time.Millisecond, a.volumes.writeStatus(ctx, v, st)
	}
	return st, time.Millisecond, nil
}

func (a *volumeAttacher) observe(ctx context.Context, v api.Volume) (s diskSeen, err error) {
	s.moving = a.migrations.movingVolume(api.VolumeID(v.Meta.ID))
	if s.holder, err = a.observeHolder(ctx, v.Status.Attached); err != nil {
		return s, err
	}
	if s.wanted = s.holder; v.Spec.Instance != v.Status.Attached {
		if s.wanted, err = a.observeHolder(ctx, v.Spec.Instance); err != nil {
			return s, err
		}
	}
	id := v.Status.Attached
	if v.Spec.Root {
		id = v.Spec.Instance
	}
	if id == "" {
		return s, nil
	}
	st, err := a.domain.status(ctx, id)
	if err != nil || !st.State.Active() {
		return s, err
	}
	disks, err := a.domain.disks(ctx, id)
	if err != nil {
		return s, err
	}
	if k := hasDisk(disks, serialOf(v)); k != nil {
		s.open, s.qos = true, k.QoS
	}
	return s, nil
}

func (a *volumeAttacher) observeHolder(ctx context.Context, id api.InstanceID) (h diskHolder, err error) {
	if id == "" {
		return h, nil
	}
	_, h.here = get(a.cache, a.cache.instances, string(id))
	if !h.here {
		in, there, err := api.Find[api.Instance](ctx, a.o.Store, api.KindInstance, string(id))
		if h.gone = err == nil && (!there || in.Assignment.Node == ""); !h.gone {
			return h, err
		}
	}
	if _, h.moving = a.migrations.moving(id); h.moving {
		return h, nil
	}
	s, err := a.domain.status(ctx, id)
	h.active = s.State == hypervisor.Running || s.State == hypervisor.Paused
	return h, err
}

func (a *volumeAttacher) perform(ctx context.Context, v api.Volume, holder api.InstanceID, step diskStep, st *api.VolumeStatus) error {
	switch step {
	case diskDetach:
		if err := a.o.Machines.DetachDisk(ctx, holder, serialOf(v)); err != nil {
			return fmt.Errorf("detach volume %s from instance %s: %w", v.Meta.ID, holder, err)
		}
		st.Attached, st.LastError = "", ""
		return nil
	case diskAttach:
		return a.attach(ctx, v, holder)
	case diskQoS:
		return wrap(a.o.Machines.SetDiskQoS(ctx, holder, serialOf(v), qosOf(v)), "set the I/O limits of volume %s of instance %s", v.Meta.ID, holder)
	case diskRollback:
		return a.rollback(ctx, v, st)
	}
	return fmt.Errorf("unknown step %q", step)
}

// attach attaches the volume to a running machine. The order is that of a start:
// claim, confirm with the store, check the lease.
func (a *volumeAttacher) attach(ctx context.Context, v api.Volume, holder api.InstanceID) error {
	in, ok := get(a.cache, a.cache.instances, string(holder))
	if !ok {
		return errStale
	}
	if err := a.disks.claimVolume(ctx, v); err != nil {
		return err
	}
	k, err := a.disks.find(ctx, v)
	if err != nil {
		return err
	}
	if err := a.disks.withSecrets(ctx, []disk{k}, func() error {
		if err := a.fence.confirm(ctx, in); err != nil {
			return err
		}
		if err := a.disks.confirmVolume(ctx, v); err != nil {
			return err
		}
		return wrap(a.o.Machines.AttachDisk(ctx, holder, k.Disk), "attach volume %s to instance %s", v.Meta.ID, holder)
	}); err != nil {
		return err
	}
	return a.disks.claimVolume(ctx, v) // the pool records which client has it open
}

// rollback rolls the volume back. It is closed, and stays closed
// meanwhile.
func (a *volumeAttacher) rollback(ctx context.Context, v api.Volume, st *api.VolumeStatus) error {
	p, err := a.pools.driver(v.Assignment.Pool)
	if err != nil {
		return err
	}
	access, err := a.disks.access(ctx, v)
	if err != nil {
		return err
	}
	if access.Live != nil {
		return api.Errorf(api.CodeInUse, "volume %s is in use", v.Meta.ID)
	}
	if !v.Spec.Root { // a root volume is claimed with its instance's epoch, when that starts
		if err := a.disks.claimVolume(ctx, v); err != nil {
			return err
		}
	}
	r := v.Spec.Rollback
	have, err := p.RollbackVolume(ctx, api.VolumeID(v.Meta.ID), r.Snapshot, r.Count, access)
	if err != nil {
		return fmt.Errorf("roll back volume %s to snapshot %s: %w", v.Meta.ID, r.Snapshot, err)
	}
	if err := a.states.rollBack(ctx, v, p, r.Snapshot); err != nil {
		return err
	}
	st.Rollbacks, st.SizeBytes, st.AllocatedBytes, st.LastError = r.Count, have.SizeBytes, have.AllocatedBytes, ""
	return nil
}
