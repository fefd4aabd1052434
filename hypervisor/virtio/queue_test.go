package virtio_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/hypervisor/virtio"
	"github.com/basalt-gpu/basalt/hypervisor/virtio/drivertest"
)

var limits = virtio.Limits{Descriptors: 16, Bytes: 1 << 20}

const all = virtio.FeatureIndirect | virtio.FeatureEventIdx

func setup(t testing.TB, size uint16, features uint64) (*drivertest.Guest, *drivertest.Driver, *virtio.Queue) {
	t.Helper()
	g := drivertest.NewGuest(t, 1<<20)
	d := drivertest.NewDriver(g, size)
	q, err := virtio.NewQueue(g.Map(), d.Layout, virtio.Position{}, features, limits)
	if err != nil {
		t.Fatal(err)
	}
	return g, d, q
}

func pop(t *testing.T, q *virtio.Queue) *virtio.Chain {
	t.Helper()
	c, err := q.Pop()
	if err != nil || c == nil {
		t.Fatalf("Pop = %v, %v, want a chain", c, err)
	}
	return c
}

// TestRequests checks that requests of several buffers arrive whole and in
// order, that answers arrive, and that indices wrap around.
func TestRequests(t *testing.T) {
	for _, indirect := range []bool{false, true} {
		g, d, q := setup(t, 8, all)
		in1, b1 := g.Alloc(5, 1)
		in2, b2 := g.Alloc(6, 1)
		out, ob := g.Alloc(4, 1)
		copy(b1, "hello")
		copy(b2, " world")
		bufs := []drivertest.Buffer{{GPA: in1, Length: 5}, {GPA: in2, Length: 6}, {GPA: out, Length: 4, Write: true}}
		rounds := 70000 // more than the range of an index
		if indirect {
			rounds = 100
		}
		for i := range rounds {
			submit := d.Submit
			if indirect {
				submit = d.SubmitIndirect
			}
			head := submit(bufs...)
			c := pop(t, q)
			got := make([]byte, 20)
			got = got[:c.Read(got, 0)]
			tail := make([]byte, 4)
			if c.Read(tail, 4); string(got) != "hello world" || string(tail) != "o wo" || c.Head != head || c.In != 11 || c.Out != 4 {
				t.Fatalf("round %d: read %q and %q of %+v, want hello world and \"o wo\" of head %d with 11 bytes in and 4 out", i, got, tail, c, head)
			}
			if n := c.Write([]byte("answer")); n != 4 || !bytes.Equal(ob, []byte("answ")) {
				t.Fatalf("Write = %d, buffer %q, want 4 bytes: answ", n, ob)
			}
			q.Push(c.Head, 4)
			if u := d.Collect(); len(u) != 1 || u[0] != (drivertest.Used{Head: head, Written: 4}) {
				t.Fatalf("round %d: used chains = %v, want head %d with 4 bytes", i, u, head)
			}
		}
		if c, err := q.Pop(); c != nil || err != nil {
			t.Fatalf("Pop of an empty queue = %v, %v, want none", c, err)
		}
	}
}

// TestOutOfOrder checks that chains can be returned in another order, and that
// a chain can be walked again later.
func TestOutOfOrder(t *testing.T) {
	g, d, q := setup(t, 8, all)
	gpa, b := g.Alloc(8, 1)
	h1 := d.Submit(drivertest.Buffer{GPA: gpa, Length: 4, Write: true})
	h2 := d.Submit(drivertest.Buffer{GPA: gpa + 4, Length: 4, Write: true})
	pop(t, q)
	q.Push(pop(t, q).Head, 1)
	c, err := q.Walk(h1)
	if err != nil {
		t.Fatal(err)
	}
	q.Push(h1, uint32(c.Write([]byte("late"))))
	if u := d.Collect(); len(u) != 2 || u[0].Head != h2 || u[1].Head != h1 || string(b[:4]) != "late" {
		t.Fatalf("used chains = %v, first buffer %q, want heads %d and %d, and late", u, b, h2, h1)
	}
}

