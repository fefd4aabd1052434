package vhostgpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/hypervisor/vhostuser"
	"github.com/basalt-gpu/basalt/hypervisor/vhostuser/fronttest"
	"github.com/basalt-gpu/basalt/hypervisor/virtio"
	"github.com/basalt-gpu/basalt/hypervisor/virtio/drivertest"
)

// guest is a guest kernel's driver, reduced to its commands.
type guest struct {
	t *testing.T
	*fronttest.FrontEnd
	fence   uint64
	waiting map[uint16]*command
}

type command struct {
	response []byte
	fence    uint64
	done     bool
}

// enough bounds waits for what must happen; it is not a measurement.
const enough = 20 * time.Second

func newGuest(t *testing.T, spawner Spawner) *guest {
	t.Helper()
	return connect(t, serve(t, spawner))
}

func connect(t *testing.T, socket string) *guest {
	t.Helper()
	g := &guest{t: t, FrontEnd: fronttest.Connect(t, socket, drivertest.NewGuest(t, 16<<20)), waiting: map[uint16]*command{}}
	g.Start(256, 16)
	return g
}

func words(w ...uint32) (b []byte) {
	for _, v := range w {
		b = le.AppendUint32(b, v)
	}
	return b
}

// begin submits a command to a queue with a fence.
func (g *guest) begin(queue int, typ, ctx uint32, body []byte) *command {
	g.t.Helper()
	g.fence++
	h := le.AppendUint32(nil, typ)
	h = le.AppendUint32(h, flagFence)
	h = le.AppendUint64(h, g.fence)
	h = append(le.AppendUint32(h, ctx), 0, 0, 0, 0)
	h = append(h, body...)
	in, b := g.Alloc(len(h), 8)
	copy(b, h)
	out, rb := g.Alloc(2048, 8)
	c := &command{response: rb, fence: g.fence}
	head := g.Rings[queue].Submit(drivertest.Buffer{GPA: in, Length: uint32(len(h))}, drivertest.Buffer{GPA: out, Length: 2048, Write: true})
	g.waiting[head|uint16(queue)<<15] = c
	g.Rings[queue].Kick()
	return c
}

func (g *guest) collect() {
	for i, r := range g.Rings {
		for _, u := range r.Collect() {
			c := g.waiting[u.Head|uint16(i)<<15]
			delete(g.waiting, u.Head|uint16(i)<<15)
			c.response, c.done = c.response[:u.Written], true
		}
	}
}

// finish waits for a command's response and returns its type and body.
func (g *guest) finish(c *command) (uint32, []byte) {
	g.t.Helper()
	for w := patience.Start(); ; g.Rings[0].Called(20) {
		if g.collect(); c.done {
			break
		}
		if w.Over(enough) {
			g.t.Fatalf("no response to the command within %v", enough)
		}
	}
	if len(c.response) < headerSize {
		g.t.Fatalf("response has %d bytes, want at least %d", len(c.response), headerSize)
	}
	if le.Uint32(c.response[4:]) != flagFence || le.Uint64(c.response[8:]) != c.fence {
		g.t.Fatalf("response to fence %d has header %x, want the same fence", c.fence, c.response[:headerSize])
	}
	return le.Uint32(c.response), c.response[headerSize:]
}

func (g *guest) do(typ, ctx uint32, body []byte) (uint32, []byte) {
	g.t.Helper()
	return g.finish(g.begin(controlQueue, typ, ctx, body))
}

func (g *guest) must(typ, ctx uint32, body []byte) {
	g.t.Helper()
	if r, _ := g.do(typ, ctx, body); r != respOK {
		g.t.Fatalf("response to command %#x = %#x, want %#x", typ, r, respOK)
	}
}

// context creates a context, as the kernel does for a process.
func (g *guest) context(id uint32) {
	g.t.Helper()
	g.must(cmdCtxCreate, id, append(words(4, 0), append([]byte("test"), make([]byte, 60)...)...))
}

