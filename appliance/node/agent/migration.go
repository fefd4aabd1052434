package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Peers are the other nodes' agents, for migrations: each call is the method
// HandleX of the target's Agent.
type Peers interface {
	PrepareMigration(ctx context.Context, target api.NodeID, r PrepareRequest) (PrepareReply, error)
	OpenTunnel(ctx context.Context, target api.NodeID, r TunnelRequest) (net.Conn, error)
	FinishMigration(ctx context.Context, target api.NodeID, r FinishRequest) (FinishReply, error)
}

// PrepareRequest asks a target to make ready.
type PrepareRequest struct {
	Migration api.MigrationID `json:"migration"`
	RootBytes int64           `json:"rootBytes"` // exact size of the root disk
	// Volumes that are attached beside the root volume, in the machine's order.
	Volumes []api.VolumeID `json:"volumes,omitempty"`
}

// PrepareReply is the machine as it will be on the target.
type PrepareReply struct {
	Target    hypervisor.Domain `json:"target"`
	CopyDisks []string          `json:"copyDisks,omitempty"` // serials
}

// TunnelRequest asks for one stream to the target's hypervisor.
type TunnelRequest struct {
	Migration api.MigrationID   `json:"migration"`
	Stream    hypervisor.Stream `json:"stream"`
}

// FinishRequest ends a migration on the target: the machine is gone from the
// source and runs there if all of it has arrived, or it is thrown away there.
type FinishRequest struct {
	Migration api.MigrationID `json:"migration"`
	Discard   bool            `json:"discard,omitempty"`
}

// FinishReply says whether it runs on the target.
type FinishReply struct {
	Runs bool `json:"runs"`
}

// Calls to a target that is slow are given up and made again.
const (
	prepareTimeout = 30 * time.Second
	finishTimeout  = 10 * time.Second
)

// move is what this process knows of a migration from here. Guarded by
// Agent.mu.
type move struct {
	in    api.InstanceID
	seen  moveSeen
	reply PrepareReply
	said  time.Time
}

// moving is the migration that the instance is in the hands of.
func (a *Agent) moving(id api.InstanceID) (api.Migration, bool) {
	for _, m := range all(a.cache, a.cache.migrations) {
		if m.Spec.Instance != id || m.Assignment.Source != a.o.NodeID {
			continue
		}
		if a.known(m).copying {
			return m, true
		}
		if m.Assignment.Phase.Ended() {
			continue
		}
		switch m.Status.Phase {
		case api.MigrationPreparing, api.MigrationCopying, api.MigrationSucceeded:
			return m, true
		}
	}
	return api.Migration{}, false
}

// whileMoving says only that it moves, and notes when the fence ends it: that
// is seen only as long as there is no lease.
func (a *Agent) whileMoving(ctx context.Context, in api.Instance, m api.Migration) (time.Duration, error) {
	id := api.InstanceID(in.Meta.ID)
	s, err := a.o.Machines.Status(ctx, id)
	if err != nil {
		return 0, err
	}
	a.meter.sawRun(id, s.State)
	if s.State == hypervisor.Crashed {
		r, err := a.files.readRun(id)
		if err == nil {
			_, err = a.fence.interrupted(in, r, s.State)
		}
		if err != nil {
			return 0, err
		}
	}
	st := in.Status
	st.Step = "moving to node " + string(m.Assignment.Target)
	if n, ok := get(a.cache, a.cache.nodes, string(m.Assignment.Target)); ok {
		st.Step = "moving to node " + n.Meta.Name
	}
	return 2 * time.Second, a.say(ctx, in, st)
}

func (a *Agent) known(m api.Migration) moveSeen {
	a.mu.Lock()
	defer a.mu.Unlock()
	if mv := a.moves[m.Meta.ID]; mv != nil {
		return mv.seen
	}
	return moveSeen{}
}

// learn changes what is known of a migration.
func (a *Agent) learn(m api.Migration, f func(*move)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	mv := a.moves[m.Meta.ID]
	if mv == nil {
		mv = &move{in: m.Spec.Instance}
		a.moves[m.Meta.ID] = mv
	}
	f(mv)
}

func (a *Agent) reconcileMigration(ctx context.Context, id string) (time.Duration, error) {
	m, ok := get(a.cache, a.cache.migrations, id)
	if !ok {
		return 0, a.dropMove(ctx, id)
	}
	switch {
	case m.Assignment.Phase == "" || m.Assignment.Phase == api.MigrationPending:
		return 0, nil
	case m.Assignment.Target == a.o.NodeID:
		return a.reconcileIncoming(ctx, m)
	}
	in, mine := get(a.cache, a.cache.instances, string(m.Spec.Instance))
	if m.Status.Phase.Ended() || !mine {
		a.mu.Lock()
		delete(a.moves, id)
		a.mu.Unlock()
		a.kick(key(api.KindInstance, string(m.Spec.Instance)))
		return 0, nil
	}
	return a.send(ctx, m, in)
}

