package gpud_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud"
	"github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

const mib = 1 << 20

// overcommitted returns a gpud with a soft card of 64 MiB and as much host memory for
// swap.
func overcommitted(t testing.TB) *testNode {
	n := newTestNode(t)
	n.stop()
	n.cfg.SoftGPUs = []gpud.SoftGPU{{Name: "soft0", VRAM: 64 * mib, SMs: 2}}
	n.cfg.SwapBytes = 64 * mib
	n.start()
	return n
}

// softCard returns the device that workers in this process share: it has 64 MiB,
// plus a little for rounding, and refuses to allocate more.
func softCard(t testing.TB) worker.Driver {
	t.Helper()
	d, err := device.New(device.Options{VRAM: 64*mib + 16<<10, SMs: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// program is a CUDA program on a vGPU, with its worker: it computes numbers[i] +=
// i repeatedly, over all of its memory.
type program struct {
	*guesttest.Guest
	t           testing.TB
	host        *client.Host
	ctx, add    uint64
	at, numbers uint64 // the running sums, and what is added to them
	n           uint32
	ended       chan error
}

func (n *testNode) program(t testing.TB, card worker.Driver, vgpu string, bytes int) *program {
	t.Helper()
	a, b, err := guesttest.Pair()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, host: n.dial(vgpu), n: uint32(bytes / 8), ended: make(chan error, 1)}
	s, err := worker.NewSession(b, card, p.host, worker.Options{Log: n.cfg.Log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { p.ended <- s.Run(ctx) }()
	if p.Guest, err = guesttest.Dial(a, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(); cancel(); <-p.ended })
	p.ctx = p.Handle()
	p.call(abi.OpCtxCreate, abi.CtxCreate{Ctx: p.ctx})
	image := append([]byte(drivertest.Kernels), 0)
	copy(p.Shm.Bytes(p.Arena, uint64(len(image))), image)
	out := p.Arena + 16<<10
	module, first := p.Handle(), p.Handles(8)
	if module > first {
		module = p.Handle()
	}
	p.call(abi.OpModuleLoad, abi.ModuleLoad{Ctx: p.ctx, Module: module, FirstFunction: first, ImageOff: p.Arena, ImageLen: uint64(len(image)), OutOff: out, OutLen: 8 << 10})
	info, err := abi.DecodeModuleInfo(p.Shm.Bytes(out, 8<<10))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range info.Functions {
		if f.Name == "add" {
			p.add = first + uint64(i)
		}
	}
	p.at, p.numbers = p.alloc(4*uint64(p.n)), p.alloc(4*uint64(p.n))
	p.call(abi.OpMemset, abi.Memset{Stream: p.ctx, Dst: p.numbers, Value: uint32(len(vgpu)) + 2, Width: 4, Count: uint64(p.n)})
	return p
}

func (p *program) call(op abi.Op, a guesttest.Args) uint64 {
	p.t.Helper()
	v, _, err := p.Call(op, a, nil)
	if err != nil {
		p.t.Fatalf("call %v: %v", op, err)
	}
	return v
}

func (p *program) alloc(bytes uint64) uint64 {
	p.t.Helper()
	return p.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: p.ctx, Size: bytes})
}

// step adds once; it returns when the device has finished.
func (p *program) step() error {
	params := binary.LittleEndian.AppendUint64(nil, p.at)
	params = binary.LittleEndian.AppendUint64(params, p.numbers)
	params = binary.LittleEndian.AppendUint64(params, p.at)
	params = binary.LittleEndian.AppendUint32(params, p.n)
	l := abi.Launch{Stream: p.ctx, Function: p.add, GridX: (p.n + 255) / 256, GridY: 1, GridZ: 1, BlockX: 256, BlockY: 1, BlockZ: 1}
	if err := p.Send(abi.OpLaunch, l, params); err != nil {
		return err
	}
	_, _, err := p.Call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: p.ctx}, nil)
	return err
}

