package worker_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/abi/carrier"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// died waits for the end of the session with a protocol error.
func (r *rig) died(text string) {
	r.Helper()
	err := r.end()
	var broken *worker.ProtocolError
	if !errors.As(err, &broken) || !strings.Contains(err.Error(), text) {
		r.Errorf("session ended with %v, want a protocol error with %q", err, text)
	}
	var dead *guesttest.ErrDead
	if err := r.Dead(); !errors.As(err, &dead) || dead.Result != abi.ErrIllegalState || !strings.Contains(dead.Text, text) {
		r.Errorf("error in the guest = %v, want %v with %q", err, abi.ErrIllegalState, text)
	}
}

func TestBrokenRingsEndTheSession(t *testing.T) {
	ring := func(entry []byte) func(*rig) {
		return func(r *rig) { r.Put(entry) }
	}
	odd := guesttest.Entry(abi.OpMemInfo, 0, abi.NoSlot, guesttest.None{}, nil)
	binary.LittleEndian.PutUint32(odd, 12)
	for text, c := range map[string]func(*rig){
		"ring head 4611686018427387904":       func(r *rig) { r.Shm.Store64(abi.OffHead, 1<<62); r.Kick() },
		"ring head 4 ":                        func(r *rig) { r.Shm.Store64(abi.OffHead, 4); r.Kick() },
		"truncated ring entry: 8 bytes":       func(r *rig) { r.Shm.Store64(abi.OffHead, r.Shm.Load64(abi.OffTail)+8); r.Kick() },
		"entry of 12 bytes":                   ring(odd),
		"slot 64 is out of range":             ring(guesttest.Entry(abi.OpMemInfo, 0, 64, guesttest.None{}, nil)),
		"has invalid flags 0x80":              ring(guesttest.Entry(abi.OpMemInfo, 0x80, abi.NoSlot, guesttest.None{}, nil)),
		"MemInfo has 24 bytes, want 16":       ring(guesttest.Entry(abi.OpMemInfo, 0, abi.NoSlot, abi.MemFree{}, nil)),
		"MemAlloc does not allow inline data": ring(guesttest.Entry(abi.OpMemAlloc, 0, abi.NoSlot, abi.MemAlloc{}, []byte("xxxxxxxx"))),
		"inline data size of 4104 bytes":      ring(guesttest.Entry(abi.OpCopyHtoDInline, 0, abi.NoSlot, abi.CopyHtoDInline{}, make([]byte, 4104))),
		"message 999":                         func(r *rig) { carrier.Write(r.Conn, carrier.Message{Type: 999}) },
		"message 1": func(r *rig) {
			carrier.Write(r.Conn, carrier.Message{Type: abi.MsgHello, Body: guesttest.Hello().Append(nil)})
		},
		"drop of unknown region 5": func(r *rig) { r.Drop(5) },
		"drop of unknown region 0": func(r *rig) { r.Drop(0) },
		"region number 0":          func(r *rig) { carrier.Write(r.Conn, carrier.Message{Type: abi.MsgRegion, Body: make([]byte, 32)}) },
		"region message has 8 bytes": func(r *rig) {
			carrier.Write(r.Conn, carrier.Message{Type: abi.MsgRegion, Argument: 1, Body: make([]byte, 8)})
		},
		"region 2 already exists": func(r *rig) { r.Region(2, 4096); r.Region(2, 4096) },
		"magic":                   func(r *rig) { r.Conn.Write(make([]byte, 16)) },
	} {
		t.Run(text, func(t *testing.T) {
			r := newRig(t, fakedriver.Options{}, 0)
			ctx := r.context()
			r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20}) // must be freed
			c(r)
			r.died(text)
		})
	}
}

func TestUnknownCommandIsItsOwnError(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	r.fails(abi.ErrNotSupported, 999, guesttest.None{})
	r.context()
}

