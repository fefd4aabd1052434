package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
)

// stream is one connection to gpud. Lock order: a Host's mu before this mu.
type stream struct {
	conn  *net.UnixConn
	in    *bufio.Reader
	files *wire.Files // descriptors that came with the lines
	gone  chan struct{}
	once  sync.Once
	read  atomic.Uint64 // number of lines received

	mu      sync.Mutex // guards writing and all below
	next    uint64
	pending map[uint64]question
	parting bool // a bye was sent, the last line: gpud closes the connection after its answer
}

type question struct {
	answer chan wire.FromNode
	bytes  uint64     // bytes that a reserve asks for
	memory bool       // asks whether others have memory
	shares wire.Share // memory that it asks to share
	opens  string     // token of the memory that it asks to open
	bye    bool
}

const (
	dialTimeout  = 5 * time.Second
	writeTimeout = 10 * time.Second
)

// connect connects and registers; when it returns, the host is connected.
func (h *Host) connect(ctx context.Context) (*stream, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", h.socket)
	if err != nil {
		return nil, fmt.Errorf("gpud: %w", err)
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("gpud: %s is not a unix socket", h.socket), conn.Close())
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	files := wire.NewFiles(unixConn)
	s := &stream{conn: unixConn, files: files, in: bufio.NewReaderSize(files, wire.MaxNodeLine), gone: make(chan struct{}), pending: map[uint64]question{}}
	if err := errors.Join(s.upgrade(), h.register(s)); err != nil {
		s.close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return s, nil
}

func (s *stream) upgrade() error {
	if _, err := fmt.Fprintf(s.conn, "POST /v1/worker HTTP/1.1\r\nHost: gpud\r\nConnection: Upgrade\r\nUpgrade: %s\r\nContent-Length: 0\r\n\r\n", wire.Upgrade); err != nil {
		return fmt.Errorf("gpud: %w", err)
	}
	resp, err := http.ReadResponse(s.in, nil)
	if err != nil {
		return fmt.Errorf("gpud: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("gpud: worker stream: %s", resp.Status)
	}
	return nil
}

// register sends the registration and handles the answer. It reports the memory
// held and stores the stream under one lock: a release is either included in the
// number or sent after it on this stream.
func (h *Host) register(s *stream) error {
	if s.closed() {
		return errAway
	}
	h.mu.Lock()
	h.settle() // no gpud has agreed to the unused memory, and this one may have less room
	m := wire.ToNode{Op: wire.OpRegister, ID: 1, Register: &wire.Register{
		Version: wire.Version, VGPU: h.vgpu, Token: h.token, Session: h.session,
		PID: h.pid, Name: h.name, Held: h.held, Totals: h.totals,
		Evictable: h.swap.evict != nil, Out: h.swap.out, Swapped: h.swap.bytes, Account: h.account != nil, Shares: h.shareList(),
	}}
	s.next = 1
	h.mu.Unlock()
	if err := wire.Write(s.conn, m); err != nil {
		return fmt.Errorf("gpud: %w", err)
	}
	reply, err := wire.ReadFromNode(s.in)
	if err != nil {
		return fmt.Errorf("gpud: %w", err)
	}
	if reply.Code != "" {
		return &wire.Error{Code: reply.Code, Message: reply.Message}
	}
	if reply.Limits == nil || reply.Device == nil {
		return errors.New("gpud: response to the registration has no limits or no device")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sendChanges(s, m.Register)
	if h.sharing = reply.Shares; h.sharing {
		h.publishAgain(s)
	}
	h.swap.asked = reply.Evicts
	h.stream, h.limits, h.device = s, *reply.Limits, *reply.Device
	h.lease.wasOffline()
	h.settle()
	close(h.up)
	return nil
}

// sendChanges sends what has changed while the registration was in progress: it has
// not been reported yet. h.mu is held.
func (h *Host) sendChanges(s *stream, told *wire.Register) {
	if gone := told.Held - min(h.held, told.Held); gone > 0 {
		s.send(wire.ToNode{Op: wire.OpRelease, Bytes: gone})
	}
	if h.swap.out && (!told.Out || h.swap.bytes > told.Swapped) { // and what was evicted
		s.send(wire.ToNode{Op: wire.OpEvicted, Bytes: h.swap.bytes - min(told.Swapped, h.swap.bytes)})
	}
	if h.totals != told.Totals {
		t := h.totals
		s.send(wire.ToNode{Op: wire.OpTotals, Totals: &t})
	}
	if h.pid != told.PID || h.name != told.Name {
		s.send(wire.ToNode{Op: wire.OpProcess, PID: h.pid, Name: h.name})
	}
}

// serve handles gpud's lines until the connection ends.
func (h *Host) serve(s *stream) {
	defer s.files.Close()
	defer s.close()
	for {
		m, err := wire.ReadFromNode(s.in)
		if err == nil && m.HasFile {
			m.File, err = s.files.Take()
		}
		if err != nil {
			return
		}
		s.read.Add(1)
		switch m.Op {
		case wire.OpReply:
			s.mu.Lock()
			q, ok := s.pending[m.ID]
			delete(s.pending, m.ID)
			s.mu.Unlock()
			if !ok {
				if m.File != nil {
					_ = m.File.Close()
				}
				continue
			}
			if m.Code == "" {
				h.enter(q, m)
			}
			if q.bye && m.Code == "" {
				h.parted.Store(true) // gpud closes the stream now
			}
			q.answer <- m
		case wire.OpYieldRequest:
			h.yieldRequested()
		case wire.OpRecall:
			h.recall(s, m.ID)
		case wire.OpEvict:
			go h.evict(m.Bytes)
		case wire.OpLimits:
			if m.Limits != nil {
				h.mu.Lock()
				h.limits = *m.Limits
				h.mu.Unlock()
			}
		case wire.OpLost:
			h.lose(&wire.Error{Code: wire.CodeLost, Message: m.Message})
			return
		}
	}
}

func (s *stream) close() {
	s.once.Do(func() { close(s.gone); _ = s.conn.Close() })
}

func (s *stream) closed() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// ask sends a line and waits for its answer. The error is errAway when the
// connection ends or, for a lease, when gpud hangs.
func (s *stream) ask(ctx context.Context, m wire.ToNode) (wire.FromNode, error) {
	q := question{answer: make(chan wire.FromNode, 1)}
	switch m.Op {
	case wire.OpReserve:
		q.bytes = m.Bytes
	case wire.OpMemory:
		q.memory = m.Account
	case wire.OpShare:
		q.shares = *m.Share
	case wire.OpOpen:
		q.opens = m.Share.Token
	case wire.OpBye:
		q.bye = true
	}
	s.mu.Lock()
	s.next++
	m.ID = s.next
	s.pending[m.ID] = q
	s.parting = s.parting || q.bye
	err := s.writeLocked(m)
	s.mu.Unlock()
	if err != nil {
		return wire.FromNode{}, errAway
	}
	var quiet watch
	if m.Op == wire.OpAcquire {
		quiet.start(s)
		defer quiet.stop()
	}
	for {
		select {
		case reply := <-q.answer:
			return checked(reply)
		case <-s.gone:
			select { // the answer may have arrived just before the end
			case reply := <-q.answer:
				return checked(reply)
			default:
				return wire.FromNode{}, errAway
			}
		case <-quiet.due():
			quiet.probe(s)
		case <-ctx.Done():
			s.mu.Lock()
			delete(s.pending, m.ID)
			s.mu.Unlock()
			return wire.FromNode{}, ctx.Err()
		}
	}
}

// watch distinguishes a gpud that hangs with its connection open from one whose
// card is busy: a request for a lease may wait long for its turn, but a running
// gpud answers a query of the memory in use at once.
type watch struct {
	timer  *time.Timer
	read   uint64 // lines received at the last probe
	probed bool   // whether a query was sent then
}

// answerWithin is how long gpud may send nothing before it is sent a query, and
// again before the session continues without it. A longer wait is not one for a
// turn (paceWait); no single operation of gpud takes longer than 0.2 s.
const answerWithin = paceWait

func (w *watch) start(s *stream) {
	w.timer, w.read = time.NewTimer(answerWithin), s.read.Load()
}

func (w *watch) stop() { w.timer.Stop() }

// due returns the timer's channel, or nil for a watch that was not started.
func (w *watch) due() <-chan time.Time {
	if w.timer == nil {
		return nil
	}
	return w.timer.C
}

// probe sends a query to a gpud that has sent nothing, and closes the connection
// if an earlier query was not answered.
func (w *watch) probe(s *stream) {
	read := s.read.Load()
	silent := read == w.read
	w.read = read
	if silent && w.probed {
		s.close()
		return
	}
	if w.probed = silent; silent {
		s.mu.Lock()
		s.next++
		_ = s.writeLocked(wire.ToNode{Op: wire.OpMemory, ID: s.next}) // nobody waits for the answer
		s.mu.Unlock()
	}
	w.timer.Reset(answerWithin)
}

func checked(m wire.FromNode) (wire.FromNode, error) {
	if m.Code != "" {
		return m, &wire.Error{Code: m.Code, Message: m.Message}
	}
	return m, nil
}

// send sends a line that has no answer. A write error is ignored here: closing the
// connection would lose the answer to a bye, and the bye would be sent again.
func (s *stream) send(m wire.ToNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.parting {
		_ = s.writeLocked(m) // the reader notices a broken connection
	}
}

func (s *stream) writeLocked(m wire.ToNode) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	var err error
	if m.File != nil {
		err = wire.WriteWith(s.conn, m, m.File)
	} else {
		err = wire.Write(s.conn, m)
	}
	if err != nil {
		s.close()
		return fmt.Errorf("write to gpud: %w", err)
	}
	return nil
}
