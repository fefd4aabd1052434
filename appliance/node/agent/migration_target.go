package agent

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// migrationTarget receives machines from other nodes.
type migrationTarget struct {
	*core
	epoch      *observedEpoch
	fence      *fenceKeeper
	disks      *diskSet
	ports      *portSet
	domains    *domainBuilder
	classes    *machineClasses
	pins       *cpuPins
	media      *mediaSet
	migrations interface {
		writeStatus(ctx context.Context, m api.Migration, st api.MigrationStatus) error
	}

	receiver *receiver

	mu       sync.Mutex
	arrived  map[string]time.Time // instance → when it was first seen running here while arriving
	attempts map[string]attempts  // migration → attempts to receive a stopped instance
}

// forget drops the state of an instance that has arrived, or will not arrive.
func (t *migrationTarget) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.arrived, id)
}

// arriving returns a migration from the given node to this one, and its instance,
// as the store has them now.
func (t *migrationTarget) arriving(ctx context.Context, from api.NodeID, id api.MigrationID) (m api.Migration, in api.Instance, err error) {
	if m, err = t.migrationFrom(ctx, from, id); err != nil {
		return m, in, err
	}
	in, err = t.instanceOf(ctx, m)
	return m, in, err
}

// migrationFrom returns a migration from the given node to this one, as the store has it
// now.
func (t *migrationTarget) migrationFrom(ctx context.Context, from api.NodeID, id api.MigrationID) (m api.Migration, err error) {
	o, err := t.read(ctx, api.KindMigration, string(id))
	if err != nil {
		return m, err
	}
	t.mergeObject(o)
	if m, err = api.Decode[api.Migration](o); err != nil {
		return m, err
	}
	if m.Assignment.Target != t.o.NodeID || m.Assignment.Source != from {
		return m, api.Errorf(api.CodeForbidden, "migration %s is not from node %s to this node", id, from)
	}
	return m, nil
}

// instanceOf returns the instance of a migration, as the store has it now.
func (t *migrationTarget) instanceOf(ctx context.Context, m api.Migration) (api.Instance, error) {
	o, err := t.read(ctx, api.KindInstance, string(m.Spec.Instance))
	if err != nil {
		return api.Instance{}, err
	}
	return api.Decode[api.Instance](o)
}

// active returns an error unless the migration is running.
func active(m api.Migration, in api.Instance) error {
	if m.Assignment.Phase != api.MigrationPreparing && m.Assignment.Phase != api.MigrationCopying || m.Status.Phase.Ended() ||
		in.Assignment.Node != m.Assignment.Source || in.Assignment.MigrateTo != m.Assignment.Target {
		return api.Errorf(api.CodeState, "migration %s is not running", m.Meta.ID)
	}
	return nil
}

