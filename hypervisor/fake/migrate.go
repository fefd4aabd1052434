package fake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Two fakes migrate machines over the same tunnel as two real nodes: the
// source sends orders on the libvirt stream, and a few bytes over the others.
// See incoming.go for the target.

// fakeBytes is the size of a fake machine's memory in its progress.
const fakeBytes = 64 << 20

// move is a migration from here.
type move struct {
	cancel   context.CancelCauseFunc
	done     chan struct{}
	progress hypervisor.MigrationProgress
	final    bool // the source has given the machine up: too late to abort
}

// order is one line from the source to the target; answer is the target's
// reply.
type order struct {
	Do     string // receive, received, cancel, resume
	Spec   hypervisor.Domain
	Booted bool
}
type answer struct{ Error string }

// MigrationStep makes f be called before every step of every migration from
// here: Preparing once, Copying at 0, 25, 50, 75 and 100 percent, Switching
// once. f may block until ctx ends; its error makes the migration fail. A nil
// f ends that. In addition, Fault is called with "MigrateResume" when the
// source has given the machine up and the target does not run it yet.
func (d *Driver) MigrationStep(f func(ctx context.Context, id api.InstanceID, p hypervisor.MigrationProgress) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step = f
}

// Migrate implements hypervisor.Migrator.
func (d *Driver) Migrate(ctx context.Context, id api.InstanceID, o hypervisor.MigrateOptions) (hypervisor.MigrationResult, error) {
	none := hypervisor.MigrationResult{}
	if err := o.Check(id); err != nil {
		return none, err
	}
	if err := d.enter(ctx, "Migrate", id); err != nil {
		return none, err
	}
	dom, err := d.find(id)
	switch {
	case err != nil:
	case dom.status.State != hypervisor.Running:
		err = api.Errorf(api.CodeState, "instance %s is not running", id)
	case d.moves[id] != nil:
		err = api.Errorf(api.CodeState, "instance %s is already being migrated", id)
	default:
		err = fits(dom.running, o.Target)
	}
	if err != nil {
		d.mu.Unlock()
		return none, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := &move{cancel: cancel, done: make(chan struct{})}
	d.moves[id] = m
	first := order{Do: "receive", Spec: o.Target, Booted: dom.booted}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.moves, id)
		d.mu.Unlock()
		close(m.done)
	}()
	return d.send(ctx, id, m, o, first)
}

// fits makes the same check as the real driver.
func fits(running, target hypervisor.Domain) error {
	text, err := running.XML()
	if err == nil {
		_, err = hypervisor.Retarget(text, target)
	}
	return err
}

// send performs a migration: every step before the commit may fail, and then
// the machine continues here.
func (d *Driver) send(ctx context.Context, id api.InstanceID, m *move, o hypervisor.MigrateOptions, first order) (hypervisor.MigrationResult, error) {
	none := hypervisor.MigrationResult{}
	progress := hypervisor.MigrationProgress{Phase: hypervisor.MigrationPreparing, TotalBytes: fakeBytes, RemainingBytes: fakeBytes}
	if len(o.CopyDisks) > 0 {
		progress.DiskTotalBytes = fakeBytes / 2
	}
	if err := d.runStep(ctx, id, m, o, progress); err != nil {
		return none, err
	}
	target, err := dial(ctx, o.Tunnel, m.cancel)
	if err != nil {
		return none, err
	}
	defer target.close()
	fail := func(err error) (hypervisor.MigrationResult, error) {
		_ = target.send(order{Do: "cancel"}) // the closed stream cancels too
		d.back(id)
		return none, err
	}
	if err := target.send(first); err != nil {
		return fail(err)
	}
	if err := payload(ctx, o); err != nil {
		return fail(err)
	}
	progress.Phase = hypervisor.MigrationCopying
	for quarter := range int64(5) {
		progress.TransferredBytes = progress.TotalBytes * quarter / 4
		progress.RemainingBytes = progress.TotalBytes - progress.TransferredBytes
		progress.DiskCopiedBytes = progress.DiskTotalBytes * quarter / 4
		if err := d.runStep(ctx, id, m, o, progress); err != nil {
			return fail(err)
		}
	}
	progress.Phase = hypervisor.MigrationSwitching
	d.change(id, hypervisor.Running, func(dom *domain) { d.set(dom, hypervisor.Outgoing, "", hypervisor.EventPaused) })
	if err := d.runStep(ctx, id, m, o, progress); err != nil {
		return fail(err)
	}
	if err := target.send(order{Do: "received"}); err != nil {
		return fail(err)
	}
	if !d.commit(ctx, id, m) {
		return fail(cmp.Or(context.Cause(ctx), error(api.Errorf(api.CodeState, "instance %s is not running any more", id))))
	}
	if err := d.faulted("MigrateResume", id); err != nil {
		return none, errors.Join(api.Errorf(api.CodeUnavailable, "instance %s was sent completely, but is not running on the target yet", id), err)
	}
	if err := target.send(order{Do: "resume"}); err != nil {
		return none, errors.Join(api.Errorf(api.CodeUnavailable, "instance %s was sent completely, but is not running on the target yet", id), err)
	}
	return hypervisor.MigrationResult{Downtime: time.Millisecond, Elapsed: time.Second, TransferredBytes: progress.TotalBytes}, nil
}

