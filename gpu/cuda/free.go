package cuda

import (
	"sync"

	"github.com/basalt-gpu/basalt/gpu/worker"
)

// MemFreeAsync implements worker.Context. The operation preserves the stream's
// order. The memory itself is unmapped when nothing of the context runs, at the end
// of a batch at the latest, because the CUDA driver waits for running kernels when
// memory is unmapped, and the loop would wait with it.
func (c *context) MemFreeAsync(s worker.Stream, address uint64, done func(error)) error {
	if err := c.d.memory.remove(address, false); err != nil {
		return err
	}
	c.mu.Lock()
	delete(c.allocated, address)
	c.mu.Unlock()
	var once sync.Once // an operation that the context's end drops is finished, not drained
	tell := func(err error) { once.Do(func() { done(err) }) }
	return c.push(s, &op{
		drained: func() {
			if c.virtual != nil {
				c.unalloc(address)
			} else {
				_ = c.call(cuMemFree, uintptr(address))
			}
			tell(c.failed())
		},
		done: func(err error) {
			if err != nil {
				tell(err)
			}
		},
	})
}
