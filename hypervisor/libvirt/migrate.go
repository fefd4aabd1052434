package libvirt

import (
	"context"
	"errors"
	"time"

	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

const (
	progressEvery   = 500 * time.Millisecond
	abortPatience   = 20 * time.Second // then the streams are closed, and the migration fails
	resumePatience  = 10 * time.Second
	defaultDowntime = 300 * time.Millisecond // QEMU's default

	// Live migration; the source is undefined when the target has everything. The
	// target then has it defined, but paused: it must not run before the source
	// is known to have ended, and only this driver knows when. Auto-converge
	// slows down a machine that writes faster than can be copied. No post-copy:
	// with it, a broken connection kills the machine. Unsafe is needed because
	// libvirt cannot determine that a disk is shared; the caller knows which are.
	migrateFlags = lv.MIGRATE_LIVE | lv.MIGRATE_PERSIST_DEST | lv.MIGRATE_UNDEFINE_SOURCE | lv.MIGRATE_PAUSED |
		lv.MIGRATE_AUTO_CONVERGE | lv.MIGRATE_ABORT_ON_ERROR | lv.MIGRATE_UNSAFE
	// Writes of the machine wait for the copy, which might otherwise never
	// complete.
	copyFlags = lv.MIGRATE_NON_SHARED_DISK | lv.MIGRATE_NON_SHARED_SYNCHRONOUS_WRITES
)

// move is a migration from here.
type move struct {
	cancel context.CancelCauseFunc
	done   chan struct{}

	// Driver.mu guards the following fields.
	progress hypervisor.MigrationProgress
	final    bool // the source has ended: too late to abort
}

// Migrate implements hypervisor.Migrator.
func (d *Driver) Migrate(ctx context.Context, id api.InstanceID, o hypervisor.MigrateOptions) (hypervisor.MigrationResult, error) {
	none := hypervisor.MigrationResult{}
	if err := o.Check(id); err != nil {
		return none, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := &move{cancel: cancel, done: make(chan struct{}), progress: hypervisor.MigrationProgress{Phase: hypervisor.MigrationPreparing}}
	d.mu.Lock()
	if d.moves[id] != nil {
		d.mu.Unlock()
		return none, api.Errorf(api.CodeState, "instance %s is already being migrated", id)
	}
	d.moves[id] = m
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.moves, id)
		d.mu.Unlock()
		close(m.done)
	}()
	params, err := d.parameters(ctx, id, o)
	if err != nil {
		return none, cause(ctx, err)
	}
	r, err := d.relay(id, o.Tunnel, cancel)
	if err != nil {
		return none, err
	}
	defer r.close()
	target, err := dial(ctx, d.socket(id, hypervisor.StreamLibvirt, true), r, cancel)
	if err != nil {
		return none, cause(ctx, err)
	}
	defer hangUp(target, r)
	return d.send(ctx, id, m, o, target, params, r)
}

// parameters returns the parameters of the migration, or an error for a
// machine that cannot be migrated.
func (d *Driver) parameters(ctx context.Context, id api.InstanceID, o hypervisor.MigrateOptions) (*lv.DomainMigrateParameters, error) {
	persistent, err := o.Target.XML()
	if err != nil {
		return nil, err
	}
	running, err := with(ctx, d, id, func(dom *lv.Domain) (string, error) {
		st, err := active(dom)
		if err != nil {
			return "", err
		}
		if st != hypervisor.Running {
			return "", api.Errorf(api.CodeState, "instance %s is not running", id)
		}
		if j, err := dom.GetJobStats(0); err == nil && outgoing(j) {
			return "", api.Errorf(api.CodeState, "instance %s is already being migrated", id)
		}
		downtime := o.MaxDowntime
		if downtime == 0 {
			downtime = defaultDowntime
		}
		if err := dom.MigrateSetMaxDowntime(uint64(max(downtime.Milliseconds(), 1)), 0); err != nil {
			return "", err
		}
		return dom.GetXMLDesc(lv.DOMAIN_XML_SECURE | lv.DOMAIN_XML_MIGRATABLE)
	})
	if err != nil {
		return nil, err
	}
	text, err := hypervisor.Retarget(running, o.Target)
	if err != nil {
		return nil, err
	}
	has, err := hypervisor.ParseAttached(running)
	if err != nil {
		return nil, err
	}
	p := &lv.DomainMigrateParameters{
		URISet: true, URI: "unix://" + d.socket(id, hypervisor.StreamMemory, false),
		DestXMLSet: true, DestXML: text,
		PersistXMLSet: true, PersistXML: persistent,
	}
	if o.BandwidthBytesPerSecond > 0 {
		p.BandwidthSet, p.Bandwidth = true, uint64(o.BandwidthBytesPerSecond+(1<<20)-1)>>20
	}
	if len(o.CopyDisks) > 0 {
		p.DisksURISet, p.DisksURI = true, "unix://"+d.socket(id, hypervisor.StreamDisks, false)
		p.MigrateDisksSet = true
		for _, serial := range o.CopyDisks {
			p.MigrateDisks = append(p.MigrateDisks, has.Device(serial))
		}
	}
	return p, nil
}