// prepare prepares this node for a machine from another. This is undone when the
// migration does not end here (instanceReconciler.leave).
func (t *migrationTarget) prepare(ctx context.Context, from api.NodeID, r PrepareRequest) (PrepareReply, error) {
	var none PrepareReply
	m, in, err := t.arriving(ctx, from, r.Migration)
	if err == nil {
		err = active(m, in)
	}
	if err != nil {
		return none, err
	}
	if t.o.Migrator == nil {
		return none, api.Errorf(api.CodeState, "this node cannot accept live migrations")
	}
	if n, ok := t.cache.self(); !ok || n.Assignment.Epoch > t.epoch.get() || !t.fence.leased() {
		return none, api.Errorf(api.CodeUnavailable, "the target node cannot accept migrations: it has no valid lease").WithHint("it is tried again automatically")
	}
	if t.o.Leaving() {
		return none, api.Errorf(api.CodeState, "the target node is shutting down")
	}
	if err := t.classes.check(ctx, in); err != nil {
		return none, err
	}
	id := api.InstanceID(in.Meta.ID)
	if m.Spec.Offline || t.receiver.stop(id) { // of an earlier migration
		return none, api.Errorf(api.CodeUnavailable, "the target node is receiving the disks of the instance").WithHint("it is tried again automatically")
	}
	if _, waits, err := t.media.drives(ctx, in, key(api.KindMigration, m.Meta.ID)); err != nil || waits.Text != "" {
		return PrepareReply{Waits: waits.Text}, err
	}
	disks, copied, err := t.makeDisks(ctx, m, in, r)
	if err != nil {
		return none, err
	}
	if err := t.files.writeSeed(ctx, in); err != nil {
		return none, err
	}
	nics, err := t.ports.plug(ctx, in, true)
	if err != nil {
		return none, err
	}
	d, err := t.domains.buildOn(ctx, in, disks, nics)
	if err != nil {
		return none, err
	}
	if len(d.Cells) > 0 {
		if err := t.pins.vacate(ctx); err != nil {
			return none, err
		}
	}
	// The secrets stay until the machine has arrived, or will not arrive
	// (instanceReconciler.adopt, leave).
	if err := t.disks.setSecrets(ctx, disks); err != nil {
		return none, err
	}
	if err := t.o.Migrator.PrepareMigration(ctx, d); err != nil {
		return none, fmt.Errorf("prepare to receive instance %s: %w", id, err)
	}
	reply := PrepareReply{Target: d}
	if copied {
		reply.CopyDisks = []string{d.Disks[0].Serial}
	}
	t.log.Info("prepared for incoming migration", "id", m.Meta.ID, "instance", id, "from", from)
	return reply, nil
}

// makeDisks returns the disks that the machine will have here: the shared ones, and
// a blank one in place of a root volume that is not shared. What it creates is
// recorded in the run's file first, so that it can be found again.
func (t *migrationTarget) makeDisks(ctx context.Context, m api.Migration, in api.Instance, req PrepareRequest) (disks []disk, copied bool, err error) {
	r := runFile{Epoch: in.Assignment.Epoch + 1, Boot: t.o.BootID, Incoming: api.MigrationID(m.Meta.ID), Cells: in.Assignment.CellsOn(t.o.NodeID), Root: in.Assignment.RootVolume}
	for i, id := range append([]api.VolumeID{in.Assignment.RootVolume}, req.Volumes...) {
		o, err := t.read(ctx, api.KindVolume, string(id))
		if err != nil {
			return nil, false, err
		}
		v, err := api.Decode[api.Volume](o)
		if err != nil {
			return nil, false, err
		}
		p, err := t.pools.driver(v.Assignment.Pool)
		if err != nil {
			return nil, false, err
		}
		root := i == 0
		copied = copied || root && !p.Capabilities().Shared
		switch {
		case root && copied:
			r.Volume = id
		case !p.Capabilities().Shared:
			return nil, false, notShared(v)
		case !root && (v.Spec.Instance != m.Spec.Instance || v.Status.Attached != m.Spec.Instance):
			return nil, false, api.Errorf(api.CodeConflict, "volume %s is no longer attached to the instance", id)
		}
		if v.Spec.Encrypted {
			r.Opens = append(r.Opens, id)
		}
		if root || v.Spec.Encrypted {
			if err := t.files.writeRun(m.Spec.Instance, r); err != nil {
				return nil, false, err
			}
		}
		have, err := t.makeVolume(ctx, v, p, root && copied, req.RootBytes)
		if err != nil {
			return nil, false, err
		}
		k, err := t.disks.openable(ctx, v, have, p)
		if err != nil {
			return nil, false, err
		}
		disks = append(disks, k)
	}
	return disks, copied, nil
}