// dropMove ends what is under way for a migration that is gone.
func (a *Agent) dropMove(ctx context.Context, id string) error {
	a.mu.Lock()
	mv := a.moves[id]
	a.mu.Unlock()
	if mv == nil || a.o.Migrator == nil {
		return nil
	}
	if err := a.o.Migrator.AbortMigration(ctx, mv.in); err != nil {
		return err
	}
	a.mu.Lock()
	delete(a.moves, id)
	a.mu.Unlock()
	a.kick(key(api.KindInstance, string(mv.in)))
	return nil
}

// send takes one step of a migration from here.
func (a *Agent) send(ctx context.Context, m api.Migration, in api.Instance) (time.Duration, error) {
	s, err := a.lookMove(ctx, m, in)
	if err != nil {
		return 0, err
	}
	d := nextMove(m, in, s, a.o.Now())
	if err := a.sayMove(ctx, m, d.status); err != nil {
		return 0, err
	}
	if d.step != moveNone {
		a.log.Info("migration", "id", m.Meta.ID, "instance", in.Meta.ID, "step", string(d.step))
		if err := a.doMove(ctx, m, in, d.step); err != nil {
			return 0, fmt.Errorf("%s: %w", d.step, err)
		}
	}
	if d.end != nil {
		if err := a.sayMove(ctx, m, *d.end); err != nil {
			return 0, err
		}
	}
	if d.end != nil || d.status.Phase.Ended() {
		a.kick(key(api.KindMigration, m.Meta.ID))
	}
	return d.again, nil
}

func (a *Agent) lookMove(ctx context.Context, m api.Migration, in api.Instance) (moveSeen, error) {
	s := a.known(m)
	if a.o.Migrator == nil || a.o.Peers == nil {
		s.unable = "this node cannot move machines while they run"
	} else if in.Assignment.Gpu != "" {
		s.unable = "an instance with a virtual GPU does not move while it runs"
	}
	for _, v := range a.disks.attachedTo(in) {
		if !a.pools.shared(v.Assignment.Pool) {
			s.unable = notShared(v).Error()
		}
	}
	id := api.InstanceID(in.Meta.ID)
	status, err := a.o.Machines.Status(ctx, id)
	if err != nil {
		return s, err
	}
	s.domain = status.State
	a.meter.sawRun(id, s.domain)
	s.targetLost = a.members.away(m.Assignment.Target)
	if v, ok := get(a.cache, a.cache.volumes, string(in.Assignment.RootVolume)); ok {
		s.copied = !a.pools.shared(v.Assignment.Pool)
	}
	if a.o.Migrator != nil && !s.copying {
		ms, err := a.o.Migrator.MigrationStatus(ctx, id)
		if err != nil {
			return s, err
		}
		s.sending = ms.Role == hypervisor.MigrationSource
	}
	return s, nil
}

// sayEvery bounds how often progress is written.
const sayEvery = time.Second

func (a *Agent) sayMove(ctx context.Context, m api.Migration, st api.MigrationStatus) error {
	now, ok := get(a.cache, a.cache.migrations, m.Meta.ID)
	if !ok {
		return errStale
	}
	if reflect.DeepEqual(now.Status, st) {
		return nil
	}
	at, wait := a.o.Now(), false
	a.learn(m, func(mv *move) {
		wait = now.Status.Phase == st.Phase && at.Sub(mv.said) < sayEvery
		if !wait {
			mv.said = at
		}
	})
	if wait {
		return nil
	}
	return a.report(ctx, api.KindMigration, m.Meta.ID, now.Meta.Revision, st)
}

func (a *Agent) doMove(ctx context.Context, m api.Migration, in api.Instance, s moveStep) error {
	id := api.InstanceID(in.Meta.ID)
	switch s {
	case movePrepare:
		return a.prepareMove(ctx, m, in)
	case moveCopy:
		a.copyMove(ctx, m, in)
		return nil
	case moveAbort:
		if a.o.Migrator == nil {
			return nil
		}
		err := a.o.Migrator.AbortMigration(ctx, id)
		if api.CodeOf(err) == api.CodeUnavailable {
			// A target that has received all of it holds the locks of its disks,
			// and does not let it run while this node has the domain.
			if err := a.doMove(ctx, m, in, moveDiscard); err != nil {
				return err
			}
			err = a.o.Migrator.AbortMigration(ctx, id)
		}
		return err
	case moveDiscard:
		if a.o.Peers == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, finishTimeout)
		defer cancel()
		// Where this is not heard the end of the migration is.
		if _, err := a.o.Peers.FinishMigration(ctx, m.Assignment.Target, FinishRequest{Migration: api.MigrationID(m.Meta.ID), Discard: true}); err != nil {
			a.log.Warn("telling the target to discard", "id", m.Meta.ID, "error", err)
		}
		return nil
	case moveSettle:
		return a.settleMove(ctx, m, in)
	case moveLost:
		r, err := a.files.readRun(id)
		if err != nil {
			return err
		}
		r.Interrupted = true
		return a.files.writeRun(id, r)
	}
	return fmt.Errorf("unknown step %q", s)
}

