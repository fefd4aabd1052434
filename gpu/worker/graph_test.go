package worker_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// graphs is a rig with a context, kernels and memory.
type graphs struct {
	*rig
	ctx, module, kernels, memory uint64
}

const (
	kernelNop = iota
	kernelStore
	kernelDelay
	kernelFault
	kernelSleep
)

func newGraphs(t *testing.T) *graphs { return newGraphsOn(newRig(t, fakedriver.Options{}, 0)) }

func newGraphsOn(r *rig) *graphs {
	g := &graphs{rig: r}
	g.ctx = g.context()
	g.module, g.kernels = g.rig.module(g.ctx, "nop store delay fault sleep")
	g.memory, _ = g.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: g.ctx, Size: 4096})
	return g
}

func (g *graphs) kernel(which int, params ...uint64) abi.GraphKernel {
	var b []byte
	for _, p := range params {
		b = binary.LittleEndian.AppendUint64(b, p)
	}
	return abi.GraphKernel{Function: g.kernels + uint64(which), Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: b}
}

// record stores bytes where commands can refer to them.
func (g *graphs) record(b []byte) (off, n uint64) {
	g.Helper()
	if uint64(len(b)) > g.Layout.ChunkSize*g.Layout.Chunks {
		g.Fatalf("record has %d bytes, want at most %d", len(b), g.Layout.ChunkSize*g.Layout.Chunks)
	}
	copy(g.Shm.Bytes(g.Arena, uint64(len(b))), b)
	return g.Arena, uint64(len(b))
}

func (g *graphs) instantiate(nodes ...abi.GraphNode) (exec uint64, err error) {
	exec = g.Handle()
	off, n := g.record(abi.AppendGraphRecord(nil, nodes))
	_, _, err = g.Call(abi.OpGraphInstantiate, abi.GraphInstantiate{Ctx: g.ctx, Exec: exec, NodesOff: off, NodesLen: n}, nil)
	return exec, err
}

func (g *graphs) must(nodes ...abi.GraphNode) uint64 {
	g.Helper()
	exec, err := g.instantiate(nodes...)
	if err != nil {
		g.Fatalf("instantiate: %v", err)
	}
	return exec
}

func (g *graphs) update(exec uint64, changes ...abi.GraphNode) error {
	off, n := g.record(abi.AppendGraphRecord(nil, changes))
	_, _, err := g.Call(abi.OpGraphUpdate, abi.GraphUpdate{Exec: exec, NodesOff: off, NodesLen: n}, nil)
	return err
}

func (g *graphs) launched(stream, exec uint64) {
	g.Helper()
	if err := g.Send(abi.OpGraphLaunch, abi.GraphLaunch{Stream: stream, Exec: exec}, nil); err != nil {
		g.Fatal(err)
	}
}

// word returns the u64 at an offset in the memory, once all work is done.
func (g *graphs) word(at uint64) uint64 {
	g.Helper()
	g.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: g.ctx})
	g.call(abi.OpCopyDtoH, abi.CopyDtoH{Stream: g.ctx, Src: g.memory + at, DstOff: g.Arena, DstLen: 8})
	return g.Shm.Load64(g.Arena)
}

