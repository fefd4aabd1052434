// Package libvirt drives a real libvirtd. It implements hypervisor.Driver.
//
// One goroutine (maintain) owns the connection: it connects as soon as there
// is a libvirtd, registers for events, waits until the connection is lost, and
// starts again. A method borrows the current connection (session) and makes
// its call in a separate goroutine, so that it can return when its context
// ends; an abandoned call continues and is harmless, because every method is
// idempotent. The number of concurrent calls is limited.
//
// Locks: Driver.mu guards the fields below it and is never held during a call
// of libvirt.
package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Options are the options of a driver.
type Options struct {
	URI  string     // empty: qemu:///system
	Node api.NodeID // only domains of this node are visible
	// Socket is libvirtd's socket, for QMP and migrations; empty: the one in the
	// URI, or the system's.
	Socket string
	// MaxLogBytes limits a console log on the node, because its content comes
	// from the guest; 0: 16 MiB.
	MaxLogBytes int64
	// MigrationDir is the directory with the sockets of migrations, as libvirtd
	// and QEMU see it; the same on all nodes. Empty: /run/basalt/migrate.
	MigrationDir string
	// MigrationDirHere is the path of the same directory in this process, if its
	// file system differs from libvirtd's. Empty: MigrationDir.
	MigrationDirHere string
	// QEMUUser is the user that QEMU runs as, unless there is no such user.
	// Empty: libvirt-qemu, as on Debian.
	QEMUUser string
	// DetachPatience is how long to wait for a guest to release a device; 0:
	// hypervisor.DetachPatience.
	DetachPatience time.Duration
	// Logf, when not nil, logs lost and established connections.
	Logf func(format string, args ...any)
}

const (
	systemURI    = "qemu:///system"
	systemSocket = "/run/libvirt/libvirt-sock"
	migrationDir = "/run/basalt/migrate"
	qemuUser     = "libvirt-qemu"

	maxCalls      = 64 // concurrent calls; more wait
	retryFirst    = 250 * time.Millisecond
	retryLast     = 5 * time.Second
	keepAlive     = 5 // seconds between probes of a silent connection
	keepAliveLost = 3 // unanswered probes before the connection counts as lost
	trimEvery     = 30 * time.Second
	firstAttempt  = 5 * time.Second // how long Open waits
)

// Driver implements hypervisor.Driver.
type Driver struct {
	opt    Options
	events hypervisor.Fanout
	calls  chan struct{}
	cancel context.CancelFunc
	done   chan struct{} // closed when maintain has ended

	mu       sync.Mutex
	current  *session // nil while there is no connection
	why      error    // why current is nil; nil: no attempt yet
	consoles map[api.InstanceID]*console
	moves    map[api.InstanceID]*move        // from here
	prepared map[api.InstanceID]*incoming    // for moves to here
	known    map[string]hypervisor.Abilities // by the versions that they depend on

	usage atomic.Bool // a call of Usage is in progress

	beforeWake func() // test hook
}

var (
	_ hypervisor.Driver   = (*Driver)(nil)
	_ hypervisor.Migrator = (*Driver)(nil)
)

// Open returns a driver, which connects to libvirtd by itself whenever that
// runs: now, later, and after a restart of it. Open waits a moment for the
// first attempt; without a connection every method returns unavailable with
// the cause.
func Open(ctx context.Context, opt Options) (*Driver, error) {
	if opt.URI == "" {
		opt.URI = systemURI
	}
	opt.Socket = cmp.Or(opt.Socket, socketOf(opt.URI), systemSocket)
	if opt.MaxLogBytes == 0 {
		opt.MaxLogBytes = 16 << 20
	}
	opt.DetachPatience = cmp.Or(opt.DetachPatience, hypervisor.DetachPatience)
	opt.MigrationDir = cmp.Or(opt.MigrationDir, migrationDir)
	opt.MigrationDirHere = cmp.Or(opt.MigrationDirHere, opt.MigrationDir)
	opt.QEMUUser = cmp.Or(opt.QEMUUser, qemuUser)
	if opt.Logf == nil {
		opt.Logf = func(string, ...any) {}
	}
	if err := runEventLoop(); err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d := &Driver{
		opt: opt, calls: make(chan struct{}, maxCalls), cancel: cancel, done: make(chan struct{}),
		consoles: map[api.InstanceID]*console{}, moves: map[api.InstanceID]*move{}, prepared: map[api.InstanceID]*incoming{},
		known: map[string]hypervisor.Abilities{},
	}
	first := make(chan struct{})
	go d.maintain(running, sync.OnceFunc(func() { close(first) }))
	select {
	case <-first:
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), d.Close())
	case <-time.After(firstAttempt): // libvirtd hangs
	}
	return d, nil
}

// socketOf returns the socket path in the URI, or "".
func socketOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	return u.Query().Get("socket")
}

// RunsQEMU reports whether the URI is of a libvirt that runs machines with
// QEMU, and not of its test driver (test:///default).
func RunsQEMU(uri string) bool {
	u, err := url.Parse(uri)
	return err != nil || uri == "" || strings.HasPrefix(u.Scheme, "qemu")
}

// Close implements hypervisor.Driver.
func (d *Driver) Close() error {
	d.cancel()
	<-d.done
	return nil
}

