// Package vhostgpu implements the vGPU of a virtual machine: a vhost-user-gpu back-end without a
// screen and without a GPU. Guest processes reach it through the stock virtio_gpu driver; each gets
// a worker process, to which the device passes the pages that the guest process shares and the rare
// messages of gpu/abi's carrier (a). Commands and data are then exchanged through those pages.
//
// One guest process, which the guest kernel calls a context:
//
//	none ─ CTX_CREATE ─► open ─ MsgHello ─► served ─ MsgRegion 0 ─► (worker answers in region 0)
//	                      ▲                   │ worker ends, or refuses, or a message breaks a rule
//	                      │                   ▼
//	                      │                  dead: the device writes StateDead, an error and a
//	                      │                   │    text into region 0, and signals all waits
//	                      └── any ─ CTX_DESTROY, reset, QEMU's end ─► none
//
// Its worker:
//
//	running ─ context ends, or it fails ─► ending (socket closed) ─ exits, or killed after a second ─► reaped
//
// A MsgWait is held until the worker sends MsgWake; everything else is answered at once, except
// that UNREF and DETACH_BACKING wait until no worker maps the pages. All fences share one timeline
// in the guest, so a fence is only a wake-up, and answers may overtake each other.
//
// Everything runs in one goroutine, on one epoll loop, without locks. All state is plain data, so
// that the program can re-execute itself between any two events (handover.go).
package vhostgpu

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/hypervisor/vhostuser"
	"github.com/basalt-gpu/basalt/hypervisor/virtio"
)

// place describes which chain of which queue a request arrived in.
type place struct {
	Queue int
	Head  uint16
}

// held is an answer that has not been sent yet.
type held struct {
	At       place
	Response []byte
}

// queue is a virtqueue; q is nil while it does not run.
type queue struct {
	q      *virtio.Queue
	fds    vhostuser.RingFDs
	broken bool
	again  bool   // there is more to do without a kick
	owed   []held // answers that became due while the queue was stopped
}

// These are the queues of the device: control and cursor (5.7.2).
const (
	controlQueue = iota
	cursorQueue
	queueCount
)

// Device is one VM's vGPU. See the package comment.
type Device struct {
	log     *slog.Logger
	loop    *Loop
	spawner Spawner
	limits  Limits

	memory      *virtio.Memory
	queues      [queueCount]queue
	resources   map[uint32]*resource
	contexts    map[uint32]*guestContext
	ending      []*worker
	extents     int // spans in all resources
	attachments int
	scratch     []byte
	seen        observer
}

// New returns a device that starts its workers with spawner and runs on loop.
func New(loop *Loop, spawner Spawner, limits Limits, log *slog.Logger) *Device {
	return &Device{log: log, loop: loop, spawner: spawner, limits: limits,
		resources: map[uint32]*resource{}, contexts: map[uint32]*guestContext{}}
}

// Features implements vhostuser.Device.
func (d *Device) Features() uint64 {
	return virtio.FeatureVersion1 | virtio.FeatureIndirect | virtio.FeatureEventIdx | featureVirgl | featureEDID
}

// Config implements vhostuser.Device.
func (d *Device) Config() []byte { return configBytes() }

// Limits implements vhostuser.Device.
func (d *Device) Limits() virtio.Limits { return chainLimits }

// SetMemory implements vhostuser.Device.
func (d *Device) SetMemory(m *virtio.Memory) { d.memory = m }

// Start implements vhostuser.Device.
func (d *Device) Start(i int, q *virtio.Queue, fds vhostuser.RingFDs, fresh bool) {
	if i == controlQueue {
		if fresh {
			d.signalWorkers(unix.SIGKILL) // their mappings now contain the memory of another boot
			d.Reset()
			d.seen.driverStarted()
		} else {
			d.signalWorkers(unix.SIGCONT)
		}
	}
	qu := &d.queues[i]
	qu.q, qu.fds, qu.broken = q, fds, false
	if err := d.loop.Add(fds.Kick, unix.EPOLLIN, func(uint32) { d.kicked(i) }); err != nil {
		d.log.Error("watch queue failed", "queue", i, "err", err)
	}
	owed := qu.owed
	qu.owed = nil
	for _, h := range owed {
		d.complete(h)
	}
	// Kicks may have arrived before the queue was passed to the device.
	qu.again = true
}