// TestGraphOfEveryKind launches a diamond with nodes of every kind repeatedly,
// between work before and after it in the stream.
func TestGraphOfEveryKind(t *testing.T) {
	g := newGraphs(t)
	host, err := g.Region(5, 4096)
	if err != nil {
		t.Fatal(err)
	}
	event, stream := g.Handle(), g.Handle()
	g.call(abi.OpEventCreate, abi.EventCreate{Ctx: g.ctx, Event: event})
	g.call(abi.OpStreamCreate, abi.StreamCreate{Ctx: g.ctx, Stream: stream, Flags: 1})
	exec := g.must(
		abi.GraphNode{Kind: abi.GraphNodeMemset, Body: abi.GraphMemset{Value: 5, Width: 1, Dst: g.memory, Pitch: 64, Columns: 8, Rows: 3}},
		abi.GraphNode{Kind: abi.GraphNodeKernel, Deps: []uint32{0}, Body: g.kernel(kernelDelay, g.memory+256, 11, uint64(time.Millisecond))},
		abi.GraphNode{Kind: abi.GraphNodeKernel, Deps: []uint32{0}, Body: g.kernel(kernelStore, g.memory+264, 12)},
		abi.GraphNode{Kind: abi.GraphNodeEventWait, Body: abi.GraphEvent(event)},
		abi.GraphNode{Kind: abi.GraphNodeEmpty, Deps: []uint32{1, 2, 3}},
		abi.GraphNode{Kind: abi.GraphNodeCopy, Deps: []uint32{4}, Body: abi.GraphCopy{
			Dst: g.memory + 512, Src: g.memory + 256, Width: 16, Height: 1, Depth: 1,
		}},
		abi.GraphNode{Kind: abi.GraphNodeCopy, Deps: []uint32{5}, Body: abi.GraphCopy{
			What: abi.GraphCopyDtoH, Region: 5, Dst: 100, Src: g.memory + 512, Width: 8, Height: 2, Depth: 1, DstPitch: 32, SrcPitch: 8,
		}},
		abi.GraphNode{Kind: abi.GraphNodeCopy, Deps: []uint32{6}, Body: abi.GraphCopy{
			What: abi.GraphCopyHtoD, Region: 5, Dst: g.memory + 1024, Src: 132, Width: 8, Height: 1, Depth: 1,
		}},
		abi.GraphNode{Kind: abi.GraphNodeEventRecord, Deps: []uint32{7}, Body: abi.GraphEvent(event)},
		abi.GraphNode{Kind: abi.GraphNodeKernel, Flags: abi.GraphNodeDisabled, Body: g.kernel(kernelFault)},
	)
	for range 20 {
		g.launched(stream, exec)
		g.launched(g.ctx, exec)
	}
	g.call(abi.OpEventSynchronize, abi.EventSynchronize{Event: event})
	if got := g.word(1024); got != 12 {
		t.Errorf("value stored at the end of the graph = %d, want 12", got)
	}
	if a, b := binary.LittleEndian.Uint64(host.Bytes(100, 8)), binary.LittleEndian.Uint64(host.Bytes(132, 8)); a != 11 || b != 12 {
		t.Errorf("values in host memory = %d and %d, want 11 and 12", a, b)
	}
	if got := g.word(128); got != 0x0505050505050505 {
		t.Errorf("third row of the memset = %#x, want 0x0505050505050505", got)
	}
	if got := g.word(136); got != 0 {
		t.Errorf("bytes after the third row of the memset = %#x, want 0", got)
	}
	g.call(abi.OpGraphDestroy, abi.GraphDestroy{Exec: exec})
	g.fails(abi.ErrInvalidHandle, abi.OpGraphLaunch, abi.GraphLaunch{Stream: g.ctx, Exec: exec})
}

