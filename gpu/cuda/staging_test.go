package cuda

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
)

// copyBench is a context whose large copies of guests' bytes wait until release, with a
// list of what has happened.
type copyBench struct {
	t    *testing.T
	c    *context
	gate *gate
	held chan struct{}
	let  func() // ends held

	mu     sync.Mutex
	events []string
}

func newCopyBench(t *testing.T, d worker.Driver) *copyBench {
	t.Helper()
	b := &copyBench{t: t, gate: &gate{}, held: make(chan struct{})}
	b.c = must[worker.Context](t)(d.NewContext(0, b.gate, drivertest.Window(t, abi.MaxWindow))).(*context)
	b.c.copyBytes = func(dst, src []byte) int {
		if len(dst) > smallCopy {
			<-b.held
		}
		return copy(dst, src)
	}
	b.let = sync.OnceFunc(func() { close(b.held) })
	t.Cleanup(func() {
		b.let()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// release lets the copies continue.
func (b *copyBench) release() {
	b.happens("released")
	b.let()
}

func (b *copyBench) happens(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, what)
}

// start starts an operation and returns a channel that receives its result.
func (b *copyBench) start(name string, operation func(done func(error)) error) <-chan error {
	b.t.Helper()
	got := make(chan error, 1)
	if err := operation(func(err error) { b.happens(name); got <- err }); err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
	return got
}

func (b *copyBench) await(name string, got <-chan error) {
	b.t.Helper()
	if err := patience.Receive(b.t, 20*time.Second, name, got); err != nil {
		b.t.Errorf("%s = %v, want no error", name, err)
	}
}

func (b *copyBench) stream(flags uint32) worker.Stream {
	b.t.Helper()
	return must[worker.Stream](b.t)(b.c.StreamCreate(flags, 0))
}

func TestCopiesDelayNoOthers(t *testing.T) {
	double := newDouble(t)
	testCopiesDelayNoOthers(t, func(t *testing.T) worker.Driver {
		return must[worker.Driver](t)(Open(Options{Library: double.library}))
	})
}

// TestCardCopiesDelayNoOthers runs the same on a card.
func TestCardCopiesDelayNoOthers(t *testing.T) {
	card(t)
	testCopiesDelayNoOthers(t, func(t *testing.T) worker.Driver { return card(t) })
}

// testCopiesDelayNoOthers checks that work of streams that are independent of a large copy
// of pageable memory is done while the processor copies its bytes, and all other work
// after it.
func testCopiesDelayNoOthers(t *testing.T, opens func(t *testing.T) worker.Driver) {
	const size = 2 * chunkSize // all of it is on the device at once, with what follows
	pattern := bytes.Repeat([]byte("basalt-0"), size/8)
	for _, direction := range []string{"to the device", "to the host"} {
		t.Run(direction, func(t *testing.T) {
			b := newCopyBench(t, opens(t))
			p, other := must[uint64](t)(b.c.MemAlloc(size)), must[uint64](t)(b.c.MemAlloc(8))
			host := slices.Clone(pattern)
			copying := func(s worker.Stream) func(done func(error)) error {
				return func(done func(error)) error {
					if direction == "to the host" {
						return b.c.CopyDtoH(s, host, p, done)
					}
					return b.c.CopyHtoD(s, p, host, done)
				}
			}
			if direction == "to the host" {
				clear(host)
				b.await("fill", b.start("fill", func(done func(error)) error { return b.c.Memset(nil, p, 0x5a, 1, size, done) }))
			}
			set := func(s worker.Stream) func(done func(error)) error {
				return func(done func(error)) error { return b.c.Memset(s, other, 1, 4, 2, done) }
			}
			blocking, waiting, free := b.stream(0), b.stream(worker.StreamNonBlocking), b.stream(worker.StreamNonBlocking)
			recorded, old := must[worker.Event](t)(b.c.EventCreate(0)), must[worker.Event](t)(b.c.EventCreate(0))
			depends := map[string]<-chan error{}
			add := func(name string, operation func(done func(error)) error) { depends[name] = b.start(name, operation) }
			add("copy", copying(blocking))
			add("next in its stream", set(blocking))
			if err := b.c.EventDestroy(old); err != nil { // which is no work of the default stream
				t.Fatal(err)
			}
			beside := b.start("independent", set(b.stream(0)))
			if err := errors.Join(b.c.EventRecord(recorded, blocking), b.c.StreamWaitEvent(waiting, recorded)); err != nil {
				t.Fatal(err)
			}
			add("event", func(done func(error)) error { return b.c.EventNotify(recorded, done) })
			add("stream that waits for the event", set(waiting))
			add("default stream", set(nil))
			add("stream after the default stream", set(b.stream(0)))
			add("everything", b.c.Notify)
			b.await("independent stream that blocks on the default stream", beside)
			for range 3 { // the others would have been done by then too
				b.await("independent stream", b.start("independent", set(free)))
			}
			small := make([]byte, 8)
			b.await("small copy", b.start("independent", func(done func(error)) error { return b.c.CopyDtoH(free, small, other, done) }))
			if err := b.c.StreamQuery(blocking); !errors.Is(err, abi.ErrNotReady) {
				t.Errorf("StreamQuery during the copy = %v, want %v", err, abi.ErrNotReady)
			}
			b.release()
			for name, got := range depends {
				b.await(name, got)
			}
			b.mu.Lock()
			released := slices.Index(b.events, "released")
			for name := range depends {
				if at := slices.Index(b.events, name); at < released {
					t.Errorf("order of events %q: %q is before the end of the copy, want it after", b.events, name)
				}
			}
			b.mu.Unlock()
			want := pattern
			if direction == "to the host" {
				want = bytes.Repeat([]byte{0x5a}, size)
			} else {
				clear(host)
				if err := wait(t, func(done func(error)) error { return b.c.CopyDtoH(nil, host, p, done) }); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(host, want) {
				t.Error("the copied bytes differ from the source")
			}
			b.gate.settled(t)
			if n := len(b.c.staging); n != chunkCount {
				t.Errorf("%d chunks are free after all work, want %d", n, chunkCount)
			}
		})
	}
}

// The end of a context, and its failure, wait for bytes that are being copied: after
// done a guest's memory may be gone.
func TestCopiesEndBeforeTheyAreReported(t *testing.T) {
	double := newDouble(t)
	for _, end := range []string{"destroyed", "failed"} {
		for _, toDevice := range []bool{true, false} {
			b := newCopyBench(t, must[worker.Driver](t)(Open(Options{Library: double.library})))
			p := must[uint64](t)(b.c.MemAlloc(chunkSize))
			host, begun := make([]byte, chunkSize), make(chan struct{}, chunkCount)
			move := b.c.copyBytes
			b.c.copyBytes = func(dst, src []byte) int { begun <- struct{}{}; defer b.happens("moved"); return move(dst, src) }
			got := b.start("done", func(done func(error)) error {
				if toDevice {
					return b.c.CopyHtoD(nil, p, host, done)
				}
				return b.c.CopyDtoH(nil, host, p, done)
			})
			patience.Receive(t, 20*time.Second, "the copy of bytes begins", begun)
			ended := make(chan error, 1)
			if end == "failed" {
				b.c.poison(abi.ErrIllegalAddress)
				ended <- nil
			} else {
				go func() { ended <- b.c.Destroy() }()
				patience.Until(t, 20*time.Second, "the context ends", b.c.quitting)
			}
			b.release()
			err := patience.Receive(t, 20*time.Second, "the copy is done", got)
			if end == "failed" && toDevice && !errors.Is(err, abi.ErrIllegalAddress) {
				t.Errorf("copy to the device in a context that failed = %v, want %v", err, abi.ErrIllegalAddress)
			}
			b.await("end", ended)
			b.mu.Lock()
			if want := []string{"released", "moved", "done"}; !slices.Equal(b.events, want) {
				t.Errorf("%s context, to the device %v: order of events %q, want %q", end, toDevice, b.events, want)
			}
			b.mu.Unlock()
		}
	}
}
