package vhostgpu

import (
	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/hypervisor/virtio"
)

// message is a carrier message (gpu/abi/carrier.go).
type message struct {
	Type     uint16
	Flags    uint16
	Argument uint32
	Body     []byte
}

func encodeMessage(typ uint16, arg uint32, body []byte) []byte {
	return encodeFlagged(typ, 0, arg, body)
}

func encodeFlagged(typ, flags uint16, arg uint32, body []byte) []byte {
	b := make([]byte, 0, abi.CarrierHeaderSize+len(body))
	b = le.AppendUint32(b, abi.Magic)
	b = le.AppendUint16(b, typ)
	b = le.AppendUint16(b, flags)
	b = le.AppendUint32(b, uint32(len(body)))
	b = le.AppendUint32(b, arg)
	return append(b, body...)
}

// parseMessage decodes the single message in b.
func parseMessage(b []byte) (m message, ok bool) {
	if len(b) < abi.CarrierHeaderSize || le.Uint32(b) != abi.Magic {
		return m, false
	}
	n := uint64(le.Uint32(b[8:]))
	if n > uint64(len(b)-abi.CarrierHeaderSize) {
		return m, false
	}
	return message{le.Uint16(b[4:]), le.Uint16(b[6:]), le.Uint32(b[12:]), b[abi.CarrierHeaderSize:][:n]}, true
}

// submit handles SUBMIT_3D: u32 size, u32 padding, then that many bytes with one
// carrier message.
func (d *Device) submit(r request, at place) []byte {
	c := d.contexts[r.Context]
	if c == nil {
		return r.respond(respErrInvalidContext)
	}
	w, ok := r.words(2)
	if !ok || uint64(w[0]) > uint64(len(r.body)-8) {
		return r.respond(respErrInvalidParam)
	}
	m, ok := parseMessage(r.body[8:][:w[0]])
	if !ok {
		return r.respond(respErrInvalidParam)
	}
	switch m.Type {
	case abi.MsgWait:
		return d.wait(c, held{at, r.respond(respOK)})
	case abi.MsgHello:
		d.hello(c, m)
	case abi.MsgRegion:
		d.region(c, m)
	case abi.MsgDropRegion:
		d.dropRegion(c, m.Argument)
	case abi.MsgKick:
		if c.worker != nil {
			d.kickWorker(c)
		}
	default:
		return r.respond(respErrInvalidParam)
	}
	// The error is in region 0, which the library reads; an error here would only
	// fill the guest kernel's log.
	return r.respond(respOK)
}

// hello starts the worker of the context.
func (d *Device) hello(c *guestContext, m message) {
	switch {
	case c.dead != nil:
	case c.worker != nil:
		d.fail(c, abi.ErrInvalidValue, "unexpected second hello")
	case len(m.Body) != abi.HelloSize:
		d.fail(c, abi.ErrInvalidValue, "hello has invalid size of %d bytes", len(m.Body))
	case d.workers() >= d.limits.Workers:
		d.fail(c, abi.ErrOutOfMemory, "too many processes of this machine use the vGPU")
	default:
		if err := d.startWorker(c); err != nil {
			d.log.Error("start worker failed", "err", err)
			d.fail(c, abi.ErrUnavailable, "the worker of the vGPU could not be started")
			return
		}
		d.send(c, encodeMessage(abi.MsgHello, m.Argument|abi.HelloWakeByMessage, m.Body))
	}
}

// placedBody is the length of the body of a region message with an address.
const placedBody = 24

// region passes guest pages to the worker. The guest's message has a u64 size, a
// u32 resource, a u32 zero, and an address if the flag RegionPlaced is set; the worker's has
// a u64 size, the address, extents, and the descriptors of the guest's memory.
// The worker knows the session's window, and checks the address.
func (d *Device) region(c *guestContext, m message) {
	placed := m.Flags&abi.RegionPlaced != 0
	if len(m.Body) < 12 || placed && len(m.Body) < placedBody {
		d.fail(c, abi.ErrInvalidValue, "region message has invalid size of %d bytes", len(m.Body))
		return
	}
	size, id := le.Uint64(m.Body), le.Uint32(m.Body[8:])
	head := le.AppendUint64(nil, size)
	if placed {
		head = append(head, m.Body[16:placedBody]...)
	}
	res := d.resources[id]
	if res == nil || res.Unref || len(res.Release) > 0 || !res.Contexts[c.id] {
		d.fail(c, abi.ErrInvalidValue, "region %d is not a resource of this process", m.Argument)
		return
	}
	if m.Argument == 0 && c.region0 == 0 && len(res.Backing) > 0 && res.Backing[0].Length >= abi.HeaderSize {
		c.region0 = id
	}
	if c.dead != nil {
		d.writeDeath(c) // the guest could not see it before
		return
	}
	switch {
	case c.worker == nil:
		d.fail(c, abi.ErrInvalidValue, "region before hello")
		return
	case c.worker.maps(m.Argument) || m.Argument == 0 && c.region0 != id:
		d.fail(c, abi.ErrInvalidValue, "region %d already exists, or has no header page", m.Argument)
		return
	case size == 0 || size%pageSize != 0 || size > res.Size || size > d.limits.Region:
		d.fail(c, abi.ErrInvalidValue, "region %d has an invalid size", m.Argument)
		return
	case c.worker.mapped() >= d.limits.Regions || len(c.worker.regions) >= d.limits.Regions+d.limits.Releases:
		d.fail(c, abi.ErrOutOfMemory, "too many regions, want at most %d", d.limits.Regions)
		return
	}
	body, fds, err := regionBody(d.memory, res.Backing, head, size)
	if err != nil {
		d.fail(c, abi.ErrInvalidValue, "region %d: %v", m.Argument, err)
		return
	}
	res.pins++
	c.worker.regions = append(c.worker.regions, pin{Number: m.Argument, resource: res})
	d.send(c, encodeFlagged(abi.MsgRegion, m.Flags&abi.RegionPlaced, m.Argument, body), fds...)
}

// regionBody describes the first size bytes of backing for a worker, after head.
// The descriptors are new duplicates.
func regionBody(mem *virtio.Memory, backing []span, head []byte, size uint64) (body []byte, fds []int, err error) {
	var list []virtio.Extent
	left := size
	for _, s := range backing {
		if (s.GPA|s.Length)%pageSize != 0 {
			return nil, nil, errAlign
		}
		n := min(s.Length, left)
		if list, err = mem.Extents(list, s.GPA, n); err != nil {
			return nil, nil, err //nolint:wrapcheck // it names the addresses
		}
		if left -= n; left == 0 {
			break
		}
	}
	if len(head)+24*len(list) > abi.MaxCarrierBody {
		return nil, nil, errScattered
	}
	index := map[int]uint32{} // index of a memory region to index of its descriptor
	body = head
	for _, e := range list {
		i, ok := index[e.Region]
		if !ok {
			fd, err := unix.FcntlInt(uintptr(mem.Regions()[e.Region].FD), unix.F_DUPFD_CLOEXEC, 3)
			if err != nil {
				closeAll(fds)
				return nil, nil, err
			}
			i = uint32(len(fds))
			index[e.Region] = i
			fds = append(fds, fd)
		}
		body = le.AppendUint32(body, i)
		body = le.AppendUint32(body, 0)
		body = le.AppendUint64(body, e.Offset)
		body = le.AppendUint64(body, e.Length)
	}
	return body, fds, nil
}
