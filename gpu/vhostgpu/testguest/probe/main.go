// Command probe runs in the small test guest and uses the vGPU directly, without
// libcuda: it opens the render node, shares regions, rings and waits.
//
//	probe roundtrip N   N round trips with a worker that echoes
//	probe hold          open a session, and report how it ends
//	probe free          free a region that the worker still maps
//	probe sync N        with a real worker: a context, and N synchronizing calls
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// These are the probe's own words in region 0, which the test's worker knows: the
// guest increments the question, and the worker answers with the same number.
const (
	offQuestion = 0x800
	offAnswer   = 0x840
)

var le = binary.LittleEndian

type session struct {
	d *device
	r *buffer // region 0
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Println("probe: FAILED:", err)
		os.Exit(1)
	}
	fmt.Println("probe: ok")
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("what?")
	}
	s, err := open(4 << 20)
	if err != nil {
		return err
	}
	switch args[0] {
	case "roundtrip":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return s.roundtrips(n)
	case "hold":
		return s.hold()
	case "free":
		return s.free()
	case "sync":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return s.synchronize(n)
	}
	return fmt.Errorf("unknown %q", args[0])
}

func open(size int) (*session, error) {
	d, caps, err := openDevice(abi.CapsetID, abi.CapsetSize)
	if err != nil {
		return nil, err
	}
	if le.Uint32(caps) != abi.Magic || le.Uint16(caps[4:]) != abi.Major {
		return nil, fmt.Errorf("capset % x", caps)
	}
	fmt.Printf("probe: vGPU version %d.%d, regions of up to %d MiB\n", le.Uint16(caps[4:]), le.Uint16(caps[6:]), le.Uint64(caps[8:])>>20)
	r, err := d.create(size)
	if err != nil {
		return nil, err
	}
	s := &session{d, r}
	for i := 1; i < size/4096; i++ { // each page has its number: the worker checks the order
		le.PutUint64(r.bytes[i*4096:], uint64(i))
	}
	le.PutUint32(r.bytes[abi.OffMagic:], abi.Magic)
	s.layout(size)
	hello := make([]byte, abi.HelloSize)
	le.PutUint16(hello, abi.Major)
	le.PutUint16(hello[2:], abi.Minor)
	le.PutUint32(hello[4:], uint32(os.Getpid()))
	copy(hello[8:], "probe")
	if err := s.send(abi.MsgHello, 0, hello); err != nil {
		return nil, err
	}
	if err := s.region(0, r); err != nil {
		return nil, err
	}
	if err := s.until(func() bool { return s.word(abi.OffState).Load() == abi.StateReady }); err != nil {
		return nil, fmt.Errorf("waiting for the worker: %w", err)
	}
	fmt.Println("probe: ready")
	return s, nil
}

func message(typ uint16, arg uint32, body []byte) []byte {
	b := le.AppendUint32(nil, abi.Magic)
	b = le.AppendUint16(b, typ)
	b = le.AppendUint16(b, 0)
	b = le.AppendUint32(b, uint32(len(body)))
	b = le.AppendUint32(b, arg)
	b = append(b, body...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func (s *session) send(typ uint16, arg uint32, body []byte) error {
	_, err := s.d.submit(message(typ, arg, body), false)
	return err
}

func (s *session) region(number uint32, b *buffer) error {
	body := le.AppendUint64(nil, uint64(len(b.bytes)))
	body = le.AppendUint32(body, b.resource)
	return s.send(abi.MsgRegion, number, le.AppendUint32(body, 0))
}

var errSilent = errors.New("nothing happened for 30 seconds")

// until waits for done with fences: it calls done after each submission, and
// checks at least once a second whether the session is dead.
func (s *session) until(done func() bool) error {
	for start := time.Now(); time.Since(start) < 30*time.Second; {
		fence, err := s.d.submit(message(abi.MsgWait, 0, nil), true)
		if err != nil {
			return err
		}
		if done() {
			wait(fence, 0)
			return nil
		}
		if s.word(abi.OffState).Load() == abi.StateDead {
			wait(fence, 0)
			return s.dead()
		}
		wait(fence, 1000)
	}
	return errSilent
}

func (s *session) dead() error {
	text := s.r.bytes[abi.OffErrorText:][:abi.ErrorTextSize]
	for i, b := range text {
		if b == 0 {
			text = text[:i]
			break
		}
	}
	return fmt.Errorf("session dead: %w: %s", abi.Result(s.word(abi.OffError).Load()), text)
}

func (s *session) roundtrips(n int) error {
	start := time.Now()
	for range n {
		q := s.word(offQuestion).Add(1)
		if err := s.send(abi.MsgKick, 0, nil); err != nil {
			return err
		}
		if err := s.until(func() bool { return s.word(offAnswer).Load() == q }); err != nil {
			return err
		}
	}
	fmt.Printf("probe: %d round trips, %d us each\n", n, time.Since(start).Microseconds()/int64(n))
	return nil
}

// hold waits for an answer that never arrives.
func (s *session) hold() error {
	fmt.Println("probe: holding")
	beat, since := atomic.Uint32{}, time.Now()
	for {
		err := s.until(func() bool {
			if now := s.word(abi.OffHeartbeat).Load(); now != beat.Swap(now) {
				since = time.Now()
			}
			return time.Since(since) > abi.HeartbeatDeadMillis*time.Millisecond
		})
		if err == nil {
			err = errors.New("heartbeat stopped")
		}
		if !errors.Is(err, errSilent) {
			fmt.Println("probe: ended:", err)
			return nil
		}
	}
}

// free frees pages while the worker has them mapped; that must wait for the
// worker.
func (s *session) free() error {
	for i := range 8 {
		b, err := s.d.create(1 << 20)
		if err != nil {
			return err
		}
		if err := s.region(uint32(i+1), b); err != nil {
			return err
		}
		if i%2 == 0 {
			if err := s.send(abi.MsgDropRegion, uint32(i+1), nil); err != nil {
				return err
			}
		}
		if err := s.d.close(b); err != nil {
			return err
		}
	}
	return s.roundtrips(3)
}
