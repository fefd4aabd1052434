// Package guesttest implements the guest in tests: it creates region 0, uses the
// carrier, writes commands into the ring and waits for slots, like the guest
// library in C.
package guesttest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/abi/carrier"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// Layout is that of region 0, in bytes and counts.
type Layout struct {
	RingSize, Slots, ChunkSize, Chunks uint64
}

// DefaultLayout is that of a small guest.
var DefaultLayout = Layout{RingSize: 64 << 10, Slots: 64, ChunkSize: 64 << 10, Chunks: 16}

// offsets returns the offsets of the parts of region 0, and its size.
func (l Layout) offsets() (ring, slots, chunkState, arena, size uint64) {
	page := func(n uint64) uint64 { return (n + abi.PageSize - 1) &^ (abi.PageSize - 1) }
	ring = abi.HeaderSize
	slots = ring + l.RingSize
	chunkState = slots + l.Slots*abi.SlotSize
	arena = page(chunkState + 4*l.Chunks)
	return ring, slots, chunkState, arena, page(arena + l.Chunks*l.ChunkSize)
}

// Guest is one guest process.
type Guest struct {
	Conn   *net.UnixConn
	Shm    *shm.Mapping
	Layout Layout

	Ring, Slots, ChunkState, Arena uint64 // offsets in Shm

	// Bell is the doorbell descriptor that the worker has sent; -1: none, ring by
	// message.
	Bell int

	slots  chan uint32 // free slots
	reader *carrier.Reader

	mu   sync.Mutex // guards the following and the ring
	head uint64
	next uint64 // next handle
}

