package vhostuser

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/hypervisor/virtio"
	"github.com/basalt-gpu/basalt/hypervisor/virtio/drivertest"
)

// recorder is a device that records its method calls.
type recorder struct {
	events []string
	queues [2]*virtio.Queue
	memory *virtio.Memory
}

func (r *recorder) note(s string)    { r.events = append(r.events, s) }
func (r *recorder) Features() uint64 { return virtio.FeatureVersion1 | virtio.FeatureIndirect }
func (r *recorder) Config() []byte   { return []byte("configuration") }
func (r *recorder) Limits() virtio.Limits {
	return virtio.Limits{Descriptors: 16, Bytes: 1 << 20}
}
func (r *recorder) SetMemory(m *virtio.Memory) {
	r.memory = m
	r.note("memory")
}
func (r *recorder) Start(i int, q *virtio.Queue, _ RingFDs, fresh bool) {
	r.queues[i] = q
	r.note("start " + string(rune('0'+i)))
	if fresh {
		r.note("fresh")
	}
}
func (r *recorder) Stop(i int) {
	r.queues[i] = nil
	r.note("stop " + string(rune('0'+i)))
}

func (r *recorder) drain() []string {
	e := r.events
	r.events = nil
	return e
}

func state32(a, b uint32) []byte { return le.AppendUint32(le.AppendUint32(nil, a), b) }

