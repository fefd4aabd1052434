package worker_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// dam is a driver whose held streams complete nothing until they are released.
type dam struct {
	*fakedriver.Driver
	mu   sync.Mutex
	held map[worker.Stream]*heldStream
	next []*heldStream // held streams for the streams that are created next
}

// heldStream stores the done functions of its commands.
type heldStream struct {
	dones []func(error)
	open  bool
}

type damContext struct {
	worker.Context
	d *dam
}

func (d *dam) NewContext(flags uint32, g worker.Gate, w *worker.Window) (worker.Context, error) {
	c, err := d.Driver.NewContext(flags, g, w)
	return &damContext{c, d}, err
}

func (c *damContext) StreamCreate(flags uint32, priority int32) (worker.Stream, error) {
	s, err := c.Context.StreamCreate(flags, priority)
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if len(c.d.next) > 0 {
		c.d.held[s], c.d.next = c.d.next[0], c.d.next[1:]
	}
	return s, err
}

// holds stores done, if s is a held stream, and reports whether it is one.
func (d *dam) holds(s worker.Stream, done func(error)) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.held[s]
	if h == nil || h.open {
		return false
	}
	h.dones = append(h.dones, done)
	return true
}

func (c *damContext) Launch(s worker.Stream, f worker.Function, l worker.Launch, done func(error)) error {
	if c.d.holds(s, done) {
		return nil
	}
	return c.Context.Launch(s, f, l, done)
}

func (c *damContext) StreamNotify(s worker.Stream, done func(error)) error {
	if c.d.holds(s, done) {
		return nil
	}
	return c.Context.StreamNotify(s, done)
}

// contextNotify is the key of a context's Notify among the held streams.
const contextNotify = "notify"

func (c *damContext) Notify(done func(error)) error {
	if c.d.holds(contextNotify, done) {
		return nil
	}
	return c.Context.Notify(done)
}

func (c *damContext) EventRecord(e worker.Event, s worker.Stream) error {
	if c.d.holds(s, func(error) {}) {
		return nil
	}
	return c.Context.EventRecord(e, s)
}

func (d *dam) count(h *heldStream) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(h.dones)
}

// release completes all that is held, and all later commands at once.
func (d *dam) release(h *heldStream) {
	d.mu.Lock()
	h.open = true
	dones := h.dones
	h.dones = nil
	d.mu.Unlock()
	for _, f := range dones {
		f(nil)
	}
}

func newDam(t *testing.T, held ...*heldStream) (*rig, *dam) {
	d := &dam{Driver: fakedriver.New(fakedriver.Options{}), held: map[worker.Stream]*heldStream{}, next: held}
	r := newRigOn(t, d, d.Driver, 0)
	t.Cleanup(func() { // before the rig's own
		for _, h := range held {
			d.release(h)
		}
	})
	return r, d
}

func (r *rig) stream(ctx uint64) uint64 {
	r.Helper()
	h := r.Handle()
	r.call(abi.OpStreamCreate, abi.StreamCreate{Ctx: ctx, Stream: h, Flags: worker.StreamNonBlocking})
	return h
}

