package device

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// maxKernels is the maximum number of kernels that have begun and not ended: each may
// use exec.MaxLaunchBytes for blocks that are set aside.
const maxKernels = 8

// sliceTime is how long a kernel keeps its processors while others wait for some. A
// kernel may therefore wait for one of another stream without a deadlock.
const sliceTime = 2 * time.Millisecond

// engine shares the processors among the kernels that pass one gate, which may be of
// several streams and contexts. A kernel gets the free processors, at most as many as
// it can use, and waits in a queue if there are none. The engine measures the time
// during which at least one kernel is on the device: time of concurrent kernels counts
// once.
type engine struct {
	processors int
	begun      chan struct{} // one element for each kernel that has begun
	idle       atomic.Int32  // copy of free, for over
	queued     atomic.Int32  // copy of len(line), for over

	mu    sync.Mutex // guards the following
	free  int
	line  []*claim
	on    int       // number of kernels inside the gate
	since time.Time // the time up to which their time is counted
}

// claim is a kernel that waits for processors.
type claim struct {
	want  int
	grant chan int
}

func newEngine(processors int) *engine {
	e := &engine{processors: processors, free: processors, begun: make(chan struct{}, maxKernels)}
	e.idle.Store(int32(processors))
	return e
}

// begin waits until one more kernel may begin. The caller must call end when it has
// ended. It returns an error if the context ends.
func (e *engine) begin(ended <-chan struct{}) error {
	select {
	case e.begun <- struct{}{}:
		return nil
	default:
	}
	select {
	case e.begun <- struct{}{}:
		return nil
	case <-ended:
		return abi.ErrInvalidContext
	}
}

func (e *engine) end() { <-e.begun }

// acquire waits for processors and returns a slice with at most want of them, which the
// caller must release.
func (e *engine) acquire(want int, ended <-chan struct{}) (slice, error) {
	n, err := e.tryAcquire(want), error(nil)
	if n == 0 {
		n, err = e.wait(want, ended)
	}
	return slice{e: e, has: n, wants: want, began: time.Now()}, err
}

// tryAcquire returns the number of free processors that it has acquired, which is 0 if
// there are none or others wait.
func (e *engine) tryAcquire(want int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.line) > 0 {
		return 0
	}
	n := min(want, e.free)
	e.free -= n
	e.idle.Store(int32(e.free))
	return n
}

// wait waits in the queue.
func (e *engine) wait(want int, ended <-chan struct{}) (int, error) {
	c := &claim{want: want, grant: make(chan int, 1)}
	e.mu.Lock()
	e.line = append(e.line, c)
	e.share()
	e.mu.Unlock()
	select {
	case n := <-c.grant:
		return n, nil
	case <-ended:
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case n := <-c.grant: // granted in the meantime
		e.free += n
	default:
		e.line = slices.DeleteFunc(e.line, func(o *claim) bool { return o == c })
	}
	e.share()
	return 0, abi.ErrInvalidContext
}

// share grants free processors in the order of the queue. The caller must hold mu.
func (e *engine) share() {
	for e.free > 0 && len(e.line) > 0 {
		c := e.line[0]
		e.line = e.line[1:]
		n := min(c.want, e.free)
		e.free -= n
		c.grant <- n
	}
	e.idle.Store(int32(e.free))
	e.queued.Store(int32(len(e.line)))
}

// enter counts a kernel as inside the gate.
func (e *engine) enter(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.on == 0 {
		e.since = now
	}
	e.on++
}

// leave counts a kernel as outside of the gate, and returns the nanoseconds that have
// not been counted yet.
func (e *engine) leave(now time.Time) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	busy := max(0, now.Sub(e.since).Nanoseconds())
	e.since = now
	e.on--
	return uint64(busy)
}

// slice is a kernel's turn on some of the processors.
type slice struct {
	e          *engine
	has, wants int
	began      time.Time
}

// over reports whether the kernel should end its slice: others wait, or it could get
// more processors.
func (s *slice) over() bool {
	if s.e.queued.Load() == 0 && (s.has == s.wants || s.e.idle.Load() == 0) {
		return false
	}
	return time.Since(s.began) > sliceTime
}

func (s *slice) release() {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.e.free += s.has
	s.e.share()
}
