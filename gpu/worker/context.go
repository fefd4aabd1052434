package worker

import (
	"sync/atomic"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// contextObject is a context of the guest. The issuer owns it, except for sticky.
type contextObject struct {
	handle  uint64
	driver  Context
	handles map[uint64]struct{} // of its modules, functions, streams, events
	allocs  map[uint64]struct{} // device addresses
	held    uint64              // bytes of VRAM reserved for it
	shares  []*madeShare        // of allocations; set while it is being destroyed
	events  []*sharedEvent      // as shares
	imports []ShareToken        // as shares
	flow    flow                // of its legacy default stream
	dead    bool                // destroyed or being destroyed
	calls   int                 // number of modules and allocations that the driver is making in it
	destroy func()              // called when no calls are left; nil: not being destroyed
	leaving bool                // the driver has been asked to destroy it

	output output // what its kernels have printed

	lanes       []Stream // streams that the context's graphs share
	graphMemory uint64   // its part of Session.graphMemory

	sticky   atomic.Int32 // first asynchronous error, an abi.Result
	deferred abi.Result   // error of a command without a slot
}

// poison stores the context's first asynchronous error. It returns the stored
// error and whether it is a new one.
func (x *contextObject) poison(r abi.Result) (first abi.Result, fresh bool) {
	if x.sticky.CompareAndSwap(0, int32(r)) {
		return r, true
	}
	return abi.Result(x.sticky.Load()), false
}

// callOver is called on the issuer when one of the context's calls has ended.
func (x *contextObject) callOver() {
	if x.calls--; x.calls == 0 && x.destroy != nil {
		x.destroy()
	}
}

// err returns the sticky error, or nil.
func (x *contextObject) err() error {
	if r := abi.Result(x.sticky.Load()); r != abi.Success {
		return r
	}
	return nil
}

// use makes ctx the command's context. If it returns an error, the command must
// complete with that error instead of being executed.
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
