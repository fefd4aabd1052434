package worker

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// collectOutput stores the output of a new context's kernels, and signals it to the
// guest, which checks the header after it has waited for something.
func (s *Session) collectOutput(ctx *contextObject) {
	p, ok := ctx.driver.(Printer)
	if !ok {
		return
	}
	p.PrintTo(func(to uint32, text []byte) {
		if ctx.output.add(to, text) {
			s.guard(func() { s.increment(abi.OffOutputCount) })
		}
	})
}

// increment adds one to a word of the header, which several goroutines may do
// concurrently.
func (s *Session) increment(word uint64) {
	for n := s.shared.Load32(word); !s.shared.CAS32(word, n, n+1); n = s.shared.Load32(word) {
	}
}

// ctxReadOutput works in a failed context too: the output of an assertion has
// details that the error does not.
func (s *Session) ctxReadOutput(c *command) error {
	a := abi.DecodeCtxReadOutput(c.argBytes)
	ctx, err := lookup[*contextObject](&s.handles, a.Ctx)
	if err != nil {
		return err
	}
	out, _, err := s.buffer(a.OutRegion, a.OutOff, a.OutLen)
	if err != nil {
		return err
	}
	n, to := ctx.output.take(out)
	c.value0, c.value1 = uint64(n), uint64(to)
	return nil
}

func (s *Session) ctxSetLimit(c *command) error {
	a := abi.DecodeCtxSetLimit(c.argBytes)
	ctx, err := s.context(c, a.Ctx)
	if err != nil {
		return err
	}
	if a.Limit != abi.LimitPrintfFIFO {
		return abi.ErrUnsupportedLimit
	}
	size := min(max(a.Value, minOutput), maxOutput)
	all := size
	for other := range s.contexts {
		if other != ctx {
			all += other.output.size()
		}
	}
	if all > maxOutputs {
		return abi.ErrOutOfMemory
	}
	if !ctx.output.resize(size) {
		return abi.ErrInvalidValue
	}
	if l, ok := ctx.driver.(OutputLimiter); ok {
		if err := l.LimitOutput(size); err != nil {
			return fmt.Errorf("set the limit of the device: %w", err)
		}
	}
	c.value0 = size
	return nil
}
