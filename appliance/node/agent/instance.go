package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// instanceReconciler runs the machines of this node's instances.
type instanceReconciler struct {
	*core
	accelerator *acceleration
	fence       *fenceKeeper
	disks       *diskSet
	ports       *portSet
	vgpus       *vgpuSlices
	meter       *usageMeter
	domains     *domainBuilder
	classes     *machineClasses
	migrations  mover
	incoming    *migrationTarget
	volumes     *volumeReconciler
	states      *stateKeeper
	pins        *cpuPins
	media       *mediaSet

	reports *guestReports

	mu       sync.Mutex
	stopping map[string]stopping // instance → since when it is being stopped on this node
	claimed  map[string]int64    // instance → epoch in which its volume was claimed
}

// reconcile observes one instance, performs one step and reports the status. It
// asks to be called again at once while there are steps to perform.
func (rec *instanceReconciler) reconcile(ctx context.Context, id string) (time.Duration, error) {
	in, ok := get(rec.cache, rec.cache.instances, id)
	if !ok {
		if m, comes := rec.cache.migrationOf(api.InstanceID(id)); comes && m.Assignment.Target == rec.o.NodeID {
			if m.Spec.Offline && rec.comesHere(api.InstanceID(id)) { // a task of the receiver has ended
				if !m.Status.Phase.Ended() {
					rec.trigger(key(api.KindMigration, m.Meta.ID))
				}
				return 0, nil
			}
			if again, err := rec.incoming.noteArrival(ctx, m); again > 0 || err != nil {
				return again, err
			}
		}
		if err := rec.leave(ctx, api.InstanceID(id)); err != nil { // another node's, or removed
			return 0, err
		}
		rec.forgetRun(id)
		return 0, nil
	}
	if m, ok := rec.migrations.moving(api.InstanceID(id)); ok {
		return rec.whileMoving(ctx, in, m)
	}
	if err := rec.fence.keep(false); err != nil {
		return 0, err
	}
	s, err := rec.observe(ctx, in)
	if err != nil {
		return 0, err
	}
	if s.domain == hypervisor.Running || s.domain == hypervisor.Paused {
		if err := rec.pins.keep(ctx, api.InstanceID(id)); err != nil {
			rec.log.Warn("pin threads of virtual machine failed, will try again", "id", id, "error", err)
		}
	}
	on, kept := rec.states.keep(ctx, in, s)
	if kept != nil {
		rec.log.Warn("store machine state beside the root volume failed, will try again", "id", id, "error", kept)
	}
	d := next(in, s, rec.o.Now(), rec.o.StopGrace)
	d.status.StateVolume = on
	if kept != nil && d.step == stepUndefine && in.Assignment.Release { // the state must be stored before another node starts it
		return 0, rec.failed(ctx, in, d, kept)
	}
	idle := d.step == stepNone || d.step == stepWait
	of := api.Tried(in.Meta, in.Assignment)
	if !idle && in.Status.Retry.Applies(of) { // the error stays until the step succeeds
		d.status.LastError, d.status.Cause, d.status.Retry = in.Status.LastError, in.Status.Cause, in.Status.Retry
	}
	wait, held := rec.hold(in.Status.Retry, of, retryHere)
	held = held && d.step.begins()
	if d.step == stepStart && !held {
		// The class is reported before the start: the new run may be migrated.
		if d.status.Machine, err = rec.classes.choose(ctx, in); err != nil {
			return 0, rec.failed(ctx, in, d, err)
		}
	}
	if err := rec.writeStatus(ctx, in, d.status); err != nil {
		return 0, err
	}
	in.Status.Machine = d.status.Machine
	if idle {
		return d.again, nil
	}
	if held {
		return wait, nil
	}
	rec.log.Info("instance step started", "id", id, "name", in.Meta.Name, "step", string(d.step))
	if err := rec.perform(ctx, in, d.step); err != nil {
		if errors.Is(err, errStale) {
			return 0, err
		}
		return 0, rec.failed(ctx, in, d, err)
	}
	if d.step == stepForget {
		return 0, nil
	}
	return max(d.again, time.Millisecond), nil
}

// failed reports in the instance's status that the step has failed, and when it is
// tried again. It returns err with the step.
func (rec *instanceReconciler) failed(ctx context.Context, in api.Instance, d decision, err error) error {
	st := d.status
	st.Retry = in.Status.Retry.After(in.Meta.ID, api.Tried(in.Meta, in.Assignment), rec.o.Now(), retryHere)
	if !reflect.DeepEqual(st.Retry, in.Status.Retry) { // a repeated failure is reported once per attempt
		st.LastError, st.Cause = reasonOf(err).Parts()
	}
	if writeErr := rec.writeStatus(ctx, in, st); writeErr != nil {
		rec.log.Warn("report instance status failed", "id", in.Meta.ID, "error", writeErr)
	}
	return fmt.Errorf("step %s: %w", d.step, err)
}

