package cuda

import (
	"bytes"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// What kernels print. libcuda keeps it in a buffer of each context, and writes it to this
// process's stdout, and failed assertions to stderr, when the process waits for the card
// (CUDA C++ Programming Guide, "Formatted Output", "Limitations", and "Assertion"). This
// driver polls, so it makes such a call for work that has ended, before the guest learns
// of its end; it does so only for kernels of modules that refer to these functions.

// Output has what libcuda has written to this process's stdout and stderr. It is safe for
// concurrent use.
type Output interface {
	// Take passes on what was written before the call and has not been taken, the oldest
	// first; to is abi.OutputStdout or OutputStderr. dropped is the number of bytes that
	// were not kept.
	Take(f func(to uint32, text []byte)) (dropped uint64)
}

// limitPrintfFIFO is a CUlimit, from cuda.h.
const limitPrintfFIFO = 1

// printers are the functions of the device that print, by which a module that may print
// is recognized in its PTX, and in the symbols of its machine code.
var printers = [][]byte{[]byte("vprintf"), []byte("__assertfail")}

func mayPrint(image []byte) bool {
	for _, name := range printers {
		if bytes.Contains(image, name) {
			return true
		}
	}
	return false
}

// PrintTo implements worker.Printer.
func (c *context) PrintTo(output func(to uint32, text []byte)) {
	if c.output != nil {
		c.print = output
	}
}

// LimitOutput implements worker.OutputLimiter. libcuda refuses a change after the first
// kernel that prints, as the worker does.
func (c *context) LimitOutput(size uint64) error {
	return c.push(nil, &op{done: func(error) {}, submit: func(uintptr) error {
		return c.call(cuCtxSetLimit, limitPrintfFIFO, uintptr(size))
	}})
}

// collect passes on what kernels have printed that have ended. passed is an event that the
// card has reached, so that the wait for it does not last.
func (c *context) collect(passed uintptr) error {
	if !c.printed || c.print == nil {
		return nil
	}
	c.printed = false
	c.d.printing.Lock()
	defer c.d.printing.Unlock()
	err := c.call(cuEventSynchronize, passed)
	c.take()
	return err
}

// collectLast passes on what kernels have printed before the context failed by an error of
// the card, after which nothing runs.
func (c *context) collectLast() {
	if !c.prints || c.print == nil || !sticky(c.failed()) {
		return
	}
	c.prints = false
	c.d.printing.Lock()
	defer c.d.printing.Unlock()
	c.waitForDevice()
	c.take()
}

// maxPrinted is the maximum of a text that is passed on, in bytes. The worker drops whole
// texts, so a text is whole lines if possible.
const maxPrinted = 4 << 10

// take passes on what libcuda has written. It does not say which context has printed it:
// the guest learns of it as of the context that it waits for.
func (c *context) take() {
	flushStdout()
	dropped := c.output.Take(func(to uint32, text []byte) {
		for len(text) > 0 {
			n := min(len(text), maxPrinted)
			if i := bytes.LastIndexByte(text[:n], '\n'); i >= 0 && n < len(text) {
				n = i + 1
			}
			c.print(to, text[:n])
			text = text[n:]
		}
	})
	if dropped > 0 {
		c.print(abi.OutputStderr, fmt.Appendf(nil, "libcuda: kernels printed too much at once; %d bytes of it were dropped\n", dropped))
	}
}