// check reads some of the numbers: each must be the sum of this many steps.
func (p *program) check(steps uint32, each uint32) {
	p.t.Helper()
	for i := range uint64(64) {
		at := p.at + i*(4*uint64(p.n)-4)/63/4*4
		p.call(abi.OpCopyDtoH, abi.CopyDtoH{Stream: p.ctx, Src: at, DstOff: p.Arena, DstLen: 4})
		if got := binary.LittleEndian.Uint32(p.Shm.Bytes(p.Arena, 4)); got != steps*each {
			p.t.Fatalf("number at %#x is %d after %d steps, want %d", at, got, steps, steps*each)
		}
	}
}

// TestTwoProgramsOvercommit checks that two programs whose memory
// does not fit together both complete with the right sums, on a card whose
// capacity is never exceeded.
func TestTwoProgramsOvercommit(t *testing.T) {
	n := overcommitted(t)
	n.put("a", 50*mib, 0)
	n.put("b", 50*mib, 0)
	card := softCard(t)
	swapped := func() bool {
		all, err := n.control.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if g := all.GPUs[0]; g.VRAMUsed-g.VRAMSwapped > g.VRAMBytes {
			t.Errorf("%d bytes on a card of %d bytes, want at most its size", g.VRAMUsed-g.VRAMSwapped, g.VRAMBytes)
		}
		return all.VGPUs[0].Usage.SwapInBytes > 60*mib && all.VGPUs[1].Usage.SwapInBytes > 60*mib
	}
	run := func(vgpu string, each uint32) func() error {
		p := n.program(t, card, vgpu, 40*mib)
		return func() error {
			steps := uint32(0)
			for w := patience.Start(); steps < 20 || !swapped(); steps++ {
				if w.Over(time.Minute) {
					return errors.New("not swapped within a minute")
				}
				if err := p.step(); err != nil {
					return fmt.Errorf("%s: %w", vgpu, err)
				}
			}
			p.check(steps, each)
			return nil
		}
	}
	a, b := run("a", 3), run("b", 3)
	done := make(chan error)
	go func() { done <- a() }()
	if err := errors.Join(b(), <-done); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if u := n.vgpu(id).Usage; u.SwapOutBytes < u.SwapInBytes || u.SwapInBytes == 0 {
			t.Errorf("usage of %s = %+v, want swapped out >= swapped in > 0", id, u)
		}
	}
}

// TestProgramsThatFitAreNotSwapped checks that programs which fit together are
// not swapped.
func TestProgramsThatFitAreNotSwapped(t *testing.T) {
	n := overcommitted(t)
	n.put("a", 50*mib, 0)
	n.put("b", 50*mib, 0)
	card := softCard(t)
	a, b := n.program(t, card, "a", 28*mib), n.program(t, card, "b", 28*mib)
	for range 20 {
		if err := errors.Join(a.step(), b.step()); err != nil {
			t.Fatal(err)
		}
	}
	a.check(20, 3)
	b.check(20, 3)
	if u := n.vgpu("a").Usage; u.SwapOutBytes+u.SwapInBytes != 0 {
		t.Errorf("usage = %+v, want nothing swapped", u)
	}
}

