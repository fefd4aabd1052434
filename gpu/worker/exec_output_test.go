package worker_test

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
)

// output reads what a context's kernels have printed, and the stream that it was
// printed to.
func (r *rig) output(ctx uint64) (text string, to uint64) {
	r.Helper()
	n, to := r.call(abi.OpCtxReadOutput, abi.CtxReadOutput{Ctx: ctx, OutOff: r.Arena, OutLen: r.Layout.ChunkSize})
	return string(r.Shm.Bytes(r.Arena, n)), to
}

func TestKernelsPrint(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx, other := r.context(), r.context()
	_, print := r.module(ctx, "print fault")
	if text, to := r.output(ctx); text != "" || to != 0 || r.Shm.Load32(abi.OffOutputCount) != 0 {
		t.Errorf("output before any launch = %q to %d, count %d, want none", text, to, r.Shm.Load32(abi.OffOutputCount))
	}
	if err := r.launch(ctx, print, uint64(abi.OutputStdout), 3); err != nil {
		t.Fatal(err)
	}
	r.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
	if n := r.Shm.Load32(abi.OffOutputCount); n != 1 {
		t.Errorf("output count in the header = %d, want 1", n)
	}
	if text, _ := r.output(other); text != "" {
		t.Errorf("output of the other context = %q, want none", text)
	}
	if text, to := r.output(ctx); text != "line 0\nline 1\nline 2\n" || to != uint64(abi.OutputStdout) {
		t.Errorf("output = %q to %d, want three lines to stdout", text, to)
	}
	// What was printed before a fault can be read after it.
	for _, err := range []error{r.launch(ctx, print, uint64(abi.OutputStderr), 1), r.launch(ctx, print+1)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r.fails(abi.ErrIllegalAddress, abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
	if n := r.Shm.Load32(abi.OffOutputCount); n != 2 {
		t.Errorf("output count in the header = %d, want 2", n)
	}
	if text, to := r.output(ctx); text != "line 0\n" || to != uint64(abi.OutputStderr) {
		t.Errorf("output before the fault = %q to %d, want line 0 to stderr", text, to)
	}
	r.fails(abi.ErrInvalidHandle, abi.OpCtxReadOutput, abi.CtxReadOutput{Ctx: print, OutOff: r.Arena, OutLen: 100})
	r.fails(abi.ErrInvalidValue, abi.OpCtxReadOutput, abi.CtxReadOutput{Ctx: ctx, OutOff: r.Arena, OutLen: 1 << 40})
}

func TestPrintfFIFO(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	set := func(ctx, value uint64) abi.CtxSetLimit {
		return abi.CtxSetLimit{Ctx: ctx, Limit: abi.LimitPrintfFIFO, Value: value}
	}
	for _, c := range []struct{ value, want uint64 }{{0, 64 << 10}, {100_000, 100_000}, {1 << 60, 16 << 20}} {
		if got, _ := r.call(abi.OpCtxSetLimit, set(ctx, c.value)); got != c.want {
			t.Errorf("printf FIFO limit after setting %d = %d, want %d", c.value, got, c.want)
		}
	}
	r.fails(abi.ErrUnsupportedLimit, abi.OpCtxSetLimit, abi.CtxSetLimit{Ctx: ctx, Limit: 0, Value: 1})
	for range 6 {
		r.call(abi.OpCtxSetLimit, set(r.context(), 16<<20))
	}
	r.call(abi.OpCtxSetLimit, set(r.context(), 8<<20))
	r.fails(abi.ErrOutOfMemory, abi.OpCtxSetLimit, set(r.context(), 16<<20))
	r.call(abi.OpCtxSetLimit, set(ctx, 64<<10))
	_, print := r.module(ctx, "print")
	if err := r.launch(ctx, print, uint64(abi.OutputStdout), 10_000); err != nil {
		t.Fatal(err)
	}
	r.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
	if text, _ := r.output(ctx); len(text) > 64<<10 || !strings.HasSuffix(text, "line 9999\n") || strings.HasPrefix(text, "line 0\n") {
		t.Errorf("output of %d bytes that begins with %.20q, want at most 64 KiB with the last line and without the first", len(text), text)
	}
	r.fails(abi.ErrInvalidValue, abi.OpCtxSetLimit, set(ctx, 1<<20))
}

// A device with a buffer of its own gets the limit that is in force, and its error is the
// command's.
func TestDeviceLimitsOutput(t *testing.T) {
	sizes := make(chan uint64, 2)
	r := newRig(t, fakedriver.Options{LimitOutput: func(size uint64) error {
		if sizes <- size; size == 1<<20 {
			return abi.ErrOutOfMemory
		}
		return nil
	}}, 0)
	ctx := r.context()
	r.call(abi.OpCtxSetLimit, abi.CtxSetLimit{Ctx: ctx, Limit: abi.LimitPrintfFIFO, Value: 1})
	r.fails(abi.ErrOutOfMemory, abi.OpCtxSetLimit, abi.CtxSetLimit{Ctx: ctx, Limit: abi.LimitPrintfFIFO, Value: 1 << 20})
	if first, second := <-sizes, <-sizes; first != 64<<10 || second != 1<<20 {
		t.Errorf("limits of the device = %d and %d, want %d and %d", first, second, 64<<10, 1<<20)
	}
}
