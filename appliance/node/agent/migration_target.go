package agent

import (
	"context"
	"net"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// arriving is a migration from that node to this one, and its instance, as the
// store has them now.
func (a *Agent) arriving(ctx context.Context, from api.NodeID, id api.MigrationID) (m api.Migration, in api.Instance, err error) {
	o, err := a.o.Store.Get(ctx, api.KindMigration, string(id))
	if err != nil {
		return m, in, err
	}
	a.takeObject(o)
	if m, err = api.Decode[api.Migration](o); err != nil {
		return m, in, err
	}
	if m.Assignment.Target != a.o.NodeID || m.Assignment.Source != from {
		return m, in, api.Errorf(api.CodeForbidden, "migration %s is not from node %s to this one", id, from)
	}
	if o, err = a.o.Store.Get(ctx, api.KindInstance, string(m.Spec.Instance)); err != nil {
		return m, in, err
	}
	in, err = api.Decode[api.Instance](o)
	return m, in, err
}

// active says that the migration is under way.
func active(m api.Migration, in api.Instance) error {
	if m.Assignment.Phase != api.MigrationPreparing && m.Assignment.Phase != api.MigrationCopying || m.Status.Phase.Ended() ||
		in.Assignment.Node != m.Assignment.Source || in.Assignment.MigrateTo != m.Assignment.Target {
		return api.Errorf(api.CodeState, "migration %s is not under way", m.Meta.ID)
	}
	return nil
}

// HandlePrepareMigration makes this node ready for a machine from another. It
// is undone when the migration ends otherwise than here (leaveInstance).
func (a *Agent) HandlePrepareMigration(ctx context.Context, from api.NodeID, r PrepareRequest) (PrepareReply, error) {
	var none PrepareReply
	m, in, err := a.arriving(ctx, from, r.Migration)
	if err == nil {
		err = active(m, in)
	}
	if err != nil {
		return none, err
	}
	if a.o.Migrator == nil {
		return none, api.Errorf(api.CodeState, "this node cannot take machines while they run")
	}
	if n, ok := a.cache.self(); !ok || n.Assignment.Epoch > a.epoch.get() || !a.fence.leased() {
		return none, api.Errorf(api.CodeUnavailable, "the target takes no work now").WithHint("it will try again")
	}
	id := api.InstanceID(in.Meta.ID)
	disks, copied, err := a.makeTarget(ctx, m, in, r)
	if err != nil {
		return none, err
	}
	if err := a.files.writeSeed(in); err != nil {
		return none, err
	}
	nics, err := a.ports.plug(ctx, in, true)
	if err != nil {
		return none, err
	}
	d, err := a.domainOn(ctx, in, disks, nics)
	if err != nil {
		return none, err
	}
	// They stay until it has come, or does not come (adopt, leaveInstance).
	if err := a.disks.setSecrets(ctx, disks); err != nil {
		return none, err
	}
	if err := a.o.Migrator.PrepareMigration(ctx, d); err != nil {
		return none, err
	}
	reply := PrepareReply{Target: d}
	if copied {
		reply.CopyDisks = []string{d.Disks[0].Serial}
	}
	a.log.Info("ready for a migration", "id", m.Meta.ID, "instance", id, "from", from)
	return reply, nil
}

// makeTarget are the disks that the machine will have here: the shared ones,
// and in place of a root volume that is not shared a blank one. The run's file
// says first what is made, so that it is found again.
func (a *Agent) makeTarget(ctx context.Context, m api.Migration, in api.Instance, req PrepareRequest) (disks []disk, copied bool, err error) {
	r := runFile{Epoch: in.Assignment.Epoch + 1, Boot: a.o.BootID, Incoming: api.MigrationID(m.Meta.ID)}
	for i, id := range append([]api.VolumeID{in.Assignment.RootVolume}, req.Volumes...) {
		o, err := a.o.Store.Get(ctx, api.KindVolume, string(id))
		if err != nil {
			return nil, false, err
		}
		v, err := api.Decode[api.Volume](o)
		if err != nil {
			return nil, false, err
		}
		p, err := a.pools.driver(v.Assignment.Pool)
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
			return nil, false, api.Errorf(api.CodeConflict, "volume %s is not attached to the instance any more", id)
		}
		if v.Spec.Encrypted {
			r.Opens = append(r.Opens, id)
		}
		if root || v.Spec.Encrypted {
			if err := a.files.writeRun(m.Spec.Instance, r); err != nil {
				return nil, false, err
			}
		}
		have, err := a.targetVolume(ctx, v, p, root && copied, req.RootBytes)
		if err != nil {
			return nil, false, err
		}
		k, err := a.disks.openable(ctx, v, have, p)
		if err != nil {
			return nil, false, err
		}
		disks = append(disks, k)
	}
	return disks, copied, nil
}

