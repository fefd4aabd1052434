package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// Peers calls the other nodes' agents, for migrations: each method calls the
// corresponding HandleX, or ExportVolume, of the other node's Agent.
type Peers interface {
	PrepareMigration(ctx context.Context, target api.NodeID, r PrepareRequest) (PrepareReply, error)
	OpenTunnel(ctx context.Context, target api.NodeID, r TunnelRequest) (net.Conn, error)
	FinishMigration(ctx context.Context, target api.NodeID, r FinishRequest) (FinishReply, error)
	CopyProgress(ctx context.Context, target api.NodeID, r CopyRequest) (CopyReply, error)
	// FetchVolume opens what the source's ExportVolume writes. The caller closes it. Its
	// end is an error unless all of it was read.
	FetchVolume(ctx context.Context, source api.NodeID, r VolumeRequest) (io.ReadCloser, sds.Volume, error)
}

// PrepareRequest asks a target to prepare for a migration.
type PrepareRequest struct {
	Migration api.MigrationID `json:"migration"`
	RootBytes int64           `json:"rootBytes"` // exact size of the root disk
	// Volumes are attached beside the root volume, in the machine's order.
	Volumes []api.VolumeID `json:"volumes,omitempty"`
}

// PrepareReply describes the machine as it will be on the target.
type PrepareReply struct {
	Target    hypervisor.Domain `json:"target"`
	CopyDisks []string          `json:"copyDisks,omitempty"` // serials
	// Waits is what the target waits for, as it is fetching a medium; there is no
	// Target then.
	Waits string `json:"waits,omitempty"`
}

// TunnelRequest asks for one stream to the target's hypervisor.
type TunnelRequest struct {
	Migration api.MigrationID   `json:"migration"`
	Stream    hypervisor.Stream `json:"stream"`
}

// FinishRequest ends a migration on the target. The machine has ended on the source
// and is resumed on the target if all of it has arrived; or it is discarded there.
type FinishRequest struct {
	Migration api.MigrationID `json:"migration"`
	Discard   bool            `json:"discard,omitempty"`
}

// FinishReply reports whether the machine runs on the target.
type FinishReply struct {
	Runs bool `json:"runs"`
}

// Timeouts of calls to a target; after that they are repeated.
const (
	prepareTimeout = 30 * time.Second
	finishTimeout  = 10 * time.Second
)

// move is what this process knows of an outgoing migration. It is guarded by
// migrationReconciler.mu.
type move struct {
	in         api.InstanceID
	seen       moveSeen
	reply      PrepareReply
	reportedAt time.Time // when the status was last written
	offline    offline   // of a stopped instance
}

// migrationReconciler migrates machines from this node to others.
type migrationReconciler struct {
	*core
	fence  *fenceKeeper
	disks  *diskSet
	meter  *usageMeter
	target *migrationTarget
	states *stateKeeper

	mu    sync.Mutex
	moves map[string]*move // outgoing migrations, by ID
}

