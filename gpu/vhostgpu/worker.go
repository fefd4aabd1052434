package vhostgpu

import (
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/hypervisor/vhostuser"
)

var (
	errAlign     = errors.New("its pages are not aligned")
	errScattered = errors.New("its pages are too scattered")
)

// Spawner starts the process that serves one guest process. It returns our end of
// the carrier socket, and the PID; 0 when there is no separate process (tests).
type Spawner interface {
	Spawn() (socket, pid int, err error)
}

// pin is a region that a worker maps.
type pin struct {
	Number   uint32
	resource *resource
	Dropping bool // MsgDropRegion was sent, MsgDropped has not arrived
}

// worker is the process at the other end of a context's carrier.
type worker struct {
	context uint32            // 0 once the worker was dismissed
	stream  *vhostuser.Stream // nil once the worker was dismissed
	pid     int
	pidfd   int // -1 without a process
	regions []pin
	// acks counts the MsgDropped of each number until there are as many as drops
	// of that number: a number may be used again before the first drop is done,
	// and then an acknowledgement may be for either.
	acks map[uint32]int
	// deadline is when the worker is killed if it was dismissed and has not
	// exited.
	deadline time.Time
	killed   bool
}

// maps reports whether the worker has a region of that number and was not told to
// drop it.
func (w *worker) maps(number uint32) bool {
	for _, p := range w.regions {
		if p.Number == number && !p.Dropping {
			return true
		}
	}
	return false
}

// mapped returns how many regions the worker has that it was not told to drop.
func (w *worker) mapped() (n int) {
	for _, p := range w.regions {
		if !p.Dropping {
			n++
		}
	}
	return n
}

func (d *Device) workers() (n int) {
	for _, c := range d.contexts {
		if c.worker != nil {
			n++
		}
	}
	return n + len(d.ending)
}

// startWorker starts the worker of the context.
func (d *Device) startWorker(c *guestContext) error {
	socket, pid, err := d.spawner.Spawn()
	if err != nil {
		return fmt.Errorf("start the process of a worker: %w", err)
	}
	w := &worker{context: c.id, pid: pid, pidfd: -1}
	if w.stream, err = newCarrier(socket); err == nil {
		err = d.watch(w)
	}
	if err != nil {
		_ = unix.Close(socket)
		if pid > 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, 0, nil)
		}
		return err
	}
	c.worker = w
	d.log.Info("worker started", "context", c.id, "process", c.name, "pid", pid)
	return nil
}

func newCarrier(fd int) (*vhostuser.Stream, error) {
	// Room for the message of the largest region, so that the worker can have all
	// of it before the guest's next command refers to the region. Without the
	// privilege it is the limit of the system.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, carrierBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, carrierBuffer)
	}
	s, err := vhostuser.NewStream(fd, abi.CarrierHeaderSize, carrierFrame, abi.MaxCarrierFDs, backlog)
	if err != nil {
		return nil, fmt.Errorf("open the stream to a worker: %w", err)
	}
	return s, nil
}

func carrierFrame(h []byte) (int, error) {
	n := le.Uint32(h[8:])
	if le.Uint32(h) != abi.Magic || n > abi.MaxCarrierBody {
		return 0, errors.New("not a carrier message")
	}
	return int(n), nil
}

// watch adds the worker's descriptors to the loop.
func (d *Device) watch(w *worker) (err error) {
	if w.pid > 0 {
		if w.pidfd, err = unix.PidfdOpen(w.pid, 0); err != nil {
			return fmt.Errorf("pidfd: %w", err)
		}
		if err = d.loop.Add(w.pidfd, unix.EPOLLIN, func(uint32) { d.reap(w) }); err != nil {
			return err
		}
	}
	if w.stream == nil {
		return nil
	}
	return d.loop.Add(w.stream.FD(), d.interest(w), func(uint32) { d.workerEvent(w) })
}

func (d *Device) interest(w *worker) uint32 {
	if w.stream.Pending() {
		return unix.EPOLLIN | unix.EPOLLOUT
	}
	return unix.EPOLLIN
}

// send sends a message to the context's worker, and closes the descriptors.
func (d *Device) send(c *guestContext, msg []byte, fds ...int) {
	w := c.worker
	if err := w.stream.Write(msg, fds...); err != nil {
		// It may have sent a last message before it ended; workerEvent reads that
		// first.
		if errors.Is(err, vhostuser.ErrTooMuch) {
			d.fail(c, abi.ErrUnavailable, "the worker of the vGPU is not responding")
		}
		return
	}
	d.loop.Modify(w.stream.FD(), d.interest(w))
}

// kickWorker rings the doorbell. A kick that is waiting to be sent makes another
// one unnecessary.
func (d *Device) kickWorker(c *guestContext) {
	if !c.worker.stream.Pending() {
		d.send(c, encodeMessage(abi.MsgKick, 0, nil))
	}
}

// workerEvent reads the worker's messages, and writes those that wait.
func (d *Device) workerEvent(w *worker) {
	c := d.contexts[w.context]
	flushed := w.stream.Flush()
	for w.stream != nil {
		msg, fds, err := w.stream.Read()
		closeAll(fds)
		switch {
		case err != nil:
			reason := "the worker of the vGPU has exited"
			if !errors.Is(err, io.EOF) {
				reason = fmt.Sprintf("the worker of the vGPU: %v", err)
			}
			d.fail(c, abi.ErrUnavailable, "%s", reason)
			return
		case msg == nil:
			if flushed != nil {
				d.fail(c, abi.ErrUnavailable, "the worker of the vGPU has exited")
				return
			}
			d.loop.Modify(w.stream.FD(), d.interest(w))
			return
		}
		m, _ := parseMessage(msg)
		d.workerMessage(c, m)
	}
}