// writeStatus reports a changed status. It returns errStale if the instance is no
// longer assigned as it was when the status was decided.
func (rec *instanceReconciler) writeStatus(ctx context.Context, in api.Instance, st api.InstanceStatus) error {
	st.Cause, st.StepCause = causeBeside(st.LastError, st.Cause), causeBeside(st.Step, st.StepCause)
	now, ok := get(rec.cache, rec.cache.instances, in.Meta.ID)
	if !ok || now.Assignment.Epoch != in.Assignment.Epoch {
		return errStale
	}
	if reflect.DeepEqual(in.Status, st) || reflect.DeepEqual(now.Status, st) {
		return nil
	}
	if err := rec.report(ctx, api.KindInstance, in.Meta.ID, now.Meta.Revision, st); err != nil {
		return err
	}
	if (in.Status.StartedAt == nil) != (st.StartedAt == nil) || in.Status.Epoch != st.Epoch { // a run has begun or ended
		in.Status = st
		return rec.meter.recordInstance(ctx, in)
	}
	return nil
}

// forgetRun drops the in-memory state of an instance.
func (rec *instanceReconciler) forgetRun(id string) {
	rec.meter.forgetRun(id)
	rec.incoming.forget(id)
	rec.reports.forget(api.InstanceID(id))
	rec.states.forget(api.InstanceID(id))
	rec.pins.forget(api.InstanceID(id))
	rec.mu.Lock()
	defer rec.mu.Unlock()
	delete(rec.claimed, id)
	delete(rec.stopping, id)
}

// stopping is when the power button of an instance was pressed.
type stopping struct{ first, last time.Time }

// observe determines the state of the instance on the node.
func (rec *instanceReconciler) observe(ctx context.Context, in api.Instance) (seen, error) {
	id := api.InstanceID(in.Meta.ID)
	status, err := rec.domain.status(ctx, id)
	if err != nil {
		return seen{}, err
	}
	s := seen{domain: status.State, reason: status.Reason, node: rec.o.NodeID, boot: rec.o.BootID, blocked: rec.fence.blocked(in), leaving: rec.o.Leaving()}
	r, err := rec.files.readRun(id)
	if err != nil {
		return seen{}, err
	}
	s.epoch = r.Epoch
	if s.epoch == in.Assignment.Epoch {
		rec.meter.sawRun(id, s.domain)
	}
	if !s.domain.Active() && in.Status.StartedAt != nil && r.Epoch == in.Assignment.Epoch {
		if s.interrupted, err = rec.fence.interrupted(in, r, s.domain); err != nil {
			return seen{}, err
		}
	}
	if v, ok := get(rec.cache, rec.cache.volumes, string(in.Assignment.RootVolume)); ok {
		s.volume = v.Status.Phase == api.VolumeReady && (s.domain.Active() || rec.pools.hasVolume(ctx, v) && !needsRollback(v))
		s.noVolume = api.Reason{Text: v.Status.LastError, Cause: v.Status.Cause}
	}
	if _, err := os.Stat(rec.files.seedPath(id)); err == nil {
		s.media = true
	}
	if s.drives, err = rec.observeDrives(ctx, in, s.domain); err != nil {
		return seen{}, err
	}
	ports, err := rec.ports.plugged(ctx, id)
	if err != nil && !s.domain.Active() && len(in.Assignment.Ports) > 0 {
		return seen{}, err // a running instance is not affected
	}
	s.ports = len(ports) > 0
	if rec.o.VGPUs != nil {
		s.vgpu = rec.o.VGPUs.Alive(id)
		s.slice = s.vgpu || exists(rec.files.vgpuMark(id))
	}
	rec.mu.Lock()
	claimed, ok := rec.claimed[in.Meta.ID]
	s.unclaimed = !ok || claimed != in.Assignment.Epoch
	s.stopping, s.pressed = rec.stopping[in.Meta.ID].first, rec.stopping[in.Meta.ID].last
	if !s.domain.Active() {
		delete(rec.stopping, in.Meta.ID)
		rec.reports.forget(id)
		s.stopping, s.pressed = time.Time{}, time.Time{}
	}
	rec.mu.Unlock()
	if s.domain == hypervisor.Running {
		rec.disks.freezer.thawLeftoverFreezes(ctx, id)
		if in.Assignment.Gpu != "" && s.vgpu {
			if s.gpu, err = rec.o.VGPUs.Guest(id); err != nil {
				rec.log.Warn("read guest state from vGPU failed", "id", id, "error", err)
			}
		}
		s.report = rec.reports.query(ctx, in, in.Assignment.Gpu != "" && !s.gpu.ready())
		s.tools = s.report.tools(in.Status.GuestTools)
		if s.tools != "" && setupOpen(in.Status, rec.o.Now()) {
			s.setup = rec.guestSetup(ctx, id)
		}
	}
	return s, nil
}