// resource creates a resource of scattered pages in a context, and returns its
// first page.
func (g *guest) resource(ctx, id uint32, pages int) []byte {
	g.t.Helper()
	g.must(cmdResourceCreate3D, 0, words(id, 0, 64, 16, uint32(pages*pageSize), 1, 1, 1, 0, 0, 0, 0))
	gpa, b := g.Alloc(pages*pageSize, pageSize)
	body := words(id, uint32(pages))
	for i := range pages { // last page first
		body = le.AppendUint64(body, gpa+uint64(pages-1-i)*pageSize)
		body = append(body, words(pageSize, 0)...)
		le.PutUint64(b[(pages-1-i)*pageSize:], uint64(i))
	}
	g.must(cmdResourceAttach, 0, body)
	g.must(cmdCtxAttachResource, ctx, words(id, 0))
	return b[(pages-1)*pageSize:]
}

func submission(typ uint16, arg uint32, body []byte) []byte {
	m := encodeMessage(typ, arg, body)
	return append(words(uint32(len(m)), 0), m...)
}

func (g *guest) send(ctx uint32, typ uint16, arg uint32, body []byte) {
	g.t.Helper()
	g.must(cmdSubmit3D, ctx, submission(typ, arg, body))
}

func regionOf(resource uint32, pages int) []byte {
	return append(le.AppendUint64(nil, uint64(pages*pageSize)), words(resource, 0)...)
}

func (g *guest) until(what string, f func() bool) {
	g.t.Helper()
	patience.Until(g.t, enough, what, f)
}

func (g *guest) state(header []byte) uint32 { return virtio.Load32(header[abi.OffState:]) }

// session opens a complete session: context, region 0 as resource id, hello.
func (g *guest) session(ctx, id uint32) (header []byte) {
	g.t.Helper()
	g.context(ctx)
	header = g.resource(ctx, id, 4)
	g.send(ctx, abi.MsgHello, 0, make([]byte, abi.HelloSize))
	g.send(ctx, abi.MsgRegion, 0, regionOf(id, 4))
	g.until("ready", func() bool { return g.state(header) == abi.StateReady })
	return header
}

func wantDead(g *guest, header []byte, result abi.Result, text string) {
	g.t.Helper()
	g.until("dead", func() bool { return g.state(header) == abi.StateDead })
	got := string(header[abi.OffErrorText:][:abi.ErrorTextSize])
	if r := abi.Result(virtio.Load32(header[abi.OffError:])); r != result || !strings.Contains(got, text) {
		g.t.Errorf("session ended with %v, %q; want %v, %q", r, strings.TrimRight(got, "\x00"), result, text)
	}
}

// The queries of the guest's driver at probe, and the commands of a console.
func TestProbe(t *testing.T) {
	g := newGuest(t, &peers{t: t})
	if r, b := g.do(cmdGetDisplayInfo, 0, nil); r != respDisplayInfo || len(b) != 384 || strings.Trim(string(b), "\x00") != "" {
		t.Errorf("display info: response %#x with %d bytes, want %#x with 384 zero bytes", r, len(b), respDisplayInfo)
	}
	if r, b := g.do(cmdGetEDID, 0, words(0, 0)); r != respEDID || len(b) != 1032 {
		t.Errorf("EDID: response %#x with %d bytes, want %#x with 1032", r, len(b), respEDID)
	}
	if r, b := g.do(cmdGetCapsetInfo, 0, words(0, 0)); r != respCapsetInfo || !slices.Equal(b, words(57, 1, 24, 0)) {
		t.Errorf("capset info: response %#x with %x, want %#x with capset 57, version 1 and 24 bytes", r, b, respCapsetInfo)
	}
	if r, b := g.do(cmdGetCapset, 0, words(57, 1)); r != respCapset || len(b) != abi.CapsetSize || le.Uint32(b) != abi.Magic || le.Uint64(b[8:]) != DefaultLimits().Region {
		t.Errorf("capset: response %#x with %x, want %#x", r, b, respCapset)
	}
	g.must(cmdResourceCreate2D, 0, words(1, 2, 64, 64))
	g.must(cmdSetScanout, 0, words(0, 0, 64, 64, 0, 1))
	g.must(cmdTransferToHost2D, 0, words(0, 0, 64, 64, 0, 0, 1, 0))
	g.must(cmdResourceFlush, 0, words(0, 0, 64, 64, 1, 0))
	g.must(cmdResourceUnref, 0, words(1, 0))
	for _, typ := range []uint32{cmdUpdateCursor, cmdMoveCursor} {
		if r, _ := g.finish(g.begin(cursorQueue, typ, 0, make([]byte, 32))); r != respOK {
			t.Errorf("cursor command %#x: response %#x, want %#x", typ, r, respOK)
		}
	}
}