// TestEvents checks that kicks and interrupts follow the event indices
// (2.7.10, 2.7.7), and that the available event is written even if it was not
// negotiated.
func TestEvents(t *testing.T) {
	for _, features := range []uint64{0, virtio.FeatureEventIdx} {
		g, d, q := setup(t, 8, features)
		gpa, _ := g.Alloc(4, 1)
		buf := drivertest.Buffer{GPA: gpa, Length: 4, Write: true}
		if q.Arm() {
			t.Error("Arm of an empty queue = true, want false")
		}
		d.Submit(buf)
		if !q.Arm() {
			t.Error("Arm with an available entry = false, want true")
		}
		q.Push(pop(t, q).Head, 0)
		if q.Arm() || d.AvailEvent() != 1 {
			t.Errorf("Arm after one request: avail_event = %d, want 1 and no more entries", d.AvailEvent())
		}
		q.Notify()
		d.SetUsedEvent(2) // interrupt at the third
		d.SetNoInterrupt(1)
		for i := range 3 {
			d.Submit(buf)
			q.Push(pop(t, q).Head, 0)
			want := features != 0 && i == 1
			if got := q.Notify(); got != want {
				t.Errorf("features %#x, request %d: Notify = %v, want %v", features, i+1, got, want)
			}
		}
		if d.SetNoInterrupt(0); features == 0 && !q.Notify() {
			t.Error("Notify without NO_INTERRUPT = false, want true")
		}
	}
}

func TestHostileDriver(t *testing.T) {
	const ok, missing = drivertest.Base, 0x10
	b := func(gpa uint64, n uint32) drivertest.Buffer { return drivertest.Buffer{GPA: gpa, Length: n} }
	w := func(gpa uint64, n uint32) drivertest.Buffer {
		return drivertest.Buffer{GPA: gpa, Length: n, Write: true}
	}
	cases := []struct {
		name, want string
		features   uint64
		do         func(g *drivertest.Guest, d *drivertest.Driver)
	}{
		{"loop", "at most 16 descriptors", all, func(_ *drivertest.Guest, d *drivertest.Driver) {
			d.PutDesc(0, b(ok, 1), 1, 1)
			d.PutDesc(1, b(ok, 1), 1, 0)
			d.MakeAvailable(0)
		}},
		{"head out of range", "descriptor 8 is out of range", all, func(_ *drivertest.Guest, d *drivertest.Driver) { d.MakeAvailable(8) }},
		{"next out of range", "descriptor 65535 is out of range", all, func(_ *drivertest.Guest, d *drivertest.Driver) {
			d.PutDesc(0, b(ok, 1), 1, 0xffff)
			d.MakeAvailable(0)
		}},
		{"no memory", "outside of guest memory", all, func(_ *drivertest.Guest, d *drivertest.Driver) { d.Submit(b(missing, 1)) }},
		{"past the end", "outside of guest memory", all, func(_ *drivertest.Guest, d *drivertest.Driver) {
			d.Submit(b(drivertest.Base+1<<20-4, 8))
		}},
		{"address wraps", "outside of guest memory", all, func(_ *drivertest.Guest, d *drivertest.Driver) {
			d.Submit(b(^uint64(0)-3, 8))
		}},
		{"too much", "at most 1048576 bytes", all, func(_ *drivertest.Guest, d *drivertest.Driver) {
			d.Submit(b(ok, 1<<20), b(ok, 1))
		}},
		{"huge", "at most 1048576 bytes", all, func(_ *drivertest.Guest, d *drivertest.Driver) { d.Submit(b(ok, 0xffffffff)) }},
		{"readable after writable", "readable descriptor after", all, func(_ *drivertest.Guest, d *drivertest.Driver) {
			d.Submit(w(ok, 1), b(ok, 1))
		}},
		{"index runs away", "9 available chains, want at most the queue size 8", all, func(_ *drivertest.Guest, d *drivertest.Driver) { d.SetAvailIndex(9) }},
		{"indirect not negotiated", "without the negotiated feature", virtio.FeatureEventIdx, func(_ *drivertest.Guest, d *drivertest.Driver) {
			d.SubmitIndirect(b(ok, 1))
		}},
		{"indirect in indirect", "inside an indirect", all, func(g *drivertest.Guest, d *drivertest.Driver) {
			inner, _ := g.Alloc(16, 16)
			d.SubmitIndirect(b(inner, 16))
			// Turn its only entry into an indirect descriptor.
			g.At(inner+16, 16)[12] = 4
		}},
		{"indirect with next", "indirect descriptor has flag NEXT", all, func(_ *drivertest.Guest, d *drivertest.Driver) {
			d.PutDesc(0, b(ok, 16), 4|1, 1)
			d.MakeAvailable(0)
		}},
		{"indirect of odd size", "indirect table size of 17", all, func(_ *drivertest.Guest, d *drivertest.Driver) {
			d.PutDesc(0, b(ok, 17), 4, 0)
			d.MakeAvailable(0)
		}},
		{"indirect elsewhere", "does not exist", all, func(_ *drivertest.Guest, d *drivertest.Driver) {
			d.PutDesc(0, b(missing, 16), 4, 0)
			d.MakeAvailable(0)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g, d, q := setup(t, 8, c.features)
			c.do(g, d)
			_, err := q.Pop()
			var typed *virtio.Error
			if !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("Pop = %v, want a *virtio.Error with %q", err, c.want)
			}
		})
	}
}

