package null

import (
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// CopyHtoD implements worker.Context. The bytes are discarded. Ranges are checked
// at the call, as the driver API does.
func (c *Context) CopyHtoD(s worker.Stream, dst uint64, src []byte, done func(error)) error {
	if err := c.d.mem.check(c, dst, uint64(len(src))); err != nil {
		return c.or(err)
	}
	return c.submit(s, operation{device: true, complete: done})
}

// CopyDtoH implements worker.Context. It writes zero bytes.
func (c *Context) CopyDtoH(s worker.Stream, dst []byte, src uint64, done func(error)) error {
	if err := c.d.mem.check(c, src, uint64(len(dst))); err != nil {
		return c.or(err)
	}
	return c.submit(s, operation{device: true, zero: dst, complete: done})
}

// CopyDtoD implements worker.Context.
func (c *Context) CopyDtoD(s worker.Stream, dst, src, size uint64, done func(error)) error {
	for _, at := range [2]uint64{dst, src} {
		if err := c.d.mem.check(c, at, size); err != nil {
			return c.or(err)
		}
	}
	return c.submit(s, operation{device: true, complete: done})
}

// Memset implements worker.Context.
func (c *Context) Memset(s worker.Stream, dst uint64, _, width uint32, count uint64, done func(error)) error {
	w := uint64(width)
	if w != 1 && w != 2 && w != 4 || count > 1<<48 || dst%w != 0 {
		return c.or(abi.ErrInvalidValue)
	}
	if err := c.d.mem.check(c, dst, count*w); err != nil {
		return c.or(err)
	}
	return c.submit(s, operation{device: true, complete: done})
}

// or returns the context's error if it has one, and err otherwise.
func (c *Context) or(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if own := c.usable(); own != nil {
		return own
	}
	return err
}

// Launch implements worker.Context. It makes the checks of a device and runs
// nothing.
func (c *Context) Launch(s worker.Stream, fn worker.Function, l worker.Launch, done func(error)) error {
	f, ok := fn.(*function)
	if !ok || f == nil || f.m.c != c {
		return c.or(abi.ErrInvalidHandle)
	}
	if err := c.checkLaunch(f, &l); err != nil {
		return c.or(err)
	}
	return c.submit(s, operation{device: true, launch: true, complete: done})
}

func (c *Context) checkLaunch(f *function, l *worker.Launch) error {
	limit := [3]uint32{1024, 1024, 64}
	gridLimit := [3]uint32{1<<31 - 1, 65535, 65535}
	threads := uint64(1)
	for i := range 3 {
		if l.Block[i] == 0 || l.Grid[i] == 0 || l.Block[i] > limit[i] || l.Grid[i] > gridLimit[i] {
			return abi.ErrInvalidValue
		}
		threads *= uint64(l.Block[i])
	}
	if threads > maxThreads {
		return abi.ErrInvalidValue
	}
	if threads > uint64(f.maxThreads) {
		return abi.ErrLaunchResources
	}
	if uint64(l.Shared) > uint64(f.maxDynamic.Load()) || uint64(len(l.Params)) < uint64(f.paramBytes) {
		return abi.ErrInvalidValue
	}
	return nil
}

// stream returns the stream of a caller's handle; callers hold mu.
func (c *Context) stream(s worker.Stream) (*stream, error) {
	if s == nil {
		return nil, nil
	}
	st, ok := s.(*stream)
	if !ok || st == nil || st.c != c || st.closed {
		return nil, abi.ErrInvalidHandle
	}
	return st, nil
}

// StreamCreate implements worker.Context. Flags and priority make no
// difference: all work is in one order.
func (c *Context) StreamCreate(uint32, int32) (worker.Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return nil, err
	}
	if c.streams >= maxStreams {
		return nil, abi.ErrOutOfMemory
	}
	c.streams++
	return &stream{c: c}, nil
}

// StreamDestroy implements worker.Context. Queued work completes.
func (c *Context) StreamDestroy(s worker.Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	st, err := c.stream(s)
	if err != nil || st == nil {
		return abi.ErrInvalidHandle
	}
	st.closed = true
	c.streams--
	return nil
}

// StreamQuery implements worker.Context.
func (c *Context) StreamQuery(s worker.Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	st, err := c.stream(s)
	if err != nil {
		return err
	}
	if err := c.usable(); err != nil {
		return err
	}
	if c.pending[st] > 0 {
		return abi.ErrNotReady
	}
	return nil
}

// StreamWaitEvent implements worker.Context. All work is in one order, so
// there is nothing to wait for.
func (c *Context) StreamWaitEvent(s worker.Stream, e worker.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.stream(s); err != nil {
		return err
	}
	if _, err := c.event(e); err != nil {
		return err
	}
	return c.usable()
}

// StreamNotify implements worker.Context.
func (c *Context) StreamNotify(s worker.Stream, done func(error)) error {
	return c.submit(s, operation{complete: done})
}
