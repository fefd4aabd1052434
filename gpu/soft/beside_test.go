package soft_test

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Kernels that wait for each other: meet sets a word and waits until another one is
// set; spin waits for one.
const meeting = ptxHead + `.visible .entry meet(.param .u64 mine, .param .u64 other)
{
	.reg .b64 %rd<3>; .reg .b32 %r<2>; .reg .pred %p;
	ld.param.u64 %rd1, [mine];
	ld.param.u64 %rd2, [other];
	st.volatile.global.u32 [%rd1], 1;
again:
	ld.volatile.global.u32 %r1, [%rd2];
	setp.eq.u32 %p, %r1, 0;
	@%p bra again;
	ret;
}`

// countingGate is a gate that is always open, and counts.
type countingGate struct {
	mu       sync.Mutex
	inside   int
	most     int // maximum of inside
	busy     time.Duration
	launches uint64
}

func (g *countingGate) Enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside++
	g.most = max(g.most, g.inside)
	return nil
}

func (g *countingGate) Expired() bool { return false }

func (g *countingGate) Leave(busy, launches uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.busy += time.Duration(busy)
	g.launches += launches
}

// meetRig returns a rig with a word for each of n kernels.
func meetRig(t *testing.T, o device.Options, n int, gate worker.Gate) (r *rig, word func(i int) uint64) {
	o.VRAM = 64 << 20
	r = newGatedRig(t, o, gate, meeting)
	words := r.buffer(make([]byte, 4*n))
	r.expect(words, n, func(int) uint32 { return 0 })
	return r, func(i int) uint64 { return words + uint64(4*(i%n)) }
}

func (r *rig) meet(s worker.Stream, mine, other uint64, done func(error)) {
	r.Helper()
	one := [3]uint32{1, 1, 1}
	params := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, mine), other)
	if err := r.c.Launch(s, r.funcs["meet"], worker.Launch{Grid: one, Block: one, Params: params}, done); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) stream() worker.Stream {
	r.Helper()
	s, err := r.c.StreamCreate(worker.StreamNonBlocking, 0)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// TestStreamsRunConcurrently checks that kernels of several streams that
// wait for each other end, with as many processors as kernels, and with fewer.
func TestStreamsRunConcurrently(t *testing.T) {
	for name, c := range map[string]struct{ sms, kernels int }{"side by side": {2, 2}, "in turns": {1, 2}, "many": {2, 7}} {
		t.Run(name, func(t *testing.T) {
			gate := &countingGate{}
			r, word := meetRig(t, device.Options{SMs: c.sms}, c.kernels, gate)
			done := make(chan error, c.kernels)
			began := time.Now()
			for i := range c.kernels {
				r.meet(r.stream(), word(i), word(i+1), func(err error) { done <- err })
			}
			for range c.kernels {
				if err := patience.Receive(t, time.Minute, "a kernel that waits for another ends", done); err != nil {
					t.Fatal(err)
				}
			}
			wall := time.Since(began)
			gate.mu.Lock()
			defer gate.mu.Unlock()
			if gate.inside != 0 || gate.launches != uint64(c.kernels) || gate.busy <= 0 || gate.busy > wall {
				t.Errorf("gate has %d kernels inside, %d launches, %v of device time; want 0, %d, and more than 0 but at most the %v that passed",
					gate.inside, gate.launches, gate.busy, c.kernels, wall)
			}
		})
	}
}

// TestCopiesRunBesideKernels checks that a kernel can wait for a word that is copied in
// another stream.
func TestCopiesRunBesideKernels(t *testing.T) {
	r, word := meetRig(t, device.Options{SMs: 1}, 2, nil)
	done := make(chan error, 1)
	r.meet(r.stream(), word(0), word(1), func(err error) { done <- err })
	copies := r.stream()
	patience.Until(t, time.Minute, "the kernel runs", func() bool {
		got, copied := make([]byte, 4), make(chan error, 1)
		if err := r.c.CopyDtoH(copies, got, word(0), func(err error) { copied <- err }); err != nil {
			t.Fatal(err)
		}
		if err := <-copied; err != nil {
			t.Fatal(err)
		}
		return got[0] == 1
	})
	if err := r.c.CopyHtoD(copies, word(1), []byte{1, 0, 0, 0}, nil); err != nil {
		t.Fatal(err)
	}
	if err := patience.Receive(t, time.Minute, "the kernel sees what was copied", done); err != nil {
		t.Fatal(err)
	}
}

// TestDestroyedContextLeavesProcessors checks that a destroyed context returns its
// processors, and the places of its kernels, to the other contexts of its gate.
func TestDestroyedContextLeavesProcessors(t *testing.T) {
	gate := &countingGate{}
	r, word := meetRig(t, device.Options{SMs: 1}, 2, gate)
	for range 12 { // more than may have begun at a time
		r.meet(r.stream(), word(0), word(1), nil)
	}
	patience.Until(t, time.Minute, "a kernel is on the device", func() bool {
		gate.mu.Lock()
		defer gate.mu.Unlock()
		return gate.inside > 0
	})
	destroyed := make(chan error, 1)
	go func() { destroyed <- r.c.Destroy() }()
	if err := patience.Receive(t, time.Minute, "the context ends", destroyed); err != nil {
		t.Fatal(err)
	}
	gate.mu.Lock()
	defer gate.mu.Unlock()
	if gate.inside != 0 {
		t.Errorf("%d kernels are inside the gate after Destroy, want none", gate.inside)
	}
}