// TestGraphLaunchOrder checks that a launch runs after the earlier
// work of its stream and before the later work: the last store wins.
func TestGraphLaunchOrder(t *testing.T) {
	g := newGraphs(t)
	exec := g.must(
		abi.GraphNode{Kind: abi.GraphNodeKernel, Body: g.kernel(kernelDelay, g.memory, 2, uint64(5*time.Millisecond))},
		abi.GraphNode{Kind: abi.GraphNodeKernel, Body: g.kernel(kernelDelay, g.memory+8, 2, uint64(5*time.Millisecond))},
	)
	for i := range uint64(2) {
		if err := g.launch(g.ctx, g.kernels+kernelDelay, g.memory+8*i, 1, uint64(5*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	g.launched(g.ctx, exec)
	if got := g.word(8); got != 2 {
		t.Errorf("value after the graph = %d, want 2", got)
	}
	g.launched(g.ctx, exec)
	if err := g.launch(g.ctx, g.kernels+kernelStore, g.memory+8, 3); err != nil {
		t.Fatal(err)
	}
	if got := g.word(8); got != 3 {
		t.Errorf("value after the work that follows the graph = %d, want 3", got)
	}
}

func TestGraphUpdate(t *testing.T) {
	g := newGraphs(t)
	exec := g.must(
		abi.GraphNode{Kind: abi.GraphNodeKernel, Body: g.kernel(kernelStore, g.memory, 1)},
		abi.GraphNode{Kind: abi.GraphNodeKernel, Deps: []uint32{0}, Body: g.kernel(kernelStore, g.memory+8, 1)},
	)
	g.launched(g.ctx, exec)
	if err := g.update(exec, abi.GraphNode{Kind: abi.GraphNodeKernel, Deps: []uint32{1}, Body: g.kernel(kernelStore, g.memory+8, 7)}); err != nil {
		t.Fatal(err)
	}
	if got := g.word(8); got != 1 {
		t.Errorf("value before the next launch = %d, want 1", got)
	}
	g.launched(g.ctx, exec)
	if a, b := g.word(0), g.word(8); a != 1 || b != 7 {
		t.Errorf("values after the update = %d and %d, want 1 and 7", a, b)
	}
	// A refused change changes nothing, including the changes before it in the
	// list.
	for name, last := range map[string]abi.GraphNode{
		"kind":     {Kind: abi.GraphNodeEmpty, Deps: []uint32{0}},
		"number":   {Kind: abi.GraphNodeKernel, Deps: []uint32{2}, Body: g.kernel(kernelNop)},
		"function": {Kind: abi.GraphNodeKernel, Deps: []uint32{0}, Body: abi.GraphKernel{Function: 1 << 40, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}},
		"nobody":   {Kind: abi.GraphNodeKernel, Body: g.kernel(kernelNop)},
	} {
		if err := g.update(exec, abi.GraphNode{Kind: abi.GraphNodeKernel, Deps: []uint32{1}, Body: g.kernel(kernelStore, g.memory+8, 9)}, last); err == nil {
			t.Errorf("%s: the update returned no error", name)
		}
	}
	g.launched(g.ctx, exec)
	if got := g.word(8); got != 7 {
		t.Errorf("value after refused changes = %d, want 7", got)
	}
}

// TestGraphFaultIsSticky checks that a kernel that faults in a graph is a sticky
// error of the context.
func TestGraphFaultIsSticky(t *testing.T) {
	g := newGraphs(t)
	exec := g.must(
		abi.GraphNode{Kind: abi.GraphNodeKernel, Body: g.kernel(kernelFault)},
		abi.GraphNode{Kind: abi.GraphNodeKernel, Body: g.kernel(kernelStore, g.memory, 1)},
	)
	g.launched(g.ctx, exec)
	g.fails(abi.ErrIllegalAddress, abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: g.ctx})
	g.fails(abi.ErrIllegalAddress, abi.OpGraphLaunch, abi.GraphLaunch{Stream: g.ctx, Exec: exec})
	if n := g.Shm.Load32(abi.OffAsyncCount); n != 1 {
		t.Errorf("%d failed contexts in the header, want 1", n)
	}
}

// TestGraphOfDestroyedObjects checks launches of graphs that refer to objects
// destroyed since the graph was created.
func TestGraphOfDestroyedObjects(t *testing.T) {
	g := newGraphs(t)
	if _, err := g.Region(5, 4096); err != nil {
		t.Fatal(err)
	}
	copying := g.must(abi.GraphNode{Kind: abi.GraphNodeCopy, Body: abi.GraphCopy{
		What: abi.GraphCopyHtoD, Region: 5, Dst: g.memory, Width: 4096, Height: 1, Depth: 1,
	}})
	running := g.must(
		abi.GraphNode{Kind: abi.GraphNodeKernel, Body: g.kernel(kernelSleep, uint64(20*time.Millisecond))},
		abi.GraphNode{Kind: abi.GraphNodeKernel, Body: g.kernel(kernelStore, g.memory, 4)},
	)
	g.launched(g.ctx, copying)
	if err := g.Drop(5); err != nil { // the launch keeps the pages mapped
		t.Fatal(err)
	}
	g.launched(g.ctx, running)
	g.call(abi.OpGraphDestroy, abi.GraphDestroy{Exec: running}) // it still completes
	if got := g.word(0); got != 4 {
		t.Errorf("value of a graph that was destroyed while it ran = %d, want 4", got)
	}
	g.fails(abi.ErrInvalidValue, abi.OpGraphLaunch, abi.GraphLaunch{Stream: g.ctx, Exec: copying})
	stale := g.must(
		abi.GraphNode{Kind: abi.GraphNodeEmpty}, abi.GraphNode{Kind: abi.GraphNodeEmpty},
		abi.GraphNode{Kind: abi.GraphNodeKernel, Deps: []uint32{1}, Body: g.kernel(kernelNop)},
	)
	g.call(abi.OpModuleUnload, abi.ModuleUnload{Module: g.module})
	g.fails(abi.ErrInvalidHandle, abi.OpGraphLaunch, abi.GraphLaunch{Stream: g.ctx, Exec: stale})
	g.launched(g.ctx, stale) // without a slot: the next command reports the error
	g.fails(abi.ErrInvalidHandle, abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: g.ctx})
	g.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: g.ctx})
}