func (a *Agent) targetVolume(ctx context.Context, v api.Volume, p sds.Driver, blank bool, bytes int64) (sds.Volume, error) {
	id := api.VolumeID(v.Meta.ID)
	if !blank {
		return p.Volume(ctx, id)
	}
	// What an earlier attempt or an earlier life here has left is no part of it.
	if err := p.DeleteVolume(ctx, id); err != nil && api.CodeOf(err) != api.CodeNotFound {
		return sds.Volume{}, err
	}
	e, err := a.disks.encryption(ctx, v)
	if err != nil {
		return sds.Volume{}, err
	}
	return p.CreateVolume(ctx, sds.VolumeCreate{ID: id, Image: v.Spec.Image, SizeBytes: bytes, Epoch: v.Assignment.Recreate, Standalone: true, Encryption: e})
}

func notShared(v api.Volume) error {
	return api.Errorf(api.CodeState, "volume %s lies on one node only, and does not move with a running instance", v.Meta.Name).
		WithHint("detach it, or stop the instance first")
}

// HandleTunnel is this node's end of one stream; it closes conn.
func (a *Agent) HandleTunnel(ctx context.Context, from api.NodeID, r TunnelRequest, conn net.Conn) error {
	m, in, err := a.arriving(ctx, from, r.Migration)
	if err == nil {
		err = active(m, in)
	}
	if err == nil && (a.o.Migrator == nil || !r.Stream.Valid()) {
		err = api.Errorf(api.CodeInvalid, "no stream %q", r.Stream)
	}
	if err != nil {
		_ = conn.Close() // its end is the answer
		return err
	}
	return a.o.Migrator.AcceptMigration(ctx, m.Spec.Instance, r.Stream, conn)
}

// HandleFinish ends a migration here: the machine runs if all of it has
// arrived, or is thrown away. The source has made sure that it does not run
// there, or that it does.
func (a *Agent) HandleFinish(ctx context.Context, from api.NodeID, r FinishRequest) (FinishReply, error) {
	m, in, err := a.arriving(ctx, from, r.Migration)
	if err != nil {
		return FinishReply{}, err
	}
	id := m.Spec.Instance
	run, err := a.files.readRun(id)
	if err != nil {
		return FinishReply{}, err
	}
	if a.o.Migrator == nil || run.Incoming != r.Migration { // of a migration that is not the one that came last
		return FinishReply{Runs: in.Assignment.Node == a.o.NodeID}, nil
	}
	if r.Discard {
		return FinishReply{}, a.o.Migrator.DiscardMigration(ctx, id)
	}
	if !a.fence.leased() {
		return FinishReply{}, api.Errorf(api.CodeUnavailable, "the target has no lease now")
	}
	if !run.Left {
		run.Left = true
		if err := a.files.writeRun(id, run); err != nil {
			return FinishReply{}, err
		}
	}
	s, err := a.o.Machines.Status(ctx, id)
	if err != nil {
		return FinishReply{}, err
	}
	if s.State != hypervisor.Running && s.State != hypervisor.Paused {
		if err := a.endMove(ctx, id); err != nil {
			return FinishReply{}, err
		}
		if s, err = a.o.Machines.Status(ctx, id); err != nil {
			return FinishReply{}, err
		}
	}
	if !s.State.Active() {
		return FinishReply{}, nil
	}
	if run.Since.IsZero() {
		run.Since = a.o.Now().UTC()
		if err := a.files.writeRun(id, run); err != nil {
			return FinishReply{}, err
		}
	}
	return FinishReply{Runs: true}, nil
}