// The session of a guest process: pages arrive in order, kicks and wake-ups are
// passed on, and a wait is answered at the wake-up and delays no one else.
func TestSession(t *testing.T) {
	spawner := &peers{t: t, prepare: func(p *peer) { p.Pattern = true }}
	g := newGuest(t, spawner)
	header := g.session(1, 10)
	w := spawner.get(0)
	if l := w.log(); !slices.Contains(l, "pages 4 in 4 extents") || l[0] != fmt.Sprint("hello 136 ", abi.HelloWakeByMessage) {
		t.Errorf("worker received %q, want hello and 4 pages in 4 extents", l)
	}
	// MsgReady is a wake-up: it answers this wait, or arrived before it.
	if r, _ := g.do(cmdSubmit3D, 1, submission(abi.MsgWait, 0, nil)); r != respOK {
		t.Errorf("response to a wait after ready = %#x, want %#x", r, respOK)
	}
	first := g.begin(controlQueue, cmdSubmit3D, 1, submission(abi.MsgWait, 0, nil))
	g.do(cmdGetCapsetInfo, 0, words(0, 0)) // everything that is answered at once has been answered
	if g.collect(); first.done {
		// The wake-up found the earlier wait, and also answers the next one: its
		// slot may have completed by then.
		first = g.begin(controlQueue, cmdSubmit3D, 1, submission(abi.MsgWait, 0, nil))
	}
	second := g.begin(controlQueue, cmdSubmit3D, 1, submission(abi.MsgWait, 0, nil))
	g.session(2, 20) // another process in the meantime
	if g.collect(); first.done || second.done {
		t.Fatal("a wait was answered without a wake-up")
	}
	virtio.Store32(header[offQuestion:], 41)
	g.send(1, abi.MsgKick, 0, nil)
	g.finish(first)
	g.finish(second)
	if virtio.Load32(header[offAnswer:]) != 41 {
		t.Errorf("answer of the worker = %d, want 41", virtio.Load32(header[offAnswer:]))
	}
	g.must(cmdCtxDestroy, 1, nil)
	g.until("worker let go", func() bool { return slices.Contains(w.log(), "end") })
	if slices.Contains(spawner.get(1).log(), "end") {
		t.Error("the other worker was dismissed too")
	}
}

