package worker

import (
	"sync/atomic"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// contextObject is a context of the guest. The issuer owns it but for sticky.
type contextObject struct {
	handle  uint64
	driver  Context
	handles map[uint64]struct{} // of its modules, functions, streams, events
	allocs  map[uint64]struct{} // device addresses
	held    uint64              // bytes of VRAM reserved for it
	shares  []*madeShare        // of allocations, once it is being destroyed
	events  []*sharedEvent      // likewise
	imports []ShareToken        // likewise
	flow    flow                // of its legacy default stream
	dead    bool                // destroyed or being destroyed
	loads   int                 // modules that are being loaded into it
	destroy func()              // what is left to do once there are none; nil: not yet
	leaving bool                // the driver has been asked to destroy it

	output output // what its kernels have printed

	lanes       []Stream // graphs of it share them
	graphMemory uint64   // its part of Session.graphMemory

	sticky   atomic.Int32 // first asynchronous error, abi.Result
	deferred abi.Result   // error of a command that nobody waited for
}

// poison keeps the context's first asynchronous error and says what it is.
func (x *contextObject) poison(r abi.Result) (first abi.Result, fresh bool) {
	if x.sticky.CompareAndSwap(0, int32(r)) {
		return r, true
	}
	return abi.Result(x.sticky.Load()), false
}

// err is the sticky error, or nil.
func (x *contextObject) err() error {
	if r := abi.Result(x.sticky.Load()); r != abi.Success {
		return r
	}
	return nil
}

// use makes ctx the command's context; the error is what the command must
// complete with instead of being executed.
func (c *command) use(ctx *contextObject) error {
	c.ctx = ctx
	if err := ctx.err(); err != nil {
		return err
	}
	if c.slot != abi.NoSlot && ctx.deferred != abi.Success {
		r := ctx.deferred
		ctx.deferred = abi.Success
		return r
	}
	return nil
}
