package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/backup"
)

// maxReceives is how many instances, and volumes without one, a node receives at once:
// they share its disks and its network with the machines that run.
const maxReceives = 2

// receiver receives the volumes of stopped instances, and volumes without an instance,
// from other nodes. What it has is in a file (receipt.go): volumes that are not complete
// are received again from the beginning, and those of another migration are older and are
// deleted first. There is one task for each instance or volume at a time.
type receiver struct {
	*core
	fence  *fenceKeeper
	images *imageReconciler
	copies *copies
	target *migrationTarget
}

// attempts of a migration's copy, for the source.
type attempts struct {
	failed int
	again  time.Time
	waits  string        // why the last one has ended, for users
	err    error         // final
	image  *missingImage // nil if the next attempt needs none
}

// missingImage ends a task that continues when the image is in the pool. The image is
// fetched by a job that outlives the task.
type missingImage struct {
	pool  string
	image api.Image
}

func (e *missingImage) Error() string { return "the target is fetching image " + e.image.Meta.Name }

// maxAttempts is how often a copy may fail in a row.
const maxAttempts = 10

// reconcile begins to receive what is missing, and stops when the migration has ended.
func (r *receiver) reconcile(ctx context.Context, m api.Migration) (time.Duration, error) {
	k, id := subjectOf(m), m.Meta.ID
	seen := r.copies.state(k)
	if m.Assignment.Phase.Ended() || m.Status.Phase.Ended() {
		if seen.what == id && r.copies.cancel(k) {
			return time.Second, nil
		}
		r.target.noAttempts(id)
		if m.Spec.Volume != "" && m.Assignment.Phase.Ended() {
			if err := r.files.dropReceipt(m); err != nil {
				return 0, err
			}
		}
		if !r.comes(m) { // otherwise it is assigned to this node next
			r.trigger(k)
		}
		return 0, nil
	}
	if m.Status.Phase != api.MigrationCopying {
		return 0, nil // the source has not stored the machine's state yet, or does not hold still
	}
	switch {
	case seen.running && seen.what != id: // of an earlier migration
		r.copies.cancel(k)
		return time.Second, nil
	case seen.running:
		return reconcileInterval, nil
	case seen.ended:
		r.copies.discard(k)
		r.target.attempted(id, seen.err, r.o.Now())
	}
	a := r.target.attemptsOf(id)
	if a.err != nil {
		return 0, nil
	}
	if wait := a.again.Sub(r.o.Now()); wait > 0 {
		return wait, nil
	}
	run, err := r.files.readReceipt(m)
	if err != nil || run.received(m) {
		return 0, err
	}
	if a.image != nil {
		there, err := r.images.need(ctx, a.image.pool, a.image.image, key(api.KindMigration, id))
		if err != nil {
			r.target.attempted(id, err, r.o.Now())
		}
		if err != nil || !there {
			return time.Second, nil
		}
	}
	if !r.copies.begin(ctx, k, id, func(ctx context.Context, p func(backup.Progress)) (backup.Result, error) {
		return backup.Result{}, r.receive(ctx, m, func(n int64) { p(backup.Progress{DoneBytes: n}) })
	}) {
		r.target.waits(id, "the target is receiving others")
		return time.Second, nil
	}
	return reconcileInterval, nil
}

// comes reports whether what is migrated comes to this node.
func (r *receiver) comes(m api.Migration) bool {
	if m.Spec.Volume != "" {
		_, comes := r.volumeComesHere(m.Spec.Volume)
		return comes
	}
	return r.comesHere(m.Spec.Instance)
}

// received reports whether the run's file has all volumes of the migration.
func (r runFile) received(m api.Migration) bool {
	return r.Incoming == api.MigrationID(m.Meta.ID) && len(r.Received) == len(m.Assignment.Volumes)
}