func TestInvalidHandlesAndRanges(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	module, f := r.module(ctx, "nop")
	address, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 4096})
	for i, c := range []struct {
		want abi.Result
		op   abi.Op
		a    guesttest.Args
	}{
		{abi.ErrInvalidHandle, abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: 0}},
		{abi.ErrInvalidHandle, abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: module}},
		{abi.ErrInvalidHandle, abi.OpCtxCreate, abi.CtxCreate{Ctx: ctx}},
		{abi.ErrInvalidHandle, abi.OpCtxCreate, abi.CtxCreate{Ctx: 0}},
		{abi.ErrInvalidHandle, abi.OpStreamCreate, abi.StreamCreate{Ctx: ctx, Stream: f}},
		{abi.ErrInvalidHandle, abi.OpModuleUnload, abi.ModuleUnload{Module: f}},
		{abi.ErrInvalidHandle, abi.OpEventRecord, abi.EventRecord{Event: f, Stream: ctx}},
		{abi.ErrInvalidHandle, abi.OpStreamDestroy, abi.StreamDestroy{Stream: ctx}},
		{abi.ErrInvalidValue, abi.OpMemFree, abi.MemFree{Address: address + 1}},
		{abi.ErrInvalidValue, abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx}},
		{abi.ErrOutOfMemory, abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: vram}},
		{abi.ErrOutOfMemory, abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1<<64 - 1}},
		{abi.ErrInvalidValue, abi.OpCopyHtoD, abi.CopyHtoD{Stream: ctx, Dst: address, SrcOff: r.Shm.Size(), SrcLen: 1}},
		{abi.ErrInvalidValue, abi.OpCopyHtoD, abi.CopyHtoD{Stream: ctx, Dst: address, SrcOff: 1<<64 - 1, SrcLen: 2}},
		{abi.ErrInvalidValue, abi.OpCopyHtoD, abi.CopyHtoD{Stream: ctx, Dst: address, SrcRegion: 9, SrcLen: 1}},
		{abi.ErrInvalidValue, abi.OpCopyDtoH, abi.CopyDtoH{Stream: ctx, Src: address, DstOff: 0, DstLen: 4096}}, // the header
		{abi.ErrInvalidValue, abi.OpMemset, abi.Memset{Stream: ctx, Dst: address, Count: 1, Width: 3}},
		{abi.ErrInvalidValue, abi.OpMemset, abi.Memset{Stream: ctx, Dst: address, Count: 1 << 63, Width: 4}},
		{abi.ErrInvalidImage, abi.OpModuleLoad, abi.ModuleLoad{Ctx: ctx, Module: r.Handle(), FirstFunction: r.Handle(), ImageLen: abi.MaxModuleImage + 1}},
		{abi.ErrInvalidValue, abi.OpModuleLoadManaged, abi.ModuleLoadManaged{Ctx: ctx, Module: r.Handle(), FirstFunction: r.Handle()}},
		{abi.ErrInvalidValue, abi.OpModuleLoadManaged, abi.ModuleLoadManaged{Ctx: ctx, Module: r.Handle(), FirstFunction: r.Handle(), Managed: address, ManagedLen: 1}},
	} {
		if _, _, err := r.Call(c.op, c.a, nil); !errors.Is(err, c.want) {
			t.Errorf("case %d, %v: %v, want %v", i, c.op, err, c.want)
		}
	}
	r.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx}) // none of the errors is sticky
}

func TestLateErrorWithoutSlot(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	if err := r.launch(ctx, 12345); err != nil {
		t.Fatal(err)
	}
	r.fails(abi.ErrInvalidHandle, abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
	r.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx}) // reported once
}

func TestAsynchronousErrorSticksToItsContext(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx, other := r.context(), r.context()
	_, f := r.module(ctx, "fault")
	r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	if err := r.launch(ctx, f); err != nil {
		t.Fatal(err)
	}
	r.fails(abi.ErrIllegalAddress, abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
	r.fails(abi.ErrIllegalAddress, abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1})
	if got := abi.Result(r.Shm.Load32(abi.OffAsyncError)); got != abi.ErrIllegalAddress {
		t.Errorf("asynchronous error in the header = %v, want %v", got, abi.ErrIllegalAddress)
	}
	if got := r.Shm.Load32(abi.OffAsyncCount); got != 1 {
		t.Errorf("failed contexts in the header = %d, want 1", got)
	}
	r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: other, Size: 1})
	if _, _, err := r.Call(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: ctx}, nil); err != nil {
		t.Error(err)
	}
	free, total, _ := r.host.Memory()
	if total-free != worker.AllocUnit {
		t.Errorf("%d bytes reserved after the context was destroyed, want %d", total-free, worker.AllocUnit)
	}
}

