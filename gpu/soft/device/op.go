package device

import "sync/atomic"

// op is one operation of a stream.
type op struct {
	after  []*op         // must finish first
	run    func() error  // nil: nothing but order
	queued func()        // runs when the operation has its place, under Context.mu
	always func()        // runs also in a poisoned context (frees)
	report func(error)   // is called when it is done, or nil
	notify []func(error) // likewise; under Context.mu until then

	ended    atomic.Bool
	finished chan struct{} // closed when done; made by the first that waits, under Context.mu
}

func (o *op) done() bool { return o.ended.Load() }

// end makes it done; Context.mu is held.
func (o *op) end() {
	o.ended.Store(true)
	if o.finished != nil {
		close(o.finished)
	}
}

// await waits until operations of a context are done.
func await(c *Context, list []*op) {
	for _, o := range list {
		if !o.done() {
			o.await(c)
		}
	}
}

func (o *op) await(c *Context) {
	c.mu.Lock()
	if o.done() {
		c.mu.Unlock()
		return
	}
	if o.finished == nil {
		o.finished = make(chan struct{})
	}
	finished := o.finished
	c.mu.Unlock()
	<-finished
}
