package device

import "sync/atomic"

// op is one operation of a stream.
type op struct {
	after  []*op         // operations that must finish first
	run    func() error  // nil for an operation that only orders others
	queued func()        // called when the operation is enqueued, under Context.mu
	always func()        // called even in a poisoned context (frees)
	report func(error)   // called when the operation is done; may be nil
	notify []func(error) // called after report; guarded by Context.mu until then

	ended    atomic.Bool
	finished chan struct{} // closed when done; created by the first waiter, under Context.mu
}

func (o *op) done() bool { return o.ended.Load() }

// end marks the operation as done. The caller must hold Context.mu.
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