func eventfd(t testing.TB) int {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func memTable(g *drivertest.Guest) Message {
	r := g.Region()
	p := state32(1, 0)
	for _, v := range []uint64{r.GPA, r.Size, r.UserAddr, r.Offset} {
		p = le.AppendUint64(p, v)
	}
	return Message{SetMemTable, flagVersion, p, []int{r.FD}}
}

func vringAddrOf(i uint32, d *drivertest.Driver) Message {
	p := state32(i, 0)
	for _, gpa := range []uint64{d.Desc, d.Used, d.Avail, drivertest.Base} {
		p = le.AppendUint64(p, gpa-drivertest.Base+drivertest.UserBase)
	}
	return Message{Request: SetVringAddr, Payload: p}
}

func handle(t *testing.T, s *Session, m Message) []byte {
	t.Helper()
	b, err := s.Handle(m)
	if err != nil {
		t.Fatalf("Handle of request %d: %v", m.Request, err)
	}
	if b != nil {
		if le.Uint32(b[4:]) != flagVersion|flagReply || Request(le.Uint32(b)) != m.Request || int(le.Uint32(b[8:])) != len(b)-12 {
			t.Fatalf("reply to request %d = %x, want its number, the reply flag and its size", m.Request, b)
		}
		b = b[12:]
	}
	return b
}

// ready returns a session with one running ring.
func ready(t *testing.T) (*Session, *recorder, *drivertest.Guest, *drivertest.Driver) {
	t.Helper()
	g := drivertest.NewGuest(t, 1<<20)
	d := drivertest.NewDriver(g, 8)
	r := &recorder{}
	s := NewSession(r, 2)
	t.Cleanup(s.Close)
	handle(t, s, Message{Request: SetFeatures, Payload: u64Payload(FeatureProtocolFeatures | virtio.FeatureVersion1)})
	handle(t, s, Message{Request: SetProtocolFeatures, Payload: u64Payload(ProtocolReplyAck)})
	handle(t, s, memTable(g))
	handle(t, s, Message{Request: SetVringNum, Payload: state32(1, 8)})
	handle(t, s, Message{Request: SetVringBase, Payload: state32(1, 0)})
	handle(t, s, vringAddrOf(1, d))
	handle(t, s, Message{Request: SetVringKick, Payload: u64Payload(1), FDs: []int{eventfd(t)}})
	if e := r.drain(); !slices.Equal(e, []string{"memory"}) {
		t.Fatalf("calls before the ring is enabled = %q, want memory", e)
	}
	if b := handle(t, s, Message{Request: SetVringEnable, Flags: flagNeedReply, Payload: state32(1, 1)}); le.Uint64(b) != 0 {
		t.Fatalf("reply to enabling the ring = %x, want 0", b)
	}
	if e := r.drain(); !slices.Equal(e, []string{"start 1", "fresh"}) {
		t.Fatalf("calls after the ring is enabled = %q, want start 1 and fresh", e)
	}
	return s, r, g, d
}

func TestNegotiation(t *testing.T) {
	s := NewSession(&recorder{}, 2)
	defer s.Close()
	if v := le.Uint64(handle(t, s, Message{Request: GetFeatures})); v != virtio.FeatureVersion1|virtio.FeatureIndirect|FeatureProtocolFeatures {
		t.Errorf("GetFeatures = %#x, want VERSION_1, INDIRECT_DESC and PROTOCOL_FEATURES", v)
	}
	if v := le.Uint64(handle(t, s, Message{Request: GetProtocolFeatures})); v != ProtocolReplyAck|ProtocolConfig {
		t.Errorf("GetProtocolFeatures = %#x, want REPLY_ACK and CONFIG", v)
	}
	if v := le.Uint64(handle(t, s, Message{Request: GetQueueNum})); v != 2 {
		t.Errorf("GetQueueNum = %d, want 2", v)
	}
	b := handle(t, s, Message{Request: GetConfig, Payload: append(append(state32(9, 6), 0, 0, 0, 0), 1, 1, 1, 1, 1, 1)})
	if string(b[12:]) != "tion\x00\x00" {
		t.Errorf("GetConfig at 9 = %q, want the end of the configuration", b)
	}
}

// TestRingLife checks that after a pause a ring continues at its position, and
// that a reset is detected.
func TestRingLife(t *testing.T) {
	s, r, g, d := ready(t)
	gpa, _ := g.Alloc(4, 1)
	d.Submit(drivertest.Buffer{GPA: gpa, Length: 4})
	c, err := r.queues[1].Pop()
	if err != nil {
		t.Fatal(err)
	}
	r.queues[1].Push(c.Head, 0)

	handle(t, s, memTable(g)) // memory was plugged in
	if e := r.drain(); !slices.Equal(e, []string{"stop 1", "memory", "start 1"}) || r.queues[1].Position() != (virtio.Position{Avail: 1, Used: 1}) {
		t.Fatalf("calls on new memory = %q at %+v, want stop 1, memory and start 1 at the same position", e, r.queues[1].Position())
	}
	b := handle(t, s, Message{Request: GetVringBase, Payload: state32(1, 0)})
	if !bytes.Equal(b, state32(1, 1)) {
		t.Fatalf("GetVringBase = %x, want base 1 of ring 1", b)
	}
	handle(t, s, Message{Request: SetVringKick, Payload: u64Payload(1), FDs: []int{eventfd(t)}})
	if e := r.drain(); !slices.Equal(e, []string{"stop 1", "start 1"}) || r.queues[1].Position() != (virtio.Position{Avail: 1, Used: 1}) {
		t.Fatalf("calls on a pause = %q at %+v, want stop 1 and start 1 at the same position", e, r.queues[1].Position())
	}
	handle(t, s, Message{Request: SetVringEnable, Payload: state32(1, 0)})
	handle(t, s, Message{Request: GetVringBase, Payload: state32(1, 0)})
	second := drivertest.NewDriver(g, 8)
	handle(t, s, Message{Request: SetVringBase, Payload: state32(1, 0)})
	handle(t, s, vringAddrOf(1, second))
	handle(t, s, Message{Request: SetVringEnable, Payload: state32(1, 1)})
	handle(t, s, Message{Request: SetVringKick, Payload: u64Payload(1), FDs: []int{eventfd(t)}})
	if e := r.drain(); !slices.Equal(e, []string{"stop 1", "start 1", "fresh"}) {
		t.Fatalf("calls on a reset = %q, want stop 1, start 1 and fresh", e)
	}
	s.Close()
	if e := r.drain(); !slices.Equal(e, []string{"stop 1", "memory"}) || r.memory != nil {
		t.Fatalf("calls on Close = %q, memory %v, want stop 1 and no memory", e, r.memory)
	}
}

// TestHandover checks that a session continues after a handover with the same
// rings at the same positions.
func TestHandover(t *testing.T) {
	s, r, g, d := ready(t)
	gpa, _ := g.Alloc(4, 1)
	d.Submit(drivertest.Buffer{GPA: gpa, Length: 4, Write: true})
	d.Submit(drivertest.Buffer{GPA: gpa, Length: 4, Write: true})
	held, _ := r.queues[1].Pop()
	st := s.State()
	// The next program has its own copies of the file descriptors.
	dup := func(fd int) int {
		if fd < 0 {
			return fd
		}
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := len(st.FDs()); n != 2 { // memory, kick
		t.Errorf("FDs of %+v = %d, want 2", st, n)
	}
	st.Memory[0].FD = dup(st.Memory[0].FD)
	st.Rings[1].Kick = dup(st.Rings[1].Kick)
	r2 := &recorder{}
	s2, err := RestoreSession(r2, st)
	if err != nil {
		t.Fatal(err)
	}
	defer s2.Close()
	q := r2.queues[1]
	if q == nil || q.Position() != (virtio.Position{Avail: 1}) {
		t.Fatalf("queue after RestoreSession is %+v, calls %q, want it at available index 1", q, r2.drain())
	}
	c, err := q.Walk(held.Head)
	if err != nil {
		t.Fatal(err)
	}
	c.Write([]byte("late"))
	q.Push(c.Head, 4)
	c, err = q.Pop()
	if err != nil || c == nil {
		t.Fatalf("Pop = %v, %v, want a chain", c, err)
	}
	if q.Push(c.Head, 0); len(d.Collect()) != 2 {
		t.Error("the driver received fewer than 2 used chains after the handover, want 2")
	}
}

func TestBreaches(t *testing.T) {
	g := drivertest.NewGuest(t, 1<<16)
	noMemory := memTable(g)
	noMemory.Payload = append([]byte(nil), noMemory.Payload...)
	le.PutUint64(noMemory.Payload[16:], 1<<40) // larger than the file
	for name, m := range map[string]Message{
		"unknown request":         {Request: 99},
		"short u64":               {Request: SetFeatures, Payload: []byte{1}},
		"unoffered protocol":      {Request: SetProtocolFeatures, Payload: u64Payload(1 << 20)},
		"queue out of range":      {Request: SetVringNum, Payload: state32(2, 8)},
		"queue of no size":        {Request: SetVringNum, Payload: state32(0, 0)},
		"queue too large":         {Request: SetVringNum, Payload: state32(0, 65536)},
		"base too large":          {Request: SetVringBase, Payload: state32(0, 65536)},
		"short address":           {Request: SetVringAddr, Payload: make([]byte, 39)},
		"kick without eventfd":    {Request: SetVringKick, Payload: u64Payload(0)},
		"kick for no queue":       {Request: SetVringKick, Payload: u64Payload(7), FDs: []int{eventfd(t)}},
		"config size lies":        {Request: GetConfig, Payload: append(state32(0, 64), 0, 0, 0, 0)},
		"socket without socket":   {Request: GPUSetSocket},
		"descriptors for nothing": {Request: GetFeatures, FDs: []int{eventfd(t)}},
		"table without files":     {Request: SetMemTable, Payload: append(state32(1, 0), make([]byte, 32)...)},
		"table of nine":           {Request: SetMemTable, Payload: append(state32(9, 0), make([]byte, 9*32)...)},
		"memory beyond its file":  noMemory,
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSession(&recorder{}, 2)
			defer s.Close()
			_, err := s.Handle(m)
			var a *Error
			var b *virtio.Error
			if !errors.As(err, &a) && !errors.As(err, &b) {
				t.Fatalf("Handle = %v, want a *vhostuser.Error or *virtio.Error", err)
			}
			for _, fd := range m.FDs {
				if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
					t.Errorf("file descriptor %d is still open after the error, want it closed", fd)
				}
			}
		})
	}
	// A front-end that requested a reply receives the error in it.
	s := NewSession(&recorder{}, 2)
	defer s.Close()
	handle(t, s, Message{Request: SetProtocolFeatures, Payload: u64Payload(ProtocolReplyAck)})
	again := memTable(g)
	again.Flags |= flagNeedReply
	le.PutUint64(again.Payload[16:], 1<<40)
	if b := handle(t, s, again); le.Uint64(b) != 1 {
		t.Errorf("reply to an invalid memory table = %x, want 1", b)
	}
}

