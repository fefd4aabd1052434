package fence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// Options configures a Daemon.
type Options struct {
	Socket   string
	State    string        // directory
	Watchdog string        // path; no watchdog if "none" or empty
	Grace    time.Duration // DefaultGrace if 0
	Log      *slog.Logger
}

// Daemon is basalt-fence.
type Daemon struct {
	o     Options
	boot  string
	now   func() time.Duration
	lock  *os.File
	ln    *net.UnixListener
	calls chan call

	// The following fields are owned by the loop.
	m          *machine
	wd         *watchdog
	fedAt      time.Duration
	starved    bool
	saving     bool
	waiting    []call // for a save that contains their request
	flying     []call // for the save in progress
	dirty      bool
	saveErr    error
	saveNext   time.Duration // earliest time of the next save
	loadErr    error
	loggedMode Mode
	spare      atomic.Pointer[spare]
	reaper     *reaper
	files      *files // owned by saveLoop
	killLogErr error
	sweeps     chan sweep
	results    chan SweepResult
	saves      chan state
	saved      chan error
	lastFail   string
}

const (
	saveRetry      = time.Second     // delay after the state could not be written
	lastSweepLimit = 2 * time.Second // limit of the last sweep for running instances, when stopping
	lastSave       = 2 * time.Second // limit of the last save, when stopping

	maxWaiting = 64 // requests that may wait for the disk
)

// call is a request with the channel of its reply.
type call struct {
	Request
	reply chan Reply // has a buffer of one
}

// New opens the state and the socket of a daemon; Run runs it.
func New(o Options) (*Daemon, error) {
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	d := &Daemon{
		o: o, boot: bootID(), now: boottime, calls: make(chan call),
		wd: newWatchdog(o.Watchdog), reaper: newReaper(), files: &files{state: o.State, run: filepath.Dir(o.Socket), replace: atomicfile.WriteFile},
		sweeps: make(chan sweep, 1), results: make(chan SweepResult, 1),
		saves: make(chan state, 1), saved: make(chan error, 1),
	}
	if err := os.MkdirAll(o.State, 0o700); err != nil {
		return nil, err
	}
	var err error
	if d.lock, err = lock(o.State); err != nil {
		return nil, err
	}
	if err := d.files.sweep(time.Now()); err != nil {
		o.Log.Warn("remove temporary files of an earlier basalt-fence failed", "error", err)
	}
	d.m, d.loadErr = load(*d.files, d.boot)
	d.m.grace = o.Grace
	if d.loadErr != nil {
		o.Log.Error("read state failed: starting without a lease and without instances to keep", "error", d.loadErr)
	}
	if d.reaper.killLog, d.killLogErr = openKillLog(d.files.run, d.boot); d.killLogErr != nil {
		o.Log.Error("read file of killed processes failed: processes killed by an earlier basalt-fence are not known", "error", d.killLogErr)
	}
	if d.ln, err = listen(o.Socket); err != nil {
		return nil, errors.Join(err, d.lock.Close())
	}
	return d, nil
}

// Run runs the daemon until ctx ends, and then closes it.
func (d *Daemon) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.m.killed, d.m.dying = d.reaper.recall()
	served := make(chan struct{})
	go func() { d.serve(ctx); close(served) }()
	go d.reapLoop()
	go d.saveLoop()
	d.loop(ctx)
	cancel()
	err := d.ln.Close()
	<-served
	close(d.sweeps)
	close(d.saves)
	return errors.Join(ignoreClosed(err), d.lock.Close())
}

func (d *Daemon) reapLoop() {
	for o := range d.sweeps {
		d.results <- d.reaper.run(o)
	}
}

func (d *Daemon) saveLoop() {
	for s := range d.saves {
		d.saved <- d.files.save(s)
	}
}

// loop owns the machine and the watchdog. It waits only for events, never for the
// disk or /proc.
func (d *Daemon) loop(ctx context.Context) {
	if d.wd.path == "" {
		d.o.Log.Warn(d.wd.status.Problem)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		d.step()
		timer.Reset(d.wake(d.now()))
		select {
		case <-ctx.Done():
			d.stop()
			return
		case <-timer.C:
		case c := <-d.calls:
			d.handle(c)
		case c := <-d.results:
			d.swept(c)
		case err := <-d.saved:
			d.wrote(err)
		}
	}
}

// step performs what is due now.
func (d *Daemon) step() {
	now := d.now()
	d.spare.Store(&spare{armed: d.m.armed, until: d.m.lease.Until, keep: d.m.keep})
	mode := d.m.mode(now)
	if mode != d.loggedMode {
		d.o.Log.Info("mode changed", "now", mode, "was", d.loggedMode, "node", d.m.lease.Node, "epoch", d.m.lease.Epoch)
		d.loggedMode = mode
	}
	if d.m.sweepDue(now) {
		d.sweeps <- sweep{began: now, spare: func(id string) bool { return d.spare.Load().instance(d.now(), id) }}
	}
	if mode == Idle {
		if err := d.wd.close(); err != nil {
			d.o.Log.Error("close watchdog failed", "error", err)
		}
		d.starved = false
	}
	if mode != Idle || d.wd.stuck {
		d.feed(now, mode)
	} else {
		d.fedAt = 0
	}
	if d.dirty && !d.saving && now >= d.saveNext {
		d.save()
	}
}

// wake returns the duration until there is something to do, if no event arrives
// before.
func (d *Daemon) wake(now time.Duration) time.Duration {
	wait := d.m.wake(now)
	if (d.m.mode(now) != Idle || d.wd.stuck) && !d.starved {
		wait = min(wait, max(0, d.fedAt+feedEvery-now))
	}
	if d.dirty && !d.saving {
		wait = min(wait, max(0, d.saveNext-now))
	}
	return wait
}