// maintain maintains a connection until ctx ends. It calls tried after each
// attempt.
func (d *Driver) maintain(ctx context.Context, tried func()) {
	defer close(d.done)
	trim := time.NewTicker(trimEvery)
	defer trim.Stop()
	for {
		s := d.await(ctx, tried)
		if s == nil {
			return
		}
		d.set(s, nil)
		d.opt.Logf("libvirt: connected to %s", d.opt.URI)
		d.events.Send(hypervisor.Event{Type: hypervisor.EventResync})
		tried()
		for lost := false; !lost; {
			select {
			case <-ctx.Done():
				d.set(nil, ctx.Err())
				s.drop()
				return
			case <-trim.C:
				d.trimLogs(ctx)
			case <-s.lost:
				lost = true
			}
		}
		d.opt.Logf("libvirt: connection to %s lost", d.opt.URI)
		d.set(nil, errors.New("the connection is lost"))
		s.drop()
	}
}

// await tries to connect until it succeeds; it returns nil when ctx has ended.
// It logs the first failure, and each with another cause.
func (d *Driver) await(ctx context.Context, tried func()) *session {
	said := ""
	for wait := retryFirst; ; wait = min(2*wait, retryLast) {
		s, err := d.dial(ctx)
		if err == nil || ctx.Err() != nil {
			return s
		}
		if said != err.Error() {
			said = err.Error()
			d.opt.Logf("libvirt: connect to %s failed, retrying: %v", d.opt.URI, err)
		}
		d.set(nil, err)
		tried()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// dial is connect with a context: a libvirtd that is stopped, or hangs, does
// not respond. A connection that is established after the end of ctx is
// closed.
func (d *Driver) dial(ctx context.Context) (*session, error) {
	type result struct {
		s   *session
		err error
	}
	results := make(chan result)
	go func() {
		s, err := d.connect()
		select {
		case results <- result{s, err}:
		case <-ctx.Done():
			if err == nil {
				s.drop()
			}
		}
	}()
	select {
	case r := <-results:
		return r.s, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// set stores the connection, or why there is none.
func (d *Driver) set(s *session, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.current, d.why = s, why
}

// borrow returns the connection, which stays open until release is called.
func (d *Driver) borrow() (*session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current == nil {
		none := api.Errorf(api.CodeUnavailable, "libvirtd is not responding").WithHint("check that it is running on this node")
		return nil, errors.Join(none, d.why)
	}
	d.current.users.Add(1)
	return d.current, nil
}

// call calls f with the connection, and returns its results, or ctx's error
// when ctx ends first. f returns its results rather than writing to variables
// of its caller: it may outlive the call. id is for the error's text.
func call[T any](ctx context.Context, d *Driver, id api.InstanceID, f func(s *session) (T, error)) (T, error) {
	var none T
	select {
	case d.calls <- struct{}{}:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		<-d.calls
		return none, err
	}
	s, err := d.borrow()
	if err != nil {
		<-d.calls
		return none, err
	}
	type result struct {
		found T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		defer func() { <-d.calls }()
		defer s.users.Done()
		found, err := f(s)
		results <- result{found, err}
	}()
	select {
	case r := <-results:
		return r.found, explain(r.err, id)
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// explain converts libvirt's errors to *api.Error.
func explain(err error, id api.InstanceID) error {
	var e lv.Error
	if !errors.As(err, &e) {
		return err
	}
	wrap := func(mine *api.Error) error { return errors.Join(mine, err) }
	switch e.Code {
	case lv.ERR_NO_DOMAIN:
		return wrap(notFound(id))
	case lv.ERR_NO_SECRET:
		return wrap(api.Errorf(api.CodeUnavailable, "the hypervisor has no key for a disk of instance %s", id))
	case lv.ERR_AGENT_UNRESPONSIVE, lv.ERR_AGENT_UNSYNCED, lv.ERR_AGENT_COMMAND_TIMEOUT:
		return wrap(api.Errorf(api.CodeUnavailable, "the guest agent of instance %s is not responding", id))
	case lv.ERR_NO_CONNECT, lv.ERR_INVALID_CONN, lv.ERR_RPC, lv.ERR_AUTH_UNAVAILABLE:
		return wrap(api.Errorf(api.CodeUnavailable, "libvirtd is not responding"))
	case lv.ERR_SYSTEM_ERROR:
		if e.Domain == lv.FROM_RPC {
			return wrap(api.Errorf(api.CodeUnavailable, "libvirtd is not responding"))
		}
	case lv.ERR_OPERATION_TIMEOUT:
		return wrap(api.Errorf(api.CodeUnavailable, "the hypervisor is busy with instance %s", id))
	case lv.ERR_OPERATION_INVALID:
		return wrap(api.Errorf(api.CodeState, "the operation is not valid in the current state of instance %s", id))
	}
	return fmt.Errorf("libvirt: %w", err)
}

func is(err error, code lv.ErrorNumber) bool {
	var e lv.Error
	return errors.As(err, &e) && e.Code == code
}

func notFound(id api.InstanceID) *api.Error {
	return api.Errorf(api.CodeNotFound, "instance %s has no domain on this node", id)
}

// idOf returns the instance of a domain by its name; false if it is not a
// domain of Basalt.
func idOf(name string) (api.InstanceID, bool) {
	id, ok := strings.CutPrefix(name, hypervisor.DomainName(""))
	return api.InstanceID(id), ok
}