// receive receives the volumes that are missing. Everything that decides is read from
// the store, because volumes are deleted here: they must not be this node's own.
func (r *receiver) receive(ctx context.Context, m api.Migration, progress func(int64)) error {
	m, err := r.current(ctx, m.Assignment.Source, api.MigrationID(m.Meta.ID))
	if err != nil {
		return err
	}
	if m.Spec.Volume == "" {
		if s, err := r.domain.status(ctx, m.Spec.Instance); err != nil || s.State.Active() {
			return errors.Join(err, api.Errorf(api.CodeUnavailable, "an earlier run of the instance has not ended here"))
		}
	}
	run, err := r.files.readReceipt(m)
	if err != nil {
		return err
	}
	if run.Incoming != api.MigrationID(m.Meta.ID) {
		run = runFile{Boot: r.o.BootID, Incoming: api.MigrationID(m.Meta.ID), Receives: m.Assignment.Volumes}
		if err := r.files.writeReceipt(m, run); err != nil {
			return err
		}
	}
	var done int64
	for _, id := range m.Assignment.Volumes {
		if slices.Contains(run.Received, id) {
			done += r.sizeOf(ctx, id)
			continue
		}
		v, err := r.volume(ctx, m, id)
		if err != nil {
			return err
		}
		n, err := r.receiveVolume(ctx, m, v, func(n int64) { progress(done + n) })
		if err != nil {
			return err
		}
		done += n
		run.Received = append(run.Received, id)
		if err := r.files.writeReceipt(m, run); err != nil {
			return err
		}
	}
	r.log.Info("received volumes", "id", m.Meta.ID, "of", m.Spec.Subject(), "from", m.Assignment.Source)
	return nil
}

// current returns a migration from the given node as the store has it now, while it is
// running.
func (r *receiver) current(ctx context.Context, from api.NodeID, id api.MigrationID) (api.Migration, error) {
	m, err := r.target.migrationFrom(ctx, from, id)
	if err != nil {
		return m, err
	}
	if !m.Spec.Offline {
		return m, api.Errorf(api.CodeInvalid, "migration %s is not one of closed volumes", id)
	}
	if m.Spec.Volume != "" {
		if m.Assignment.Phase != api.MigrationPreparing || m.Status.Phase.Ended() {
			return m, api.Errorf(api.CodeState, "migration %s is not running", id)
		}
		_, err := r.volume(ctx, m, m.Spec.Volume)
		return m, err
	}
	in, err := r.target.instanceOf(ctx, m)
	if err == nil {
		err = active(m, in)
	}
	return m, err
}

// stop ends the task of an instance, and reports whether it is still running.
func (r *receiver) stop(id api.InstanceID) (running bool) {
	return r.copies.cancel(key(api.KindInstance, string(id)))
}

// volume returns one of the migration's volumes as the store has it now, which is the
// source's.
func (r *receiver) volume(ctx context.Context, m api.Migration, id api.VolumeID) (api.Volume, error) {
	o, err := r.read(ctx, api.KindVolume, string(id))
	if err != nil {
		return api.Volume{}, err
	}
	v, err := api.Decode[api.Volume](o)
	if err == nil && v.Assignment.Node != m.Assignment.Source {
		err = api.Errorf(api.CodeState, "volume %s is not on the source any more", v.Meta.Name)
	}
	return v, err
}

// sizeOf returns the bytes that a received volume uses, or 0.
func (r *receiver) sizeOf(ctx context.Context, id api.VolumeID) int64 {
	for _, p := range r.pools.inOrder() {
		if have, err := p.Volume(ctx, id); err == nil {
			return have.AllocatedBytes
		}
	}
	return 0
}

// receiveVolume receives a volume in place of what is left of it here.
func (r *receiver) receiveVolume(ctx context.Context, m api.Migration, v api.Volume, progress func(int64)) (int64, error) {
	id := api.VolumeID(v.Meta.ID)
	p, err := r.mover(v)
	if err != nil {
		return 0, err
	}
	content, have, err := r.o.Peers.FetchVolume(ctx, m.Assignment.Source, VolumeRequest{Migration: api.MigrationID(m.Meta.ID), Volume: id})
	if err != nil {
		return 0, fmt.Errorf("fetch volume %s from node %s: %w", id, m.Assignment.Source, err)
	}
	defer func() { _ = content.Close() }() // the reader has nothing to flush
	if err := r.needsImage(ctx, v, have); err != nil {
		return 0, err
	}
	if _, err := r.current(ctx, m.Assignment.Source, api.MigrationID(m.Meta.ID)); err != nil { // the image may have taken long
		return 0, err
	}
	if err := p.DiscardVolume(ctx, id); err != nil {
		return 0, fmt.Errorf("delete what is left of volume %s: %w", id, err)
	}
	got, err := p.ImportVolume(ctx, sds.VolumeImport{ID: id, Content: io.Reader(content), Progress: progress})
	return got.AllocatedBytes, wrap(err, "receive volume %s", id)
}

