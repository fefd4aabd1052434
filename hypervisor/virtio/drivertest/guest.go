// Package drivertest implements the guest's side of virtio, for tests of
// devices: memory in a memfd, and the driver's half of a split virtqueue.
package drivertest

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/hypervisor/virtio"
)

// Addresses of the guest's memory, for itself and in its VMM.
const (
	Base     = 0x100000
	UserBase = 0x7f0000000000
)

// Guest is a guest's memory. Alloc allocates from it.
type Guest struct {
	t    testing.TB
	FD   int
	Mem  []byte // at guest-physical Base
	next uint64
}

// NewGuest returns a guest with size bytes of memory, which is freed at the
// end of the test.
func NewGuest(t testing.TB, size int) *Guest {
	t.Helper()
	fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Munmap(mem)
		_ = unix.Close(fd)
	})
	return &Guest{t: t, FD: fd, Mem: mem, next: Base}
}

// Region describes the memory, with a new duplicate of its file descriptor.
func (g *Guest) Region() virtio.Region {
	fd, err := unix.FcntlInt(uintptr(g.FD), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		g.t.Fatal(err)
	}
	return virtio.Region{GPA: Base, Size: uint64(len(g.Mem)), UserAddr: UserBase, FD: fd}
}

// Map returns the device's mapping of the memory; it is closed at the end of
// the test.
func (g *Guest) Map() *virtio.Memory {
	m, err := virtio.Map([]virtio.Region{g.Region()})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = m.Close() })
	return m
}

// Alloc allocates n bytes and returns them with their guest-physical address.
func (g *Guest) Alloc(n, align int) (gpa uint64, b []byte) {
	g.next = (g.next + uint64(align) - 1) &^ (uint64(align) - 1)
	gpa = g.next
	g.next += uint64(n)
	if g.next > Base+uint64(len(g.Mem)) {
		g.t.Fatalf("guest memory of %d bytes is exhausted by an allocation of %d", len(g.Mem), n)
	}
	return gpa, g.At(gpa, n)
}

// At returns n bytes at a guest-physical address.
func (g *Guest) At(gpa uint64, n int) []byte { return g.Mem[gpa-Base:][:n] }

// Buffer is the memory of one descriptor.
type Buffer struct {
	GPA    uint64
	Length uint32
	Write  bool // writable by the device
}

// Used is a chain that the device returned.
type Used struct {
	Head    uint16
	Written uint32
}

// Driver is the driver's half of a queue. It has no flow control: a test must
// not submit more than fits.
type Driver struct {
	virtio.Layout
	g                 *Guest
	desc, avail, used []byte
	free              []uint16
	chains            map[uint16][]uint16
	availIdx, usedIdx uint16
}

var le = binary.LittleEndian

// NewDriver returns a queue of size entries.
func NewDriver(g *Guest, size uint16) *Driver {
	d := &Driver{g: g, Layout: virtio.Layout{Size: size}, chains: map[uint16][]uint16{}}
	a, b, c := d.Parts()
	d.Desc, d.desc = g.Alloc(int(a), 4096)
	d.Avail, d.avail = g.Alloc(int(b), 16)
	d.Used, d.used = g.Alloc(int(c), 4096)
	for i := range size {
		d.free = append(d.free, size-1-i)
	}
	return d
}

func putDesc(table []byte, i int, b Buffer, flags, next uint16) {
	if b.Write {
		flags |= 2
	}
	e := table[16*i:]
	le.PutUint64(e, b.GPA)
	le.PutUint32(e[8:], b.Length)
	le.PutUint16(e[12:], flags)
	le.PutUint16(e[14:], next)
}

// PutDesc writes an arbitrary descriptor, as a hostile driver might.
func (d *Driver) PutDesc(i int, b Buffer, flags, next uint16) { putDesc(d.desc, i, b, flags, next) }

// Submit makes a chain available and returns its head.
func (d *Driver) Submit(bufs ...Buffer) uint16 {
	var mine []uint16
	for range bufs {
		mine = append(mine, d.allocDescriptor())
	}
	for i, b := range bufs {
		if i+1 < len(bufs) {
			d.PutDesc(int(mine[i]), b, 1, mine[i+1])
		} else {
			d.PutDesc(int(mine[i]), b, 0, 0)
		}
	}
	d.chains[mine[0]] = mine
	d.MakeAvailable(mine[0])
	return mine[0]
}

// SubmitIndirect is Submit with an indirect table.
func (d *Driver) SubmitIndirect(bufs ...Buffer) uint16 {
	gpa, table := d.g.Alloc(16*len(bufs), 16)
	for i, b := range bufs {
		flags := uint16(1)
		if i+1 == len(bufs) {
			flags = 0
		}
		putDesc(table, i, b, flags, uint16(i+1))
	}
	head := d.allocDescriptor()
	d.PutDesc(int(head), Buffer{GPA: gpa, Length: uint32(len(table))}, 4, 0)
	d.chains[head] = []uint16{head}
	d.MakeAvailable(head)
	return head
}

func (d *Driver) allocDescriptor() uint16 {
	if len(d.free) == 0 {
		d.g.t.Fatalf("no free descriptor in the queue of %d", d.Size)
	}
	i := d.free[len(d.free)-1]
	d.free = d.free[:len(d.free)-1]
	return i
}

// MakeAvailable adds a head to the available ring.
func (d *Driver) MakeAvailable(head uint16) {
	le.PutUint16(d.avail[4+2*int(d.availIdx%d.Size):], head)
	d.availIdx++
	d.SetAvailIndex(d.availIdx)
}

// SetAvailIndex publishes an index, valid or not.
func (d *Driver) SetAvailIndex(i uint16) {
	// One store of the whole word: flags and index.
	virtio.Store32(d.avail, uint32(le.Uint16(d.avail))|uint32(i)<<16)
}

// Collect returns the chains that the device has returned, and requests an
// interrupt at the next.
func (d *Driver) Collect() (list []Used) {
	index := func() uint16 { return uint16(virtio.Load32(d.used) >> 16) }
	d.SetUsedEvent(index())
	for ; d.usedIdx != index(); d.usedIdx++ {
		e := d.used[4+8*int(d.usedIdx%d.Size):]
		u := Used{uint16(le.Uint32(e)), le.Uint32(e[4:])}
		list = append(list, u)
		d.free = append(d.free, d.chains[u.Head]...)
		delete(d.chains, u.Head)
		d.SetUsedEvent(d.usedIdx + 1)
	}
	return list
}

// AvailEvent returns the available index at which the device requests its next
// kick.
func (d *Driver) AvailEvent() uint16 { return le.Uint16(d.used[4+8*int(d.Size):]) }

// SetUsedEvent sets the used index at which the driver requests its next
// interrupt.
func (d *Driver) SetUsedEvent(i uint16) { le.PutUint16(d.avail[4+2*int(d.Size):], i) }

// SetNoInterrupt sets the flag of a driver without event indices.
func (d *Driver) SetNoInterrupt(v uint16) { le.PutUint16(d.avail, v) }