func TestBadLayouts(t *testing.T) {
	g := drivertest.NewGuest(t, 1<<16)
	m := g.Map()
	const at = drivertest.Base
	for _, l := range []virtio.Layout{
		{Size: 0, Desc: at, Avail: at, Used: at},
		{Size: 3, Desc: at, Avail: at, Used: at},
		{Size: 8, Desc: at + 8, Avail: at, Used: at},
		{Size: 8, Desc: at, Avail: at + 1, Used: at},
		{Size: 8, Desc: at, Avail: at, Used: at + 2},
		{Size: 8, Desc: 0, Avail: at, Used: at},
		{Size: 8, Desc: at, Avail: at + 1<<16 - 8, Used: at},
		{Size: 32768, Desc: at, Avail: at, Used: at},
	} {
		if _, err := virtio.NewQueue(m, l, virtio.Position{}, all, limits); err == nil {
			t.Errorf("NewQueue at %+v = nil, want an error", l)
		}
	}
}

// TestResume checks that a queue continues where the previous device stopped,
// and that only one that was never used is reported as unused.
func TestResume(t *testing.T) {
	g, d, q := setup(t, 8, all)
	if !q.Unused() {
		t.Error("Unused of a new queue = false, want true")
	}
	gpa, _ := g.Alloc(4, 1)
	d.Submit(drivertest.Buffer{GPA: gpa, Length: 4})
	q.Push(pop(t, q).Head, 0)
	second, err := virtio.NewQueue(g.Map(), d.Layout, virtio.Position{Avail: q.Position().Avail}, all, limits)
	if err != nil {
		t.Fatal(err)
	}
	if second.Resume(); second.Unused() || second.Position() != (virtio.Position{Avail: 1, Used: 1}) {
		t.Errorf("resumed queue: unused %v at %+v, want a used one at 1, 1", second.Unused(), second.Position())
	}
}

