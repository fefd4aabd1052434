package null

import (
	"context"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// The objects that serve creates for a guest before its ring is executed:
// contexts and modules are created in other goroutines, so commands that follow
// in the ring without waiting would not find them.
const madeContext, madeModule, madeFunction = 1, 20, 10

// whole returns a ring in which a guest uses every kind of command, without
// waiting for answers: commands that depend on one that completes later fail.
func whole() []byte {
	const ctx, stream, event, function = madeContext, 2, 3, madeFunction
	at := abi.Windows()[0].Base // the window that a worker tries first
	l := guesttest.DefaultLayout
	arena := (abi.HeaderSize + l.RingSize + l.Slots*abi.SlotSize + 4*l.Chunks + abi.PageSize - 1) &^ (abi.PageSize - 1)
	var ring []byte
	slot := uint32(0)
	add := func(op abi.Op, args interface{ Append([]byte) []byte }, inline []byte) {
		ring = append(ring, guesttest.Entry(op, 0, slot, args, inline)...)
		slot++
	}
	add(abi.OpCtxCreate, abi.CtxCreate{Ctx: 31}, nil)
	add(abi.OpStreamCreate, abi.StreamCreate{Ctx: ctx, Stream: stream}, nil)
	add(abi.OpEventCreate, abi.EventCreate{Ctx: ctx, Event: event}, nil)
	add(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 4096}, nil)
	add(abi.OpModuleLoad, abi.ModuleLoad{Ctx: ctx, Module: 50, FirstFunction: 40, ImageOff: arena, ImageLen: uint64(len(source)), OutOff: arena + l.ChunkSize, OutLen: 4096}, nil)
	add(abi.OpCopyHtoDInline, abi.CopyHtoDInline{Stream: stream, Dst: at}, []byte("12345678"))
	add(abi.OpCopyDtoD, abi.CopyDtoD{Stream: stream, Dst: at, Src: at + 64, Size: 64}, nil)
	add(abi.OpMemset, abi.Memset{Stream: stream, Dst: at, Width: 4, Count: 16}, nil)
	add(abi.OpLaunch, abi.Launch{Stream: stream, Function: function, GridX: 1, GridY: 1, GridZ: 1, BlockX: 1, BlockY: 1, BlockZ: 1}, make([]byte, 16))
	add(abi.OpEventRecord, abi.EventRecord{Event: event, Stream: stream}, nil)
	add(abi.OpStreamWaitEvent, abi.StreamWaitEvent{Event: event, Stream: stream}, nil)
	add(abi.OpEventSynchronize, abi.EventSynchronize{Event: event}, nil)
	add(abi.OpEventElapsedTime, abi.EventElapsedTime{HStart: event, HEnd: event}, nil)
	add(abi.OpStreamMark, abi.StreamMark{Stream: stream}, nil)
	add(abi.OpStreamSynchronize, abi.StreamSynchronize{Stream: stream}, nil)
	add(abi.OpMemFree, abi.MemFree{Address: at}, nil)
	add(abi.OpStreamDestroy, abi.StreamDestroy{Stream: stream}, nil)
	add(abi.OpEventDestroy, abi.EventDestroy{Event: event}, nil)
	add(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: ctx}, nil)
	return ring
}

// FuzzSession checks that, whatever the ring contains, a worker with a null
// device ends when its guest does, and both the device and the host have all
// memory back.
func FuzzSession(f *testing.F) {
	f.Add(whole())
	f.Add(whole()[:200])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, ring []byte) {
		serve(t, ring, func(g *guesttest.Guest) {
			for i := 0; i < 200 && g.Dead() == nil && g.Shm.Load64(abi.OffTail) != g.Shm.Load64(abi.OffHead); i++ {
				time.Sleep(10 * time.Microsecond)
			}
		})
	})
}

// serve runs a worker with a null device for a guest with the ring, and with the
// source of a module in its first chunk, until during has returned.
func serve(t *testing.T, ring []byte, during func(*guesttest.Guest)) {
	t.Helper()
	const vram = 1 << 30
	d, err := New(Options{VRAM: vram})
	if err != nil {
		t.Fatal(err)
	}
	host := worker.NewLocalHost(worker.Limits{VRAM: vram})
	a, b, err := guesttest.Pair()
	if err != nil {
		t.Fatal(err)
	}
	s, err := worker.NewSession(b, d, host, worker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	g, err := guesttest.Dial(a, 0)
	if err != nil {
		t.Fatal(err)
	}
	copy(g.Shm.Bytes(g.Arena, g.Layout.ChunkSize), source)
	_, _, failed := g.Call(abi.OpCtxCreate, abi.CtxCreate{Ctx: madeContext}, nil)
	if failed == nil {
		_, _, failed = g.Call(abi.OpModuleLoad, abi.ModuleLoad{Ctx: madeContext, Module: madeModule, FirstFunction: madeFunction,
			ImageOff: g.Arena, ImageLen: uint64(len(source)), OutOff: g.Arena + g.Layout.ChunkSize, OutLen: 4096}, nil)
	}
	if failed != nil {
		t.Fatal(failed)
	}
	at := g.Shm.Load64(abi.OffHead)
	g.Shm.Store64(abi.OffHead, at+uint64(copy(g.Shm.Bytes(g.Ring+at, g.Layout.RingSize-at), ring)))
	_ = g.Kick()
	during(g)
	_ = a.CloseWrite()
	_ = patience.Receive(t, 20*time.Second, "the session ends", ended) // without an error or with the ring's error
	g.Close()
	if used := d.(*device).mem.used; used != 0 {
		t.Errorf("%d bytes of device memory in use after the session's end, want 0", used)
	}
	if free, _, _ := host.Memory(); free != vram {
		t.Errorf("%d bytes reserved at the host after the session's end, want 0", vram-free)
	}
}
