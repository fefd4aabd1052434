package cuda

import (
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// chunk is pinned host memory that copies pass through: the card does not know
// the guest's pages, except its host memory, and an asynchronous copy from
// unknown pages would wait.
type chunk struct {
	address uintptr
	bytes   []byte
}

// Staging has enough chunks that the card can copy one while the CPU fills
// another, in two streams, and one that is reserved for copies that begin at once:
// stalled streams keep theirs for an unlimited time.
const (
	chunkSize       = 4 << 20
	chunksPerStream = 2
	chunkCount      = 2*chunksPerStream + 1
)

func (c *context) makeStaging() error {
	p := newOut[uintptr]()
	defer p.free()
	for range chunkCount {
		if err := c.call(cuMemHostAlloc, p.at(), chunkSize, 0); err != nil {
			return err
		}
		c.staging = append(c.staging, &chunk{*p.value, hostBytes(*p.value, chunkSize)})
	}
	return nil
}

// smallCopy is the size in bytes up to which the loop moves the bytes of a copy
// itself: another goroutine would take longer to start.
const smallCopy = 64 << 10

// part is a piece of a copy that passes through a chunk. Its bytes are moved between
// the guest's memory and the chunk by a goroutine of its own, so that the loop
// continues with other streams:
//
//	to the device:   waiting ──chunk──► moving ──► prepared ──submit──► on the device ──► over
//	to the host:     waiting ──chunk──► prepared ──submit──► on the device ──► moving ──► over
//
// The loop owns it, except for the bytes while they are moved.
type part struct {
	host     []byte // the guest's
	toDevice bool
	chunk    *chunk // nil: it has none
	prepared bool   // it has a chunk and may be submitted
	moving   bool
	first    *error // shared by the parts of a copy: the first error of any of them
}

// staged enqueues a copy of the guest's bytes in parts of a chunk; done is called after
// the last part, with the first error of any part. put submits n bytes of the copy, from
// the byte at.
func (c *context) staged(s worker.Stream, host []byte, toDevice bool, done func(error), put func(k *chunk, cu uintptr, at, n int) error) error {
	first := new(error)
	for at := 0; at < len(host) || at == 0; at += chunkSize {
		n := min(chunkSize, len(host)-at)
		p := &part{host: host[at : at+n], toDevice: toDevice, first: first}
		o := &op{part: p, submit: func(cu uintptr) error {
			if n == 0 {
				return nil
			}
			return put(p.chunk, cu, at, n)
		}}
		if at+n >= len(host) {
			o.done = func(err error) {
				if err != nil && done == nil {
					c.poison(err)
				}
				if done != nil {
					done(err)
				}
			}
		}
		if err := c.push(s, o); err != nil {
			return err
		}
	}
	return nil
}

// staged reports whether an operation passes through a chunk.
func (o *op) staged() bool { return o.part != nil && len(o.part.host) > 0 }

// prepare takes a chunk for an operation that could be submitted now, starts to fill it,
// and reports whether the operation may be submitted.
func (c *context) prepare(o *op) bool {
	p := o.part
	switch {
	case !o.staged() || p.prepared:
		return true
	case p.moving:
		return false
	case c.failed() != nil || *p.first != nil:
		return true // submit ends it
	case !c.mayStage(o.stream):
		return false
	}
	n := len(c.staging) - 1
	p.chunk, c.staging = c.staging[n], c.staging[:n]
	o.stream.chunks++
	if p.toDevice {
		c.move(o, p.chunk.bytes[:len(p.host)], p.host)
	}
	p.prepared = !p.moving
	return p.prepared
}

// land takes the bytes of a copy to the host, if the operation is one that the device
// has done, and returns the chunk.
func (c *context) land(o *op, err error) {
	if !o.staged() || o.part.chunk == nil {
		return
	}
	if p := o.part; !p.toDevice && err == nil && *p.first == nil {
		if c.move(o, p.host, p.chunk.bytes[:len(p.host)]); p.moving {
			return // moved returns the chunk
		}
	}
	c.unstage(o)
}

// move copies bytes for an operation: at once, or in another goroutine, and then it is
// marked as moving until moved.
func (c *context) move(o *op, dst, src []byte) {
	if len(dst) <= smallCopy {
		c.copyBytes(dst, src)
		return
	}
	o.part.moving = true
	c.moving++
	go func() {
		c.copyBytes(dst, src)
		c.moved <- o // it has room for an operation per chunk
	}()
}

// finishMoves handles the copies of bytes that have ended.
func (c *context) finishMoves() (worked bool) {
	for {
		select {
		case o := <-c.moved:
			c.moving--
			o.part.moving, worked = false, true
			if o.part.toDevice {
				o.part.prepared = true
			} else {
				c.unstage(o)
			}
		default:
			return worked
		}
	}
}

// unstage returns the chunk of an operation, if it has one.
func (c *context) unstage(o *op) {
	if p := o.part; p != nil && p.chunk != nil {
		c.staging = append(c.staging, p.chunk)
		p.chunk, p.prepared = nil, false
		o.stream.chunks--
	}
}

// unstageWaiting returns the chunks of operations that are not submitted: between
// batches all chunks are free, as Evict requires.
func (c *context) unstageWaiting() {
	for _, s := range c.waiting {
		if len(s.waiting) > 0 {
			c.unstage(s.waiting[0])
		}
	}
}