// TestStream checks that messages and file descriptors arrive whole, however
// the bytes were split, and that another stream continues in the middle of a
// message.
func TestStream(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	s, err := NewServerStream(pair[0])
	if err != nil {
		t.Fatal(err)
	}
	send := func(b []byte, fds ...int) {
		t.Helper()
		if err := unix.Sendmsg(pair[1], b, unix.UnixRights(fds...), nil, 0); err != nil {
			t.Fatal(err)
		}
		closeAll(fds)
	}
	one, two := encode(SetOwner, 0, nil), encode(SetVringKick, 0, u64Payload(1))
	// Send the end of one message and the start of the next in one piece, with
	// the file descriptor of the second.
	unix.Write(pair[1], one[:5])
	if m, err := ReadMessage(s); m != nil || err != nil {
		t.Fatalf("ReadMessage of half a message = %v, %v, want none", m, err)
	}
	unix.Write(pair[1], one[5:])
	send(two[:14], eventfd(t))
	m, err := ReadMessage(s)
	if err != nil || m == nil || m.Request != SetOwner || len(m.FDs) != 0 {
		t.Fatalf("first message = %+v, %v, want SetOwner without file descriptors", m, err)
	}
	if m, err = ReadMessage(s); m != nil || err != nil {
		t.Fatalf("ReadMessage of half of the second message = %v, %v, want none", m, err)
	}
	// Handover to another stream.
	s2, err := NewServerStream(pair[0])
	if err != nil {
		t.Fatal(err)
	}
	defer s2.Close()
	s2.Restore(s.State())
	unix.Write(pair[1], two[14:])
	if m, err = ReadMessage(s2); err != nil || m == nil || m.Request != SetVringKick || len(m.FDs) != 1 {
		t.Fatalf("second message = %+v, %v, want SetVringKick with one file descriptor", m, err)
	}
	closeAll(m.FDs)

	big := encode(SetOwner, 0, nil)
	le.PutUint32(big[8:], MaxPayload+1)
	unix.Write(pair[1], big)
	var breach *Error
	if _, err := ReadMessage(s2); !errors.As(err, &breach) || !strings.Contains(err.Error(), "4097 bytes") {
		t.Fatalf("ReadMessage of a message that is too large = %v, want an *Error with 4097 bytes", err)
	}
}