func (d *Device) workerMessage(c *guestContext, m message) {
	switch m.Type {
	case abi.MsgReady:
		d.seen.sessionAccepted()
		d.wake(c)
	case abi.MsgWake:
		d.wake(c)
	case abi.MsgRefused:
		why := string(m.Body[:min(len(m.Body), abi.ErrorTextSize)])
		d.seen.sessionRefused(abi.Result(m.Argument), why)
		d.fail(c, abi.Result(m.Argument), "%s", why)
	case abi.MsgDropped:
		d.dropped(c.worker, m.Argument)
	default:
		d.fail(c, abi.ErrUnavailable, "the worker of the vGPU sent unknown message %d", m.Type)
	}
}

// dropRegion passes on the guest's MsgDropRegion.
func (d *Device) dropRegion(c *guestContext, number uint32) {
	if c.worker == nil {
		return
	}
	for i := range c.worker.regions {
		if p := &c.worker.regions[i]; p.Number == number && !p.Dropping {
			p.Dropping = true
			d.send(c, encodeMessage(abi.MsgDropRegion, number, nil))
			return
		}
	}
}

// dropPins asks every worker that maps the resource to unmap it. A worker may
// take as long as commands use it, but not for too many regions: each occupies an
// entry of the guest's queue, which all its processes share.
func (d *Device) dropPins(res *resource) {
	total := 0
	for _, r := range d.resources {
		total += len(r.Release)
	}
	for _, c := range d.contexts {
		if c.worker == nil {
			continue
		}
		waiting := 0
		for _, p := range c.worker.regions {
			waiting += len(p.resource.Release)
		}
		for _, p := range append([]pin(nil), c.worker.regions...) {
			switch {
			case p.resource != res || c.worker == nil:
			case p.Number == 0:
				// The library keeps region 0 until its process ends.
				c.dead = &death{abi.ErrDeinitialized, "region 0 was released"}
				d.endContext(c)
			case waiting > d.limits.Releases || total > d.share():
				d.fail(c, abi.ErrOutOfMemory, "too many regions (%d) were freed while commands used them", waiting)
			case !p.Dropping:
				d.dropRegion(c, p.Number)
			}
		}
	}
}

// dropped handles MsgDropped: the worker has unmapped a region of that number.
func (d *Device) dropped(w *worker, number uint32) {
	drops := 0
	for _, p := range w.regions {
		if p.Number == number && p.Dropping {
			drops++
		}
	}
	if w.acks[number]+1 < drops {
		if w.acks == nil {
			w.acks = map[uint32]int{}
		}
		w.acks[number]++
		return
	}
	delete(w.acks, number)
	var found []pin
	kept := w.regions[:0]
	for _, p := range w.regions {
		if p.Number == number && p.Dropping {
			found = append(found, p)
		} else {
			kept = append(kept, p)
		}
	}
	w.regions = kept
	for _, p := range found {
		d.unpin(p.resource)
	}
}

// dismiss closes the worker's socket; the worker then has a grace time to exit.
func (d *Device) dismiss(w *worker) {
	d.loop.Remove(w.stream.FD())
	_ = w.stream.Close()
	w.stream, w.context = nil, 0
	if w.pid == 0 {
		d.unpinAll(w)
		return
	}
	_ = unix.Kill(w.pid, unix.SIGCONT) // a worker that was stopped with its queue must see it
	w.deadline = time.Now().Add(killGrace)
	d.ending = append(d.ending, w)
}

// reap collects a worker that has exited. Its memory is unmapped by then.
func (d *Device) reap(w *worker) {
	var status unix.WaitStatus
	if pid, err := unix.Wait4(w.pid, &status, unix.WNOHANG, nil); err == nil && pid == 0 {
		return
	}
	d.loop.Remove(w.pidfd)
	_ = unix.Close(w.pidfd)
	d.log.Info("worker exited", "pid", w.pid, "how", ending(status))
	if c := d.contexts[w.context]; w.stream != nil && c != nil {
		// Its last messages are handled before its end.
		d.workerEvent(w)
		d.fail(c, abi.ErrUnavailable, "the worker of the vGPU was %s", ending(status))
	}
	for i, e := range d.ending {
		if e == w {
			d.ending = append(d.ending[:i], d.ending[i+1:]...)
			break
		}
	}
	d.unpinAll(w)
}

func ending(s unix.WaitStatus) string {
	if s.Signaled() {
		return "killed by " + unix.SignalName(s.Signal())
	}
	return fmt.Sprintf("ended with status %d", s.ExitStatus())
}

func (d *Device) unpinAll(w *worker) {
	pins := w.regions
	w.regions = nil
	for _, p := range pins {
		d.unpin(p.resource)
	}
}

// deadlines kills overdue workers and returns how long the loop may sleep.
func (d *Device) deadlines(now time.Time) time.Duration {
	sleep := time.Duration(-1)
	for _, w := range d.ending {
		left := w.deadline.Sub(now)
		switch {
		case w.killed:
		case left <= 0:
			w.killed = true
			d.log.Warn("killed worker that did not exit in time", "pid", w.pid)
			_ = unix.Kill(w.pid, unix.SIGKILL)
		case sleep < 0 || left < sleep:
			sleep = left
		}
	}
	return sleep
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
