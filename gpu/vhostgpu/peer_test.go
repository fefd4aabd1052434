package vhostgpu

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/codecache"
	"github.com/basalt-gpu/basalt/hypervisor/virtio"
)

// These words are used by testguest/probe and peer.
const (
	offQuestion = 0x800
	offAnswer   = 0x840
)

// peer is a worker for tests: it checks what it receives, and answers the probe's
// questions.
type peer struct {
	fail    func(format string, args ...any)
	conn    *net.UnixConn
	regions map[uint32][][]byte // mapped extents
	fds     []int
	beating sync.WaitGroup
	stop    chan struct{} // ends the heartbeat, if there is one

	// Pattern means that the pages of region 0 after the first must contain their
	// numbers.
	Pattern bool
	// Mute means that kicks are not answered, Clingy that drops are not.
	Mute, Clingy bool
	Refuse       string
	RefuseWith   abi.Result // 0: ErrNotPermitted

	mu     sync.Mutex // guards the following
	events []string
}

// peers is a Spawner of peers.
type peers struct {
	t       *testing.T
	prepare func(*peer)
	err     error

	mu   sync.Mutex // guards list
	list []*peer
	wg   sync.WaitGroup
}

func (p *peers) Spawn() (int, int, error) {
	if p.err != nil {
		return -1, 0, p.err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, 0, err
	}
	w, err := newPeer(pair[1], p.t.Errorf)
	if err != nil {
		return -1, 0, err
	}
	if p.prepare != nil {
		p.prepare(w)
	}
	p.mu.Lock()
	p.list = append(p.list, w)
	p.mu.Unlock()
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		w.serve()
	}()
	return pair[0], 0, nil
}

func newPeer(fd int, fail func(string, ...any)) (*peer, error) {
	f := os.NewFile(uintptr(fd), "carrier")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return &peer{fail: fail, conn: conn.(*net.UnixConn), regions: map[uint32][][]byte{}}, nil
}

// TestMain runs the tests, or the program of a worker process: a peer on
// descriptor 3. "stubborn" does not exit when its socket is closed.
// argument returns the number after an option of this process, or -1.
func argument(option string) int {
	i := slices.Index(os.Args, option)
	if i < 0 || i+1 == len(os.Args) {
		return -1
	}
	n, err := strconv.Atoi(os.Args[i+1])
	if err != nil {
		return -1
	}
	return n
}

func TestMain(m *testing.M) {
	mode := os.Getenv("BASALT_TEST_WORKER")
	if mode == "" {
		os.Exit(m.Run())
	}
	signal.Ignore(unix.SIGPIPE) // its log may be closed
	if c, err := codecache.Open(argument("--cache-fd")); err == nil {
		code, _ := c.Get(codecache.Key{7})
		c.Put(codecache.Key{7}, append(code, 'x')) // one for each worker
	}
	if argument("--token-fd") == 4 {
		token, err := io.ReadAll(os.NewFile(4, "token"))
		fmt.Fprintf(os.Stderr, "worker has token %q, %v\n", token, err)
	}
	p, err := newPeer(3, func(format string, args ...any) { fmt.Fprintf(os.Stderr, "worker: "+format+"\n", args...) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
	p.serve()
	if mode == "stubborn" {
		time.Sleep(time.Hour)
	}
	os.Exit(0)
}

func (p *peers) get(i int) *peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i >= len(p.list) {
		return nil
	}
	return p.list[i]
}

func (p *peer) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, fmt.Sprintf(format, args...))
}

func (p *peer) log() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.events...)
}

func (p *peer) serve() {
	defer func() {
		p.conn.Close()
		if p.stop != nil {
			close(p.stop)
		}
		p.beating.Wait()
		for _, list := range p.regions {
			unmap(list)
		}
		closeAll(p.fds)
		p.note("end")
	}()
	for {
		m, fds, err := p.read()
		if err != nil {
			return
		}
		p.fds = append(p.fds, fds...)
		switch m.Type {
		case abi.MsgHello:
			p.note("hello %d %d", len(m.Body), m.Argument)
			if p.Refuse != "" {
				p.send(abi.MsgRefused, uint32(cmp.Or(p.RefuseWith, abi.ErrNotPermitted)), []byte(p.Refuse))
			}
		case abi.MsgRegion:
			p.region(m, fds)
		case abi.MsgDropRegion:
			p.note("drop %d", m.Argument)
			unmap(p.regions[m.Argument])
			delete(p.regions, m.Argument)
			if !p.Clingy {
				p.send(abi.MsgDropped, m.Argument, nil)
			}
		case abi.MsgKick:
			p.note("kick")
			if r := p.regions[0]; r != nil && !p.Mute {
				virtio.Store32(r[0][offAnswer:], virtio.Load32(r[0][offQuestion:]))
				p.send(abi.MsgWake, 0, nil)
			}
		default:
			p.fail("worker got message %d", m.Type)
		}
	}
}