// TestHostileGraphs checks that invalid graphs are errors of their command, and
// leave nothing behind.
func TestHostileGraphs(t *testing.T) {
	g := newGraphs(t)
	event := func(e uint64) abi.GraphNode {
		return abi.GraphNode{Kind: abi.GraphNodeEventRecord, Body: abi.GraphEvent(e)}
	}
	copied := func(c abi.GraphCopy) abi.GraphNode { return abi.GraphNode{Kind: abi.GraphNodeCopy, Body: c} }
	set := func(m abi.GraphMemset) abi.GraphNode { return abi.GraphNode{Kind: abi.GraphNodeMemset, Body: m} }
	none := g.kernel(kernelNop)
	none.Grid[1] = 0
	wild := g.kernel(kernelNop)
	wild.Function = g.ctx
	for name, c := range map[string]struct {
		node abi.GraphNode
		want abi.Result
	}{
		"function":       {abi.GraphNode{Kind: abi.GraphNodeKernel, Body: wild}, abi.ErrInvalidHandle},
		"grid":           {abi.GraphNode{Kind: abi.GraphNodeKernel, Body: none}, abi.ErrInvalidValue},
		"event":          {event(1 << 50), abi.ErrInvalidHandle},
		"depends itself": {abi.GraphNode{Kind: abi.GraphNodeEmpty, Deps: []uint32{0}}, abi.ErrInvalidValue},
		"unknown kind":   {abi.GraphNode{Kind: 77}, abi.ErrInvalidValue},
		"region 0":       {copied(abi.GraphCopy{What: abi.GraphCopyDtoH, Width: 8, Height: 1, Depth: 1}), abi.ErrInvalidValue},
		"what":           {copied(abi.GraphCopy{What: 3, Region: 1, Width: 8, Height: 1, Depth: 1}), abi.ErrInvalidValue},
		"rows":           {copied(abi.GraphCopy{Width: 1, Height: 1 << 40, Depth: 1, DstPitch: 2, SrcPitch: 2}), abi.ErrInvalidValue},
		"rows times":     {copied(abi.GraphCopy{Width: 1, Height: 1 << 40, Depth: 1 << 40, DstPitch: 2, SrcPitch: 2}), abi.ErrInvalidValue},
		"pitch":          {copied(abi.GraphCopy{Width: 8, Height: 2, Depth: 1, DstPitch: 4, SrcPitch: 8}), abi.ErrInvalidValue},
		"overflow":       {copied(abi.GraphCopy{Dst: 1 << 63, Width: 1 << 63, Height: 1, Depth: 1}), abi.ErrInvalidValue},
		"element":        {set(abi.GraphMemset{Width: 3, Columns: 1, Rows: 1}), abi.ErrInvalidValue},
		"set rows":       {set(abi.GraphMemset{Width: 1, Columns: 1, Rows: 1 << 63, Pitch: 1}), abi.ErrInvalidValue},
		"set no columns": {set(abi.GraphMemset{Width: 1, Rows: 1 << 63}), abi.ErrInvalidValue},
	} {
		if _, err := g.instantiate(c.node); !errors.Is(err, c.want) {
			t.Errorf("%s: instantiate = %v, want %v", name, err, c.want)
		}
	}
	off, n := g.record(abi.AppendGraphRecord(nil, []abi.GraphNode{{Kind: abi.GraphNodeEmpty}}))
	for name, a := range map[string]abi.GraphInstantiate{
		"truncated": {Ctx: g.ctx, Exec: 1 << 30, NodesOff: off, NodesLen: n - 1},
		"empty":     {Ctx: g.ctx, Exec: 1 << 30, NodesOff: off},
		"huge":      {Ctx: g.ctx, Exec: 1 << 30, NodesOff: off, NodesLen: 1 << 62},
		"outside":   {Ctx: g.ctx, Exec: 1 << 30, NodesOff: 1 << 62, NodesLen: n},
		"no handle": {Ctx: g.ctx, NodesOff: off, NodesLen: n},
		"used":      {Ctx: g.ctx, Exec: g.ctx, NodesOff: off, NodesLen: n},
		"context":   {Ctx: 12345, Exec: 1 << 30, NodesOff: off, NodesLen: n},
	} {
		if _, _, err := g.Call(abi.OpGraphInstantiate, a, nil); err == nil {
			t.Errorf("%s: instantiate returned no error", name)
		}
	}
	binary.LittleEndian.PutUint32(g.Shm.Bytes(g.Arena+8, 4), 1<<31) // the number of nodes
	if _, _, err := g.Call(abi.OpGraphInstantiate, abi.GraphInstantiate{Ctx: g.ctx, Exec: 1 << 30, NodesOff: off, NodesLen: n}, nil); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("instantiate with 2³¹ nodes = %v, want %v", err, abi.ErrInvalidValue)
	}
	g.fails(abi.ErrInvalidHandle, abi.OpGraphLaunch, abi.GraphLaunch{Stream: g.ctx, Exec: g.ctx})
	g.fails(abi.ErrInvalidHandle, abi.OpGraphDestroy, abi.GraphDestroy{Exec: g.kernels})
	g.fails(abi.ErrInvalidHandle, abi.OpGraphUpdate, abi.GraphUpdate{Exec: 99999})
	if _, err := g.instantiate(); err != nil {
		t.Errorf("instantiate an empty graph = %v, want no error", err)
	}
}