// send performs the migration and monitors it.
func (d *Driver) send(ctx context.Context, id api.InstanceID, m *move, o hypervisor.MigrateOptions, target *lv.Connect,
	params *lv.DomainMigrateParameters, r *relay) (hypervisor.MigrationResult, error) {
	flags := migrateFlags
	if params.MigrateDisksSet {
		flags |= copyFlags
	}
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	defer unwatch()
	events := d.events.Subscribe(watching)
	began := time.Now()
	type result struct {
		dom *lv.Domain // on the target
		err error
	}
	results := make(chan result, 1)
	go func() {
		dom, err := with(watching, d, id, func(dom *lv.Domain) (*lv.Domain, error) { return dom.Migrate3(target, params, flags) })
		results <- result{dom, err}
	}()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	var still time.Time // when the machine was paused
	var late <-chan time.Time
	ended := ctx.Done()
	for {
		select {
		case res := <-results:
			if res.err != nil {
				return hypervisor.MigrationResult{}, cause(ctx, res.err)
			}
			d.mu.Lock()
			m.final = true
			last := m.progress
			d.mu.Unlock()
			defer func() { _ = res.dom.Free() }()
			if err := d.resumeOnTarget(id, res.dom, r); err != nil {
				return hypervisor.MigrationResult{}, err
			}
			now := time.Now()
			if still.IsZero() {
				still = now
			}
			out := hypervisor.MigrationResult{Downtime: now.Sub(still), Elapsed: now.Sub(began), TransferredBytes: last.TransferredBytes}
			if j, err := res.dom.GetJobStats(lv.DOMAIN_JOB_STATS_COMPLETED); err == nil {
				out.TransferredBytes = int64(j.DataProcessed)
			}
			return out, nil
		case <-tick.C:
			d.reportProgress(watching, id, m, o, still)
		case e := <-events:
			if e.ID == id && e.Type == hypervisor.EventPaused && still.IsZero() {
				still = time.Now()
				d.reportProgress(watching, id, m, o, still)
			}
		case <-ended:
			ended, late = nil, time.After(abortPatience)
			d.abort(watching, id)
		case <-late:
			d.opt.Logf("libvirt: migration of instance %s did not stop, closing its streams", id)
			r.stop()
		}
	}
}

// resumeOnTarget runs the machine on the target, after it has ended here.
func (d *Driver) resumeOnTarget(id api.InstanceID, dom *lv.Domain, r *relay) error {
	if d.beforeWake != nil {
		d.beforeWake()
	}
	// Only this ends a call over a tunnel that does not respond.
	late := time.AfterFunc(resumePatience, r.stop)
	defer late.Stop()
	if err := finish(dom, id); err != nil {
		return errors.Join(api.Errorf(api.CodeUnavailable, "instance %s was sent completely, but is not running on the target yet", id), err)
	}
	return nil
}

// reportProgress reports the progress.
func (d *Driver) reportProgress(ctx context.Context, id api.InstanceID, m *move, o hypervisor.MigrateOptions, still time.Time) {
	ctx, cancel := context.WithTimeout(ctx, progressEvery)
	defer cancel()
	j, err := with(ctx, d, id, func(dom *lv.Domain) (*lv.DomainJobInfo, error) { return dom.GetJobStats(0) })
	if err != nil || !outgoing(j) {
		return // not started yet, or ended
	}
	phase := hypervisor.MigrationCopying
	if !still.IsZero() {
		phase = hypervisor.MigrationSwitching
	}
	p := progress(j, phase)
	d.mu.Lock()
	m.progress = p
	d.mu.Unlock()
	if o.Progress != nil {
		o.Progress(p)
	}
}