func TestMemory(t *testing.T) {
	file := func(size int64) int {
		f, err := os.Create(filepath.Join(t.TempDir(), "mem"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		f.Truncate(size)
		fd, _ := unix.Dup(int(f.Fd()))
		return fd
	}
	bad := map[string][]virtio.Region{
		"overlap":    {{GPA: 0, Size: 0x2000, FD: file(0x4000)}, {GPA: 0x1000, Size: 0x1000, FD: file(0x4000)}},
		"beyond EOF": {{GPA: 0, Size: 0x2000, Offset: 0x3000, FD: file(0x4000)}},
		"unaligned":  {{GPA: 0x800, Size: 0x1000, FD: file(0x4000)}},
		"wraps":      {{GPA: ^uint64(0) - 0xfff, Size: 0x2000, FD: file(0x4000)}},
		"empty":      {{GPA: 0, Size: 0, FD: file(0x4000)}},
		"too many":   make([]virtio.Region, 9),
	}
	for i := range bad["too many"] {
		bad["too many"][i] = virtio.Region{GPA: uint64(i) << 12, Size: 0x1000, FD: file(0x1000)}
	}
	for name, r := range bad {
		if _, err := virtio.Map(r); err == nil {
			t.Errorf("Map of %s = nil, want an error", name)
		}
		for _, r := range r {
			if _, err := unix.FcntlInt(uintptr(r.FD), unix.F_GETFD, 0); err == nil {
				t.Errorf("Map of %s left a file descriptor open, want it closed", name)
			}
		}
	}
	// Two adjacent regions: found in either order, buffers may cross.
	m, err := virtio.Map([]virtio.Region{
		{GPA: 0x4000, Size: 0x2000, UserAddr: 0x90000, FD: file(0x2000)},
		{GPA: 0x2000, Size: 0x2000, UserAddr: 0x10000, Offset: 0x1000, FD: file(0x4000)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Size() != 0x4000 || m.Regions()[0].GPA != 0x2000 {
		t.Errorf("memory of %#x bytes in %+v, want 0x4000 from 0x2000", m.Size(), m.Regions())
	}
	list, err := m.Extents(nil, 0x3000, 0x2000)
	if err != nil || len(list) != 2 || list[0] != (virtio.Extent{Region: 0, Offset: 0x2000, Length: 0x1000}) || list[1] != (virtio.Extent{Region: 1, Offset: 0, Length: 0x1000}) {
		t.Errorf("Extents over both regions = %+v, %v, want the end of the first and the start of the second", list, err)
	}
	if list, _ = m.Extents(list, 0x5000, 0x1000); len(list) != 2 || list[1].Length != 0x2000 {
		t.Errorf("consecutive extents = %+v, want them merged to 0x2000 bytes", list)
	}
	if _, err := m.Extents(nil, 0x5000, 0x1001); err == nil {
		t.Error("Extents beyond the end = nil, want an error")
	}
	if _, err := m.Bytes(0x3fff, 2); err == nil {
		t.Error("Bytes across two regions = nil, want an error")
	}
	if gpa, err := m.FromUser(0x91000, 0x1000); gpa != 0x5000 || err != nil {
		t.Errorf("FromUser = %#x, %v, want 0x5000", gpa, err)
	}
	if _, err := m.FromUser(0x91000, 0x1001); err == nil {
		t.Error("FromUser beyond the end = nil, want an error")
	}
}

// FuzzQueue checks that for any content of the guest's memory a queue returns
// chains within the limits or a typed error, and ends.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{}, uint16(1))
	f.Add(bytes.Repeat([]byte{0, 0, 0x10, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1, 0, 1, 0}, 8), uint16(3))
	f.Add(bytes.Repeat([]byte{0, 0, 0x10, 0, 0, 0, 0, 0, 16, 0, 0, 0, 4, 0, 0, 0}, 8), uint16(8))
	g := drivertest.NewGuest(f, 1<<16)
	d := drivertest.NewDriver(g, 8)
	m := g.Map()
	f.Fuzz(func(t *testing.T, mem []byte, avail uint16) {
		clear(g.Mem)
		copy(g.Mem, mem)
		d.SetAvailIndex(avail)
		q, err := virtio.NewQueue(m, d.Layout, virtio.Position{}, all, limits)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; ; n++ {
			c, err := q.Pop()
			var typed *virtio.Error
			if err != nil && !errors.As(err, &typed) {
				t.Fatalf("Pop = %v, want a *virtio.Error", err)
			}
			if err != nil || c == nil {
				break
			}
			// Buffers are written only after the rings, which would change otherwise.
			if n > 1<<16 || c.In+c.Out > limits.Bytes || len(c.Readable)+len(c.Writable) > limits.Descriptors {
				t.Fatalf("chain %d = %+v, want at most %+v and %d chains", n, c, limits, 1<<16)
			}
			c.Read(make([]byte, 64), 3)
			q.Push(c.Head, 0)
			q.Notify()
		}
		q.Arm()
	})
}