// A process can neither delay the waits of others nor take all room for them.
func TestWaitsAreLimited(t *testing.T) {
	g := newGuest(t, &peers{t: t})
	g.session(1, 10)
	g.do(cmdSubmit3D, 1, submission(abi.MsgWait, 0, nil)) // consumes the wake-up of ready
	var waits []*command
	for range DefaultLimits().Waits + 1 {
		waits = append(waits, g.begin(controlQueue, cmdSubmit3D, 1, submission(abi.MsgWait, 0, nil)))
	}
	g.finish(waits[0])
	if g.collect(); waits[1].done {
		t.Error("the second wait was answered too, want only the oldest")
	}
	// Many waiting processes leave room for the commands of others.
	for ctx := uint32(2); ctx < 10; ctx++ {
		g.session(ctx, ctx*10)
		g.do(cmdSubmit3D, ctx, submission(abi.MsgWait, 0, nil))
		for range DefaultLimits().Waits {
			waits = append(waits, g.begin(controlQueue, cmdSubmit3D, ctx, submission(abi.MsgWait, 0, nil)))
		}
	}
	g.context(100)
	if g.collect(); len(g.waiting) != 256/4 {
		t.Errorf("%d waits are held, want %d", len(g.waiting), 256/4)
	}
	for ctx := uint32(1); ctx < 10; ctx++ {
		g.must(cmdCtxDestroy, ctx, nil)
	}
	for _, w := range waits[1:] {
		g.finish(w)
	}
}

// The worker receives the address of a region's pages in the guest's process.
func TestRegionAddressIsPassedOn(t *testing.T) {
	spawner := &peers{t: t}
	g := newGuest(t, spawner)
	header := g.session(1, 10)
	g.resource(1, 11, 2)
	placed := func(number uint32, body []byte) {
		m := encodeFlagged(abi.MsgRegion, abi.RegionPlaced, number, body)
		g.must(cmdSubmit3D, 1, append(words(uint32(len(m)), 0), m...))
	}
	placed(1, le.AppendUint64(regionOf(11, 2), 0x40bffa001000))
	g.until("the worker has the region", func() bool {
		return slices.Contains(spawner.get(0).log(), "region 1 of 8192 at 0x40bffa001000")
	})
	placed(2, regionOf(11, 2))
	wantDead(g, header, abi.ErrInvalidValue, "region message has invalid size of 16 bytes")
}

// Pages are not returned to the guest kernel while a worker maps them.
func TestUnrefWaitsForWorker(t *testing.T) {
	spawner := &peers{t: t}
	g := newGuest(t, spawner)
	header := g.session(1, 10)
	g.resource(1, 11, 2)
	g.send(1, abi.MsgRegion, 1, regionOf(11, 2))
	g.must(cmdCtxDetachResource, 1, words(11, 0))
	g.must(cmdResourceUnref, 0, words(11, 0))
	if l := spawner.get(0).log(); !slices.Contains(l, "drop 1") {
		t.Errorf("log of the worker when UNREF was answered = %q, want drop 1 in it", l)
	}
	if r, _ := g.do(cmdResourceUnref, 0, words(11, 0)); r != respErrInvalidResource {
		t.Errorf("response to a second UNREF = %#x, want %#x", r, respErrInvalidResource)
	}
	if g.state(header) != abi.StateReady {
		t.Errorf("session state after UNREF = %d, want ready", g.state(header))
	}
	// Region 0 is released when the process ends: its worker is dismissed without
	// an error.
	g.must(cmdResourceUnref, 0, words(10, 0))
	g.until("worker let go", func() bool { return slices.Contains(spawner.get(0).log(), "end") })
	if slices.Contains(spawner.get(0).log(), "drop 0") {
		t.Error("the worker was told to drop region 0")
	}
}

// A worker that keeps pages delays only the answers about these pages, until it
// keeps too many. A region number that is used again does not make an
// acknowledgement ambiguous.
func TestWorkerKeepsPages(t *testing.T) {
	spawner := &peers{t: t, prepare: func(p *peer) { p.Clingy = true }}
	g := newGuest(t, spawner)
	header := g.session(1, 10)
	w := spawner.get(0)
	var unrefs []*command
	free := func(id uint32) {
		g.resource(1, id, 1)
		g.send(1, abi.MsgRegion, 7, regionOf(id, 1))
		g.send(1, abi.MsgDropRegion, 7, nil)
		unrefs = append(unrefs, g.begin(controlQueue, cmdResourceUnref, 0, words(id, 0)))
	}
	free(11)
	free(12)
	g.context(2)
	w.send(abi.MsgDropped, 7, nil)
	g.context(3)
	g.context(4)
	if g.collect(); unrefs[0].done || unrefs[1].done {
		t.Fatal("UNREF was answered by an acknowledgement that may be for either region")
	}
	w.send(abi.MsgDropped, 7, nil)
	g.finish(unrefs[0])
	g.finish(unrefs[1])
	for i := range DefaultLimits().Releases + 1 {
		free(uint32(20 + i))
	}
	wantDead(g, header, abi.ErrOutOfMemory, "were freed while")
	for _, u := range unrefs {
		g.finish(u)
	}
}

