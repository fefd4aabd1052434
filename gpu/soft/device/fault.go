package device

import (
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
)

// The defects of Options.Fault, except lost, with which no context can be created.

// faultyLaunch returns the injected error of a launch. It is called before a kernel
// begins.
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

// faultyKernel simulates the defect of a device on which a kernel has run for some
// time.
func (c *Context) faultyKernel(took time.Duration) error {
	switch c.d.o.Fault {
	case model.Hang:
		<-c.ended
		return abi.ErrInvalidContext
	case model.Slow:
		c.delay(took, model.SlowBy)
	case model.Throttled:
		c.delay(took, model.ThrottledBy)
	}
	return nil
}

// slowCopy delays a copy that began at a time, on the device.
func (c *Context) slowCopy(began time.Time) { c.delay(time.Since(began), model.SlowBy) }

// delay waits until an operation that took some time has taken a multiple of it, or the
// context ends.
func (c *Context) delay(took time.Duration, times int) {
	t := time.NewTimer(took * time.Duration(times-1))
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.ended:
	}
}
