package gpud

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// link is the connection of one worker. Lines are sent through a bounded queue; a
// worker that does not read them loses its connection.
type link struct {
	conn  *net.UnixConn
	out   chan wire.FromNode
	pid   int     // of the worker's process on this host; 0: not known
	host  process // the same, for the disk
	pidfd int     // pidfd of the process; -1 when there is none or it is this process
	once  sync.Once
	gone  chan struct{}
	last  chan struct{} // closed: nothing more is sent
	wrote chan struct{} // closed when nothing more is written
	left  bool          // it sent bye, or was told to end; owned by the core
}

const (
	linkQueue    = 64
	writeTimeout = 10 * time.Second
)

func newLink(conn *net.UnixConn, p peer) *link {
	l := &link{conn: conn, out: make(chan wire.FromNode, linkQueue), pid: p.pid, pidfd: -1, gone: make(chan struct{}), last: make(chan struct{}), wrote: make(chan struct{})}
	if p.pid > 1 && p.pid != os.Getpid() {
		if fd, err := unix.PidfdOpen(p.pid, 0); err == nil {
			l.pidfd, l.host = fd, processOf(p.pid)
		}
	}
	return l
}

// send queues a line; it never blocks.
func (l *link) send(m wire.FromNode) {
	select {
	case l.out <- m:
	default:
		closeFile(m.File)
		l.close()
	}
}

func closeFile(file *os.File) {
	if file != nil {
		_ = file.Close()
	}
}

func (l *link) close() {
	l.once.Do(func() { close(l.gone); _ = l.conn.Close() })
}

func (l *link) closed() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// write sends queued lines until the connection is closed or finish is called.
func (l *link) write() {
	defer close(l.wrote)
	defer l.drop()
	defer l.close()
	w := bufio.NewWriterSize(l.conn, 4<<10)
	for {
		select {
		case m := <-l.out:
			if l.writeLine(w, m) != nil {
				return
			}
		case <-l.last:
			for len(l.out) > 0 {
				if l.writeLine(w, <-l.out) != nil {
					return
				}
			}
			return
		case <-l.gone:
			return
		}
	}
}

// drop closes the descriptors of lines that will not be written. One that is being
// queued at this moment is closed with its os.File.
func (l *link) drop() {
	for {
		select {
		case m := <-l.out:
			closeFile(m.File)
		default:
			return
		}
	}
}

// writeLine writes a line, and flushes w after the last queued one.
func (l *link) writeLine(w *bufio.Writer, m wire.FromNode) error {
	_ = l.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if m.File != nil {
		defer m.File.Close()
		return errors.Join(w.Flush(), wire.WriteWith(l.conn, m, m.File))
	}
	err := wire.Write(w, m)
	if err == nil && len(l.out) == 0 {
		err = w.Flush()
	}
	return err
}

// serveWorker handles POST /v1/worker: it upgrades the connection and serves it
// until it ends.
func (s *Server) serveWorker(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), wire.Upgrade) {
		writeError(w, http.StatusUpgradeRequired, &wire.Error{Code: wire.CodeInvalid, Message: "want Upgrade: " + wire.Upgrade})
		return
	}
	p, _ := r.Context().Value(peerKey{}).(peer)
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		writeError(w, http.StatusInternalServerError, &wire.Error{Code: wire.CodeUnavailable, Message: "connection cannot be upgraded"})
		return
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", wire.Upgrade); err != nil {
		_ = conn.Close()
		return
	}
	l := newLink(unixConn, p)
	if l.pidfd >= 0 {
		defer unix.Close(l.pidfd)
	}
	files := wire.NewFiles(l.conn)
	defer files.Close()
	s.core.serveLink(l, bufio.NewReaderSize(io.MultiReader(buffered(buf.Reader), files), wire.MaxWorkerLine), files)
}

// buffered returns what the HTTP server has read already.
func buffered(r *bufio.Reader) io.Reader { return io.LimitReader(r, int64(r.Buffered())) }

func (c *core) serveLink(l *link, in *bufio.Reader, files *wire.Files) {
	defer l.close()
	enough := false
	if !c.call(func() {
		if enough = c.links < maxLinks; enough {
			c.links++
		}
	}) || !enough {
		return
	}
	defer c.call(func() { c.links-- })
	go l.write()

	_ = l.conn.SetReadDeadline(time.Now().Add(registerWithin))
	m, err := wire.ReadToNode(in)
	if err != nil || m.Op != wire.OpRegister {
		c.call(func() { c.refused("worker did not register", "pid", l.pid, "error", err) })
		return
	}
	_ = l.conn.SetReadDeadline(time.Time{})
	var s *session
	c.call(func() { s = c.greet(l, m) })
	if s == nil {
		l.finish()
		return
	}
	defer c.call(func() {
		at := now()
		if s.link == l { // otherwise it was ended, or reconnected over another connection
			c.hungUp(s, l, at)
		}
		c.awaitReturn(l, s, at)
	})
	for {
		m, err := wire.ReadToNode(in)
		if err != nil {
			if errors.Is(err, wire.ErrLine) {
				c.cfg.Log.Warn("worker connection closed", "session", s.id, "error", err)
			}
			return
		}
		if m.HasFile {
			if m.File, err = files.Take(); err != nil {
				return
			}
		}
		// One line at a time: a worker that floods only slows itself down.
		ok := c.call(func() { c.line(l, s, &m) })
		closeFile(m.File) // if nothing used it
		if !ok {
			return
		}
	}
}