// A process with the maximum number of regions releases one and creates another,
// although the worker still has the first. That is an error only if the worker
// keeps too many.
func TestFullOfRegions(t *testing.T) {
	spawner := &peers{t: t, prepare: func(p *peer) { p.Clingy = true }}
	g := newGuest(t, spawner)
	header := g.session(1, 10)
	g.resource(1, 11, 1)
	for number := range uint32(DefaultLimits().Regions - 1) {
		g.send(1, abi.MsgRegion, number+1, regionOf(11, 1))
	}
	again := func(number uint32) {
		g.send(1, abi.MsgDropRegion, number, nil)
		g.send(1, abi.MsgRegion, number, regionOf(11, 1))
	}
	for number := range uint32(DefaultLimits().Releases) {
		again(number + 1)
	}
	if g.state(header) != abi.StateReady {
		t.Fatalf("session state = %d, want ready", g.state(header))
	}
	again(100)
	wantDead(g, header, abi.ErrOutOfMemory, "too many regions, want at most 1024")
}

// Whatever ends a session, the guest's library is told, and other sessions are
// not affected.
func TestEndings(t *testing.T) {
	spawner := &peers{t: t}
	g := newGuest(t, spawner)
	bystander := g.session(99, 990)
	cases := []struct {
		name, text string
		result     abi.Result
		do         func(ctx uint32)
	}{
		{"worker ends", "worker of the vGPU has exited", abi.ErrUnavailable, func(uint32) { spawner.last().conn.Close() }},
		{"worker babbles", "not a carrier message", abi.ErrUnavailable, func(uint32) { spawner.last().conn.Write(make([]byte, 16)) }},
		{"worker misspeaks", "sent unknown message 4", abi.ErrUnavailable, func(uint32) { spawner.last().send(abi.MsgKick, 0, nil) }},
		{"worker refuses", "because", abi.ErrNotPermitted, func(uint32) {
			spawner.last().send(abi.MsgRefused, uint32(abi.ErrNotPermitted), []byte("because"))
		}},
		{"second hello", "second hello", abi.ErrInvalidValue, func(c uint32) { g.send(c, abi.MsgHello, 0, make([]byte, abi.HelloSize)) }},
		{"foreign resource", "not a resource of this process", abi.ErrInvalidValue, func(c uint32) { g.send(c, abi.MsgRegion, 1, regionOf(990, 1)) }},
		{"missing resource", "not a resource of this process", abi.ErrInvalidValue, func(c uint32) { g.send(c, abi.MsgRegion, 1, regionOf(4711, 1)) }},
		{"region twice", "already exists", abi.ErrInvalidValue, func(c uint32) { g.send(c, abi.MsgRegion, 0, regionOf(c*10, 4)) }},
		{"region too large", "invalid size", abi.ErrInvalidValue, func(c uint32) { g.send(c, abi.MsgRegion, 1, regionOf(c*10, 5)) }},
		{"region of no size", "invalid size", abi.ErrInvalidValue, func(c uint32) { g.send(c, abi.MsgRegion, 1, regionOf(c*10, 0)) }},
		{"short region", "region message has invalid size of 4", abi.ErrInvalidValue, func(c uint32) { g.send(c, abi.MsgRegion, 1, make([]byte, 4)) }},
	}
	for i, c := range cases {
		ctx := uint32(i + 1)
		header := g.session(ctx, ctx*10)
		g.do(cmdSubmit3D, ctx, submission(abi.MsgWait, 0, nil)) // consumes the wake-up of ready
		wait := g.begin(controlQueue, cmdSubmit3D, ctx, submission(abi.MsgWait, 0, nil))
		c.do(ctx)
		g.finish(wait)
		t.Run(c.name, func(t *testing.T) { wantDead(g, header, c.result, c.text) })
		g.finish(g.begin(controlQueue, cmdSubmit3D, ctx, submission(abi.MsgWait, 0, nil))) // no wait blocks any more
		g.must(cmdCtxDestroy, ctx, nil)
	}
	if g.state(bystander) != abi.StateReady {
		t.Errorf("session state of another process = %d, want ready", g.state(bystander))
	}
}