// TestSwapBudget checks that without a swap budget no VRAM is allocated twice,
// and with one no more than the budget.
func TestSwapBudget(t *testing.T) {
	n := overcommitted(t)
	n.put("a", 64*mib, 0)
	n.put("b", 60*mib, 0)
	put := func(id string, bytes uint64) error {
		_, err := n.control.PutVGPU(t.Context(), id, wire.VGPUSpec{GPU: "soft0", VRAMBytes: bytes})
		return err
	}
	if err := put("c", 5*mib); code(err) != "does-not-fit vram" {
		t.Errorf("put over the capacity with swap = %v, want does-not-fit vram", err)
	}
	if err := put("b", 65*mib); code(err) != "does-not-fit vram" {
		t.Errorf("put of more than the card's VRAM = %v, want does-not-fit vram", err)
	}
	if err := n.control.PutGPU(t.Context(), "soft0", wire.GPUSpec{}); err != nil {
		t.Fatal(err)
	}
	n.stop()
	n.start() // the settings are stored
	if err := put("b", 60*mib); err != nil {
		t.Errorf("put of an existing vGPU after the budget was reduced = %v, want no error", err)
	}
	if err := put("c", mib); code(err) != "does-not-fit vram" {
		t.Errorf("error = %v, want does-not-fit of vram", err)
	}
	a, b := n.dial("a"), n.dial("b")
	if err := a.Reserve(60 * mib); err != nil {
		t.Fatal(err)
	}
	if err := b.Reserve(5 * mib); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("reserve over what the vGPUs may have together = %v, want %v", err, abi.ErrOutOfMemory)
	}
	if err := n.control.PutGPU(t.Context(), "none", wire.GPUSpec{}); code(err) != "not-found " {
		t.Errorf("error = %v, want not-found", err)
	}
}

// TestOldWorkersArePinned checks that a worker which cannot evict keeps its
// memory: others have what is left.
func TestOldWorkersArePinned(t *testing.T) {
	n := overcommitted(t)
	n.put("a", 50*mib, 0)
	n.put("b", 50*mib, 0)
	a, b := n.dial("a"), n.dial("b")
	if err := a.Reserve(40 * mib); err != nil {
		t.Fatal(err)
	}
	if err := b.Reserve(40 * mib); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("error = %v, want %v", err, abi.ErrOutOfMemory)
	}
	if err := b.Reserve(20 * mib); err != nil {
		t.Error(err)
	}
}

// evictor is a worker whose memory is swapped when the test lets it.
type evictor struct {
	*client.Host
	asked chan uint64
	moved chan error
}

func (n *testNode) evictor(vgpu string) *evictor {
	e := &evictor{Host: n.dial(vgpu), asked: make(chan uint64, 8), moved: make(chan error, 8)}
	e.Evictable(func(bytes uint64) (uint64, error) {
		e.asked <- bytes
		if err := <-e.moved; err != nil {
			return 0, err
		}
		return bytes, nil
	})
	return e
}

func resident(t *testing.T, n *testNode, id string) uint64 {
	t.Helper()
	v := n.vgpu(id)
	return v.VRAMUsed - v.VRAMSwapped
}

// TestGrowWaitsForWhatLeaves checks that memory which is being evicted is not
// granted before it has left the card, whatever else happens on the card in the
// meantime.
func TestGrowWaitsForWhatLeaves(t *testing.T) {
	n := overcommitted(t)
	n.put("a", 50*mib, 0)
	n.put("b", 50*mib, 0)
	a, b := n.evictor("a"), n.dial("b")
	if err := a.Reserve(40 * mib); err != nil {
		t.Fatal(err)
	}
	reserved := make(chan error, 1)
	go func() { reserved <- b.Reserve(40 * mib) }()
	<-a.asked
	a.Release(mib)
	if _, _, err := a.Memory(); err != nil { // the release has arrived
		t.Fatal(err)
	}
	if used := n.vgpu("b").VRAMUsed; used != 0 {
		t.Errorf("%d bytes were granted to b while the memory of a is still on the card", used)
	}
	a.moved <- nil
	if err := <-reserved; err != nil {
		t.Fatal(err)
	}
	if used := resident(t, n, "a") + resident(t, n, "b"); used > 64*mib {
		t.Errorf("%d bytes on the card, want at most %d", used, 64*mib)
	}
}