// TestGraphCopyOfNothing checks that a copy of no rows in many layers completes
// at once.
func TestGraphCopyOfNothing(t *testing.T) {
	g := newGraphs(t)
	exec := g.must(abi.GraphNode{Kind: abi.GraphNodeCopy, Body: abi.GraphCopy{Width: 1, Depth: 1 << 62}})
	g.call(abi.OpGraphLaunch, abi.GraphLaunch{Stream: g.ctx, Exec: exec})
}

// TestGraphMemoryIsBounded checks that the memory of graphs in the worker is
// limited, and is freed.
func TestGraphMemoryIsBounded(t *testing.T) {
	g := newGraphs(t)
	nodes := make([]abi.GraphNode, 50_000)
	for i := range nodes {
		nodes[i].Kind = abi.GraphNodeEmpty
	}
	record := abi.AppendGraphRecord(nil, nodes)
	off, n := g.record(record)
	var made []uint64
	for len(made) < 100 {
		exec := g.Handle()
		_, _, err := g.Call(abi.OpGraphInstantiate, abi.GraphInstantiate{Ctx: g.ctx, Exec: exec, NodesOff: off, NodesLen: n}, nil)
		if errors.Is(err, abi.ErrOutOfMemory) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, exec)
	}
	if len(made) < 2 || len(made) == 100 {
		t.Fatalf("%d graphs of %d nodes could be created, want 2 to 99", len(made), len(nodes))
	}
	g.call(abi.OpGraphDestroy, abi.GraphDestroy{Exec: made[0]})
	if _, err := g.instantiate(nodes...); err != nil {
		t.Errorf("instantiate after one graph was destroyed = %v, want no error", err)
	}
	g.call(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: g.ctx})
	g.ctx = g.context()
	if _, err := g.instantiate(nodes...); err != nil {
		t.Errorf("instantiate after the context was destroyed = %v, want no error", err)
	}
}

