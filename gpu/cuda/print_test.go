package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin/fatbintest"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
)

// written is the Output of tests.
type written struct {
	mu      sync.Mutex
	text    map[uint32][]byte
	dropped uint64
}

func (w *written) Take(f func(to uint32, text []byte)) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	for to, text := range w.text {
		f(to, text)
	}
	dropped := w.dropped
	w.text, w.dropped = nil, 0
	return dropped
}

func (w *written) put(to uint32, text string, dropped uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text, w.dropped = map[uint32][]byte{to: []byte(text)}, dropped
}

// events are texts that a context passes on, and ends of operations, in order.
type events struct {
	mu   sync.Mutex
	list []string
}

func (e *events) add(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, fmt.Sprintf(format, args...))
}

func (e *events) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.list
	e.list = nil
	return list
}

const printingPTX = source + "// calls vprintf\n"

// printing returns a context of the double whose output is w.
func printing(t *testing.T, d *double, w Output) (worker.Context, *events) {
	t.Helper()
	dev := must[worker.Driver](t)(Open(Options{Library: d.library, Output: func() (Output, error) { return w, nil }}))
	c := must[worker.Context](t)(dev.NewContext(0, &gate{}, drivertest.Window(t, abi.MaxWindow)))
	t.Cleanup(func() { _ = dev.Close() })
	e := &events{}
	c.(worker.Printer).PrintTo(func(to uint32, text []byte) { e.add("%d: %s", to, text) })
	return c, e
}

func launched(t *testing.T, c worker.Context, f worker.Function, e *events) error {
	t.Helper()
	return wait(t, func(done func(error)) error {
		return c.Launch(nil, f, worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, func(err error) {
			e.add("done")
			done(err)
		})
	})
}

// What a kernel prints is passed on before its end is reported. libcuda is asked for it
// only after kernels that may print.
func TestOutputComesBeforeTheEnd(t *testing.T) {
	d, w := newDouble(t), &written{}
	c, e := printing(t, d, w)
	_, silent, _, err := c.ModuleLoad([]byte(source), worker.ModuleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, prints, _, err := c.ModuleLoad([]byte(printingPTX), worker.ModuleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.take(t)
	w.put(abi.OutputStdout, "part\nof a line", 7)
	if err := launched(t, c, silent[0], e); err != nil || count(d.take(t), "cuEventSynchronize") != 0 {
		t.Errorf("launch of a kernel that does not print: %v, want no error and no wait for output", err)
	}
	if err := launched(t, c, prints[0], e); err != nil || count(d.take(t), "cuEventSynchronize") != 1 {
		t.Errorf("launch of a kernel that prints: %v, want no error and one wait for output", err)
	}
	want := []string{"done", "1: part\nof a line", "2: libcuda: kernels printed too much at once; 7 bytes of it were dropped\n", "done"}
	if got := e.take(); !slices.Equal(got, want) {
		t.Errorf("events = %q, want %q", got, want)
	}
}

// What was printed before an error of the card is passed on before the error, once.
func TestOutputBeforeAnError(t *testing.T) {
	for name, script := range map[string]string{"at the end": "cuEventQuery 710\n", "at a launch": "cuLaunchKernel 710\n", "at the wait": "cuEventSynchronize 710\n"} {
		t.Run(name, func(t *testing.T) {
			d, w := newDouble(t), &written{}
			c, e := printing(t, d, w)
			_, f, _, err := c.ModuleLoad([]byte(printingPTX), worker.ModuleOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := launched(t, c, f[0], e); err != nil { // the one that prints
				t.Fatal(err)
			}
			e.take()
			d.play(t, script)
			w.put(abi.OutputStderr, "failed\n", 0)
			// What has ended before the error was found may be reported without it.
			if err := launched(t, c, f[0], e); !errors.Is(err, abi.ErrAssert) && name != "at the wait" {
				t.Errorf("launch: %v, want %v", err, abi.ErrAssert)
			}
			if got, want := e.take(), []string{"2: failed\n", "done"}; !slices.Equal(got, want) {
				t.Errorf("events = %q, want %q", got, want)
			}
			if err := launched(t, c, f[0], e); !errors.Is(err, abi.ErrAssert) {
				t.Errorf("launch after the error: %v, want %v", err, abi.ErrAssert)
			}
		})
	}
}

// A long text is passed on in pieces of whole lines, which the worker drops as a whole.
func TestOutputIsPassedOnInLines(t *testing.T) {
	w := &written{}
	c := &context{output: w}
	var pieces []string
	c.PrintTo(func(_ uint32, text []byte) { pieces = append(pieces, string(text)) })
	text := strings.Repeat("a line\n", 3000) + strings.Repeat("x", 3*maxPrinted) + "\nthe end"
	w.put(abi.OutputStdout, text, 0)
	c.take()
	if got := strings.Join(pieces, ""); got != text {
		t.Errorf("%d bytes are passed on, want %d", len(got), len(text))
	}
	for i, p := range pieces {
		if len(p) > maxPrinted || strings.HasPrefix(p, "a line") && i < 5 && !strings.HasSuffix(p, "line\n") {
			t.Errorf("piece %d has %d bytes and ends with %q, want at most %d and whole lines", i, len(p), p[max(0, len(p)-10):], maxPrinted)
		}
	}
}

// The size of the buffer is libcuda's too.
func TestLimitOutput(t *testing.T) {
	d := newDouble(t)
	c, _ := printing(t, d, &written{})
	d.take(t)
	if err := c.(worker.OutputLimiter).LimitOutput(123456); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, c.Notify); err != nil {
		t.Fatal(err)
	}
	if log := d.take(t); count(log, "cuCtxSetLimit 1 123456") != 1 {
		t.Errorf("libcuda received %q, want one call of cuCtxSetLimit", log)
	}
}

// A module may print if its PTX or its machine code refers to a function that prints, and
// if it cannot be read.
func TestMayPrint(t *testing.T) {
	machine := append(bytes.Clone(fatbintest.Cubin()), "\x00__assertfail\x00"...)
	for name, c := range map[string]struct {
		image []byte
		want  bool
	}{
		"PTX":                      {[]byte(printingPTX), true},
		"silent PTX":               {[]byte(source), false},
		"machine code":             {machine, true},
		"silent machine code":      {fatbintest.Cubin(), false},
		"PTX in a fatbin":          {fatbintest.Wrap(1, []byte(printingPTX)), true},
		"machine code in a fatbin": {fatbintest.Wrap(2, machine), true},
		"silent fatbin":            {fatbintest.Wrap(2, fatbintest.Cubin()), false},
	} {
		if got := contentsOf(c.image).prints; got != c.want {
			t.Errorf("%s: prints is %v, want %v", name, got, c.want)
		}
	}
	if !contentsOf([]byte(source), []byte(printingPTX)).prints {
		t.Error("of two images one prints: prints is false, want true")
	}
}