func TestModuleErrors(t *testing.T) {
	r := newRig(t, fakedriver.Options{Global: 1 << 20}, 0)
	ctx := r.context()
	load := func(image string, out uint64, flags uint16) (uint64, error) {
		copy(r.Shm.Bytes(r.Arena, r.Layout.ChunkSize), image)
		n, _, err := r.CallFlags(abi.OpModuleLoad, flags, abi.ModuleLoad{
			Ctx: ctx, Module: r.Handle(), FirstFunction: r.Handles(16), ImageOff: r.Arena, ImageLen: uint64(len(image)),
			OutOff: r.Arena + r.Layout.ChunkSize, OutLen: out,
		}, nil)
		return n, err
	}
	r.Shm.Store32(r.ChunkState, abi.ChunkBusy)
	n, err := load("nonsense", 4096, abi.FlagReleaseChunks)
	info, decode := abi.DecodeModuleInfo(r.Shm.Bytes(r.Arena+r.Layout.ChunkSize, n))
	if !errors.Is(err, abi.ErrInvalidPTX) || decode != nil || info.ErrorLog != "no kernel is called nonsense" {
		t.Errorf("load of a bad image = %v, %+v, %v, want %v and the log", err, info, decode, abi.ErrInvalidPTX)
	}
	if r.Shm.Load32(r.ChunkState) != abi.ChunkFree {
		t.Error("the failed command did not free its chunk")
	}
	n, err = load("nonsense", 40, 0)
	info, decode = abi.DecodeModuleInfo(r.Shm.Bytes(r.Arena+r.Layout.ChunkSize, n))
	if !errors.Is(err, abi.ErrInvalidPTX) || decode != nil || n > 40 || info.ErrorLog == "" || !strings.HasPrefix("no kernel is called nonsense", info.ErrorLog) {
		t.Errorf("load of a bad image with room for 40 bytes = %v, %d bytes, %+v, %v; want %v and a truncated log", err, n, info, decode, abi.ErrInvalidPTX)
	}
	if n, err = load("nop store", 20, 0); !errors.Is(err, abi.ErrInvalidValue) || n < 100 {
		t.Errorf("load with room for 20 bytes = %v, %d bytes needed, want %v and at least 100", err, n, abi.ErrInvalidValue)
	}
	if n, err = load("global", 20, 0); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("load of a module with a global = %v, %d bytes needed, want %v", err, n, abi.ErrInvalidValue)
	}
	r.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
	if free, _, _ := r.host.Memory(); free != vram || r.driver.Used() != 0 {
		t.Errorf("%d of %d bytes free at the host, %d used on the device; want all free", free, vram, r.driver.Used())
	}
	if _, err = load("global nop", 4096, 0); err != nil {
		t.Fatal(err)
	}
	if free, _, _ := r.host.Memory(); free != vram-1<<20 {
		t.Errorf("%d bytes free, want %d: the global counts", free, vram-1<<20)
	}
}

func TestDriverOutOfMemory(t *testing.T) {
	r := newRig(t, fakedriver.Options{FailAlloc: func() error { return abi.ErrOutOfMemory }}, 0)
	ctx := r.context()
	r.fails(abi.ErrOutOfMemory, abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 4096})
	if free, _, _ := r.host.Memory(); free != vram {
		t.Errorf("%d of %d bytes free, want all", free, vram)
	}
}

func TestFreedMemoryIsReturned(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	for range 20 { // each allocates the whole vGPU
		address, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: vram})
		if free, total := r.call(abi.OpMemInfo, guesttest.None{}); free != 0 || total != vram {
			t.Errorf("MemInfo = %d free of %d, want 0 of %d", free, total, vram)
		}
		r.call(abi.OpMemFree, abi.MemFree{Address: address})
	}
}