// TestFullStreamsDelayNoOther checks that streams which are full to a guest
// library's limit, more than a worker's limit used to allow, delay no other
// stream or context.
func TestFullStreamsDelayNoOther(t *testing.T) {
	const full, each = 8, 1024
	held := make([]*heldStream, full)
	for i := range held {
		held[i] = &heldStream{}
	}
	r, d := newDam(t, held...)
	ctx := r.context()
	_, f := r.module(ctx, "nop")
	for range full {
		s := r.stream(ctx)
		for range each {
			if err := r.launch(s, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	other := r.stream(ctx)
	if err := r.launch(other, f); err != nil {
		t.Fatal(err)
	}
	r.call(abi.OpStreamSynchronize, abi.StreamSynchronize{Stream: other})
	second := r.context()
	_, g := r.module(second, "nop")
	if err := r.launch(second, g); err != nil {
		t.Fatal(err)
	}
	r.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: second})
	for i, h := range held {
		if n := d.count(h); n != each {
			t.Errorf("stream %d has %d commands in the driver, want %d", i, n, each)
		}
	}
}

// TestOneStreamIsBounded checks that a guest which ignores the limit only fills
// its own ring.
func TestOneStreamIsBounded(t *testing.T) {
	for name, put := range map[string]func(r *rig, stream, function, event uint64) error{
		"launches": func(r *rig, s, f, _ uint64) error { return r.launch(s, f) },
		"events": func(r *rig, s, _, e uint64) error {
			return r.Send(abi.OpEventRecord, abi.EventRecord{Event: e, Stream: s}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &heldStream{}
			r, d := newDam(t, h)
			ctx := r.context()
			_, f := r.module(ctx, "nop")
			s, e := r.stream(ctx), r.Handle()
			r.call(abi.OpEventCreate, abi.EventCreate{Ctx: ctx, Event: e})
			sent := make(chan error, 1)
			go func() {
				for range 20_000 {
					if err := put(r, s, f, e); err != nil {
						sent <- err
						return
					}
				}
				sent <- nil
			}()
			patience.Until(t, 30*time.Second, "the driver has a stream's share and the ring is full", func() bool {
				return d.count(h) >= 4096 && r.Shm.Load64(abi.OffHead)-r.Shm.Load64(abi.OffTail) > r.Layout.RingSize-256
			})
			if n := d.count(h); n > 4096+1 {
				t.Errorf("the driver was given %d commands, want at most 4096 and a mark", n)
			}
			d.release(h)
			if err := patience.Receive(t, 30*time.Second, "all is sent", sent); err != nil {
				t.Error(err)
			}
			r.call(abi.OpStreamSynchronize, abi.StreamSynchronize{Stream: s})
		})
	}
}

// TestStreamMark checks that a mark waits for its stream, and does not consume an
// error that another command must report.
func TestStreamMark(t *testing.T) {
	h := &heldStream{}
	r, d := newDam(t, h)
	ctx := r.context()
	_, f := r.module(ctx, "nop")
	s := r.stream(ctx)
	if err := r.launch(s, f); err != nil {
		t.Fatal(err)
	}
	mark, err := r.Start(abi.OpStreamMark, 0, abi.StreamMark{Stream: s}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.launch(ctx, 999); err != nil { // fails without a slot
		t.Fatal(err)
	}
	if err := r.Send(abi.OpMemset, abi.Memset{Stream: ctx, Width: 3}, nil); err != nil {
		t.Fatal(err)
	}
	r.call(abi.OpStreamMark, abi.StreamMark{Stream: ctx})
	r.fails(abi.ErrInvalidValue, abi.OpStreamSynchronize, abi.StreamSynchronize{Stream: ctx})
	if d.count(h) != 2 {
		t.Error("the mark completed before the work of its stream")
	}
	d.release(h)
	if _, _, err := r.Wait(mark); err != nil {
		t.Error(err)
	}
	r.fails(abi.ErrInvalidHandle, abi.OpStreamMark, abi.StreamMark{Stream: 12345})
}

// slowLoads is a rig whose modules load when the test lets them.
type slowLoads struct {
	*rig
	began chan string
	goOn  chan struct{}
}

func newSlowLoads(t *testing.T) *slowLoads {
	l := &slowLoads{began: make(chan string, 64), goOn: make(chan struct{})}
	var over atomic.Bool
	l.rig = newRig(t, fakedriver.Options{Global: 4096, Loading: func(image []byte) {
		if strings.Contains(string(image), "sleep") && !over.Load() {
			l.began <- string(image)
			<-l.goOn
		}
	}}, 0)
	t.Cleanup(func() { over.Store(true); l.proceed() })
	return l
}

func (l *slowLoads) proceed() {
	select {
	case <-l.goOn:
	default:
		close(l.goOn)
	}
}

// load begins to load a module and returns its slot, once the driver has the
// image.
func (l *slowLoads) load(ctx uint64, image string) (module, function uint64, slot uint32) {
	l.Helper()
	module, function = l.Handle(), l.Handles(16)
	at := l.Arena + 4*l.Layout.ChunkSize
	copy(l.Shm.Bytes(at, l.Layout.ChunkSize), image)
	slot, err := l.Start(abi.OpModuleLoad, 0, abi.ModuleLoad{
		Ctx: ctx, Module: module, FirstFunction: function,
		ImageOff: at, ImageLen: uint64(len(image)), OutOff: at + l.Layout.ChunkSize, OutLen: l.Layout.ChunkSize,
	}, nil)
	if err != nil {
		l.Fatal(err)
	}
	if got := patience.Receive(l.TB.(*testing.T), 30*time.Second, "the driver has the image", l.began); got != image {
		l.Errorf("the driver loads image %q, want %q", got, image)
	}
	return module, function, slot
}

// TestLoadDelaysNothing checks that a module that takes long to compile delays no
// launch, no other load and no context.
func TestLoadDelaysNothing(t *testing.T) {
	l := newSlowLoads(t)
	ctx := l.context()
	_, f := l.module(ctx, "nop")
	_, slow, slot := l.load(ctx, "global sleep")
	if err := l.launch(ctx, f); err != nil {
		t.Fatal(err)
	}
	l.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
	other := l.context()
	_, g := l.module(other, "global nop")
	if err := l.launch(other, g); err != nil {
		t.Fatal(err)
	}
	l.call(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: other})
	l.fails(abi.ErrInvalidHandle, abi.OpOccupancyMaxActiveBlocksPerMultiprocessor, abi.OccupancyMaxActiveBlocksPerMultiprocessor{Func: slow, BlockSize: 1}) // not loaded yet
	l.proceed()
	if _, _, err := l.Wait(slot); err != nil {
		t.Fatal(err)
	}
	l.call(abi.OpOccupancyMaxActiveBlocksPerMultiprocessor, abi.OccupancyMaxActiveBlocksPerMultiprocessor{Func: slow, BlockSize: 1})
}

// TestContextDestroyedDuringLoad checks that a context destroyed while a module
// is loaded into it is removed after the load, with all resources of the load.
func TestContextDestroyedDuringLoad(t *testing.T) {
	l := newSlowLoads(t)
	ctx := l.context()
	_, _, load := l.load(ctx, "global sleep")
	destroy, err := l.Start(abi.OpCtxDestroy, 0, abi.CtxDestroy{Ctx: ctx}, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := l.context() // the issuer continues
	l.proceed()
	if _, _, err := l.Wait(load); err != abi.ErrInvalidContext { //nolint:errorlint // Wait returns it bare
		t.Errorf("load = %v, want %v", err, abi.ErrInvalidContext)
	}
	if _, _, err := l.Wait(destroy); err != nil {
		t.Error(err)
	}
	if n := l.driver.Contexts(); n != 1 {
		t.Errorf("%d contexts in the driver, want 1", n)
	}
	if free, _ := l.call(abi.OpMemInfo, guesttest.None{}); free != vram {
		t.Errorf("%d of %d bytes free, want all", free, vram)
	}
	l.call(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: other})
}

// A session that ends while modules are loaded leaves nothing behind, which
// rig.end checks.
func TestSessionEndsDuringLoad(t *testing.T) {
	l := newSlowLoads(t)
	l.load(l.context(), "global sleep")
	l.Close()
	time.AfterFunc(50*time.Millisecond, l.proceed)
	if err := l.end(); err != nil {
		t.Error(err)
	}
}

// TestManyLoads checks that loads beyond the number that are compiled at a time
// wait, and are completed.
func TestManyLoads(t *testing.T) {
	l := newSlowLoads(t)
	ctx := l.context()
	at := l.Arena
	copy(l.Shm.Bytes(at, 64), "sleep")
	var slots []uint32
	for range 32 {
		slot, err := l.Start(abi.OpModuleLoad, 0, abi.ModuleLoad{
			Ctx: ctx, FirstFunction: l.Handles(16), Module: l.Handle(),
			ImageOff: at, ImageLen: 5, OutOff: at + l.Layout.ChunkSize, OutLen: l.Layout.ChunkSize,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		slots = append(slots, slot)
	}
	patience.Until(t, 30*time.Second, "eight are compiled", func() bool { return len(l.began) >= 8 })
	l.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
	if n := len(l.began); n != 8 {
		t.Errorf("%d modules are compiled at a time, want 8", n)
	}
	l.proceed()
	for _, slot := range slots {
		if _, _, err := l.Wait(slot); err != nil {
			t.Error(err)
		}
	}
}

func TestOnlyDeviceZero(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	n, _ := r.call(abi.OpDeviceInfo, abi.DeviceInfo{OutOff: r.Arena, OutLen: 4096})
	if info, err := abi.DecodeDeviceInfoReply(r.Shm.Bytes(r.Arena, n)); err != nil || info.Devices != 1 {
		t.Errorf("%d devices, %v, want 1", info.Devices, err)
	}
	r.fails(abi.ErrInvalidDevice, abi.OpDeviceInfo, abi.DeviceInfo{OutOff: r.Arena, OutLen: 4096, Device: 1})
	r.fails(abi.ErrInvalidDevice, abi.OpVGPUStatus, abi.VGPUStatus{OutOff: r.Arena, OutLen: 4096, Device: 1})
	r.fails(abi.ErrInvalidDevice, abi.OpCtxCreate, abi.CtxCreate{Ctx: r.Handle(), Device: 1})
}
