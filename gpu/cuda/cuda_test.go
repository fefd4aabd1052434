package cuda

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
)

// double is the compiled double of libcuda, with its log and its script.
type double struct{ library, log, script string }

func newDouble(t *testing.T, flags ...string) *double {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not installed; the double of libcuda needs it")
	}
	dir := t.TempDir()
	d := &double{filepath.Join(dir, "libcuda-double.so"), filepath.Join(dir, "log"), filepath.Join(dir, "script")}
	args := append(flags, "-shared", "-fPIC", "-O1", "-Wall", "-o", d.library, "testdata/double.c", "-lpthread")
	if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Fatalf("compile the double of libcuda: %v\n%s", err, out)
	}
	t.Setenv("DOUBLE_LOG", d.log)
	t.Setenv("DOUBLE_SCRIPT", d.script)
	return d
}

func (d *double) play(t *testing.T, script string) {
	t.Helper()
	if err := os.WriteFile(d.script, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
}

// take returns the log since the last call.
func (d *double) take(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(d.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	_ = os.Remove(d.log)
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// gate counts its uses; when expire is true, it ends each lease at once.
type gate struct {
	mu       sync.Mutex
	inside   bool
	entered  int
	launches uint64
	busy     uint64
	expire   bool
	refuse   error
}

func (g *gate) Enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside {
		panic("entered twice")
	}
	if g.refuse != nil {
		return g.refuse
	}
	g.inside, g.entered = true, g.entered+1
	return nil
}

func (g *gate) Expired() bool { g.mu.Lock(); defer g.mu.Unlock(); return g.expire }

func (g *gate) Leave(busy, launches uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.inside {
		panic("left without entering")
	}
	g.inside, g.launches, g.busy = false, g.launches+launches, g.busy+busy
}

func (g *gate) settled(t *testing.T) {
	t.Helper()
	for range 4000 {
		g.mu.Lock()
		inside := g.inside
		g.mu.Unlock()
		if !inside {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the gate was not left within the time limit")
}

func open(t *testing.T, d *double, g *gate) worker.Context {
	t.Helper()
	dev, err := Open(Options{Library: d.library})
	if err != nil {
		t.Fatal(err)
	}
	c, err := dev.NewContext(0, g, drivertest.Window(t, abi.MaxWindow))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// wait starts an asynchronous operation and waits for it.
func wait(t *testing.T, start func(done func(error)) error) error {
	t.Helper()
	got := make(chan error, 2)
	if err := start(func(err error) { got <- err }); err != nil {
		return err
	}
	return patience.Receive(t, 20*time.Second, "it is done", got)
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestOpen(t *testing.T) {
	d := newDouble(t)
	dev := must[worker.Driver](t)(Open(Options{Library: d.library, UUID: [16]byte(bytes.Repeat([]byte{0xa1}, 16))}))
	if i := dev.Info(); i.Name != "Double 1" || i.TotalMemory != 1<<33 || i.CUDAVersion != 12040 || i.Attributes[75] != 75 || i.Attributes[135] != 0 {
		t.Errorf("device = %+v, want Double 1 with 8 GiB, CUDA 12.4, attribute 75 of 75 and 135 of 0", i)
	}
	if _, err := Open(Options{Library: d.library, UUID: [16]byte{1}}); !errors.Is(err, abi.ErrNoDevice) {
		t.Errorf("Open of an unknown UUID = %v, want %v", err, abi.ErrNoDevice)
	}
	d.play(t, "cuInit 100\n")
	if _, err := Open(Options{Library: d.library}); !errors.Is(err, abi.ErrNoDevice) {
		t.Errorf("Open when cuInit fails = %v, want %v", err, abi.ErrNoDevice)
	}
	if _, err := Open(Options{Library: filepath.Join(t.TempDir(), "none.so")}); err == nil {
		t.Error("Open without a library returned no error")
	}
}

// A guest cannot choose how the worker's threads wait, or enable core dumps on the
// host.
func TestContextFlags(t *testing.T) {
	d := newDouble(t)
	dev := must[worker.Driver](t)(Open(Options{Library: d.library}))
	ctx := must[worker.Context](t)(dev.NewContext(0xffffffff, &gate{}, drivertest.Window(t, abi.MaxWindow)))
	if got := d.take(t); !slices.Contains(got, "cuCtxCreate flags=24 device=0") {
		t.Errorf("libcuda received %q, want flags 24", got)
	}
	if err := ctx.Destroy(); err != nil {
		t.Error(err)
	}
}

const source = `// double: a program
.version 8.0
.target sm_70
.address_size 64
.visible .global .align 4 .b8 counter[12];
.visible .entry first(.param .u64 p) { ret; }
.visible .entry second(.param .u64 p, .param .u32 n) { ret; }
`

func TestProgram(t *testing.T) {
	for _, flags := range [][]string{nil, {"-DOLD"}} {
		d, g := newDouble(t, flags...), &gate{}
		c := open(t, d, g)
		d.take(t)
		_, functions, info, err := c.ModuleLoad([]byte(source), worker.ModuleOptions{OptLevel: 4, MaxRegisters: 32})
		if err != nil {
			t.Fatal(err)
		}
		want := []abi.FunctionInfo{{Name: "first", Params: []abi.ParamInfo{{Offset: 0, Size: 8}}}, {Name: "second", Params: []abi.ParamInfo{{Offset: 0, Size: 8}, {Offset: 8, Size: 4}}}}
		for i := range want {
			for a := range want[i].Attributes {
				want[i].Attributes[a] = int32((i+1)*100 + a)
			}
		}
		if diff := cmp.Diff(want, info.Functions); diff != "" {
			t.Fatalf("functions mismatch (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]abi.GlobalInfo{{Name: "counter", Address: 0x77000, Size: 12}}, info.Globals); diff != "" || info.InfoLog != "double: info" {
			t.Fatalf("globals mismatch (-want +got):\n%s\ninfo log %q, want double: info", diff, info.InfoLog)
		}
		s := must[worker.Stream](t)(c.StreamCreate(worker.StreamNonBlocking, -1))
		a := must[uint64](t)(c.MemAlloc(1000))
		host := make([]byte, 1000)
		if err := wait(t, func(done func(error)) error { return c.CopyDtoH(nil, host, a, done) }); err != nil || !bytes.Equal(host, make([]byte, 1000)) {
			t.Fatalf("new memory is not zero, or the copy failed: %v", err)
		}
		if err := c.Memset(s, a, 0x01020304, 4, 250, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Launch(s, functions[1], worker.Launch{Grid: [3]uint32{2, 3, 4}, Block: [3]uint32{32, 1, 1}, Shared: 64, Params: []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0}}, nil); err != nil {
			t.Fatal(err)
		}
		e := must[worker.Event](t)(c.EventCreate(0))
		if err := errors.Join(c.EventRecord(e, s), c.StreamWaitEvent(nil, e)); err != nil {
			t.Fatal(err)
		}
		if err := wait(t, func(done func(error)) error { return c.CopyDtoH(s, host, a, done) }); err != nil || host[0] != 4 || host[999] != 1 {
			t.Fatalf("copy after the launches: %v, first bytes % x", err, host[:8])
		}
		if err := wait(t, c.Notify); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.StreamQuery(s), c.StreamQuery(nil), c.EventQuery(e)); err != nil {
			t.Error(err)
		}
		if err := errors.Join(c.MemFree(a), wait(t, c.Notify)); err != nil {
			t.Fatal(err)
		}
		g.settled(t)
		if g.launches != 1 || g.busy == 0 {
			t.Errorf("metered %d launches and %d ns, want 1 launch and more than 0 ns", g.launches, g.busy)
		}
		wantLog := []string{
			"jit max registers 32", "cuModuleLoadDataEx", "stream flags 1 priority -1",
			"cuMemCreate 2097152", "cuMemMap 2097152", "DtoH 1000 stream 0",
			"launch second grid 2 3 4 block 32 1 1 shared 64 stream 1 params 010203040506070809000000",
			"wait flags 0", "DtoH 1000 stream 1", "cuMemUnmap 2097152", "cuMemRelease",
		}
		got := d.take(t)
		for w := patience.Start(); len(got) < len(wantLog) && !w.Over(10*time.Second); { // memory is freed when the batch is over
			time.Sleep(time.Millisecond)
			got = slices.DeleteFunc(append(got, d.take(t)...), func(l string) bool { return l == "" })
		}
		// There is no order between the two streams: stream 0 may wait after stream 1 has copied.
		if waits, copies := slices.Index(got, "wait flags 0"), slices.Index(got, "DtoH 1000 stream 1"); waits == copies+1 && copies > 0 {
			got[waits], got[copies] = got[copies], got[waits]
		}
		if diff := cmp.Diff(wantLog, got); diff != "" {
			t.Errorf("calls mismatch (-want +got):\n%s", diff)
		}
	}
}

// A copy of more chunks than there are is complete.
func TestBigCopies(t *testing.T) {
	d := newDouble(t)
	c := open(t, d, &gate{})
	in := make([]byte, (chunkCount+2)*chunkSize+12345)
	for i := range in {
		in[i] = byte(i * 7 >> 3)
	}
	a := must[uint64](t)(c.MemAlloc(uint64(len(in))))
	if err := c.CopyHtoD(nil, a, in, nil); err != nil {
		t.Fatal(err)
	}
	back := make([]byte, len(in))
	if err := wait(t, func(done func(error)) error { return c.CopyDtoH(nil, back, a, done) }); err != nil || !bytes.Equal(in, back) {
		t.Fatalf("copy back: %v, equal: %v", err, bytes.Equal(in, back))
	}
	if err := wait(t, func(done func(error)) error { return c.CopyHtoD(nil, a, nil, done) }); err != nil {
		t.Errorf("empty copy = %v, want no error", err)
	}
}

// When every lease ends at once, the work is still done, each batch in a turn of
// its own, and never two at a time.
func TestShortLeases(t *testing.T) {
	d, g := newDouble(t), &gate{expire: true}
	c := open(t, d, g)
	_, f, _, err := c.ModuleLoad([]byte(source), worker.ModuleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := c.Launch(nil, f[0], worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := wait(t, c.Notify); err != nil {
		t.Fatal(err)
	}
	g.settled(t)
	if g.launches != 20 || g.entered < 20 {
		t.Errorf("%d launches in %d turns, want 20 in at least 20", g.launches, g.entered)
	}
}

func TestErrors(t *testing.T) {
	launch := worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	for name, c := range map[string]struct {
		script string
		first  error // of the operation
		later  error // of the context
	}{
		"illegal address at the end":   {"cuEventQuery 700\n", abi.ErrIllegalAddress, abi.ErrIllegalAddress},
		"not ready is no error":        {"cuEventQuery 600\ncuEventQuery 600\n", nil, nil},
		"refused, the context is well": {"cuLaunchKernel 701\n", abi.ErrLaunchResources, abi.ErrLaunchResources},
		"an error of one call is its":  {"cuLaunchKernel 1\n", abi.ErrInvalidValue, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDouble(t)
			ctx := open(t, d, &gate{})
			_, f, _, err := ctx.ModuleLoad([]byte(source), worker.ModuleOptions{})
			if err != nil {
				t.Fatal(err)
			}
			d.play(t, c.script)
			if err := wait(t, func(done func(error)) error { return ctx.Launch(nil, f[0], launch, done) }); !errors.Is(err, c.first) {
				t.Errorf("launch = %v, want %v", err, c.first)
			}
			_, err = ctx.MemAlloc(1)
			if !errors.Is(err, c.later) {
				t.Errorf("MemAlloc after the launch = %v, want %v", err, c.later)
			}
			if err := wait(t, ctx.Notify); !errors.Is(err, c.later) {
				t.Errorf("Notify after the launch = %v, want %v", err, c.later)
			}
		})
	}
}

// A cooperative launch passes on its grid, block and parameters like any other.
func TestCooperativeLaunch(t *testing.T) {
	d := newDouble(t)
	c := open(t, d, &gate{})
	_, f, _, err := c.ModuleLoad([]byte(source), worker.ModuleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.take(t)
	if err := wait(t, func(done func(error)) error {
		return c.Launch(nil, f[1], worker.Launch{Grid: [3]uint32{2, 3, 4}, Block: [3]uint32{32, 2, 1}, Shared: 64, Cooperative: true, Params: []byte{1, 2, 3, 4}}, done)
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"cooperative", "launch second grid 2 3 4 block 32 2 1 shared 64 stream 0 params 01020304"}
	if got := d.take(t); !slices.Equal(got, want) {
		t.Errorf("libcuda received %q, want %q", got, want)
	}
}

// A launch in clusters does too.
func TestClusterLaunch(t *testing.T) {
	d := newDouble(t)
	c := open(t, d, &gate{})
	_, f, _, err := c.ModuleLoad([]byte(source), worker.ModuleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.take(t)
	l := worker.Launch{Grid: [3]uint32{4, 2, 2}, Block: [3]uint32{32, 1, 1}, Cooperative: true, Cluster: [3]uint32{4, 2, 1}, Params: []byte{1, 2, 3, 4}}
	if err := wait(t, func(done func(error)) error { return c.Launch(nil, f[1], l, done) }); err != nil {
		t.Fatal(err)
	}
	want := []string{"cooperative", "cluster 4 2 1", "launch second grid 4 2 2 block 32 1 1 shared 0 stream 0 params 01020304"}
	if got := d.take(t); !slices.Equal(got, want) {
		t.Errorf("libcuda received %q, want %q", got, want)
	}
}

// A launch's attributes reach libcuda, except a window outside the program's
// memory.
func TestLaunchAttributes(t *testing.T) {
	d := newDouble(t)
	c := open(t, d, &gate{})
	_, f, _, err := c.ModuleLoad([]byte(source), worker.ModuleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.MemAlloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	window := abi.StreamAttrValue{Case: 1, AccessPolicyWindowBasePtr: p, AccessPolicyWindowNumBytes: 4096, AccessPolicyWindowHitRatio: 0.25, AccessPolicyWindowHitProp: 2, AccessPolicyWindowMissProp: 1}
	foreign := window
	foreign.AccessPolicyWindowNumBytes = 1 << 40
	launch := worker.Launch{
		Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: []byte{1, 2, 3, 4},
		Attributes: []abi.StreamAttrValue{window, foreign, {Case: 8, Priority: -2}},
	}
	d.take(t)
	if err := wait(t, func(done func(error)) error { return c.Launch(nil, f[1], launch, done) }); err != nil {
		t.Fatal(err)
	}
	want := []string{"window of 4096 bytes, hit 0.25 2 miss 1", "priority -2", "launch second grid 1 1 1 block 1 1 1 shared 0 stream 0 params 01020304"}
	if got := d.take(t); !slices.Equal(got, want) {
		t.Errorf("libcuda received %q, want %q", got, want)
	}
}

func TestRefusals(t *testing.T) {
	d, g := newDouble(t), &gate{}
	c := open(t, d, g)
	if _, _, info, err := c.ModuleLoad([]byte("broken"), worker.ModuleOptions{}); !errors.Is(err, abi.ErrInvalidPTX) || info.ErrorLog != "double: line 1: broken" {
		t.Errorf("ModuleLoad of a broken image = %v with log %q, want %v with double: line 1: broken", err, info.ErrorLog, abi.ErrInvalidPTX)
	}
	_, f, _, err := c.ModuleLoad([]byte(source), worker.ModuleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []worker.Launch{{}, {Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1024, 2, 1}}, {Grid: [3]uint32{1 << 31, 1, 1}, Block: [3]uint32{1, 1, 1}}} {
		if err := c.Launch(nil, f[0], l, nil); !errors.Is(err, abi.ErrInvalidValue) {
			t.Errorf("launch %+v = %v, want %v", l, err, abi.ErrInvalidValue)
		}
	}
	if err := c.Launch(nil, nil, worker.Launch{}, nil); !errors.Is(err, abi.ErrInvalidHandle) {
		t.Errorf("launch without a function = %v, want %v", err, abi.ErrInvalidHandle)
	}
	if err := c.Memset(nil, 0, 0, 3, 1, nil); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("memset of width 3 = %v, want %v", err, abi.ErrInvalidValue)
	}
	d.play(t, "cuMemCreate 2\n")
	if _, err := c.MemAlloc(1); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("error = %v, want %v", err, abi.ErrOutOfMemory)
	}
	g.mu.Lock()
	g.refuse = errors.New("the session ends")
	g.mu.Unlock()
	one := worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	if err := wait(t, func(done func(error)) error { return c.Launch(nil, f[0], one, done) }); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("launch with a closed gate = %v, want %v", err, abi.ErrUnavailable)
	}
	if err := c.Destroy(); err != nil {
		t.Error(err)
	}
	if err := c.Notify(nil); err == nil {
		t.Error("Notify of a destroyed context returned no error")
	}
	if !slices.Contains(d.take(t), "cuCtxDestroy") {
		t.Error("cuCtxDestroy was not called")
	}
}

// TestConformance runs the suite of all drivers, as far as a library without
// kernels can pass it.
func TestConformance(t *testing.T) {
	d := newDouble(t)
	t.Setenv("DOUBLE_LOG", "")
	for name, d := range map[string]*double{"virtual memory": d, "pinned": newDouble(t, "-DPINNED")} {
		o := drivertest.Options{Image: []byte("double: conformance"), Loops: 1, Unplaced: name == "pinned"}
		t.Run(name, func(t *testing.T) {
			t.Setenv("DOUBLE_VRAM", strconv.Itoa(64<<20))
			drivertest.Run(t, func(t *testing.T) worker.Driver {
				return must[worker.Driver](t)(Open(Options{Library: d.library}))
			}, o)
		})
	}
}

// Whatever fails on the way, Evict and Restore change nothing, and the memory can
// be used.
func TestFailedMovesChangeNothing(t *testing.T) {
	d, g := newDouble(t), &gate{}
	t.Setenv("DOUBLE_LOG", "")
	c := open(t, d, g)
	const size = 150 << 20 // three pieces
	p := must[uint64](t)(c.MemAlloc(size))
	small := must[uint64](t)(c.MemAlloc(1000))
	want := bytes.Repeat([]byte("basalt"), 100_000)
	write := func(at uint64) error {
		return wait(t, func(done func(error)) error { return c.CopyHtoD(nil, at, want, done) })
	}
	if err := errors.Join(write(p), write(p+size-uint64(len(want)))); err != nil {
		t.Fatal(err)
	}
	g.settled(t)
	evict := func() error { _, err := c.Evict(1 << 40); return err }
	for _, f := range []struct {
		call string
		move func() error
	}{
		{"cuMemcpyDtoHAsync 999", evict},
		{"", evict}, // evicted from here on
		{"cuMemCreate 2", c.Restore},
		{"cuMemMap 999", c.Restore},
		{"cuMemSetAccess 999", c.Restore},
		{"cuMemcpyHtoDAsync 999", c.Restore},
		{"", c.Restore},
	} {
		d.play(t, f.call+" ")
		if f.call == "" {
			d.play(t, "")
		}
		if err := f.move(); (err != nil) != (f.call != "") {
			t.Fatalf("Evict or Restore with a failing %q = %v", f.call, err)
		}
	}
	got := make([]byte, len(want))
	for _, at := range []uint64{p, p + size - uint64(len(want))} {
		if err := wait(t, func(done func(error)) error { return c.CopyDtoH(nil, got, at, done) }); err != nil || !bytes.Equal(got, want) {
			t.Errorf("contents at %#x changed, or the copy failed: %v", at, err)
		}
	}
	if err := errors.Join(c.MemFree(p), c.MemFree(small), wait(t, c.Notify)); err != nil {
		t.Error(err)
	}
}