func (a *Agent) prepareMove(ctx context.Context, m api.Migration, in api.Instance) error {
	v, ok := get(a.cache, a.cache.volumes, string(in.Assignment.RootVolume))
	if !ok {
		return errStale
	}
	p, err := a.pools.driver(v.Assignment.Pool)
	if err != nil {
		return err
	}
	root, err := p.Volume(ctx, in.Assignment.RootVolume)
	if err != nil {
		return err
	}
	if !p.Capabilities().Shared {
		if err := p.Movable(ctx, in.Assignment.RootVolume); err != nil {
			a.learn(m, func(mv *move) { mv.seen.refused = err.Error() })
			return nil
		}
	}
	ask := PrepareRequest{Migration: api.MigrationID(m.Meta.ID), RootBytes: root.SizeBytes}
	open, err := a.o.Machines.Disks(ctx, m.Spec.Instance)
	if err != nil {
		return err
	}
	for _, v := range a.disks.attachedTo(in) {
		if hasDisk(open, serialOf(v)) != nil { // one that is not yet attached is so when it has arrived
			ask.Volumes = append(ask.Volumes, api.VolumeID(v.Meta.ID))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	reply, err := a.o.Peers.PrepareMigration(ctx, m.Assignment.Target, ask)
	code := api.CodeOf(err)
	if err != nil && (code == api.CodeUnavailable || code == api.CodeInternal || code == api.CodeConflict) {
		return err // later
	}
	a.learn(m, func(mv *move) {
		if err != nil {
			mv.seen.refused = err.Error()
			return
		}
		mv.reply, mv.seen.prepared = reply, true
	})
	return nil
}

// copyMove sends the machine, beside everything else.
func (a *Agent) copyMove(ctx context.Context, m api.Migration, in api.Instance) {
	var reply PrepareReply
	a.learn(m, func(mv *move) { mv.seen.copying, reply = true, mv.reply })
	o := hypervisor.MigrateOptions{Target: reply.Target, CopyDisks: reply.CopyDisks, Tunnel: tunnel{a, m},
		Progress: func(p hypervisor.MigrationProgress) { a.learn(m, func(mv *move) { mv.seen.progress = p }) }}
	a.jobs.wg.Add(1)
	a.o.Go(func() {
		defer a.jobs.wg.Done()
		result, err := hypervisor.MigrationResult{}, a.confirmMove(ctx, in)
		if err == nil {
			result, err = a.o.Migrator.Migrate(ctx, api.InstanceID(in.Meta.ID), o)
		}
		a.learn(m, func(mv *move) {
			mv.seen.copying, mv.seen.prepared = false, false
			mv.seen.done, mv.seen.downtime = err == nil, result.Downtime
			if err != nil {
				mv.seen.err = err.Error()
			}
		})
		if ctx.Err() == nil {
			a.kick(key(api.KindMigration, m.Meta.ID))
		}
	})
}

// confirmMove asks the store whether the instance is still this node's to send.
func (a *Agent) confirmMove(ctx context.Context, in api.Instance) error {
	if err := a.fence.confirm(ctx, in); errors.Is(err, errStale) {
		return api.Errorf(api.CodeState, "the instance was given to another node, or is to end")
	} else if err != nil {
		return err
	}
	return nil
}

// tunnel opens the streams of one migration.
type tunnel struct {
	a *Agent
	m api.Migration
}

// Open implements hypervisor.Tunnel.
func (t tunnel) Open(ctx context.Context, s hypervisor.Stream) (net.Conn, error) {
	return t.a.o.Peers.OpenTunnel(ctx, t.m.Assignment.Target, TunnelRequest{Migration: api.MigrationID(t.m.Meta.ID), Stream: s})
}

// settleMove ends the count of the instance's use here, then has the target
// let it run.
func (a *Agent) settleMove(ctx context.Context, m api.Migration, in api.Instance) error {
	id := api.InstanceID(in.Meta.ID)
	r, err := a.files.readRun(id)
	if err != nil {
		return err
	}
	if !r.Over {
		r.Over = true
		if err := a.files.writeRun(id, r); err != nil {
			return err
		}
	}
	if err := a.meter.recordInstance(ctx, in); err != nil {
		return err
	}
	done := a.known(m).done
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	reply, err := a.o.Peers.FinishMigration(ctx, m.Assignment.Target, FinishRequest{Migration: api.MigrationID(m.Meta.ID)})
	if err != nil {
		if done {
			return nil // it runs there; the target only counts its use from a little later
		}
		return err
	}
	a.learn(m, func(mv *move) {
		mv.seen.arrival = arrivedNot
		if reply.Runs {
			mv.seen.arrival = arrived
		}
	})
	return nil
}
