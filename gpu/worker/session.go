package worker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/abi/carrier"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// Options of a session; the zero value is good.
type Options struct {
	Log *slog.Logger
	// OnHello is told who the guest process is, before its first command.
	OnHello func(abi.Hello)
	// Spin is how long the issuer polls an empty ring before it sleeps; 0 is
	// DefaultSpin, less than 0 is not at all.
	Spin time.Duration
}

// DefaultSpin is about the time that a guest needs between two calls.
const DefaultSpin = 50 * time.Microsecond

// Session serves one guest process over one carrier connection.
//
//	        MsgHello, MsgRegion 0          EOF, Lost, protocol error, fault
//	greet ───────────────────────► issue ─────────────────────────────────► releaseAll
//	  └── MsgRefused                (StateReady)                    (StateDead)
//
// The issuer, one goroutine, owns all that is not marked
// otherwise. Others give it work through post and end it through stop.
// Completions are written by whoever calls a ticket's done.
type Session struct {
	conn   *net.UnixConn
	raw    syscall.RawConn // any goroutine may TryWrite
	reader *carrier.Reader
	driver Driver
	host   Host
	opts   Options
	log    *slog.Logger
	gate   *leaseGate
	meter  meter

	byMessage bool // the waiters are woken by messages too
	shared    *shm.Mapping
	layout    layout
	window    *Window // of the session's device addresses
	ring      []byte
	tail      uint64
	entry     [maxEntry]byte
	command   command // that is being executed; nobody keeps a pointer to it
	regions   map[uint32]*region
	runs      atomic.Int64 // mappings that regions take
	drops     []drop
	out       []carrier.Message // that the socket had no room for
	handles   handles
	mappings  mappings
	sharing   sharing
	contexts  map[*contextObject]struct{}
	opening   int // contexts that are being made
	buried    bool
	requests  int // away from the issuer (ask), not yet answered
	loads     loads
	blocked   *flow // a stream that has too much in the driver: the ring waits for it

	refusals    int    // modules with kernels that the device cannot run
	graphMemory uint64 // bytes that executable graphs take in this process
	account     *Account
	keeping     atomic.Bool // the guest may be keeping memory that it has freed
	returned    uint64      // times that memory was given back to the account
	frees       int         // under way
	settling    int         // of them, those that the guest does not wait for and that are in no stream
	questions   []command   // MemInfo, until those are done
	starved     []starved   // out of memory until one of them is done

	looks int // at the ring, between two times that the polling issuer makes way
	turns int // times that it has, since it last did to goroutines

	doorbell *doorbell
	sleeps   uint32       // how often the issuer has gone to sleep
	inflight atomic.Int64 // tickets that the driver has not finished
	held     atomic.Int64 // bytes of memory that they take, about

	mu     sync.Mutex // guards the following
	posted []func()
	cause  error // why the session must end
	closed bool  // doorbell is closed
	idle   atomic.Bool
	work   atomic.Bool // posted or cause is set
}

// NewSession makes a session over conn, which it owns from now on.
func NewSession(conn *net.UnixConn, d Driver, h Host, o Options) (*Session, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	reader, err := carrier.NewReader(conn)
	if err != nil {
		return nil, err
	}
	bell, err := newDoorbell(raw)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Spin == 0 {
		o.Spin = DefaultSpin
	}
	if runtime.NumCPU() == 1 || runtime.GOMAXPROCS(0) == 1 {
		o.Spin = -1 // polling would keep guest and driver from running
	}
	s := &Session{
		conn: conn, raw: raw, reader: reader, driver: d, host: h, opts: o, log: o.Log, doorbell: bell,
		regions: map[uint32]*region{}, handles: newHandles(), sharing: newSharing(), contexts: map[*contextObject]struct{}{}, loads: newLoads(), looks: minLooks,
	}
	s.account = NewAccount(h.Limits().VRAM)
	h.Account(s.account)
	h.Reclaimable(func(done func()) {
		s.post(func() {
			s.reclaim()
			done()
		})
	})
	s.gate = newLeaseGate(h, &s.meter)
	if d.Evicts() {
		h.Evictable(s.gate.evict)
	}
	return s, nil
}

// Run serves the guest until it leaves (nil), ctx ends, the vGPU is lost, or
// the guest breaks the protocol. It closes the connection and frees all the
// session's memory; the driver stays open.
func (s *Session) Run(ctx context.Context) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var helpers sync.WaitGroup
	helpers.Go(func() {
		select {
		case <-s.host.Lost():
			s.stop(abi.ErrUnavailable)
			cancel()
		case <-ctx.Done():
			s.stop(context.Cause(ctx))
		}
	})
	err := s.greet(ctx)
	if err == nil {
		helpers.Go(func() { s.touchHeartbeat(ctx) })
		helpers.Go(func() { s.report(ctx) })
		helpers.Go(func() { s.rest(ctx) })
		err = s.issue()
	}
	if reason := s.stopped(); reason != nil && !errors.Is(err, errLeft) {
		err = reason
	}
	if errors.Is(err, errLeft) {
		err = nil
	}
	s.gate.close()
	s.fail(err)
	cancel()
	helpers.Wait()
	s.releaseAll()
	s.host.Report(s.meter.totals())
	return err
}

// post gives the issuer a function to run, from any goroutine.
func (s *Session) post(f func()) {
	s.mu.Lock()
	s.posted = append(s.posted, f)
	s.work.Store(true)
	s.mu.Unlock()
	s.signal()
}

// stop ends the session, from any goroutine. The first cause counts.
func (s *Session) stop(cause error) {
	s.mu.Lock()
	if s.cause == nil {
		s.cause = cause
	}
	s.work.Store(true)
	s.mu.Unlock()
	s.signal()
}

func (s *Session) stopped() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// signal wakes the issuer if it sleeps.
func (s *Session) signal() {
	if !s.idle.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.doorbell.ring()
	}
}

// runPosted runs what others have posted; the error is why to stop.
func (s *Session) runPosted() error {
	if !s.work.Load() {
		return nil
	}
	s.mu.Lock()
	all, cause := s.posted, s.cause
	s.posted = nil
	s.work.Store(cause != nil)
	s.mu.Unlock()
	for _, f := range all {
		f()
	}
	return cause
}