// runStep reports a step to the test's hook and returns its error.
func (d *Driver) runStep(ctx context.Context, id api.InstanceID, m *move, o hypervisor.MigrateOptions, p hypervisor.MigrationProgress) error {
	d.mu.Lock()
	m.progress = p
	step := d.step
	d.mu.Unlock()
	if o.Progress != nil {
		o.Progress(p)
	}
	if step != nil {
		if err := step(ctx, id, p); err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
	return context.Cause(ctx)
}

// commit removes the machine here, unless it was aborted or has stopped.
func (d *Driver) commit(ctx context.Context, id api.InstanceID, m *move) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	dom, ok := d.domains[id]
	if ctx.Err() != nil || !ok || dom.status.State != hypervisor.Outgoing {
		return false
	}
	m.final = true
	d.set(dom, hypervisor.Stopped, "it was migrated to another node", hypervisor.EventStopped)
	delete(d.domains, id)
	d.events.Send(hypervisor.Event{ID: id, Type: hypervisor.EventUndefined})
	return true
}

// back continues the machine here.
func (d *Driver) back(id api.InstanceID) {
	d.change(id, hypervisor.Outgoing, func(dom *domain) { d.set(dom, hypervisor.Running, "", hypervisor.EventResumed) })
}

func (d *Driver) faulted(op string, id api.InstanceID) error {
	d.mu.Lock()
	fault := d.fault
	d.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(op, id)
}

