package worker

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/abi/carrier"
)

const (
	// batch is the number of commands that are issued before the issuer checks the
	// posted functions and the carrier.
	batch = 64
	// minSpin is the shortest polling time, which the issuer reaches when polling
	// finds nothing.
	minSpin = 4 * time.Microsecond
)

// issue executes the guest's commands in the ring's order until the session
// ends. It never waits for the device.
func (s *Session) issue() (err error) {
	defer func() {
		if p := recover(); p != nil {
			if _, fault := p.(interface{ Addr() uintptr }); !fault {
				panic(p)
			}
			err = fmt.Errorf("%w: access to shared memory failed: %v", abi.ErrUnknown, p)
		}
	}()
	spin := s.opts.Spin
	for unread := 0; ; { // number of commands since the carrier was read
		if err := s.runPosted(); err != nil {
			return err
		}
		n, err := s.issueBatch()
		if err != nil {
			return err
		}
		s.finishDrops(0)
		if unread += n; unread >= batch { // the end is noticed under load too, however steady
			unread = 0
			if err := s.readCarrier(); err != nil {
				return err
			}
		}
		if n == batch {
			continue
		}
		if s.poll(spin) {
			spin = min(2*spin, s.opts.Spin)
			continue
		}
		slept, err := s.sleep()
		if err != nil {
			return err
		}
		if slept < 2*s.opts.Spin {
			spin = s.opts.Spin // polling slightly longer would have found it
		} else if spin > minSpin {
			spin = max(spin/2, minSpin)
		}
	}
}

// issueBatch executes the commands in the ring, at most batch of them.
func (s *Session) issueBatch() (n int, err error) {
	head := s.shared.Load64(abi.OffHead)
	for ; n < batch && !s.full(); n++ {
		if head == s.tail {
			if head = s.shared.Load64(abi.OffHead); head == s.tail {
				return n, nil
			}
		}
		if err := s.issueOne(head); err != nil {
			return n, err
		}
	}
	return n, nil
}

// issueOne takes the entry at the tail, copies it, and executes the copy.
func (s *Session) issueOne(head uint64) error {
	avail, err := available(head, s.tail, s.layout.ringSize)
	if err != nil {
		return err
	}
	at := s.tail & (s.layout.ringSize - 1)
	toEnd := s.layout.ringSize - at
	if avail < abi.EntryHeaderSize || toEnd < abi.EntryHeaderSize {
		return protocol("truncated ring entry: %d bytes, %d to the end of the ring", avail, toEnd)
	}
	var header [abi.EntryHeaderSize]byte
	copy(header[:], s.ring[at:])
	e, err := parseEntry(header, avail, toEnd, s.layout.slotCount)
	if err != nil {
		return err
	}
	c := &s.command
	*c = command{entry: e}
	if e.known && e.op != abi.OpNop {
		body := s.entry[:e.length-abi.EntryHeaderSize]
		copy(body, s.ring[at+abi.EntryHeaderSize:])
		c.argBytes, c.inlineBytes = body[:e.args], body[e.args:e.args+e.inline]
	}
	s.tail += e.length
	s.shared.Store64(abi.OffTail, s.tail)
	return s.execute(c)
}

// poll polls the ring for d; it returns true if there is something to do.
func (s *Session) poll(d time.Duration) bool {
	if d <= 0 || s.full() {
		return false
	}
	for start := time.Now(); ; {
		for range s.looks {
			if s.shared.Load64(abi.OffHead) != s.tail || s.work.Load() {
				return true
			}
		}
		now := time.Now()
		if now.Sub(start) >= d {
			return false
		}
		s.yieldProcessor(now)
	}
}

const (
	// minLooks and maxLooks bound how often the ring is checked between two times
	// that the issuer yields its processor: for about 0.1 to 1 µs.
	minLooks = 64
	maxLooks = 1024
	// alone is less time than it takes if another thread runs in the meantime,
	// which needs at least two context switches.
	alone = 1500 * time.Nanosecond
	// maxTurns is how often in a row the issuer yields to threads only, while no
	// goroutine is known to wait for it.
	maxTurns = 64
)

// yieldProcessor lets others have this processor while the issuer polls: the driver's
// goroutines, which then need no thread of their own to be woken, and the guest,
// which the kernel may have queued behind this thread. Yielding to goroutines
// wakes another thread of this process, which may then move the issuer to another
// processor, so it is done only while requests are in progress, and occasionally.
// If nothing else has run on the processor, the issuer checks the ring longer
// before it yields again.
func (s *Session) yieldProcessor(now time.Time) {
	s.turns++
	if s.inflight.Load() > 0 || s.requests > 0 || s.turns >= maxTurns {
		s.turns = 0
		runtime.Gosched()
		now = time.Now()
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	if time.Since(now) < alone {
		s.looks = min(2*s.looks, maxLooks)
	} else {
		s.looks = minLooks
	}
}

// sleep blocks until the guest rings, another goroutine signals, or a timeout has
// passed, and reads the carrier. It returns how long it slept.
func (s *Session) sleep() (time.Duration, error) {
	s.idle.Store(true)
	if s.sleeps++; s.sleeps == 0 {
		s.sleeps = 1
	}
	s.shared.Store32(abi.OffWorkerSleeps, s.sleeps) // sequentially consistent: a full fence before the next load
	full := s.full()
	if s.work.Load() || !full && s.shared.Load64(abi.OffHead) != s.tail {
		s.awake()
		return 0, nil
	}
	timeout := time.Second
	if len(s.out) > 0 {
		timeout = 5 * time.Millisecond
	}
	start := time.Now()
	read, err := s.doorbell.wait(timeout)
	s.awake()
	if err == nil && (read || len(s.out) > 0) {
		err = s.readCarrier()
	}
	return time.Since(start), err
}

func (s *Session) awake() {
	s.shared.Store32(abi.OffWorkerSleeps, 0)
	s.idle.Store(false)
}

// readCarrier handles the available messages, and sends those that could not be
// sent before.
func (s *Session) readCarrier() error {
	for range batch {
		m, ok, err := s.reader.TryRead()
		if err != nil {
			return ended(err)
		}
		if !ok {
			break
		}
		if err := s.serve(m); err != nil {
			return err
		}
	}
	for len(s.out) > 0 {
		sent, err := carrier.TryWrite(s.raw, s.out[0])
		if err != nil {
			return ended(err)
		}
		if !sent {
			break
		}
		s.out = s.out[1:]
	}
	return nil
}

func (s *Session) serve(m carrier.Message) error {
	if m.Type == abi.MsgRegion {
		return s.addRegion(m)
	}
	m.Close()
	switch m.Type {
	case abi.MsgKick:
		return nil
	case abi.MsgDropRegion:
		return s.dropRegion(m.Argument)
	}
	return protocol("unknown message %d", m.Type)
}