// Memory returns sealed shared memory of size bytes.
func Memory(size uint64, seals int) (fd int, err error) {
	fd, err = unix.MemfdCreate("guest", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, err
	}
	err = unix.Ftruncate(fd, int64(size))
	if err == nil && seals != 0 {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Pair returns two connected sockets.
func Pair() (a, b *net.UnixConn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	conns := [2]*net.UnixConn{}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		c, e := net.FileConn(f)
		err = errors.Join(err, e, f.Close())
		if e == nil {
			conns[i] = c.(*net.UnixConn)
		}
	}
	return conns[0], conns[1], err
}

// Refused is the error of a MsgRefused of the worker.
type Refused struct {
	Result abi.Result
	Why    string
}

func (r *Refused) Error() string { return fmt.Sprintf("refused: %v: %s", r.Result, r.Why) }

// Prepare creates region 0 without announcing it to the worker; l goes into the
// header.
func Prepare(conn *net.UnixConn, l Layout) (g *Guest, fd int, err error) {
	ring, slots, chunkState, arena, size := l.offsets()
	if fd, err = Memory(size, unix.F_SEAL_SHRINK); err != nil {
		return nil, -1, err
	}
	m, err := shm.Map([]shm.Extent{{FD: fd, Length: size}})
	if err != nil {
		_ = unix.Close(fd)
		return nil, -1, err
	}
	g = &Guest{
		Conn: conn, Shm: m, Layout: l, Ring: ring, Slots: slots, ChunkState: chunkState, Arena: arena,
		Bell: -1, slots: make(chan uint32, l.Slots), next: 1,
	}
	for i := range l.Slots {
		g.slots <- uint32(i)
	}
	h := m.Bytes(0, abi.HeaderSize)
	binary.LittleEndian.PutUint32(h[abi.OffMagic:], abi.Magic)
	binary.LittleEndian.PutUint16(h[abi.OffMajor:], abi.Major)
	binary.LittleEndian.PutUint16(h[abi.OffMinor:], abi.Minor)
	for off, v := range map[uint64]uint64{
		abi.OffRegionSize: size, abi.OffRing: ring, abi.OffRingSize: l.RingSize, abi.OffSlots: slots, abi.OffSlotCount: l.Slots,
		abi.OffChunkState: chunkState, abi.OffArena: arena, abi.OffChunkSize: l.ChunkSize, abi.OffChunkCount: l.Chunks,
	} {
		binary.LittleEndian.PutUint64(h[off:], v)
	}
	return g, fd, nil
}

// Offer writes address windows into the header; call it before Announce. Without
// any, the worker chooses one. Only the numbers are offered: guest and worker may
// be the same process here, in which a range can be reserved only once.
func (g *Guest) Offer(windows ...abi.Window) {
	h := g.Shm.Bytes(0, abi.HeaderSize)
	for i, w := range windows {
		at := abi.OffWindows + i*abi.WindowEntrySize
		binary.LittleEndian.PutUint64(h[at:], w.Base)
		binary.LittleEndian.PutUint64(h[at+8:], w.Size)
	}
}

// Window returns the address window that the worker has chosen.
func (g *Guest) Window() abi.Window {
	return abi.Window{Base: g.Shm.Load64(abi.OffWindowBase), Size: g.Shm.Load64(abi.OffWindowSize)}
}

// Hello returns the hello that this guest sends.
func Hello() abi.Hello {
	return abi.Hello{Major: abi.Major, Minor: abi.Minor, PID: uint32(os.Getpid()), Name: "guesttest"}
}

// Dial starts a session with the default layout. The error is a *Refused when the
// worker refuses.
func Dial(conn *net.UnixConn, flags uint32) (*Guest, error) {
	g, fd, err := Prepare(conn, DefaultLayout)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) // the mapping keeps the memory alive
	if err := g.Announce(Hello(), flags, fd); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// Announce sends hello and region 0 and waits for the answer.
func (g *Guest) Announce(h abi.Hello, flags uint32, fd int) error {
	body := abi.Region{Size: g.Shm.Size(), Extents: []abi.Extent{{Length: g.Shm.Size()}}}.Append(nil)
	err := carrier.Write(g.Conn, carrier.Message{Type: abi.MsgHello, Argument: flags, Body: h.Append(nil)})
	if err == nil {
		err = carrier.Write(g.Conn, carrier.Message{Type: abi.MsgRegion, Body: body, FDs: []int{fd}})
	}
	if err != nil && !errors.Is(err, unix.EPIPE) {
		return err
	}
	m, err := g.Receive()
	if len(m.FDs) == 1 {
		g.Bell, m.FDs = m.FDs[0], nil
	}
	m.Close()
	switch {
	case err != nil:
		return err
	case m.Type == abi.MsgRefused:
		return &Refused{abi.Result(m.Argument), string(m.Body)}
	case m.Type != abi.MsgReady:
		return fmt.Errorf("message %d instead of ready", m.Type)
	case g.Shm.Load32(abi.OffState) != abi.StateReady:
		return errors.New("ready, but the state is not")
	}
	return nil
}

// Receive waits for a message of the worker, for at most 30 s.
func (g *Guest) Receive() (m carrier.Message, err error) {
	if g.reader == nil {
		if g.reader, err = carrier.NewReader(g.Conn); err != nil {
			return m, err
		}
	}
	if err := g.Conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return m, err
	}
	return g.reader.Read()
}

// Region shares size bytes as region number.
func (g *Guest) Region(number uint32, size uint64) (*shm.Mapping, error) {
	fd, err := Memory(size, unix.F_SEAL_SHRINK)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) // the mapping keeps the memory alive
	m, err := shm.Map([]shm.Extent{{FD: fd, Length: size}})
	if err != nil {
		return nil, err
	}
	body := abi.Region{Size: size, Extents: []abi.Extent{{Length: size}}}.Append(nil)
	return m, carrier.Write(g.Conn, carrier.Message{Type: abi.MsgRegion, Argument: number, Body: body, FDs: []int{fd}})
}