func TestHangingKernelEndsWithTheGuest(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	_, f := r.module(ctx, "hang")
	r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	if err := r.launch(ctx, f); err != nil {
		t.Fatal(err)
	}
	r.Close() // as when the guest is killed
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

func TestLostVGPUWakesWaiters(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	_, f := r.module(ctx, "hang")
	if err := r.launch(ctx, f); err != nil {
		t.Fatal(err)
	}
	slot, err := r.Start(abi.OpCtxSynchronize, 0, abi.CtxSynchronize{Ctx: ctx}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.host.Lose()
	var dead *guesttest.ErrDead
	if _, _, err := r.Wait(slot); !errors.As(err, &dead) || dead.Result != abi.ErrUnavailable {
		// The kernel's end may have completed the slot before the death was seen.
		if r.end(); r.Dead() == nil {
			t.Errorf("launch = %v, and the session did not end", err)
		}
	}
	if err := r.end(); !errors.Is(err, abi.ErrUnavailable) {
		t.Error(err)
	}
}

func TestWakeByMessage(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, abi.HelloWakeByMessage)
	ctx := r.context()
	_, f := r.module(ctx, "sleep")
	var slot uint32
	for sleep := 20 * time.Millisecond; ; sleep *= 4 { // increase until the kernel is slower than this machine
		if err := r.launch(ctx, f, uint64(sleep)); err != nil {
			t.Fatal(err)
		}
		var err error
		if slot, err = r.Start(abi.OpCtxSynchronize, 0, abi.CtxSynchronize{Ctx: ctx}, nil); err != nil {
			t.Fatal(err)
		}
		if r.Shm.CAS32(r.Slots+uint64(slot)*abi.SlotSize, abi.SlotPending, abi.SlotSleeping) {
			break
		}
		if _, _, err := r.Wait(slot); err != nil {
			t.Fatal(err)
		}
		if sleep > 10*time.Second {
			t.Fatalf("no kernel up to %v was slower than this machine", sleep)
		}
	}
	if m, err := r.Receive(); err != nil || m.Type != abi.MsgWake {
		t.Fatalf("message = %+v, %v, want a wake-up", m, err)
	}
	if _, _, err := r.Wait(slot); err != nil {
		t.Error(err)
	}
	// A region in use is removed when it is no longer used, and the guest is
	// told.
	if _, err := r.Region(1, 4096); err != nil {
		t.Fatal(err)
	}
	address, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 4096})
	r.launch(ctx, f, uint64(20*time.Millisecond))
	r.Send(abi.OpCopyHtoD, abi.CopyHtoD{Stream: ctx, Dst: address, SrcLen: 4096, SrcRegion: 1}, nil)
	r.Drop(1)
	for {
		m, err := r.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if m.Type == abi.MsgDropped && m.Argument == 1 {
			break
		}
	}
	r.fails(abi.ErrInvalidValue, abi.OpCopyHtoD, abi.CopyHtoD{Stream: ctx, Dst: address, SrcLen: 1, SrcRegion: 1})
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		want  abi.Result
		hello func(*abi.Hello)
		seals int
		spoil func(*guesttest.Guest)
	}{
		"newer minor": {abi.ErrDriverMismatch, func(h *abi.Hello) { h.Minor++ }, unix.F_SEAL_SHRINK, nil},
		"other major": {abi.ErrDriverMismatch, func(h *abi.Hello) { h.Major++ }, unix.F_SEAL_SHRINK, nil},
		"not sealed":  {abi.ErrInvalidValue, nil, unix.F_SEAL_GROW, nil},
		"bad layout": {abi.ErrInvalidValue, nil, unix.F_SEAL_SHRINK, func(g *guesttest.Guest) {
			g.Shm.Store64(abi.OffRingSize, 1<<40)
		}},
	} {
		a, b, err := guesttest.Pair()
		if err != nil {
			t.Fatal(err)
		}
		s, err := worker.NewSession(b, fakedriver.New(fakedriver.Options{}), worker.NewLocalHost(worker.Limits{VRAM: 1}), worker.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Run(context.Background()) }()
		g, fd, err := guesttest.Prepare(a, guesttest.DefaultLayout)
		if err != nil {
			t.Fatal(err)
		}
		if c.seals != unix.F_SEAL_SHRINK {
			unix.Close(fd)
			if fd, err = guesttest.Memory(g.Shm.Size(), c.seals); err != nil {
				t.Fatal(err)
			}
		}
		if c.spoil != nil {
			c.spoil(g)
		}
		h := guesttest.Hello()
		if c.hello != nil {
			c.hello(&h)
		}
		var refused *guesttest.Refused
		if err := g.Announce(h, 0, fd); !errors.As(err, &refused) || refused.Result != c.want {
			t.Errorf("%s: announcement = %v, want a refusal with %v", name, err, c.want)
		}
		if err := <-ended; err == nil {
			t.Errorf("%s: session ended without an error", name)
		}
		unix.Close(fd)
		g.Close()
	}
}

