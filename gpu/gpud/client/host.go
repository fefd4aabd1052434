package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Options configures a worker's session.
type Options struct {
	Token string // the vGPU's secret
	PID   uint32 // of the guest process
	Name  string // of the guest process
	Log   *slog.Logger
}

// Host is a worker's connection to gpud: a worker.Host. When gpud does not
// respond, it reconnects for as long as it takes, and registers with the memory
// held and the totals so far. In the meantime memory requests wait and leases
// continue: each session takes the part of the card's time that it had (pace). A
// card shared without turns is better than a stopped guest.
//
// Acquire and Yield may be called from any goroutine, but there is only one
// lease: the caller counts its own users. Lock order: mu, then a stream's.
type Host struct {
	socket  string
	vgpu    string
	token   string
	session string
	log     *slog.Logger
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	lost    chan struct{}
	ended   sync.WaitGroup
	parted  atomic.Bool // gpud has answered the bye
	settles atomic.Bool // surplus memory is about to be given back

	mu      sync.Mutex // guards all below
	stream  *stream    // nil while not connected
	up      chan struct{}
	device  wire.Device
	limits  worker.Limits
	pid     uint32
	name    string
	held    uint64 // includes unused memory in the account
	account *worker.Account
	reclaim func(done func()) // frees memory that the guest keeps; nil: there is no guest
	swap    swapState
	shares  map[string]*shared // by token
	sharing bool               // this gpud supports shared memory
	totals  worker.Totals
	lease   leaseState
	why     error // why lost was closed
	sent    time.Time
	sending bool // a timer will send the totals
}

const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 500 * time.Millisecond
	// partWait is how long a session that has ended waits for a gpud that does not
	// respond, to report its usage.
	partWait = 10 * time.Minute
	// offlineLease is the length of a lease that gpud did not grant.
	offlineLease = 10 * time.Millisecond
	// reportEvery bounds how often totals are sent without another message.
	reportEvery = 50 * time.Millisecond
)

// errAway means that the connection ended before the answer arrived.
var errAway = errors.New("connection to gpud lost")

// DialWorker registers a worker of the vGPU with the gpud at socket. It fails
// when gpud is not running or refuses the worker; later connection losses are
// handled. gpud kills a process that runs for more than some seconds after its
// session.
func DialWorker(ctx context.Context, socket, vgpu string, o Options) (*Host, error) {
	var id [16]byte
	rand.Read(id[:])
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Host{
		socket: socket, vgpu: vgpu, token: o.Token, session: hex.EncodeToString(id[:]), log: o.Log,
		lost: make(chan struct{}), up: make(chan struct{}), shares: map[string]*shared{}, pid: o.PID, name: o.Name,
	}
	h.ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s, err := h.connect(ctx)
	if err != nil {
		h.cancel()
		return nil, err
	}
	h.ended.Go(func() { h.keepUp(s) })
	return h, nil
}

// keepUp serves the connection, and reconnects when it ends.
func (h *Host) keepUp(s *stream) {
	for {
		h.serve(s)
		h.mu.Lock()
		h.stream, h.up = nil, make(chan struct{})
		if h.account != nil {
			h.account.Detach()
		}
		h.mu.Unlock()
		if h.isLost() || h.ctx.Err() != nil || h.parted.Load() {
			return
		}
		h.log.Warn("connection to gpud lost, reconnecting")
		for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
			var err error
			if s, err = h.connect(h.ctx); err == nil {
				h.log.Info("reconnected to gpud")
				break
			}
			var refused *wire.Error
			if errors.As(err, &refused) && refused.Code != wire.CodeUnavailable && refused.Code != wire.CodeBusy {
				h.lose(err)
				return
			}
			select {
			case <-time.After(wait):
			case <-h.ctx.Done():
				return
			}
		}
	}
}

func (h *Host) isLost() bool {
	select {
	case <-h.lost:
		return true
	default:
		return false
	}
}

func (h *Host) lose(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.why == nil {
		h.why = why
		close(h.lost)
	}
}

// call sends a request to gpud and waits for the answer, reconnecting as often as
// needed. A refusal is a *wire.Error.
func (h *Host) call(ctx context.Context, m wire.ToNode) (wire.FromNode, error) {
	for {
		s, err := h.connected(ctx)
		if err != nil {
			return wire.FromNode{}, err
		}
		reply, err := s.ask(ctx, m)
		if errors.Is(err, errAway) {
			continue
		}
		return reply, err
	}
}

// connected waits for a connection and returns it.
func (h *Host) connected(ctx context.Context) (*stream, error) {
	for {
		h.mu.Lock()
		s, up := h.stream, h.up
		h.mu.Unlock()
		if h.isLost() {
			return nil, h.errLost()
		}
		if s != nil && !s.closed() {
			return s, nil
		}
		if s != nil { // closed, but keepUp has not noticed yet
			up = s.gone
		}
		select {
		case <-up:
			if s != nil {
				time.Sleep(100 * time.Microsecond)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-h.ctx.Done():
			return nil, abi.ErrUnavailable
		case <-h.lost:
			return nil, h.errLost()
		}
	}
}

func (h *Host) errLost() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Errorf("%w: %w", abi.ErrUnavailable, h.why)
}

