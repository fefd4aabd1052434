package device

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// CUstreamWaitValue_flags: the comparison with the value in memory.
const (
	waitGEQ = 0 // the value is not less than the given one, in cyclic order
	waitEQ  = 1
	waitAND = 2 // the value has a bit in common with it
	waitNOR = 3 // some bit is set in neither
)

// valueWait is a stream that waits for a value in memory.
type valueWait struct {
	c           *Context
	addr, value uint64
	width       uint32 // bytes: 4 or 8
	flags       uint32
	over        chan struct{} // closed when the wait has ended
	err         error         // valid after the wait
}

// StreamWaitValue implements worker.ValueWaiter. Memory that is freed later is kept
// until the wait has ended.
func (c *Context) StreamWaitValue(s worker.Stream, addr, value uint64, width, flags uint32, done func(error)) error {
	if flags > waitNOR || width != 4 && width != 8 || addr%uint64(width) != 0 {
		return abi.ErrInvalidValue
	}
	if _, err := c.memory(addr, uint64(width)); err != nil {
		return abi.ErrInvalidValue
	}
	return c.enqueue(s, &op{report: done, run: func() error {
		w := &valueWait{c: c, addr: addr, value: value, width: width, flags: flags, over: make(chan struct{})}
		c.d.waits.add(w)
		<-w.over
		return w.err
	}})
}

// compare reports whether v ends the wait.
func (w *valueWait) compare(v uint64) bool {
	switch w.flags {
	case waitEQ:
		return v == w.value
	case waitAND:
		return v&w.value != 0
	case waitNOR:
		neither := ^(v | w.value)
		if w.width == 4 {
			neither &= 1<<32 - 1
		}
		return neither != 0
	}
	if w.width == 4 {
		return int32(uint32(v)-uint32(w.value)) >= 0
	}
	return int64(v-w.value) >= 0
}

// poll reports whether the wait has ended. It does not need the device: memory that is
// evicted is read in host memory.
func (w *valueWait) poll() bool {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.err = c.poisoned; w.err != nil {
		return true
	}
	if c.away.moving {
		return false
	}
	r, _ := exec.FindRegion(*c.table.Load(), w.addr)
	data, at := r.Data, w.addr-r.Base
	if host := c.away.host[r.Base]; at+uint64(w.width) <= uint64(len(host)) {
		data = host
	}
	if at+uint64(w.width) > uint64(len(data)) {
		w.err = abi.ErrIllegalAddress
		return true
	}
	return w.compare(load(data[at:][:w.width]))
}

// waits has the streams of a device that wait for values. One goroutine polls all of
// them, so that their cost is a limited part of one processor however many there are:
// it sleeps waitShare times as long as it has polled.
type waits struct {
	any atomic.Bool // list is not empty, for notice

	mu      sync.Mutex // guards the following
	list    []*valueWait
	changed chan struct{} // receives when something may have been written; nil if no stream waits
}

const (
	firstPause = 20 * time.Microsecond // the pause after a change, which doubles up to lastPause
	lastPause  = time.Millisecond
	waitShare  = 20
)

func (w *waits) add(v *valueWait) {
	w.mu.Lock()
	w.list = append(w.list, v)
	begin := w.changed == nil
	if begin {
		w.changed = make(chan struct{}, 1)
		w.any.Store(true)
		go w.watch(w.changed)
	}
	w.mu.Unlock()
	if !begin {
		w.notice()
	}
}

// notice makes the values be polled soon, as an operation has ended.
func (w *waits) notice() {
	if !w.any.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.changed <- struct{}{}: // a nil channel is never ready
	default:
	}
}

// watch polls the values until no stream waits.
func (w *waits) watch(changed <-chan struct{}) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		began := time.Now()
		if !w.poll() {
			return
		}
		time.Sleep(waitShare * time.Since(began))
		select {
		case <-changed:
			pause = firstPause
		case <-time.After(pause):
		}
	}
}

// poll ends the waits that are over, and reports whether any is left.
func (w *waits) poll() bool {
	w.mu.Lock()
	list := slices.Clone(w.list)
	w.mu.Unlock()
	over := map[*valueWait]bool{}
	for _, v := range list {
		if v.poll() {
			over[v] = true
			close(v.over)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(over) > 0 {
		w.list = slices.DeleteFunc(w.list, func(v *valueWait) bool { return over[v] })
	}
	if len(w.list) == 0 {
		w.changed = nil
		w.any.Store(false)
	}
	return w.changed != nil
}