// RegionAt shares pages as region number, at an address of the window, and returns
// them as the guest sees them. No two adjacent pages are adjacent in their file,
// as in a process of a VM.
func (g *Guest) RegionAt(number uint32, address, pages uint64) (*shm.Mapping, error) {
	fd, err := Memory(2*pages*abi.PageSize, unix.F_SEAL_SHRINK)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) // the mapping keeps the memory alive
	r := abi.Region{Size: pages * abi.PageSize, Placed: true, Address: address}
	var mine []shm.Extent
	for i := range pages {
		e := abi.Extent{Offset: 2 * (pages - 1 - i) * abi.PageSize, Length: abi.PageSize}
		r.Extents = append(r.Extents, e)
		mine = append(mine, shm.Extent{FD: fd, Offset: e.Offset, Length: e.Length})
	}
	m, err := shm.Map(mine[:min(pages, 64)])
	if err != nil {
		return nil, err
	}
	return m, carrier.Write(g.Conn, carrier.Message{Type: abi.MsgRegion, Flags: r.Flags(), Argument: number, Body: r.Append(nil), FDs: []int{fd}})
}

// Drop drops a region.
func (g *Guest) Drop(number uint32) error {
	return carrier.Write(g.Conn, carrier.Message{Type: abi.MsgDropRegion, Argument: number})
}

// Handle returns a new handle.
func (g *Guest) Handle() uint64 { return g.Handles(1) }

// Handles returns the first of n new handles.
func (g *Guest) Handles(n uint64) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next += n
	return g.next - n
}

// Args is the fixed part of a command; the generated types implement it.
type Args interface{ Append([]byte) []byte }

// None is the fixed part of commands without one.
type None struct{}

// Append implements Args.
func (None) Append(b []byte) []byte { return b }

// Entry encodes a ring entry.
func Entry(op abi.Op, flags uint16, slot uint32, a Args, inline []byte) []byte {
	b := make([]byte, abi.EntryHeaderSize, abi.EntryHeaderSize+256+len(inline))
	b = append(a.Append(b), inline...)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	binary.LittleEndian.PutUint32(b[0:], uint32(len(b)))
	binary.LittleEndian.PutUint16(b[4:], uint16(op))
	binary.LittleEndian.PutUint16(b[6:], flags)
	binary.LittleEndian.PutUint32(b[8:], slot)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(inline)))
	return b
}

// ErrDead is the error of a session whose state is StateDead, or whose worker has
// exited.
type ErrDead struct {
	Result abi.Result
	Text   string
}

func (e *ErrDead) Error() string { return fmt.Sprintf("session dead: %v: %s", e.Result, e.Text) }

// Dead returns nil while the session is alive, and an error afterwards.
func (g *Guest) Dead() error {
	if g.Shm.Load32(abi.OffState) != abi.StateDead {
		return nil
	}
	text := g.Shm.Bytes(abi.OffErrorText, abi.ErrorTextSize)
	n := 0
	for n < len(text) && text[n] != 0 {
		n++
	}
	return &ErrDead{abi.Result(g.Shm.Load32(abi.OffError)), string(text[:n])}
}

// Put writes an entry into the ring, after a Nop to the ring's end if it does
// not fit before it, and rings the doorbell if the worker sleeps.
func (g *Guest) Put(entry []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	size := g.Layout.RingSize
	n := uint64(len(entry))
	if toEnd := size - g.head%size; n > toEnd || toEnd-n == 8 {
		if err := g.room(toEnd); err != nil {
			return err
		}
		b := g.Shm.Bytes(g.Ring+g.head%size, abi.EntryHeaderSize)
		binary.LittleEndian.PutUint32(b[0:], uint32(toEnd))
		binary.LittleEndian.PutUint16(b[4:], uint16(abi.OpNop))
		binary.LittleEndian.PutUint16(b[6:], 0)
		binary.LittleEndian.PutUint32(b[8:], abi.NoSlot)
		binary.LittleEndian.PutUint32(b[12:], uint32(toEnd-abi.EntryHeaderSize))
		g.head += toEnd
	}
	if err := g.room(n); err != nil {
		return err
	}
	copy(g.Shm.Bytes(g.Ring+g.head%size, n), entry)
	g.head += n
	g.Shm.Store64(abi.OffHead, g.head)
	if g.Shm.Load32(abi.OffWorkerSleeps) != 0 {
		return g.Kick()
	}
	return nil
}