// AbortMigration implements hypervisor.Migrator.
func (d *Driver) AbortMigration(ctx context.Context, id api.InstanceID) error {
	if err := d.enter(ctx, "AbortMigration", id); err != nil {
		return err
	}
	m := d.moves[id]
	final := m != nil && m.final
	held := d.heldBy[id]
	d.mu.Unlock()
	if m == nil {
		if held != nil && held.holds(id) {
			return api.Errorf(api.CodeUnavailable, "instance %s cannot be resumed on this node: the target has locked its disks", id)
		}
		d.back(id)
		return nil
	}
	if final {
		return nil
	}
	m.cancel(context.Canceled)
	select {
	case <-m.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// MigrationStatus implements hypervisor.Migrator.
func (d *Driver) MigrationStatus(ctx context.Context, id api.InstanceID) (hypervisor.MigrationStatus, error) {
	if err := d.enter(ctx, "MigrationStatus", id); err != nil {
		return hypervisor.MigrationStatus{}, err
	}
	defer d.mu.Unlock()
	s := hypervisor.MigrationStatus{State: hypervisor.Missing}
	dom := d.domains[id]
	if dom != nil {
		s.State, s.Received = dom.status.State, dom.received
	}
	switch m := d.moves[id]; {
	case m != nil:
		s.Role, s.Progress = hypervisor.MigrationSource, m.progress
	case s.State == hypervisor.Outgoing:
		s.Role = hypervisor.MigrationSource
	case s.State == hypervisor.Incoming || d.prepared[id] != nil:
		s.Role = hypervisor.MigrationTarget
	}
	return s, nil
}

// CrashMigration simulates a crash of the source's agent in the middle of the last
// step: the machine is paused, and no migration is in progress.
func (d *Driver) CrashMigration(id api.InstanceID) {
	d.change(id, hypervisor.Running, func(dom *domain) { d.set(dom, hypervisor.Outgoing, "", hypervisor.EventPaused) })
}

// CrashReceivedMigration is like CrashMigration after the target has received everything: the
// target holds the locks of the shared disks until it discards the machine.
func (d *Driver) CrashReceivedMigration(id api.InstanceID, target *Driver) {
	d.CrashMigration(id)
	d.mu.Lock()
	spec := clone(d.domains[id].running)
	d.heldBy[id] = target
	d.mu.Unlock()
	target.mu.Lock()
	defer target.mu.Unlock()
	target.domains[id] = &domain{spec: spec, running: spec, pins: spec.Pinning(), received: true, status: hypervisor.Status{ID: id, State: hypervisor.Incoming}}
}

// holds reports whether this node's QEMU holds the locks of the machine's
// disks.
func (d *Driver) holds(id api.InstanceID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	dom, ok := d.domains[id]
	return ok && dom.received
}

// remote is the source's connection to the target.
type remote struct {
	conn    net.Conn
	stop    func() bool
	enc     *json.Encoder
	answers chan answer
}

// dial connects to the target. lost is called when the stream ends.
func dial(ctx context.Context, t hypervisor.Tunnel, lost context.CancelCauseFunc) (*remote, error) {
	conn, err := t.Open(ctx, hypervisor.StreamLibvirt)
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", hypervisor.StreamLibvirt, err)
	}
	// A canceled migration must still be able to send its cancel order.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now().Add(5 * time.Second)) })
	r := &remote{conn, stop, json.NewEncoder(conn), make(chan answer, 1)}
	go r.listen(lost)
	return r, nil
}

func (r *remote) listen(lost context.CancelCauseFunc) {
	defer close(r.answers)
	dec := json.NewDecoder(io.LimitReader(r.conn, 1<<20))
	for {
		var a answer
		if err := dec.Decode(&a); err != nil {
			lost(errors.Join(api.Errorf(api.CodeUnavailable, "the connection to the target is lost"), err))
			return
		}
		r.answers <- a // never blocks: one answer per order
	}
}

func (r *remote) send(o order) error {
	if err := r.enc.Encode(o); err != nil {
		return err
	}
	a, ok := <-r.answers
	if !ok {
		return api.Errorf(api.CodeUnavailable, "the connection to the target is lost")
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	return nil
}

func (r *remote) close() {
	r.stop()
	_ = r.conn.Close()
	for range r.answers { // until listen has ended
	}
}

// payload sends a little over the other streams, so that the tunnel is used as
// by real nodes.
func payload(ctx context.Context, o hypervisor.MigrateOptions) error {
	streams := []hypervisor.Stream{hypervisor.StreamMemory}
	for range o.CopyDisks {
		streams = append(streams, hypervisor.StreamDisks)
	}
	for _, s := range streams {
		conn, err := o.Tunnel.Open(ctx, s)
		if err != nil {
			return fmt.Errorf("open stream %s: %w", s, err)
		}
		_, err = conn.Write([]byte(s))
		if err := errors.Join(err, conn.Close()); err != nil {
			return err
		}
	}
	return nil
}

// clone copies the slices that the caller owns.
func clone(spec hypervisor.Domain) hypervisor.Domain {
	spec.Disks, spec.CDROMs, spec.NICs = slices.Clone(spec.Disks), slices.Clone(spec.CDROMs), slices.Clone(spec.NICs)
	spec.Drives = slices.Clone(spec.Drives)
	return spec
}

// hangUpAll closes the streams that a migration has open on the target.
func hangUpAll(conns map[net.Conn]struct{}) {
	for c := range maps.Keys(conns) {
		_ = c.Close()
	}
}
