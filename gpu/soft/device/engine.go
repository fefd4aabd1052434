package device

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// maxKernels is how many kernels may have begun and not ended at a time: each
// may hold exec.MaxLaunchBytes for blocks that were set aside.
const maxKernels = 8

// sliceTime is how long a kernel keeps its processors while others wait for
// some. A kernel that waits for one of another stream ends all the same.
const sliceTime = 2 * time.Millisecond

// engine shares the processors between the kernels that pass one gate, which
// may be of several streams and contexts. A kernel takes what is free, at most
// what it can use, and waits in line where nothing is. The engine counts the time
// in which at least one kernel is on the device: that of two kernels beside each
// other counts once.
type engine struct {
	processors int
	begun      chan struct{} // one for each kernel that has begun
	idle       atomic.Int32  // free, for over
	queued     atomic.Int32  // len(line), for over

	mu    sync.Mutex // guards the following
	free  int
	line  []*claim
	on    int       // kernels inside the gate
	since time.Time // up to when the time of those is counted
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

// begin waits until one more kernel may begin; its end is end. It fails when
// the context ends.
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

// acquire waits for processors and returns a slice with at most as many as are
// wanted, to be released.
func (e *engine) acquire(want int, ended <-chan struct{}) (slice, error) {
	n, err := e.atOnce(want), error(nil)
	if n == 0 {
		n, err = e.wait(want, ended)
	}
	return slice{e: e, has: n, wants: want, began: time.Now()}, err
}

// atOnce returns processors that are free, or 0.
func (e *engine) atOnce(want int) int {
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

// wait stands in line.
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
	case n := <-c.grant: // meanwhile
		e.free += n
	default:
		e.line = slices.DeleteFunc(e.line, func(o *claim) bool { return o == c })
	}
	e.share()
	return 0, abi.ErrInvalidContext
}

// share grants what is free, first come, first served; mu is held.
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

// enter counts a kernel that is inside the gate from now on.
func (e *engine) enter(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.on == 0 {
		e.since = now
	}
	e.on++
}

// leave ends that, and returns the nanoseconds that nobody has counted yet.
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

// over reports whether the kernel should end its slice: others wait, or it could
// have more processors.
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