// TestTruncatedMemoryEndsTheSession checks that shared memory that is truncated
// ends the session, not the process. Only the device (HelloWakeByMessage) may
// provide unsealed memory.
func TestTruncatedMemoryEndsTheSession(t *testing.T) {
	a, b, err := guesttest.Pair()
	if err != nil {
		t.Fatal(err)
	}
	s, err := worker.NewSession(b, fakedriver.New(fakedriver.Options{}), worker.NewLocalHost(worker.Limits{VRAM: 1}), worker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	g, fd, err := guesttest.Prepare(a, guesttest.DefaultLayout)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	header := make([]byte, abi.HeaderSize)
	copy(header, g.Shm.Bytes(0, abi.HeaderSize))
	unix.Close(fd)
	if fd, err = guesttest.Memory(g.Shm.Size(), 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.Pwrite(fd, header, 0); err != nil {
		t.Fatal(err)
	}
	body := abi.Region{Size: g.Shm.Size(), Extents: []abi.Extent{{Length: g.Shm.Size()}}}.Append(nil)
	carrier.Write(a, carrier.Message{Type: abi.MsgHello, Argument: abi.HelloWakeByMessage, Body: guesttest.Hello().Append(nil)})
	carrier.Write(a, carrier.Message{Type: abi.MsgRegion, Body: body, FDs: []int{fd}})
	if m, err := g.Receive(); err != nil || m.Type != abi.MsgReady {
		t.Fatalf("message = %+v, %v, want ready", m, err)
	}
	if err := unix.Ftruncate(fd, 0); err != nil {
		t.Fatal(err)
	}
	if err := patience.Receive(t, 30*time.Second, "the session ends", ended); err == nil || !strings.Contains(err.Error(), "access to shared memory failed") {
		t.Errorf("session ended with %v, want a failed access to shared memory", err)
	}
	for {
		if _, err := g.Receive(); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			return
		}
	}
}

// TestManyThreadsAndAHostileHeader makes calls from several threads of a guest
// while another overwrites the layout words of the header: the worker has copied
// them and does not read them again.
func TestManyThreadsAndAHostileHeader(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	stop := make(chan struct{})
	var hostile, threads sync.WaitGroup
	hostile.Go(func() {
		for i := uint64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
				for off := uint64(abi.OffMagic); off < abi.OffHead; off += 8 {
					r.Shm.Store64(off, i*0x9e3779b97f4a7c15)
				}
				runtime.Gosched()
			}
		}
	})
	for i := range 8 {
		threads.Go(func() {
			address, _, err := r.Call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 4096}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			at := r.Arena + uint64(i)*r.Layout.ChunkSize
			for n := range uint64(200) {
				if err := r.Send(abi.OpCopyHtoDInline, abi.CopyHtoDInline{Stream: ctx, Dst: address}, binary.LittleEndian.AppendUint64(nil, n)); err != nil {
					t.Error(err)
					return
				}
				if _, _, err := r.Call(abi.OpCopyDtoH, abi.CopyDtoH{Stream: ctx, Src: address, DstOff: at, DstLen: 8}, nil); err != nil {
					t.Error(err)
					return
				}
				if got := r.Shm.Load64(at); got != n {
					t.Errorf("thread %d: counter = %d, want %d", i, got, n)
					return
				}
			}
		})
	}
	threads.Wait()
	close(stop)
	hostile.Wait()
}

func TestBackpressure(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	_, f := r.module(ctx, "sleep nop")
	if err := r.launch(ctx, f, uint64(100*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for range 20_000 { // more than the driver is given at a time, and than the ring has room for
		if err := r.launch(ctx, f+1); err != nil {
			t.Fatal(err)
		}
	}
	r.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
	r.Close()
	r.end()
	if got := r.host.Totals().Launches; got != 20_001 {
		t.Errorf("%d launches counted, want 20001", got)
	}
}

func TestSessionsLeaveNothingBehind(t *testing.T) {
	count := func() (files, goroutines int) {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list), runtime.NumGoroutine()
	}
	maps := func() int {
		b, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "memfd:guest")
	}
	n := 1000
	if testing.Short() {
		n = 50
	}
	files, goroutines := count()
	mappings := maps()
	for range n {
		t.Run("", func(t *testing.T) {
			r := newRig(t, fakedriver.Options{}, 0)
			ctx := r.context()
			r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 4096})
			m, err := r.Region(1, 4096)
			if err != nil {
				t.Fatal(err)
			}
			m.Close()
		})
	}
	for i := 0; ; i++ {
		f, g := count()
		if f <= files && g <= goroutines && maps() <= mappings {
			break
		}
		if i > 100 {
			t.Fatalf("%d descriptors and %d goroutines before, %d and %d after, with %d mappings; want no more than before", files, goroutines, f, g, maps())
		}
		time.Sleep(50 * time.Millisecond)
	}
}