func (t *migrationTarget) makeVolume(ctx context.Context, v api.Volume, p sds.Driver, blank bool, bytes int64) (sds.Volume, error) {
	id := api.VolumeID(v.Meta.ID)
	if !blank {
		return findVolume(ctx, p, id)
	}
	// What an earlier attempt or an earlier assignment has left is not reused.
	if err := p.DeleteVolume(ctx, id); err != nil && api.CodeOf(err) != api.CodeNotFound {
		return sds.Volume{}, fmt.Errorf("delete what is left of volume %s: %w", id, err)
	}
	e, err := t.disks.encryption(ctx, v)
	if err != nil {
		return sds.Volume{}, err
	}
	have, err := p.CreateVolume(ctx, sds.VolumeCreate{ID: id, Image: v.Spec.Image, SizeBytes: bytes, Epoch: v.Assignment.Recreate, Standalone: true, Encryption: e})
	return have, wrap(err, "create volume %s to receive its content", id)
}

func notShared(v api.Volume) error {
	return api.Errorf(api.CodeState, "volume %s is local to its node and cannot be live-migrated", v.Meta.Name).
		WithHint("detach it, or stop the instance first")
}

// acceptTunnel serves this node's end of one stream. It closes conn.
func (t *migrationTarget) acceptTunnel(ctx context.Context, from api.NodeID, r TunnelRequest, conn net.Conn) error {
	m, in, err := t.arriving(ctx, from, r.Migration)
	if err == nil {
		err = active(m, in)
	}
	if err == nil && (t.o.Migrator == nil || !r.Stream.Valid()) {
		err = api.Errorf(api.CodeInvalid, "unknown stream %q", r.Stream)
	}
	if err != nil {
		_ = conn.Close() // the source sees the closed stream
		return err
	}
	return wrap(t.o.Migrator.AcceptMigration(ctx, m.Spec.Instance, r.Stream, conn), "receive instance %s", m.Spec.Instance)
}

// finish ends a migration on the target: the machine is resumed if all of it has
// arrived, and discarded otherwise. The source has made sure that it does not run
// there, or, to discard it, that it does.
func (t *migrationTarget) finish(ctx context.Context, from api.NodeID, r FinishRequest) (FinishReply, error) {
	m, in, err := t.arriving(ctx, from, r.Migration)
	if err != nil {
		return FinishReply{}, err
	}
	id := m.Spec.Instance
	run, err := t.files.readRun(id)
	if err != nil {
		return FinishReply{}, err
	}
	if t.o.Migrator == nil || run.Incoming != r.Migration { // of a migration that is not the latest one here
		return FinishReply{Runs: in.Assignment.Node == t.o.NodeID}, nil
	}
	if r.Discard {
		return FinishReply{}, t.domain.discardMigration(ctx, id)
	}
	if !t.fence.leased() {
		return FinishReply{}, api.Errorf(api.CodeUnavailable, "the target node has no valid lease")
	}
	if !run.Left {
		run.Left = true
		if err := t.files.writeRun(id, run); err != nil {
			return FinishReply{}, err
		}
	}
	s, err := t.domain.status(ctx, id)
	if err != nil {
		return FinishReply{}, err
	}
	if s.State != hypervisor.Running && s.State != hypervisor.Paused {
		if err := t.finishOrDiscard(ctx, id); err != nil {
			return FinishReply{}, err
		}
		if s, err = t.domain.status(ctx, id); err != nil {
			return FinishReply{}, err
		}
	}
	if !s.State.Active() {
		return FinishReply{}, nil
	}
	if run.Since.IsZero() {
		run.Since = t.o.Now().UTC()
		if err := t.files.writeRun(id, run); err != nil {
			return FinishReply{}, err
		}
	}
	return FinishReply{Runs: true}, nil
}

// finishOrDiscard resumes a machine that has arrived completely, and discards an
// incomplete one.
func (t *migrationTarget) finishOrDiscard(ctx context.Context, id api.InstanceID) error {
	err := t.o.Migrator.FinishMigration(ctx, id)
	if c := api.CodeOf(err); c != api.CodeState && c != api.CodeNotFound {
		return wrap(err, "run instance %s, which has arrived", id)
	}
	return t.domain.discardMigration(ctx, id)
}