func (p *peers) last() *peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list[len(p.list)-1]
}

// A process whose worker cannot be started reads the reason in region 0, even
// though region 0 is only known after hello.
func TestNoWorker(t *testing.T) {
	g := newGuest(t, &peers{t: t, err: errors.New("no such file")})
	g.context(1)
	header := g.resource(1, 10, 4)
	g.send(1, abi.MsgHello, 0, make([]byte, abi.HelloSize))
	g.send(1, abi.MsgRegion, 0, regionOf(10, 4))
	wantDead(g, header, abi.ErrUnavailable, "could not be started")
}

func TestRefusals(t *testing.T) {
	g := newGuest(t, &peers{t: t})
	g.context(1)
	g.resource(1, 10, 2)
	name := make([]byte, 72)
	cases := []struct {
		name string
		typ  uint32
		ctx  uint32
		body []byte
		want uint32
	}{
		{"unknown command", 0x0999, 0, nil, respErrUnspec},
		{"blob", 0x010c, 0, make([]byte, 64), respErrUnspec},
		{"capset of others", cmdGetCapset, 0, words(1, 1), respErrInvalidParam},
		{"second capset", cmdGetCapsetInfo, 0, words(1, 0), respErrInvalidParam},
		{"second scanout", cmdSetScanout, 0, words(0, 0, 1, 1, 1, 10), respErrInvalidScanout},
		{"scanout of nothing", cmdSetScanout, 0, words(0, 0, 1, 1, 0, 77), respErrInvalidResource},
		{"EDID of second", cmdGetEDID, 0, words(1, 0), respErrInvalidParam},
		{"short create", cmdResourceCreate2D, 0, words(5), respErrInvalidParam},
		{"resource 0", cmdResourceCreate2D, 0, words(0, 1, 1, 1), respErrInvalidParam},
		{"resource twice", cmdResourceCreate2D, 0, words(10, 1, 1, 1), respErrInvalidResource},
		{"unref nothing", cmdResourceUnref, 0, words(77, 0), respErrInvalidResource},
		{"backing twice", cmdResourceAttach, 0, append(words(10, 1), make([]byte, 16)...), respErrInvalidParam},
		{"backing of nothing", cmdResourceAttach, 0, words(77, 0), respErrInvalidResource},
		{"backing short", cmdResourceAttach, 0, words(10, 1000), respErrInvalidParam},
		{"context 0", cmdCtxCreate, 0, name, respErrInvalidContext},
		{"context twice", cmdCtxCreate, 1, name, respErrInvalidContext},
		{"destroy nothing", cmdCtxDestroy, 7, nil, respErrInvalidContext},
		{"attach to nothing", cmdCtxAttachResource, 7, words(10, 0), respErrInvalidContext},
		{"attach nothing", cmdCtxAttachResource, 1, words(77, 0), respErrInvalidResource},
		{"submit to nothing", cmdSubmit3D, 7, submission(abi.MsgKick, 0, nil), respErrInvalidContext},
		{"submit virgl", cmdSubmit3D, 1, append(words(16, 0), make([]byte, 16)...), respErrInvalidParam},
		{"submit lies", cmdSubmit3D, 1, append(words(1000, 0), make([]byte, 16)...), respErrInvalidParam},
		{"submit wake", cmdSubmit3D, 1, submission(abi.MsgWake, 0, nil), respErrInvalidParam},
		{"submit too much", cmdSubmit3D, 1, submission(abi.MsgKick, 0, make([]byte, maxSubmit)), respErrInvalidParam},
	}
	for _, c := range cases {
		if r, _ := g.do(c.typ, c.ctx, c.body); r != c.want {
			t.Errorf("%s: response %#x, want %#x", c.name, r, c.want)
		}
	}
	g.must(cmdResourceCreate2D, 0, words(11, 1, 1, 1))
	outside := append(words(11, 1), le.AppendUint64(nil, 1<<40)...)
	if r, _ := g.do(cmdResourceAttach, 0, append(outside, words(pageSize, 0)...)); r != respErrInvalidParam {
		t.Errorf("backing outside the guest's memory: response %#x, want %#x", r, respErrInvalidParam)
	}
	if r, b := g.do(0, 0, nil); r != respErrUnspec || len(b) != 0 {
		t.Errorf("command type 0: response %#x with %d bytes, want %#x", r, len(b), respErrUnspec)
	}
}