// TestGpudRestartsWhileEvicting checks that the next gpud learns what has been
// evicted.
func TestGpudRestartsWhileEvicting(t *testing.T) {
	n := overcommitted(t)
	n.put("a", 50*mib, 0)
	n.put("b", 50*mib, 0)
	a, b := n.evictor("a"), n.evictor("b")
	if err := a.Reserve(40 * mib); err != nil {
		t.Fatal(err)
	}
	reserved := make(chan error, 1)
	go func() { reserved <- b.Reserve(40 * mib) }()
	if want := <-a.asked; want != 16*mib {
		t.Errorf("asked to evict %d bytes, want %d", want, 16*mib)
	}
	n.stop()
	a.moved <- nil
	n.start()
	inB, left := uint64(40*mib), uint64(24*mib) // of b, on the card
	select {
	case err := <-reserved:
		if err != nil {
			t.Fatal(err)
		}
	case <-b.asked: // it reconnected before a, which could not be asked to make room
		b.moved <- nil
		if err := <-reserved; err != nil {
			t.Fatal(err)
		}
		inB, left = 0, 0
	}
	eventually(t, "the new gpud knows what is where", func() bool {
		return resident(t, n, "a") == 24*mib && resident(t, n, "b") == inB
	})
	// a comes in again when b has evicted enough.
	lease := make(chan error, 1)
	go func() { _, err := a.Acquire(t.Context()); lease <- err }()
	if inB > 0 {
		if want := <-b.asked; want != 16*mib {
			t.Errorf("b was asked to evict %d bytes, want %d", want, 16*mib)
		}
		b.moved <- nil
	}
	if err := <-lease; err != nil {
		t.Fatal(err)
	}
	a.Restored(nil)
	eventually(t, "what came back is counted", func() bool { return n.vgpu("a").Usage.SwapInBytes == 16*mib })
	if resident(t, n, "a") != 40*mib || resident(t, n, "b") != left {
		t.Errorf("resident: %d and %d bytes, want %d and %d", resident(t, n, "a"), resident(t, n, "b"), 40*mib, left)
	}
}

// TestWorkerDiesWhileItsMemoryMoves checks that a worker which dies while it
// evicts, or while it holds the card for its restore, does not block the others.
func TestWorkerDiesWhileItsMemoryMoves(t *testing.T) {
	n := overcommitted(t)
	n.put("a", 50*mib, 0)
	n.put("b", 50*mib, 0)
	a, b := n.evictor("a"), n.evictor("b")
	if err := a.Reserve(40 * mib); err != nil {
		t.Fatal(err)
	}
	reserved := make(chan error, 1)
	go func() { reserved <- b.Reserve(40 * mib) }()
	<-a.asked
	closed := make(chan error, 1)
	go func() { closed <- a.Close() }()
	if err := <-reserved; err != nil {
		t.Fatal(err)
	}
	a.moved <- nil
	<-closed
	if resident(t, n, "b") != 40*mib || n.vgpu("a").VRAMUsed != 0 {
		t.Errorf("b has %d bytes on the card, want %d; vGPU a = %+v, want no VRAM used", resident(t, n, "b"), 40*mib, n.vgpu("a"))
	}
}

// TestRestoreFails checks that a failed restore leaves the card to others and is
// tried again, and that a session whose restores always fail is ended.
func TestRestoreFails(t *testing.T) {
	n := overcommitted(t)
	n.put("a", 50*mib, 0)
	n.put("b", 50*mib, 0)
	a, b := n.evictor("a"), n.evictor("b")
	if err := a.Reserve(40 * mib); err != nil {
		t.Fatal(err)
	}
	a.moved <- nil
	for range cap(b.moved) {
		b.moved <- nil
	}
	if err := b.Reserve(40 * mib); err != nil {
		t.Fatal(err)
	}
	tries := 0
	for ; tries < 100; tries++ {
		if _, err := a.Acquire(t.Context()); err != nil {
			break
		}
		a.Restored(abi.ErrOutOfMemory)
		a.Yield()
	}
	if tries < 2 || tries > 50 {
		t.Errorf("session ended after %d attempts to restore, want 2 to 50", tries)
	}
	if _, err := b.Acquire(t.Context()); err != nil {
		t.Errorf("acquire of the other session = %v, want no error", err)
	}
}