// TestUnknownCommandsAreNotSupported checks what an older worker answers to
// commands whose numbers it does not know, such as those of graphs.
func TestUnknownCommandsAreNotSupported(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	if _, _, err := r.Call(abi.Op(4000), guesttest.None{}, bytes.Repeat([]byte{1}, 40)); !errors.Is(err, abi.ErrNotSupported) {
		t.Errorf("unknown command = %v, want %v", err, abi.ErrNotSupported)
	}
}

// launches is a driver that records what its contexts have launched.
type launches struct {
	worker.Driver
	mu   sync.Mutex // guards seen
	seen []worker.Launch
}

type launchesContext struct {
	worker.Context
	d *launches
}

func (d *launches) NewContext(flags uint32, gate worker.Gate, w *worker.Window) (worker.Context, error) {
	c, err := d.Driver.NewContext(flags, gate, w)
	return &launchesContext{c, d}, err
}

func (c *launchesContext) Launch(s worker.Stream, f worker.Function, l worker.Launch, done func(error)) error {
	c.d.mu.Lock()
	c.d.seen = append(c.d.seen, l)
	c.d.mu.Unlock()
	return c.Context.Launch(s, f, l, done)
}

// TestGraphAttributes checks that a kernel's attributes reach the driver with every
// launch of its graph, and change with an update.
func TestGraphAttributes(t *testing.T) {
	fake := fakedriver.New(fakedriver.Options{})
	d := &launches{Driver: fake}
	g := newGraphsOn(newRigOn(t, d, fake, 0))
	k := g.kernel(kernelNop)
	k.Attributes = []abi.StreamAttrValue{{Case: 8, Priority: -2}, {Case: 10, MemSyncDomain: 1}}
	exec := g.must(abi.GraphNode{Kind: abi.GraphNodeKernel, Body: k})
	launch := func() []abi.StreamAttrValue {
		t.Helper()
		g.call(abi.OpGraphLaunch, abi.GraphLaunch{Stream: g.ctx, Exec: exec})
		g.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: g.ctx})
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.seen[len(d.seen)-1].Attributes
	}
	if got := launch(); !slices.Equal(got, k.Attributes) {
		t.Errorf("attributes in the driver = %+v, want %+v", got, k.Attributes)
	}
	k.Attributes = k.Attributes[:1]
	off, n := g.record(abi.AppendGraphRecord(nil, []abi.GraphNode{{Kind: abi.GraphNodeKernel, Deps: []uint32{0}, Body: k}}))
	g.call(abi.OpGraphUpdate, abi.GraphUpdate{Exec: exec, NodesOff: off, NodesLen: n})
	if got := launch(); !slices.Equal(got, k.Attributes) {
		t.Errorf("attributes in the driver after an update = %+v, want %+v", got, k.Attributes)
	}
}
