package worker_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// structCall is a command with structs or arrays: its arguments, what the driver
// must receive of them, and what must be returned.
type structCall struct {
	op     abi.Op
	args   func(out uint64) guesttest.Args
	want   string
	value  uint64
	record func() []byte
}

// recording is a driver whose contexts record their arguments.
type recording struct {
	worker.Driver
	recorder recorder
}

// recorder records the arguments of a context's calls; its methods are generated.
type recorder struct {
	worker.Context
	mu   sync.Mutex // guards seen
	seen string
}

func (r *recorder) saw(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = fmt.Sprintln(args...)
}

// take returns what was recorded since the last call.
func (r *recorder) take() (seen string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen, r.seen = r.seen, ""
	return seen
}

func (d *recording) NewContext(flags uint32, gate worker.Gate, w *worker.Window) (worker.Context, error) {
	c, err := d.Driver.NewContext(flags, gate, w)
	d.recorder.mu.Lock()
	defer d.recorder.mu.Unlock()
	d.recorder.Context = c
	return &d.recorder, err
}

// newRecording returns a session on a recording driver, with context 1, stream 2
// and event 3.
func newRecording(t *testing.T) (*recording, *rig) {
	t.Helper()
	fake := fakedriver.New(fakedriver.Options{})
	d := &recording{Driver: fake}
	r := newRigOn(t, d, fake, 0)
	for _, made := range []struct {
		op   abi.Op
		args guesttest.Args
	}{
		{abi.OpCtxCreate, abi.CtxCreate{Ctx: 1}}, {abi.OpStreamCreate, abi.StreamCreate{Ctx: 1, Stream: 2}},
		{abi.OpEventCreate, abi.EventCreate{Ctx: 1, Event: 3}},
	} {
		if _, _, err := r.Call(made.op, made.args, nil); err != nil {
			t.Fatalf("%v: %v, want no error", made.op, err)
		}
	}
	return d, r
}

// TestStructsArrive checks that structs, unions and arrays reach the driver as
// the guest has sent them, and that returned values reach the guest.
func TestStructsArrive(t *testing.T) {
	driver, g := newRecording(t)
	for _, c := range structCalls {
		out := g.Shm.Bytes(g.Arena, 512)
		clear(out)
		value, _, err := g.Call(c.op, c.args(g.Arena), nil)
		if seen := driver.recorder.take(); err != nil || seen != c.want || value != c.value {
			t.Errorf("%v: %v, value %d; the driver received %swant value %d, %s", c.op, err, value, seen, c.value, c.want)
		}
		if c.record == nil {
			continue
		}
		if want := c.record(); !bytes.Equal(out[:len(want)], want) {
			t.Errorf("%v: record = %x, want %x", c.op, out[:len(want)], want)
		}
	}
}

// TestStructsOfHostileGuests checks that arguments which no guest library sends
// are an error of that command, and reach no driver.
func TestStructsOfHostileGuests(t *testing.T) {
	driver, g := newRecording(t)
	whole := g.Shm.Size()
	for _, c := range []struct {
		name string
		op   abi.Op
		args guesttest.Args
		want error
	}{
		{"no such attribute", abi.OpStreamSetAttribute, abi.StreamSetAttribute{HStream: 2, Attr: 2}, abi.ErrInvalidValue},
		{"nor to read", abi.OpStreamGetAttribute, abi.StreamGetAttribute{HStream: 2, Attr: -1, OutOff: g.Arena, OutLen: 64}, abi.ErrInvalidValue},
		{"six dimensions", abi.OpTensorMapEncodeTiled, abi.TensorMapEncodeTiled{Ctx: 1, TensorRank: 6, OutOff: g.Arena, OutLen: 128}, abi.ErrInvalidValue},
		{"a record beyond the region", abi.OpCtxGetExecAffinity, abi.CtxGetExecAffinity{Ctx: 1, OutOff: whole - 4, OutLen: 8}, abi.ErrInvalidValue},
		{"a region that is none", abi.OpCtxGetExecAffinity, abi.CtxGetExecAffinity{Ctx: 1, OutLen: 8, OutRegion: 7}, abi.ErrInvalidValue},
	} {
		_, _, err := g.Call(c.op, c.args, nil)
		if seen := driver.recorder.take(); !errors.Is(err, c.want) || seen != "" {
			t.Errorf("%s: %v, want %v; the driver received %q, want nothing", c.name, err, c.want, seen)
		}
	}
	if _, _, err := g.Call(abi.OpCtxGetExecAffinity, abi.CtxGetExecAffinity{Ctx: 1, OutOff: g.Arena, OutLen: 4}, nil); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("record that does not fit: %v, want %v", err, abi.ErrInvalidValue)
	}
}
