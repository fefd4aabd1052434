package worker

import (
	"context"
	"errors"
	"fmt"
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

// Options configure a session; the zero value is valid.
type Options struct {
	Log *slog.Logger
	// OnHello is called with the guest process's announcement, before its first
	// command.
	OnHello func(abi.Hello)
	// Spin is how long the issuer polls an empty ring before it sleeps; 0 is
	// DefaultSpin, less than 0 disables polling.
	Spin time.Duration
}

// DefaultSpin is roughly the time that a guest needs between two calls.
const DefaultSpin = 50 * time.Microsecond

// Session serves one guest process over one carrier connection.
//
//	        MsgHello, MsgRegion 0          EOF, Lost, protocol error, fault
//	greet ───────────────────────► issue ─────────────────────────────────► releaseAll
//	  └── MsgRefused                (StateReady)                    (StateDead)
//
// One goroutine, the issuer, owns everything that is not marked otherwise. Other
// goroutines pass it work through post and end it through stop. Completions are
// written by the goroutine that calls a ticket's done.
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

	byMessage bool // waiters must be woken by messages too
	shared    *shm.Mapping
	layout    layout
	window    *Window // of the session's device addresses
	ring      []byte
	tail      uint64
	entry     [maxEntry]byte
	command   command // the command that is being executed; no pointer to it is kept
	regions   map[uint32]*region
	runs      atomic.Int64 // number of mappings that regions use
	drops     []drop
	out       []carrier.Message // messages that did not fit into the socket
	handles   handles
	mappings  mappings
	sharing   sharing
	contexts  map[*contextObject]struct{}
	opening   int // number of contexts that are being created
	releasing bool
	requests  int // requests in other goroutines (ask) without an answer
	loads     loads
	blocked   *flow // a stream with too much work in the driver: the ring waits for it

	refusals    int    // number of modules with kernels that the device cannot run
	graphMemory uint64 // bytes of this process that executable graphs use
	account     *Account
	keeping     atomic.Bool // the guest may be keeping memory that it has freed
	returned    uint64      // how often memory was given back to the account
	frees       int         // frees in progress
	settling    int         // those of them that have no slot and are in no stream
	questions   []command   // MemInfo commands, until those frees are done
	starved     []starved   // out of memory until a free is done

	looks int // checks of the ring between two times that the polling issuer yields
	turns int // how often it has yielded since it last did to goroutines

	doorbell *doorbell
	sleeps   uint32       // how often the issuer has gone to sleep
	inflight atomic.Int64 // tickets that the driver has not finished
	held     atomic.Int64 // bytes of memory that they use, approximately

	mu     sync.Mutex // guards the following
	posted []func()
	cause  error // why the session must end
	closed bool  // the doorbell is closed
	idle   atomic.Bool
	work   atomic.Bool // posted or cause is set
}

// NewSession returns a session over conn, which the session owns from now on.
func NewSession(conn *net.UnixConn, d Driver, h Host, o Options) (*Session, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	reader, err := carrier.NewReader(conn)
	if err != nil {
		return nil, fmt.Errorf("open the guest's stream: %w", err)
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
		o.Spin = -1 // polling would keep the guest and the driver from running
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

// Run serves the guest until it closes the connection (nil), ctx ends, the vGPU
// is lost, or the guest violates the protocol. It closes the connection and frees
// all the session's memory; the driver stays open.
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
			s.stop(fmt.Errorf("%w: the worker was told to end: %w", abi.ErrUnavailable, context.Cause(ctx)))
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

// post passes the issuer a function to run; any goroutine may call it.
func (s *Session) post(f func()) {
	s.mu.Lock()
	s.posted = append(s.posted, f)
	s.work.Store(true)
	s.mu.Unlock()
	s.signal()
}

// stop ends the session; any goroutine may call it. Only the first cause is
// recorded.
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

// runPosted runs the posted functions; an error is the cause why the session must
// stop.
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