// A guest that is paused keeps its sessions, and answers that became due in the
// meantime are sent later; a guest that is reset loses them.
func TestPauseAndReset(t *testing.T) {
	spawner := &peers{t: t}
	g := newGuest(t, spawner)
	header := g.session(1, 10)
	g.do(cmdSubmit3D, 1, submission(abi.MsgWait, 0, nil))
	wait := g.begin(controlQueue, cmdSubmit3D, 1, submission(abi.MsgWait, 0, nil))
	g.context(2) // the wait has been handled
	base := g.StopRing(0)
	spawner.get(0).send(abi.MsgWake, 0, nil)
	g.Memory()
	g.StartRing(0, base)
	g.finish(wait)
	g.context(3)
	if g.state(header) != abi.StateReady || slices.Contains(spawner.get(0).log(), "end") {
		t.Errorf("session state after a pause = %d, want ready with its worker", g.state(header))
	}
	g.StopRing(0)
	g.StopRing(1)
	g.waiting = map[uint16]*command{}
	g.Resume(256, 16)
	g.context(1)
	g.until("worker let go", func() bool { return slices.Contains(spawner.get(0).log(), "end") })
	g.resource(1, 10, 1) // the resource was deleted by the reset
}

// A driver that breaks the queue is notified through the error eventfd, and can
// continue after a reset.
func TestBrokenQueue(t *testing.T) {
	g := newGuest(t, &peers{t: t})
	g.context(1)
	g.Rings[0].SetAvailIndex(1000)
	g.Rings[0].Kick()
	if r, _ := g.finish(g.begin(cursorQueue, cmdMoveCursor, 0, make([]byte, 32))); r != respOK {
		t.Errorf("cursor queue: response %#x, want %#x", r, respOK)
	}
	g.StopRing(0)
	g.StopRing(1)
	g.waiting = map[uint16]*command{}
	g.Resume(256, 16)
	g.context(1)
}

// Protocol errors of QEMU end the server with an error.
func TestServerEndsOnBreach(t *testing.T) {
	socket := t.TempDir() + "/vgpu"
	s, err := Listen(socket, -1, &peers{t: t}, DefaultLimits(), discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(nil, nil, nil) }()
	f := fronttest.Connect(t, socket, drivertest.NewGuest(t, 1<<16))
	f.Send(99, 0, nil)
	var breach *vhostuser.Error
	if err := <-ended; !errors.As(err, &breach) {
		t.Errorf("server ended with %v, want a protocol error", err)
	}
}