// needsImage returns an error unless the image that the volume reads from is in its pool.
func (r *receiver) needsImage(ctx context.Context, v api.Volume, have sds.Volume) error {
	if have.Reads == "" {
		return nil
	}
	p, err := r.pools.driver(v.Assignment.Pool)
	if err != nil {
		return err
	}
	if _, err := p.Image(ctx, have.Reads); api.CodeOf(err) != api.CodeNotFound {
		return wrap(err, "find image %s in pool %s", have.Reads, v.Assignment.Pool)
	}
	img, ok := get(r.cache, r.cache.images, string(have.Reads))
	if !ok {
		return api.Errorf(api.CodeState, "image %s of volume %s does not exist any more", have.Reads, v.Meta.Name).
			WithHint("migrate it with its instance while that runs: then its image is not needed")
	}
	return &missingImage{v.Assignment.Pool, img}
}

// progress tells the source how far this node is.
func (r *receiver) progress(ctx context.Context, from api.NodeID, q CopyRequest) (reply CopyReply, err error) {
	m, err := r.current(ctx, from, q.Migration)
	if err == nil && !r.fence.leased() {
		err = api.Errorf(api.CodeUnavailable, "the target node cannot accept migrations: it has no valid lease").WithHint("it is tried again automatically")
	}
	if err != nil {
		return reply, err
	}
	r.trigger(key(api.KindMigration, m.Meta.ID))
	seen := r.copies.state(subjectOf(m))
	run, err := r.files.readReceipt(m)
	if err != nil {
		return reply, err
	}
	if !seen.running && (run.received(m) || len(m.Assignment.Volumes) == 0) {
		for _, id := range m.Assignment.Volumes {
			if err := r.has(ctx, m, id); err != nil {
				return reply, err
			}
		}
		return CopyReply{Complete: true}, nil
	}
	if seen.running && seen.what == m.Meta.ID {
		return CopyReply{DoneBytes: seen.progress.DoneBytes}, nil
	}
	a := r.target.attemptsOf(m.Meta.ID)
	return CopyReply{Waits: a.waits}, a.err
}

// has returns an error unless this node has the volume.
func (r *receiver) has(ctx context.Context, m api.Migration, id api.VolumeID) error {
	v, err := r.volume(ctx, m, id)
	if err != nil {
		return err
	}
	p, err := r.pools.driver(v.Assignment.Pool)
	if err != nil {
		return err
	}
	if _, err := findVolume(ctx, p, id); err != nil {
		return api.Errorf(api.CodeState, "the copy of volume %s is missing on the target", v.Meta.Name)
	}
	return nil
}

// attempted records that an attempt has ended.
func (t *migrationTarget) attempted(id string, err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.attempts[id]
	var image *missingImage
	switch code := api.CodeOf(err); {
	case err == nil:
		a = attempts{}
	case errors.As(err, &image):
		a.waits, a.image = image.Error(), image
	case a.failed < maxAttempts && (code == api.CodeUnavailable || code == api.CodeInternal || code == api.CodeConflict):
		a.failed++
		a.waits, a.again = "the copy was interrupted, and is tried again: "+userMessage(err), now.Add(min(time.Second<<a.failed, time.Minute))
	default: // wrong_state: the source does not ask again
		a.err = errors.Join(api.Errorf(api.CodeState, "%s", userMessage(err)), err)
	}
	if err != nil && image == nil {
		t.log.Warn("receive volumes failed", "id", id, "error", err)
	}
	t.attempts[id] = a
}

func (t *migrationTarget) attemptsOf(id string) attempts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.attempts[id]
}

func (t *migrationTarget) waits(id, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.attempts[id]
	a.waits = what
	t.attempts[id] = a
}

func (t *migrationTarget) noAttempts(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.attempts, id)
}