// observeDrives observes the CD drives of a machine that runs, and which media are
// missing for one that is to start.
func (rec *instanceReconciler) observeDrives(ctx context.Context, in api.Instance, domain hypervisor.State) (s driveState, err error) {
	switch {
	case in.Meta.DeletedAt != nil:
		return s, nil
	case domain == hypervisor.Running:
		return rec.media.compare(ctx, in)
	case domain.Active() || in.Spec.Power == api.PowerStopped:
		return s, nil
	}
	_, s.waits, err = rec.media.drives(ctx, in, key(api.KindInstance, in.Meta.ID))
	return s, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (rec *instanceReconciler) perform(ctx context.Context, in api.Instance, s step) error {
	id := api.InstanceID(in.Meta.ID)
	switch s {
	case stepMedia:
		return rec.files.writeSeed(ctx, in)
	case stepDrives:
		return rec.media.exchange(ctx, in)
	case stepVGPU:
		_, err := rec.vgpus.ensure(ctx, in)
		return err
	case stepStart:
		return rec.begin(ctx, in)
	case stepResume:
		if err := rec.fence.confirm(ctx, in); err != nil {
			return err
		}
		return rec.domain.resume(ctx, id)
	case stepClaim:
		return rec.adopt(ctx, in)
	case stepAbortMove:
		return rec.domain.abortMigration(ctx, id)
	case stepEndMove:
		return rec.incoming.finishOrDiscard(ctx, id)
	case stepShutdown:
		if err := rec.files.endRun(id); err != nil {
			return err
		}
		if err := rec.o.Machines.Shutdown(ctx, id); err != nil {
			return fmt.Errorf("press the power button of instance %s: %w", id, err)
		}
		rec.mu.Lock()
		now := rec.o.Now()
		p, again := rec.stopping[in.Meta.ID]
		if !again {
			p.first = now
		}
		p.last = now
		rec.stopping[in.Meta.ID] = p
		rec.mu.Unlock()
		return nil
	case stepDestroy:
		s, err := rec.domain.status(ctx, id)
		if err == nil {
			err = rec.files.endRun(id)
		}
		if err != nil {
			return err
		}
		return rec.destroy(ctx, id, s.State)
	case stepUndefine:
		if err := rec.meter.recordInstance(ctx, in); err != nil {
			return err
		}
		return rec.domain.undefine(ctx, id)
	case stepStopVGPU:
		return wrap(rec.o.VGPUs.Stop(ctx, id), "stop the vGPU backend of instance %s", id)
	case stepDropVGPU:
		if err := rec.meter.recordInstance(ctx, in); err != nil { // its usage must be recorded before its totals are removed
			return err
		}
		if err := rec.vgpus.remove(ctx, id); err != nil {
			return err
		}
		return remove(rec.files.vgpuMark(id))
	case stepUnplug:
		return rec.ports.unplug(ctx, id)
	case stepDropFiles:
		return rec.files.drop(id)
	case stepForget:
		if err := rec.meter.end(in.Meta.ID); err != nil {
			return err
		}
		return rec.forget(ctx, api.KindInstance, in.Meta.ID)
	}
	return fmt.Errorf("unknown step %q", s)
}

// begin starts a run. For an instance that can run elsewhere the order matters:
// claim the volume, confirm the assignment with the store, check the lease, and
// then do nothing that takes long (DESIGN.md, rule 4).
func (rec *instanceReconciler) begin(ctx context.Context, in api.Instance) error {
	if err := rec.accelerator.ready(); err != nil {
		return err
	}
	id := api.InstanceID(in.Meta.ID)
	release, err := rec.disks.acquire(id) // which keeps the list of its volumes unchanged
	if err != nil {
		return err
	}
	defer release()
	if _, moving := rec.migrations.moving(id); moving { // since this was decided
		return errStale
	}
	// The previous run has ended, even if this process does not know that it has
	// reported so: a response may have been lost. From here on the machine may be
	// seen running again.
	over := in
	over.Status.StartedAt = nil
	if err := rec.meter.recordInstance(ctx, over); err != nil {
		return err
	}
	if err := rec.claim(ctx, in); err != nil {
		return err
	}
	attached := rec.disks.attachedTo(in)
	for _, v := range attached {
		if err := rec.disks.claimVolume(ctx, v); err != nil {
			return err
		}
	}
	last, err := rec.files.readRun(id)
	if err != nil {
		return err
	}
	if err := rec.states.restore(ctx, in, last); err != nil {
		return err
	}
	d, disks, err := rec.domains.build(ctx, in, attached)
	if err != nil {
		return err
	}
	if err := rec.o.Machines.Define(ctx, d); err != nil {
		return fmt.Errorf("define the domain of instance %s: %w", id, err)
	}
	rec.pins.forget(id)
	if len(d.Cells) > 0 {
		if err := rec.pins.vacate(ctx); err != nil {
			return err
		}
	}
	if err := rec.files.writeRun(id, runFile{Epoch: in.Assignment.Epoch, Boot: rec.o.BootID, Since: rec.o.Now().UTC(), Root: in.Assignment.RootVolume}); err != nil {
		return err
	}
	if err := rec.fence.confirm(ctx, in); err != nil {
		return err
	}
	for _, v := range attached {
		if err := rec.disks.confirmVolume(ctx, v); err != nil {
			return err
		}
	}
	// However long QEMU takes to start, or this process to continue: the guest is
	// resumed only if it is still allowed to run.
	if err := rec.disks.withSecrets(ctx, disks, func() error { return rec.o.Machines.Load(ctx, id) }); err != nil {
		return fmt.Errorf("load the domain of instance %s: %w", id, err)
	}
	// The volumes are claimed again, now that the disks are open and nothing has
	// been written: the pool learns which client to exclude when another node takes
	// over.
	err = rec.claim(ctx, in)
	for _, v := range attached {
		err = errors.Join(err, rec.disks.claimVolume(ctx, v))
	}
	if err == nil {
		err = rec.fence.confirm(ctx, in)
	}
	if err != nil {
		return errors.Join(err, rec.domain.destroy(context.WithoutCancel(ctx), id))
	}
	return rec.domain.resume(ctx, id) // which fails if the fence has killed the domain
}

// claim claims the root volume for this assignment.
func (rec *instanceReconciler) claim(ctx context.Context, in api.Instance) error {
	v, ok := get(rec.cache, rec.cache.volumes, string(in.Assignment.RootVolume))
	if !ok {
		return errStale
	}
	p, err := rec.pools.driver(v.Assignment.Pool)
	if err != nil {
		return err
	}
	if err := rec.disks.claim(ctx, p, in.Assignment.RootVolume, in.Assignment.Epoch); err != nil {
		return err
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.claimed[in.Meta.ID] = in.Assignment.Epoch
	return nil
}

// adopt records and claims a domain that runs already: it came by a migration, or
// was started before this process.
func (rec *instanceReconciler) adopt(ctx context.Context, in api.Instance) error {
	id := api.InstanceID(in.Meta.ID)
	r, err := rec.files.readRun(id)
	if err != nil {
		return err
	}
	if r.Incoming != "" {
		rec.disks.forgetKeys(ctx, r.Opens)
		r.Incoming, r.Volume, r.Left, r.Opens, r.Cells = "", "", false, nil, nil
		if r.Since.IsZero() {
			r.Since = rec.o.Now().UTC()
		}
		if err := rec.files.writeRun(id, r); err != nil {
			return err
		}
	}
	if err := rec.claim(ctx, in); err != nil {
		return err
	}
	for _, v := range rec.disks.attachedTo(in) {
		if err := rec.disks.claimVolume(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// whileMoving reports that the instance is being migrated, and records when the
// fence kills it, which can be observed only while there is no lease.
func (rec *instanceReconciler) whileMoving(ctx context.Context, in api.Instance, m api.Migration) (time.Duration, error) {
	id := api.InstanceID(in.Meta.ID)
	s, err := rec.domain.status(ctx, id)
	if err != nil {
		return 0, err
	}
	rec.meter.sawRun(id, s.State)
	if s.State == hypervisor.Crashed {
		r, err := rec.files.readRun(id)
		if err == nil {
			_, err = rec.fence.interrupted(in, r, s.State)
		}
		if err != nil {
			return 0, err
		}
	}
	st := in.Status
	st.Step, st.StepCause = plainly(api.CauseMigrating, "moving to another node").Parts()
	if m.Spec.Offline && in.Spec.Power != api.PowerStopped {
		st.Step, st.StepCause = plainly(api.CauseMigratingFirst, "moving to another node: it can be started when its disks have been copied").Parts()
	}
	return 2 * time.Second, rec.writeStatus(ctx, in, st)
}