// send sends a line that has no answer. Without a connection it is dropped,
// because the next registration contains the same information.
func (h *Host) send(m wire.ToNode) {
	h.mu.Lock()
	s := h.stream
	h.mu.Unlock()
	if s != nil {
		s.send(m)
	}
}

// Device returns the card that the worker must open.
func (h *Host) Device() wire.Device {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.device
}

// SetProcess sets the guest process, when it was not known at registration.
func (h *Host) SetProcess(pid uint32, name string) {
	h.mu.Lock()
	h.pid, h.name = pid, name
	h.mu.Unlock()
	h.send(wire.ToNode{Op: wire.OpProcess, PID: pid, Name: name})
}

// Limits implements worker.Host.
func (h *Host) Limits() worker.Limits {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.limits
}

// Reserve implements worker.Host.
func (h *Host) Reserve(bytes uint64) error {
	if bytes == 0 {
		return nil
	}
	// held is increased by the stream's reader, with the answer, so that a
	// registration after it cannot miss the bytes.
	m := wire.ToNode{Op: wire.OpReserve, Bytes: bytes}
	if a := h.accounted(); a != nil {
		m.Account, m.Spare = true, a.Want()
	}
	_, err := h.call(h.ctx, m)
	var refused *wire.Error
	if errors.As(err, &refused) && refused.Code == wire.CodeOutOfMemory {
		return fmt.Errorf("%w: %s", abi.ErrOutOfMemory, refused.Message)
	}
	return err
}

// Release implements worker.Host.
func (h *Host) Release(bytes uint64) {
	if bytes == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.giveBack(bytes)
}

// Memory implements worker.Host.
func (h *Host) Memory() (free, total uint64, err error) {
	a := h.accounted()
	reply, err := h.call(h.ctx, wire.ToNode{Op: wire.OpMemory, Account: a != nil})
	if err != nil || reply.Limits == nil {
		return 0, 0, errors.Join(err, abi.ErrUnavailable)
	}
	used := reply.Used
	if a != nil && reply.Others != nil { // this session's own use is known here, to the byte
		used = *reply.Others + a.Used()
	}
	return reply.Limits.VRAM - min(used, reply.Limits.VRAM), reply.Limits.VRAM, nil
}

// Status implements worker.Host.
func (h *Host) Status() (abi.VGPUStatusReply, error) {
	h.accounted()
	reply, err := h.call(h.ctx, wire.ToNode{Op: wire.OpStatus, Account: true})
	if err != nil || reply.Status == nil {
		return abi.VGPUStatusReply{}, errors.Join(err, abi.ErrUnavailable)
	}
	return *reply.Status, nil
}

// Faulted implements worker.Host. gpud learns of it with the totals; an older one ignores
// it.
func (h *Host) Faulted(r abi.Result) {
	h.mu.Lock()
	t := h.totals
	h.mu.Unlock()
	h.send(wire.ToNode{Op: wire.OpTotals, Totals: &t, Fault: uint32(r)})
}

// Report implements worker.Host. Totals are sent at most once in reportEvery, and
// with every lease that is requested or released.
func (h *Host) Report(t worker.Totals) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.totals = t
	if h.sending {
		return
	}
	h.sending = true
	time.AfterFunc(max(0, reportEvery-time.Since(h.sent)), func() {
		h.mu.Lock()
		h.sending, h.sent = false, time.Now()
		t := h.totals
		h.mu.Unlock()
		h.send(wire.ToNode{Op: wire.OpTotals, Totals: &t})
	})
}

// Lost implements worker.Host.
func (h *Host) Lost() <-chan struct{} { return h.lost }

// Part waits for a gpud that does not respond, so that Close can report the usage
// to it: until ctx ends, or for partWait. The session must have ended and its
// device must have been freed, so that no one waits for this process.
func (h *Host) Part(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, partWait)
	defer cancel()
	_, err := h.connected(ctx)
	return err
}

// Close ends the session. If gpud answers within a second, the totals are on
// gpud's disk when Close returns.
func (h *Host) Close() error {
	ctx, cancel := context.WithTimeout(h.ctx, time.Second)
	defer cancel()
	h.mu.Lock()
	t := h.totals
	h.mu.Unlock()
	var err error
	if !h.isLost() {
		_, err = h.call(ctx, wire.ToNode{Op: wire.OpBye, Totals: &t})
	}
	h.cancel()
	h.mu.Lock()
	s := h.stream
	h.mu.Unlock()
	if s != nil {
		s.close()
	}
	h.ended.Wait()
	return err
}
