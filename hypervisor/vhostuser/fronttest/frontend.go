// Package fronttest implements QEMU's side of vhost-user, for tests of
// back-ends: it sends the same messages as QEMU 10 to a vhost-user-gpu, in the
// same order.
package fronttest

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/hypervisor/vhostuser"
	"github.com/basalt-gpu/basalt/hypervisor/virtio/drivertest"
)

var le = binary.LittleEndian

// FrontEnd is a connected front-end.
type FrontEnd struct {
	t    testing.TB
	conn *net.UnixConn
	*drivertest.Guest
	Rings []*Ring
	// Features that the driver acknowledged.
	Features uint64
}

// Ring is one queue with its eventfds.
type Ring struct {
	*drivertest.Driver
	KickFD, CallFD int
}

// Connect connects to a back-end. The caller owns the guest memory g until
// then; the front-end uses it afterwards.
func Connect(t testing.TB, socket string, g *drivertest.Guest) *FrontEnd {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	f := &FrontEnd{t: t, conn: c.(*net.UnixConn), Guest: g}
	t.Cleanup(f.Close)
	return f
}

// Close closes the connection.
func (f *FrontEnd) Close() { f.conn.Close() }

func eventfd(t testing.TB) int {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// Send sends a message. flags are added to the version: 8 requests a reply.
func (f *FrontEnd) Send(r vhostuser.Request, flags uint32, payload []byte, fds ...int) {
	f.t.Helper()
	if err := f.TrySend(r, flags, payload, fds...); err != nil {
		f.t.Fatal(err)
	}
}

// TrySend is Send to a back-end that may have closed the connection.
func (f *FrontEnd) TrySend(r vhostuser.Request, flags uint32, payload []byte, fds ...int) error {
	b := le.AppendUint32(nil, uint32(r))
	b = le.AppendUint32(b, flags|1)
	b = le.AppendUint32(b, uint32(len(payload)))
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	_, _, err := f.conn.WriteMsgUnix(append(b, payload...), oob, nil)
	return err
}

// Reply reads the payload of one reply; nil if the back-end has closed the
// connection.
func (f *FrontEnd) Reply() []byte {
	h := make([]byte, 12)
	if _, err := io.ReadFull(f.conn, h); err != nil {
		return nil
	}
	b := make([]byte, le.Uint32(h[8:]))
	if _, err := io.ReadFull(f.conn, b); err != nil {
		return nil
	}
	return b
}

// Call sends a message and returns its reply.
func (f *FrontEnd) Call(r vhostuser.Request, payload []byte) []byte {
	f.t.Helper()
	f.Send(r, 0, payload)
	b := f.Reply()
	if b == nil {
		f.t.Fatalf("request %d: the back-end closed the connection, want a reply", r)
	}
	return b
}

// U64 returns the payload of most messages.
func U64(v uint64) []byte { return le.AppendUint64(nil, v) }

func state(index, num uint32) []byte { return le.AppendUint32(le.AppendUint32(nil, index), num) }

// Start performs QEMU's start-up: negotiation, memory, rings.
func (f *FrontEnd) Start(sizes ...uint16) {
	f.t.Helper()
	offered := le.Uint64(f.Call(vhostuser.GetFeatures, nil))
	f.Send(vhostuser.SetProtocolFeatures, 0, f.Call(vhostuser.GetProtocolFeatures, nil))
	f.Send(vhostuser.SetOwner, 0, nil)
	f.Call(vhostuser.GetConfig, append(append(state(0, 16), 0, 0, 0, 0), make([]byte, 16)...))
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { unix.Close(pair[0]) })
	f.Send(vhostuser.GPUSetSocket, 0, nil, pair[1])
	unix.Close(pair[1])
	f.Features = offered
	f.Resume(sizes...)
}

// Resume sends the memory table and starts new rings, as after a guest's
// reset.
func (f *FrontEnd) Resume(sizes ...uint16) {
	f.t.Helper()
	f.Rings = nil
	for _, n := range sizes {
		f.Rings = append(f.Rings, &Ring{drivertest.NewDriver(f.Guest, n), eventfd(f.t), eventfd(f.t)})
	}
	f.Send(vhostuser.SetFeatures, 0, U64(f.Features))
	f.Memory()
	for i := range f.Rings {
		f.StartRing(i, 0)
	}
}

// Memory sends the memory table, and waits for the acknowledgment.
func (f *FrontEnd) Memory() {
	f.t.Helper()
	r := f.Region()
	table := state(1, 0)
	for _, v := range []uint64{r.GPA, r.Size, r.UserAddr, r.Offset} {
		table = le.AppendUint64(table, v)
	}
	f.Send(vhostuser.SetMemTable, 8, table, r.FD)
	unix.Close(r.FD)
	if b := f.Reply(); b == nil || le.Uint64(b) != 0 {
		f.t.Fatalf("reply to the memory table = %x, want 0", b)
	}
}

// StartRing starts ring i at base.
func (f *FrontEnd) StartRing(i int, base uint32) {
	f.t.Helper()
	r, n := f.Rings[i], uint32(i)
	f.Send(vhostuser.SetVringNum, 0, state(n, uint32(r.Size)))
	f.Send(vhostuser.SetVringBase, 0, state(n, base))
	addr := state(n, 0)
	for _, gpa := range []uint64{r.Desc, r.Used, r.Avail, drivertest.Base} {
		addr = le.AppendUint64(addr, gpa-drivertest.Base+drivertest.UserBase)
	}
	f.Send(vhostuser.SetVringAddr, 0, addr)
	f.Send(vhostuser.SetVringKick, 0, U64(uint64(i)), r.KickFD)
	f.Send(vhostuser.SetVringCall, 0, U64(uint64(i)), r.CallFD)
	f.Send(vhostuser.SetVringEnable, 8, state(n, 1))
	if b := f.Reply(); b == nil || le.Uint64(b) != 0 {
		f.t.Fatalf("reply to the start of ring %d = %x, want 0", i, b)
	}
}

// StopRing stops ring i and returns its base.
func (f *FrontEnd) StopRing(i int) uint32 {
	f.t.Helper()
	return le.Uint32(f.Call(vhostuser.GetVringBase, state(uint32(i), 0))[4:])
}

// Kick notifies the back-end of new entries in the ring.
func (r *Ring) Kick() { _, _ = unix.Write(r.KickFD, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// Called waits up to millis milliseconds for the interrupt, and reports
// whether it came.
func (r *Ring) Called(millis int) bool {
	p := []unix.PollFd{{Fd: int32(r.CallFD), Events: unix.POLLIN}}
	if n, _ := unix.Poll(p, millis); n != 1 {
		return false
	}
	_, _ = unix.Read(r.CallFD, make([]byte, 8))
	return true
}