// finish ends the connection when all queued lines have been sent, or could not
// be sent within writeTimeout. No line may be sent afterwards.
func (l *link) finish() {
	close(l.last)
	<-l.wrote
}

// greet registers a worker. Its answer waits until the session is on disk, so
// that the next gpud knows the worker if this one is killed now.
func (c *core) greet(l *link, m wire.ToNode) *session {
	s, refused := c.register(l, *m.Register, now())
	if refused != nil {
		c.refused(refused.Message, "vgpu", m.Register.VGPU, "pid", l.pid, "code", refused.Code)
		l.send(wire.FromNode{Op: wire.OpReply, ID: m.ID, Code: refused.Code, Message: refused.Message})
		return nil
	}
	c.durable(func(error) {
		if card := c.cards[s.vgpu.on()]; card != nil && s.link == l {
			c.greeted(s, m.Register.Account)
			l.send(wire.FromNode{Op: wire.OpReply, ID: m.ID, Limits: s.vgpu.limits(c), Device: card.device(), Evicts: true, Shares: true})
		}
	})
	return s
}

// refused logs that a worker was refused, at a bounded rate.
func (c *core) refused(why string, about ...any) {
	if ok, leftOut := c.strange.pass(now()); ok {
		c.cfg.Log.Warn("refused worker", append(about, "reason", why, "leftOut", leftOut)...)
	}
}

// line handles one line of a registered worker.
func (c *core) line(l *link, s *session, m *wire.ToNode) {
	if l.left {
		return // lines that crossed its bye or our lost
	}
	if s.link != l {
		l.close() // its session was ended
		return
	}
	at, reply := now(), wire.FromNode{Op: wire.OpReply, ID: m.ID}
	if m.Totals != nil {
		c.totals(s, *m.Totals, at)
	}
	if m.Fault != 0 {
		s.vgpu.note(abi.Result(m.Fault), s.pid, c.unix(at))
	}
	switch m.Op {
	case wire.OpProcess:
		s.pid, s.name = m.PID, m.Name
	case wire.OpReserve:
		s.account.kept = s.account.kept || m.Account
		c.reserve(s, grow{bytes: m.Bytes, spare: m.Spare, reply: func(spare uint64, e *wire.Error) {
			if e != nil {
				reply.Code, reply.Message = e.Code, e.Message
			} else {
				reply.Spare, reply.Sole = spare, c.alone(s)
			}
			l.send(reply)
		}}, at)
		return // answered when there is room
	case wire.OpRelease:
		c.release(s, m.Bytes, at)
	case wire.OpAcquire:
		s.acquire, s.presence.asked = m.ID, at
		if card := c.cards[s.vgpu.on()]; card != nil && card.contended() { // release first: its memory may be wanted
			c.step(card.ID, at, sched.Drop{Session: s.key()})
			c.applyResidency(card, at)
		}
		c.step(s.vgpu.on(), at, sched.Want{Session: s.key(), VGPU: s.vgpu.id})
		return // answered by the grant
	case wire.OpYield:
		s.acquire = 0
		c.step(s.vgpu.on(), at, sched.Drop{Session: s.key()})
		c.applyResidency(c.cards[s.vgpu.on()], at)
	case wire.OpEvictable:
		s.presence.evictable = true
	case wire.OpEvicted:
		c.evicted(s, m.Bytes, m.Failed, at)
	case wire.OpRestored:
		c.restored(s, m.Failed, at)
	case wire.OpRecalled:
		c.recalled(s, m.ID, m.Bytes, at)
		return
	case wire.OpShare:
		if e := c.sharing(s, m, at); e != nil {
			reply.Code, reply.Message = e.Code, e.Message
		}
	case wire.OpOpen:
		c.answerOpen(s, m.Share.Token, &reply)
	case wire.OpUnshare:
		c.unshare(s, m.Share.Token, m.Keep, at)
	case wire.OpMemory, wire.OpStatus:
		c.answerQuery(l, s, *m, at)
		return
	case wire.OpBye:
		c.end(s, at)
		l.left = true
		c.durable(func(error) { l.send(reply) })
		return
	case wire.OpRegister:
		l.close() // closing once is enough
		return
	}
	if m.ID != 0 {
		l.send(reply)
		return
	}
	closeFile(reply.File)
}

// answerQuery answers a query of the vGPU's memory. A query with account set asks for
// the memory that is used, and waits for recalls; any other is answered at once
// and so also shows that gpud is running.
func (c *core) answerQuery(l *link, s *session, m wire.ToNode, at sched.Time) {
	answer := func(at sched.Time) {
		reply := wire.FromNode{Op: wire.OpReply, ID: m.ID}
		if m.Op == wire.OpStatus {
			if reply.Status = s.vgpu.status(c, at); reply.Status == nil {
				reply.Code, reply.Message = wire.CodeUnavailable, "the GPU is not responding"
			}
		} else {
			used := s.vgpu.held()
			_, shared := s.has()
			others := used - s.held - shared
			reply.Used, reply.Others, reply.Limits, reply.Sole = used, &others, s.vgpu.limits(c), m.Account && c.alone(s)
		}
		if m.ID != 0 {
			l.send(reply)
		}
	}
	switch {
	case !m.Account:
		answer(at)
	case m.Op == wire.OpStatus:
		c.exact(s, nil, at, answer)
	default:
		s.account.kept = true
		c.exact(s, s, at, answer)
	}
}