// moving returns the migration that is moving the instance from this node, if there
// is one.
func (rec *migrationReconciler) moving(id api.InstanceID) (api.Migration, bool) {
	for _, m := range all(rec.cache, rec.cache.migrations) {
		if m.Spec.Instance != id || m.Assignment.Source != rec.o.NodeID {
			continue
		}
		if rec.known(m).copying {
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

// movingVolume reports whether a migration is moving the volume, which belongs to no
// instance, from this node.
func (rec *migrationReconciler) movingVolume(id api.VolumeID) bool {
	m, ok := rec.cache.migrationOfVolume(id)
	if !ok || m.Assignment.Source != rec.o.NodeID {
		return false
	}
	switch m.Status.Phase {
	case api.MigrationPreparing, api.MigrationCopying, api.MigrationSucceeded:
		return true
	}
	return false
}

func (rec *migrationReconciler) known(m api.Migration) moveSeen {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if mv := rec.moves[m.Meta.ID]; mv != nil {
		return mv.seen
	}
	return moveSeen{}
}

// learn updates what is known of a migration.
func (rec *migrationReconciler) learn(m api.Migration, f func(*move)) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	mv := rec.moves[m.Meta.ID]
	if mv == nil {
		mv = &move{in: m.Spec.Instance}
		rec.moves[m.Meta.ID] = mv
	}
	f(mv)
}

func (rec *migrationReconciler) reconcile(ctx context.Context, id string) (time.Duration, error) {
	m, ok := get(rec.cache, rec.cache.migrations, id)
	if !ok {
		return 0, rec.drop(ctx, id)
	}
	switch {
	case m.Assignment.Phase == "" || m.Assignment.Phase == api.MigrationPending:
		return 0, nil
	case m.Assignment.Target == rec.o.NodeID:
		return rec.target.reconcile(ctx, m)
	}
	in, mine := get(rec.cache, rec.cache.instances, string(m.Spec.Instance))
	if m.Spec.Volume != "" {
		_, mine = get(rec.cache, rec.cache.volumes, string(m.Spec.Volume))
	}
	if m.Status.Phase.Ended() || !mine {
		rec.mu.Lock()
		delete(rec.moves, id)
		rec.mu.Unlock()
		rec.trigger(subjectOf(m))
		return 0, nil
	}
	if m.Spec.Offline {
		return rec.sendOffline(ctx, m, in)
	}
	return rec.send(ctx, m, in)
}

// subjectOf returns the key of the instance or volume that is migrated.
func subjectOf(m api.Migration) string {
	s := m.Spec.Subject()
	return key(s.Kind, s.ID)
}

// drop aborts an outgoing migration whose object was removed.
func (rec *migrationReconciler) drop(ctx context.Context, id string) error {
	rec.mu.Lock()
	mv := rec.moves[id]
	rec.mu.Unlock()
	if mv == nil || rec.o.Migrator == nil || !mv.offline.progress.IsZero() {
		return nil
	}
	if err := rec.domain.abortMigration(ctx, mv.in); err != nil {
		return err
	}
	rec.mu.Lock()
	delete(rec.moves, id)
	rec.mu.Unlock()
	rec.trigger(key(api.KindInstance, string(mv.in)))
	return nil
}

// send performs one step of an outgoing migration.
func (rec *migrationReconciler) send(ctx context.Context, m api.Migration, in api.Instance) (time.Duration, error) {
	s, err := rec.observe(ctx, m, in)
	if err != nil {
		return 0, err
	}
	d := nextMove(m, in, s, rec.o.Now())
	if err := rec.writeStatus(ctx, m, d.status); err != nil {
		return 0, err
	}
	if d.step != moveNone {
		rec.log.Info("migration step started", "id", m.Meta.ID, "instance", in.Meta.ID, "step", string(d.step))
		if err := rec.perform(ctx, m, in, d.step); err != nil {
			return 0, fmt.Errorf("step %s: %w", d.step, err)
		}
	}
	if d.end != nil {
		if err := rec.writeStatus(ctx, m, *d.end); err != nil {
			return 0, err
		}
	}
	if d.end != nil || d.status.Phase.Ended() {
		rec.trigger(key(api.KindMigration, m.Meta.ID))
	}
	return d.again, nil
}

func (rec *migrationReconciler) observe(ctx context.Context, m api.Migration, in api.Instance) (moveSeen, error) {
	s := rec.known(m)
	if rec.o.Migrator == nil || rec.o.Peers == nil {
		s.unable = "this node cannot move machines while they run"
	} else if in.Assignment.Gpu != "" {
		s.unable = "an instance with a virtual GPU cannot be live-migrated"
	}
	for _, v := range rec.disks.attachedTo(in) {
		if !rec.pools.shared(v.Assignment.Pool) {
			s.unable = notShared(v).Error()
		}
	}
	id := api.InstanceID(in.Meta.ID)
	status, err := rec.domain.status(ctx, id)
	if err != nil {
		return s, err
	}
	s.domain = status.State
	rec.meter.sawRun(id, s.domain)
	s.targetLost = rec.members.away(m.Assignment.Target)
	if v, ok := get(rec.cache, rec.cache.volumes, string(in.Assignment.RootVolume)); ok {
		s.copied = !rec.pools.shared(v.Assignment.Pool)
	}
	if rec.o.Migrator != nil && !s.copying {
		ms, err := rec.domain.migration(ctx, id)
		if err != nil {
			return s, err
		}
		s.sending = ms.Role == hypervisor.MigrationSource
	}
	return s, nil
}

// progressInterval is the shortest interval between two writes of progress.
const progressInterval = time.Second

func (rec *migrationReconciler) writeStatus(ctx context.Context, m api.Migration, st api.MigrationStatus) error {
	now, ok := get(rec.cache, rec.cache.migrations, m.Meta.ID)
	if !ok {
		return errStale
	}
	if reflect.DeepEqual(now.Status, st) {
		return nil
	}
	at, wait := rec.o.Now(), false
	rec.learn(m, func(mv *move) {
		wait = now.Status.Phase == st.Phase && at.Sub(mv.reportedAt) < progressInterval
		if !wait {
			mv.reportedAt = at
		}
	})
	if wait {
		return nil
	}
	return rec.report(ctx, api.KindMigration, m.Meta.ID, now.Meta.Revision, st)
}

func (rec *migrationReconciler) perform(ctx context.Context, m api.Migration, in api.Instance, s moveStep) error {
	id := api.InstanceID(in.Meta.ID)
	switch s {
	case movePrepare:
		return rec.prepare(ctx, m, in)
	case moveCopy:
		rec.transfer(ctx, m, in)
		return nil
	case moveAbort:
		if rec.o.Migrator == nil {
			return nil
		}
		err := rec.domain.abortMigration(ctx, id)
		if api.CodeOf(err) == api.CodeUnavailable {
			// A target that has received all of it has the locks of its disks, and
			// the source cannot resume the machine until the target has released
			// them.
			if err := rec.perform(ctx, m, in, moveDiscard); err != nil {
				return err
			}
			err = rec.domain.abortMigration(ctx, id)
		}
		return err
	case moveDiscard:
		if rec.o.Peers == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, finishTimeout)
		defer cancel()
		// If the request is lost the target discards it when the migration has
		// ended.
		if _, err := rec.o.Peers.FinishMigration(ctx, m.Assignment.Target, FinishRequest{Migration: api.MigrationID(m.Meta.ID), Discard: true}); err != nil {
			rec.log.Warn("request to discard migration on the target failed", "id", m.Meta.ID, "error", err)
		}
		return nil
	case moveSettle:
		return rec.settle(ctx, m, in)
	case moveLost:
		r, err := rec.files.readRun(id)
		if err != nil {
			return err
		}
		r.Interrupted = true
		return rec.files.writeRun(id, r)
	}
	return fmt.Errorf("unknown step %q", s)
}

func (rec *migrationReconciler) prepare(ctx context.Context, m api.Migration, in api.Instance) error {
	v, ok := get(rec.cache, rec.cache.volumes, string(in.Assignment.RootVolume))
	if !ok {
		return errStale
	}
	p, err := rec.pools.driver(v.Assignment.Pool)
	if err != nil {
		return err
	}
	root, err := findVolume(ctx, p, in.Assignment.RootVolume)
	if err != nil {
		return err
	}
	if !p.Capabilities().Shared {
		if err := p.Movable(ctx, in.Assignment.RootVolume); err != nil {
			rec.refuse(m, "its root volume cannot be moved", err)
			return nil
		}
	}
	ask := PrepareRequest{Migration: api.MigrationID(m.Meta.ID), RootBytes: root.SizeBytes}
	open, err := rec.domain.disks(ctx, m.Spec.Instance)
	if err != nil {
		return err
	}
	for _, v := range rec.disks.attachedTo(in) {
		if hasDisk(open, serialOf(v)) != nil { // one that is not attached yet will be attached on the target
			ask.Volumes = append(ask.Volumes, api.VolumeID(v.Meta.ID))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	reply, err := rec.o.Peers.PrepareMigration(ctx, m.Assignment.Target, ask)
	code := api.CodeOf(err)
	if err != nil && (code == api.CodeUnavailable || code == api.CodeInternal || code == api.CodeConflict) {
		return fmt.Errorf("prepare node %s for instance %s: %w", m.Assignment.Target, in.Meta.ID, err) // retried
	}
	if err != nil {
		rec.refuse(m, "the target refused the instance", err)
		return nil
	}
	rec.learn(m, func(mv *move) {
		mv.seen.waits = reply.Waits != ""
		if !mv.seen.waits {
			mv.reply, mv.seen.prepared = reply, true
		}
	})
	return nil
}

// refuse records why the migration cannot begin: what and the error's message for users.
// The chain of errors is only logged.
func (rec *migrationReconciler) refuse(m api.Migration, what string, err error) {
	rec.log.Warn("migration cannot begin", "id", m.Meta.ID, "instance", m.Spec.Instance, "target", m.Assignment.Target, "reason", what, "error", err)
	rec.learn(m, func(mv *move) { mv.seen.refused = what + ": " + userMessage(err) })
}

// transfer starts to send the machine in a job of its own.
func (rec *migrationReconciler) transfer(ctx context.Context, m api.Migration, in api.Instance) {
	var reply PrepareReply
	rec.learn(m, func(mv *move) { mv.seen.copying, reply = true, mv.reply })
	o := hypervisor.MigrateOptions{Target: reply.Target, CopyDisks: reply.CopyDisks, Tunnel: tunnel{rec.o.Peers, m},
		Progress: func(p hypervisor.MigrationProgress) { rec.learn(m, func(mv *move) { mv.seen.progress = p }) }}
	rec.jobs.spawn(func() {
		result, err := hypervisor.MigrationResult{}, rec.confirm(ctx, in)
		if err == nil {
			result, err = rec.o.Migrator.Migrate(ctx, api.InstanceID(in.Meta.ID), o)
		}
		if err != nil { // the status has the message for users only
			rec.log.Warn("send instance failed", "id", m.Meta.ID, "instance", in.Meta.ID, "target", m.Assignment.Target, "error", err)
		}
		rec.learn(m, func(mv *move) {
			mv.seen.copying, mv.seen.prepared = false, false
			mv.seen.done, mv.seen.downtime = err == nil, result.Downtime
			if err != nil {
				mv.seen.err = userMessage(err)
			}
		})
		if ctx.Err() == nil {
			rec.trigger(key(api.KindMigration, m.Meta.ID))
		}
	})
}

// confirm checks with the store that the instance is still this node's to send.
func (rec *migrationReconciler) confirm(ctx context.Context, in api.Instance) error {
	if err := rec.fence.confirm(ctx, in); errors.Is(err, errStale) {
		return api.Errorf(api.CodeState, "the instance was assigned to another node, or is to stop")
	} else if err != nil {
		return err
	}
	return nil
}

// tunnel opens the streams of one migration. It implements hypervisor.Tunnel.
type tunnel struct {
	peers Peers
	m     api.Migration
}

// Open implements hypervisor.Tunnel.
func (t tunnel) Open(ctx context.Context, s hypervisor.Stream) (net.Conn, error) {
	conn, err := t.peers.OpenTunnel(ctx, t.m.Assignment.Target, TunnelRequest{Migration: api.MigrationID(t.m.Meta.ID), Stream: s})
	return conn, wrap(err, "open stream %s of migration %s to node %s", s, t.m.Meta.ID, t.m.Assignment.Target)
}

// settle ends the metering of the instance on this node, then has the target resume
// it.
func (rec *migrationReconciler) settle(ctx context.Context, m api.Migration, in api.Instance) error {
	id := api.InstanceID(in.Meta.ID)
	r, err := rec.files.readRun(id)
	if err != nil {
		return err
	}
	if !r.Over {
		r.Over = true
		if err := rec.files.writeRun(id, r); err != nil {
			return err
		}
	}
	if err := rec.meter.recordInstance(ctx, in); err != nil {
		return err
	}
	done := rec.known(m).done
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	reply, err := rec.o.Peers.FinishMigration(ctx, m.Assignment.Target, FinishRequest{Migration: api.MigrationID(m.Meta.ID)})
	if err != nil {
		if done {
			return nil // it runs there; the target only starts to meter it a little later
		}
		return fmt.Errorf("finish the migration of instance %s on node %s: %w", id, m.Assignment.Target, err)
	}
	rec.learn(m, func(mv *move) {
		mv.seen.arrival = arrivedNot
		if reply.Runs {
			mv.seen.arrival = arrived
		}
	})
	return nil
}