// Stop implements vhostuser.Device. Held waits stay held: after a pause the queue
// continues, after a reset Start drops them. Until it is known which of the two
// it is, no worker may write to the guest's memory, not even its heartbeat: after
// a reset the memory contains other data.
func (d *Device) Stop(i int) {
	if i == controlQueue {
		d.signalWorkers(unix.SIGSTOP)
	}
	qu := &d.queues[i]
	d.loop.Remove(qu.fds.Kick)
	qu.q, qu.again = nil, false
}

// signalWorkers sends a signal to every worker that may still have the guest's
// memory mapped.
func (d *Device) signalWorkers(sig unix.Signal) {
	all := slices.Clone(d.ending)
	for _, c := range d.contexts {
		if c.worker != nil {
			all = append(all, c.worker)
		}
	}
	for _, w := range all {
		if w.pid > 0 {
			_ = unix.Kill(w.pid, sig)
		}
	}
}

// Reset ends all contexts and deletes all resources and held answers: the guest's
// driver starts again.
func (d *Device) Reset() {
	for i := range d.queues {
		d.queues[i].owed = nil
	}
	for _, r := range d.resources {
		r.Release = nil
	}
	for id, c := range d.contexts {
		c.waits = nil
		d.endContext(c)
		delete(d.contexts, id)
	}
	d.resources = map[uint32]*resource{}
	d.extents, d.attachments = 0, 0
}

func (d *Device) kicked(i int) {
	qu := &d.queues[i]
	var count [8]byte
	_, _ = unix.Read(qu.fds.Kick, count[:]) // empties the eventfd; its count does not matter
	d.serve(i)
}

// serve handles the available requests, at most one queue's length of them, so
// that a driver that never stops does not keep the loop from other work.
func (d *Device) serve(i int) {
	qu := &d.queues[i]
	if qu.q == nil || qu.broken {
		return
	}
	qu.again = false
	for range 256 {
		c, err := qu.q.Pop()
		if err != nil {
			d.breakQueue(i, err)
			return
		}
		if c == nil {
			if !qu.q.Arm() {
				d.signal(i)
				return
			}
			continue
		}
		if response := d.handle(place{i, c.Head}, c); response != nil {
			qu.q.Push(c.Head, uint32(c.Write(response)))
		}
	}
	qu.again = true
	d.signal(i)
}

// Work does what is left over from the last events, and whatever is due. It
// returns how long the loop may sleep; negative means for ever.
func (d *Device) Work(now time.Time) time.Duration {
	for i := range d.queues {
		if d.queues[i].again {
			d.serve(i)
		}
	}
	sleep := d.deadlines(now)
	for i := range d.queues {
		if d.queues[i].again {
			return 0
		}
	}
	return sleep
}

// complete sends a held answer.
func (d *Device) complete(h held) {
	qu := &d.queues[h.At.Queue]
	if qu.q == nil {
		qu.owed = append(qu.owed, h)
		return
	}
	if qu.broken {
		return
	}
	c, err := qu.q.Walk(h.At.Head)
	if err != nil {
		d.breakQueue(h.At.Queue, err)
		return
	}
	qu.q.Push(h.At.Head, uint32(c.Write(h.Response)))
	d.signal(h.At.Queue)
}

// signal interrupts the guest, if its driver requests that.
func (d *Device) signal(i int) {
	qu := &d.queues[i]
	if qu.q.Notify() {
		notify(qu.fds.Call)
	}
}

// breakQueue stops serving a queue whose driver violated the protocol, until the
// driver resets the device.
func (d *Device) breakQueue(i int, err error) {
	qu := &d.queues[i]
	qu.broken, qu.again = true, false
	d.log.Warn("guest driver violated the queue protocol, queue is stopped until a reset", "queue", i, "err", err)
	notify(qu.fds.Err)
}

func notify(eventfd int) {
	if eventfd < 0 {
		return
	}
	one := [8]byte{0: 1}
	if _, err := unix.Write(eventfd, one[:]); err != nil && !errors.Is(err, unix.EAGAIN) {
		return // EAGAIN: the counter is full, so it is set
	}
}