// TestStreamBacklog checks that messages for a slow reader are queued, up to
// the limit.
func TestStreamBacklog(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStream(pair[0], headerSize, payloadSize, 1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	message := encode(SetOwner, 0, make([]byte, 4000))
	sent := 0
	for ; err == nil; sent++ {
		err = s.Write(message, eventfd(t))
	}
	if !errors.Is(err, ErrTooMuch) || !s.Pending() {
		t.Fatalf("Write after %d messages = %v, pending %v, want ErrTooMuch and pending messages", sent, err, s.Pending())
	}
	r, err := NewStream(pair[1], headerSize, payloadSize, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < sent-1; i++ {
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		m, fds, err := r.Read()
		if err != nil || !bytes.Equal(m, message) || len(fds) != 1 {
			t.Fatalf("message %d has %d bytes and %d file descriptors, %v, want the sent one with one", i, len(m), len(fds), err)
		}
		closeAll(fds)
	}
	r.Close()
	if _, _, err := s.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("Read after the peer has closed = %v, want io.EOF", err)
	}
}

// FuzzSession checks that a session answers any input of a front-end or ends
// with an error.
func FuzzSession(f *testing.F) {
	var seed []byte
	for _, b := range [][]byte{
		encode(SetFeatures, 0, u64Payload(1<<32)), encode(SetMemTable, 8, append(state32(1, 0), make([]byte, 32)...)),
		encode(SetVringNum, 0, state32(0, 8)), encode(SetVringBase, 0, state32(0, 3)), encode(SetVringAddr, 0, make([]byte, 40)),
		encode(SetVringKick, 0, u64Payload(0)), encode(SetVringEnable, 0, state32(0, 1)), encode(GetVringBase, 0, state32(0, 0)),
		encode(GetConfig, 0, append(state32(0, 4), make([]byte, 8)...)),
	} {
		seed = append(seed, b...)
	}
	f.Add(seed)
	g := drivertest.NewGuest(f, 1<<16)
	f.Fuzz(func(t *testing.T, b []byte) {
		s := NewSession(&recorder{}, 2)
		defer s.Close()
		if _, err := s.Handle(memTable(g)); err != nil {
			t.Fatal(err)
		}
		for len(b) >= headerSize {
			n, err := payloadSize(b[:headerSize])
			if err != nil || headerSize+n > len(b) {
				return
			}
			var fds []int
			switch Request(le.Uint32(b)) {
			case SetVringKick, SetVringCall, SetVringErr, GPUSetSocket:
				fds = []int{eventfd(t)}
			}
			m, err := decode(b[:headerSize+n], fds)
			if err != nil {
				closeAll(fds)
				return
			}
			b = b[headerSize+n:]
			if _, err := s.Handle(m); err != nil {
				return
			}
		}
	})
}