// room waits until n bytes of the ring are free.
func (g *Guest) room(n uint64) error {
	for start := time.Now(); g.head+n-g.Shm.Load64(abi.OffTail) > g.Layout.RingSize; time.Sleep(10 * time.Microsecond) {
		if err := g.Dead(); err != nil {
			return err
		}
		if time.Since(start) > 30*time.Second {
			return errors.New("the ring stays full")
		}
	}
	return nil
}

// Kick rings the doorbell.
func (g *Guest) Kick() error {
	if g.Bell < 0 {
		return g.KickByMessage()
	}
	_, err := unix.Write(g.Bell, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	return err
}

// KickByMessage rings like a guest without a doorbell.
func (g *Guest) KickByMessage() error {
	return carrier.Write(g.Conn, carrier.Message{Type: abi.MsgKick})
}

// Send issues a command without a slot.
func (g *Guest) Send(op abi.Op, a Args, inline []byte) error {
	return g.Put(Entry(op, 0, abi.NoSlot, a, inline))
}

// Call issues a command and waits until it is done. The error is an
// abi.Result, or reports that the session is dead.
func (g *Guest) Call(op abi.Op, a Args, inline []byte) (v0, v1 uint64, err error) {
	return g.CallFlags(op, 0, a, inline)
}

// CallFlags is Call with flags in the entry.
func (g *Guest) CallFlags(op abi.Op, flags uint16, a Args, inline []byte) (v0, v1 uint64, err error) {
	slot, err := g.Start(op, flags, a, inline)
	if err != nil {
		return 0, 0, err
	}
	return g.Wait(slot)
}

// Start issues a command; Wait waits for the returned slot.
func (g *Guest) Start(op abi.Op, flags uint16, a Args, inline []byte) (slot uint32, err error) {
	slot = <-g.slots
	g.Shm.Store32(g.slotAt(slot)+abi.SlotState, abi.SlotPending)
	return slot, g.Put(Entry(op, flags, slot, a, inline))
}

func (g *Guest) slotAt(slot uint32) uint64 { return g.Slots + uint64(slot)*abi.SlotSize }

// Spin is how often a waiter checks its slot before it sleeps.
const Spin = 20_000

// Wait waits for a slot, first spinning, then sleeping.
func (g *Guest) Wait(slot uint32) (v0, v1 uint64, err error) {
	at := g.slotAt(slot)
	for i := 0; g.Shm.Load32(at+abi.SlotState) != abi.SlotDone; i++ {
		if i < Spin {
			continue
		}
		if err := g.Dead(); err != nil {
			return 0, 0, err
		}
		if i > Spin+300 {
			return 0, 0, errors.New("no completion")
		}
		g.Shm.CAS32(at+abi.SlotState, abi.SlotPending, abi.SlotSleeping)
		g.Shm.Wait(at+abi.SlotState, abi.SlotSleeping, 100*time.Millisecond)
	}
	v0, v1 = g.Shm.Load64(at+abi.SlotValue0), g.Shm.Load64(at+abi.SlotValue1)
	r := abi.Result(int32(g.Shm.Load32(at + abi.SlotResult)))
	g.slots <- slot
	if r != abi.Success {
		return v0, v1, r
	}
	return v0, v1, nil
}

// Close closes the connection.
func (g *Guest) Close() {
	_ = g.Conn.Close()
	if g.Bell >= 0 {
		_ = unix.Close(g.Bell)
		g.Bell = -1
	}
	if g.reader != nil {
		g.reader.Close()
	}
	g.Shm.Close()
}
