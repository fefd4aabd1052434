package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// graphCommands returns commands that create, launch and destroy a graph whose
// record follows them in the ring.
func graphCommands() []byte {
	var b []byte
	for range 2 { // in the second pass their length is known
		end := uint64(abi.HeaderSize + len(b))
		b = guesttest.Entry(abi.OpCtxCreate, 0, 0, abi.CtxCreate{Ctx: 1}, nil)
		b = append(b, guesttest.Entry(abi.OpEventCreate, 0, abi.NoSlot, abi.EventCreate{Ctx: 1, Event: 3}, nil)...)
		b = append(b, guesttest.Entry(abi.OpGraphInstantiate, 0, 1, abi.GraphInstantiate{Ctx: 1, Exec: 2, NodesOff: end, NodesLen: 4096}, nil)...)
		b = append(b, guesttest.Entry(abi.OpGraphUpdate, 0, abi.NoSlot, abi.GraphUpdate{Exec: 2, NodesOff: end, NodesLen: 4096}, nil)...)
		b = append(b, guesttest.Entry(abi.OpGraphLaunch, 0, abi.NoSlot, abi.GraphLaunch{Stream: 1, Exec: 2}, nil)...)
		b = append(b, guesttest.Entry(abi.OpGraphDestroy, 0, 2, abi.GraphDestroy{Exec: 2}, nil)...)
	}
	return b
}

// FuzzRing checks that, whatever the ring and the words that the guest writes
// contain, the worker neither panics nor hangs, and frees all memory.
func FuzzRing(f *testing.F) {
	// Context 1 exists already: one that the ring creates would be too late for the
	// following commands.
	good := guesttest.Entry(abi.OpCtxCreate, 0, 0, abi.CtxCreate{Ctx: 9}, nil)
	good = append(good, guesttest.Entry(abi.OpMemAlloc, 0, 1, abi.MemAlloc{Ctx: 1, Size: 4096}, nil)...)
	good = append(good, guesttest.Entry(abi.OpStreamCreate, 0, 2, abi.StreamCreate{Ctx: 1, Stream: 2}, nil)...)
	good = append(good, guesttest.Entry(abi.OpEventCreate, 0, abi.NoSlot, abi.EventCreate{Ctx: 1, Event: 3}, nil)...)
	good = append(good, guesttest.Entry(abi.OpEventRecord, 0, abi.NoSlot, abi.EventRecord{Event: 3, Stream: 2}, nil)...)
	good = append(good, guesttest.Entry(abi.OpStreamMark, 0, 4, abi.StreamMark{Stream: 2}, nil)...)
	good = append(good, guesttest.Entry(abi.OpCtxDestroy, 0, 3, abi.CtxDestroy{Ctx: 1}, nil)...)
	f.Add(good, uint64(len(good)), []byte{}, uint64(0))
	f.Add([]byte{}, uint64(1)<<63, []byte("carrier"), uint64(1)<<40)
	copies := guesttest.Entry(abi.OpCtxCreate, 0, 0, abi.CtxCreate{Ctx: 9}, nil)
	copies = append(copies, guesttest.Entry(abi.OpCopyHtoD, 1, 1, abi.CopyHtoD{Stream: 1, SrcOff: 1 << 20, SrcLen: 1 << 62}, nil)...)
	copies = append(copies, guesttest.Entry(abi.OpModuleLoad, 0, 2, abi.ModuleLoad{Ctx: 1, Module: 7, FirstFunction: 8, ImageLen: 100, OutLen: 1 << 63}, nil)...)
	f.Add(copies, uint64(len(copies)), abi.CarrierHeader{Type: abi.MsgRegion, Length: 32, Argument: 1}.Append(nil), uint64(64))
	graph := graphCommands()
	f.Add(append(graph, abi.AppendGraphRecord(nil, []abi.GraphNode{
		{Kind: abi.GraphNodeMemset, Body: abi.GraphMemset{Value: 1, Width: 1, Dst: 1 << 40, Pitch: 8, Columns: 4, Rows: 3}},
		{Kind: abi.GraphNodeEmpty}, {Kind: abi.GraphNodeEmpty, Deps: []uint32{0, 1}},
		{Kind: abi.GraphNodeEventRecord, Deps: []uint32{2}, Body: abi.GraphEvent(3)},
	})...), uint64(len(graph)), []byte{}, uint64(0))
	f.Fuzz(func(t *testing.T, ring []byte, head uint64, message []byte, later uint64) {
		driver := fakedriver.New(fakedriver.Options{})
		host := worker.NewLocalHost(worker.Limits{VRAM: vram})
		a, b, err := guesttest.Pair()
		if err != nil {
			t.Fatal(err)
		}
		s, err := worker.NewSession(b, driver, host, worker.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Run(context.Background()) }()
		g, err := guesttest.Dial(a, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := g.Call(abi.OpCtxCreate, abi.CtxCreate{Ctx: 1}, nil); err != nil {
			t.Fatal(err)
		}
		at := g.Shm.Load64(abi.OffHead)
		copy(g.Shm.Bytes(g.Ring+at, g.Layout.RingSize-at), ring)
		head += at
		g.Shm.Store64(abi.OffHead, head)
		_ = g.Kick()
		_ = a.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = a.Write(message)
		for i := uint64(0); i < 200 && g.Dead() == nil && g.Shm.Load64(abi.OffTail) != head; i++ {
			time.Sleep(10 * time.Microsecond)
		}
		g.Shm.Store64(abi.OffHead, later)
		_ = g.Kick()
		_ = a.CloseWrite()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatal("the session did not end within 20s")
		}
		g.Close()
		if used := driver.Used(); used != 0 {
			t.Errorf("%d bytes of device memory in use after the session's end, want 0", used)
		}
		if free, _, _ := host.Memory(); free != vram {
			t.Errorf("%d bytes reserved at the host after the session's end, want 0", vram-free)
		}
	})
}
