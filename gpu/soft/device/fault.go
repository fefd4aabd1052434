package device

import (
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
)

// What Options.Fault breaks, besides lost, with which no context is made.

// faultyLaunch is asked before a kernel begins.
func (c *Context) faultyLaunch(kernel string) error {
	if hook := c.d.o.Faults.Launch; hook != nil {
		if err := hook(kernel); err != nil {
			return err
		}
	}
	if c.d.o.Fault == model.ECC {
		return fmt.Errorf("%w: injected by the fault %q of the soft GPU", abi.ErrECC, model.ECC)
	}
	return nil
}

// faultyKernel is asked on the device, after work of a kernel that took so long.
func (c *Context) faultyKernel(took time.Duration) error {
	switch c.d.o.Fault {
	case model.Hang:
		<-c.ended
		return abi.ErrInvalidContext
	case model.Slow:
		c.drag(took, model.SlowBy)
	case model.Throttled:
		c.drag(took, model.ThrottledBy)
	}
	return nil
}

// slowCopy is asked on the device, after a copy that began then.
func (c *Context) slowCopy(began time.Time) { c.drag(time.Since(began), model.SlowBy) }

// drag makes what took so long take so many times as long, unless the context ends.
func (c *Context) drag(took time.Duration, times int) {
	t := time.NewTimer(took * time.Duration(times-1))
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.ended:
	}
}