func (p *peer) send(typ uint16, arg uint32, body []byte) {
	p.conn.Write(encodeMessage(typ, arg, body))
}

func (p *peer) read() (m message, fds []int, err error) {
	h := make([]byte, abi.CarrierHeaderSize)
	oob := make([]byte, 256)
	n, oobn, _, _, err := p.conn.ReadMsgUnix(h, oob)
	if err != nil {
		return m, nil, err
	}
	if n == 0 {
		return m, nil, io.EOF
	}
	if _, err := io.ReadFull(p.conn, h[n:]); err != nil {
		return m, nil, err
	}
	cmsgs, _ := unix.ParseSocketControlMessage(oob[:oobn])
	for i := range cmsgs {
		f, _ := unix.ParseUnixRights(&cmsgs[i])
		fds = append(fds, f...)
	}
	size, err := carrierFrame(h)
	if err != nil {
		p.fail("worker got %x", h)
		return m, fds, err
	}
	frame := append(h, make([]byte, size)...)
	if _, err := io.ReadFull(p.conn, frame[len(h):]); err != nil {
		return m, fds, err
	}
	m, ok := parseMessage(frame)
	if !ok {
		p.fail("worker got %x", frame)
	}
	return m, fds, nil
}

func (p *peer) region(m message, fds []int) {
	size, sum := le.Uint64(m.Body), uint64(0)
	var list [][]byte
	extents, where := m.Body[8:], ""
	if m.Flags&abi.RegionPlaced != 0 {
		extents, where = m.Body[16:], fmt.Sprintf(" at %#x", le.Uint64(m.Body[8:]))
	}
	for e := extents; len(e) > 0; e = e[24:] {
		i, off, n := le.Uint32(e), le.Uint64(e[8:]), le.Uint64(e[16:])
		if int(i) >= len(fds) {
			p.fail("extent in descriptor %d of %d", i, len(fds))
			return
		}
		b, err := unix.Mmap(fds[i], int64(off), int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			p.fail("mapping %#x+%#x: %v", off, n, err)
			return
		}
		sum += n
		list = append(list, b)
	}
	if sum != size {
		p.fail("region of %d bytes has extents of %d", size, sum)
	}
	p.note("region %d of %d%s", m.Argument, size, where)
	p.regions[m.Argument] = list
	if m.Argument != 0 {
		return
	}
	if p.Pattern {
		p.checkPattern(list)
	}
	p.beat(list[0])
	virtio.Store32(list[0][abi.OffState:], abi.StateReady)
	p.send(abi.MsgReady, abi.Minor, nil)
}

// beat updates the heartbeat until serve ends.
func (p *peer) beat(header []byte) {
	p.beating.Add(1)
	p.stop = make(chan struct{})
	go func() {
		defer p.beating.Done()
		for n := uint32(1); ; n++ {
			virtio.Store32(header[abi.OffHeartbeat:], n)
			select {
			case <-p.stop:
				return
			case <-time.After(abi.HeartbeatMillis * time.Millisecond):
			}
		}
	}()
}

// checkPattern checks that the concatenated extents are the guest's region.
func (p *peer) checkPattern(list [][]byte) {
	page := uint64(0)
	for _, b := range list {
		for ; len(b) > 0; b = b[pageSize:] {
			if got := le.Uint64(b); page > 0 && got != page {
				p.fail("page %d holds number %d", page, got)
				return
			}
			page++
		}
	}
	p.note("pages %d in %d extents", page, len(list))
}

func unmap(list [][]byte) {
	for _, b := range list {
		unix.Munmap(b)
	}
}

// mutes is a Spawner of workers that never send anything.
type mutes struct{ sockets []int }

func (m *mutes) Spawn() (int, int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, 0, err
	}
	m.sockets = append(m.sockets, pair[1])
	return pair[0], 0, nil
}

func (m *mutes) close() { closeAll(m.sockets) }

func (m *mutes) now() time.Time { return time.Now().Add(time.Hour) }