// save sends the state to the saver, if it must be written and no save is in
// progress.
func (d *Daemon) save() {
	if d.dirty && !d.saving {
		d.dirty, d.saving = false, true
		d.flying, d.waiting = d.waiting, nil
		d.saves <- d.m.store(d.boot)
	}
}

// feed feeds the watchdog, if the machine allows it. The time is read again: a
// process that was stopped meanwhile must not feed because of an outdated state.
func (d *Daemon) feed(now time.Duration, mode Mode) {
	if now < d.fedAt+feedEvery && d.fedAt != 0 {
		return
	}
	if mode != Idle && !d.m.feed(d.now()) {
		if !d.starved && d.wd.status.Armed {
			d.o.Log.Error("watchdog is no longer fed: processes could not be killed", "why", d.m.failed, "dying", d.m.dying)
		}
		d.starved = true
		return
	}
	d.starved, d.fedAt = false, now
	before := d.wd.status.Problem
	if err := d.wd.feed(now); err != nil && d.wd.status.Problem != before {
		d.o.Log.Error(err.Error())
	}
}

func (d *Daemon) swept(c SweepResult) {
	now := d.now()
	for _, v := range c.Gone {
		d.o.Log.Warn("fenced instance whose lease has expired", "instance", v.Instance, "pid", v.PID)
	}
	d.m.swept(now, c)
	if d.killLogErr = c.Unwritten; d.killLogErr != nil {
		d.o.Log.Error("write file of killed processes failed", "error", d.killLogErr)
	}
	if d.m.failed != "" && d.m.failed != d.lastFail {
		d.o.Log.Error("fencing is incomplete", "why", d.m.failed)
	}
	d.lastFail = d.m.failed
}

// handle processes a request. A change that must outlive this process is
// acknowledged when it is on the disk; a lease that is only longer, at once.
func (d *Daemon) handle(c call) {
	now := d.now()
	r := Reply{V: version}
	wait := true
	switch {
	case c.Status != nil:
		s := d.status(now)
		r.Status, wait = &s, false
	case c.Lease != nil:
		longer := d.m.armed && c.Lease.Until > d.m.lease.Until
		if err := d.m.setLease(now, *c.Lease); err != nil {
			c.reply <- Reply{V: version, Error: err.Error()}
			return
		}
		wait, d.dirty = !longer, true
	case c.Keep != nil:
		d.m.setKeep(*c.Keep)
		d.dirty = true
	case c.Disarm != nil:
		d.m.standDown()
		d.dirty = true
	}
	switch {
	case !wait:
	case len(d.waiting) < maxWaiting:
		d.waiting = append(d.waiting, c)
		return
	default:
		r.Error = "done, but too many requests wait for the disk with the state file"
	}
	c.reply <- r
}

func (d *Daemon) wrote(err error) {
	d.saving = false
	if err != nil {
		d.o.Log.Error("write state failed", "error", err)
		d.dirty, d.saveNext = true, d.now()+saveRetry
	}
	d.saveErr = err
	for _, c := range d.flying {
		r := Reply{V: version}
		if err != nil {
			r.Error = "done, but the state was not written: " + err.Error()
		}
		c.reply <- r
	}
	d.flying = nil
}

// stop writes the state once more, and disarms the watchdog if no running instance
// needs a lease: stopping basalt-fence does not unfence a node. Otherwise it must
// be restarted before the watchdog's timeout.
func (d *Daemon) stop() {
	if d.m.mode(d.now()) == Idle || d.nothingRuns() {
		if err := d.wd.close(); err != nil {
			d.o.Log.Error("close the watchdog failed", "error", err)
		}
	} else if d.wd.status.Armed {
		d.o.Log.Warn("stopped with the watchdog armed: it resets this machine unless basalt-fence restarts in time", "timeout", d.wd.status.Timeout)
	}
	for limit := time.After(lastSave); d.saving || d.dirty; d.save() {
		if !d.saving {
			continue
		}
		select {
		case err := <-d.saved:
			if d.wrote(err); err != nil {
				return
			}
		case <-limit:
			return
		}
	}
}

// nothingRuns reports whether no instance is running that is not kept.
func (d *Daemon) nothingRuns() bool {
	limit := time.After(lastSweepLimit)
	for sent := false; ; {
		if d.m.sweep == 0 && !sent {
			keep := d.m.keep
			d.sweeps <- sweep{began: d.now(), dryRun: true, spare: func(id string) bool { return keep[id] }}
			sent = true
		}
		select {
		case c := <-d.results:
			if sent {
				return c.Err == nil && len(c.Dying) == 0
			}
			d.swept(c)
		case <-limit:
			return false
		}
	}
}

func (d *Daemon) status(now time.Duration) Status {
	s := Status{
		Mode: d.m.mode(now), Now: now, Until: d.m.lease.Until, Node: d.m.lease.Node, Epoch: d.m.lease.Epoch,
		Keep: slices.Sorted(maps.Keys(d.m.keep)), Clean: d.m.clean, Watchdog: d.wd.status,
		Killing: slices.Clone(d.m.dying), Fenced: slices.Clone(d.m.killed),
	}
	for _, p := range []struct {
		what string
		err  error
	}{{"read state failed", d.loadErr}, {"write state failed", d.saveErr}, {"the file of killed processes", d.killLogErr}} {
		if p.err != nil {
			s.Problems = append(s.Problems, fmt.Sprintf("%s: %v", p.what, p.err))
		}
	}
	if d.m.failed != "" {
		s.Problems = append(s.Problems, "fencing is incomplete: "+d.m.failed)
	}
	return s
}

func boottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error()) // exists since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}

// bootID returns the kernel's ID of the current boot, or "" if it cannot be read.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