// abort requests the end of the migration from libvirt and does not wait for
// it.
func (d *Driver) abort(ctx context.Context, id api.InstanceID) {
	ctx, cancel := context.WithTimeout(ctx, abortPatience)
	defer cancel()
	if err := none(d.onDomain(ctx, id, func(dom *lv.Domain) error { return dom.AbortJob() })); err != nil {
		d.opt.Logf("libvirt: abort migration of instance %s failed: %v", id, err)
	}
}

// AbortMigration implements hypervisor.Migrator.
func (d *Driver) AbortMigration(ctx context.Context, id api.InstanceID) error {
	d.mu.Lock()
	m := d.moves[id]
	final := m != nil && m.final
	d.mu.Unlock()
	if final {
		return nil
	}
	if m != nil {
		m.cancel(api.Errorf(api.CodeState, "the migration of instance %s was aborted", id))
		select {
		case <-m.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	// A migration that was started by an agent that has died.
	for asked := false; ; {
		st, err := with(ctx, d, id, func(dom *lv.Domain) (hypervisor.State, error) {
			if j, err := dom.GetJobStats(0); err == nil && outgoing(j) {
				if asked {
					return hypervisor.Outgoing, nil
				}
				asked = true
				return hypervisor.Outgoing, dom.AbortJob()
			}
			st, err := active(dom)
			if err == nil && st == hypervisor.Outgoing {
				if err = dom.Resume(); err != nil {
					err = errors.Join(api.Errorf(api.CodeUnavailable, "instance %s cannot be resumed on this node", id).WithHint("the target may have locked its disks: discard it there first"), err)
				}
				st = hypervisor.Running
			}
			return st, err
		})
		if err != nil || st != hypervisor.Outgoing {
			return none(err)
		}
		select {
		case <-time.After(pollLast):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// MigrationStatus implements hypervisor.Migrator.
func (d *Driver) MigrationStatus(ctx context.Context, id api.InstanceID) (hypervisor.MigrationStatus, error) {
	s, err := with(ctx, d, id, func(dom *lv.Domain) (hypervisor.MigrationStatus, error) {
		st, err := active(dom)
		s := hypervisor.MigrationStatus{State: st}
		if err != nil {
			return s, err
		}
		switch j, err := dom.GetJobStats(0); {
		case err == nil && outgoing(j):
			s.Role, s.Progress = hypervisor.MigrationSource, progress(j, hypervisor.MigrationCopying)
			if st == hypervisor.Outgoing {
				s.Progress.Phase = hypervisor.MigrationSwitching
			}
		case st == hypervisor.Outgoing:
			s.Role = hypervisor.MigrationSource
		case st == hypervisor.Incoming:
			s.Role = hypervisor.MigrationTarget
			s.Received, err = received(dom)
			return s, err
		}
		return s, nil
	})
	if api.CodeOf(err) == api.CodeNotFound {
		s, err = hypervisor.MigrationStatus{State: hypervisor.Missing}, nil
	}
	if err != nil {
		return s, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch m, in := d.moves[id], d.prepared[id]; {
	case m != nil:
		s.Role, s.Progress = hypervisor.MigrationSource, m.progress
	case in != nil && s.State == hypervisor.Missing:
		s.Role = hypervisor.MigrationTarget
	}
	return s, nil
}

// dial connects to the target's libvirtd through the relay. It calls cancel
// when the connection is lost.
func dial(ctx context.Context, socket string, r *relay, cancel context.CancelCauseFunc) (*lv.Connect, error) {
	// libvirt's API has no contexts: closing its socket ends the call.
	stop := context.AfterFunc(ctx, r.stop)
	conn, err := lv.NewConnect("qemu+unix:///system?socket=" + socket)
	if !stop() && err == nil {
		_, _ = conn.Close()
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(api.Errorf(api.CodeUnavailable, "the hypervisor of the target is not responding"), err)
	}
	lost := func(*lv.Connect, lv.ConnectCloseReason) {
		cancel(api.Errorf(api.CodeUnavailable, "the connection to the target is lost"))
	}
	if err := errors.Join(conn.RegisterCloseCallback(lost), conn.SetKeepAlive(keepAlive, keepAliveLost)); err != nil {
		_, _ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// hangUp closes the connection to the target; over a tunnel that does not
// respond, even that needs a timeout.
func hangUp(target *lv.Connect, r *relay) {
	late := time.AfterFunc(resumePatience, r.stop)
	defer late.Stop()
	_ = target.UnregisterCloseCallback()
	_, _ = target.Close()
}

// cause returns the cause of ctx's end joined with err if ctx has ended, and
// err otherwise.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return errors.Join(why, err)
	}
	return err
}
