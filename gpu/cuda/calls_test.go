package cuda

import (
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/worker"
)

// objects are those that calls refer to, with libcuda's numbers for them.
type objects struct {
	stream                       worker.Stream
	function                     worker.Function
	event                        worker.Event
	streamHandle, functionHandle uintptr
	eventHandle                  uintptr
	address                      uint64
	device                       int // libcuda's number
}

// passedOnCall calls a function that is passed on: it has the line that the
// double must log, and checks that the results are the double's and that done is
// called when the device has finished.
type passedOnCall struct {
	symbol string
	call   func(c worker.Context, o objects, done func(error)) (line string, good bool, err error)
}

// Every function that is passed on reaches libcuda with its arguments in the
// right places, and its results are returned.
func TestPassedOn(t *testing.T) {
	d := newDouble(t)
	c := open(t, d, &gate{})
	_, functions, _, err := c.ModuleLoad([]byte(source), worker.ModuleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := objects{function: functions[0], stream: must[worker.Stream](t)(c.StreamCreate(0, 0)), event: must[worker.Event](t)(c.EventCreate(0)), address: must[uint64](t)(c.MemAlloc(4096))}
	o.device = int(c.(*context).d.device)
	o.streamHandle, o.functionHandle, o.eventHandle = o.stream.(*stream).handle, o.function.(*kernel).handle, o.event.(*event).handle
	for _, p := range passedOnCalls {
		d.take(t)
		var line string
		var good bool
		if err := wait(t, func(done func(error)) (err error) {
			line, good, err = p.call(c, o, done)
			return err
		}); err != nil {
			t.Errorf("%s: %v, want no error", p.symbol, err)
			continue
		}
		if got := d.take(t); !slices.Contains(got, line) {
			t.Errorf("%s: libcuda received %q, want %q", p.symbol, got, line)
		}
		if !good {
			t.Errorf("%s: the results are not those of libcuda", p.symbol)
		}
	}
}
