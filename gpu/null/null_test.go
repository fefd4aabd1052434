package null

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin/fatbintest"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
)

const source = `.version 6.0
.target sm_50
.address_size 64
.global .align 4 .u32 numbers[4] = {1, 2, 3, 4};
.visible .entry first(.param .u64 a, .param .u32 b) .maxntid 128 { frobnicate; ret; }
.visible .entry second() { ret; }
`

func open(t testing.TB, o Options) (worker.Driver, *Context) {
	t.Helper()
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := d.NewContext(0, nil, drivertest.Window(t, abi.MinWindow))
	if err != nil {
		t.Fatal(err)
	}
	return d, c.(*Context)
}

func wait(t testing.TB, what string, issue func(done func(error)) error) {
	t.Helper()
	ended := make(chan error, 1)
	if err := issue(func(err error) { ended <- err }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := patience.Receive(t, 20*time.Second, what, ended); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestReportsThatItComputesNothing(t *testing.T) {
	d, c := open(t, Options{})
	if name := d.Info().Name; !strings.Contains(name, "computes nothing") || len(name) > 26 {
		t.Errorf("name = %q, want at most 26 characters (as in nvidia-smi) that say that it computes nothing", name)
	}
	_, _, info, err := c.ModuleLoad([]byte(source), worker.ModuleOptions{})
	if err != nil || !strings.Contains(info.InfoLog, "none of which will run") {
		t.Errorf("ModuleLoad: log %q, %v, want that no kernel will run", info.InfoLog, err)
	}
	if _, err := New(Options{VRAM: maxVRAM + 1}); err == nil {
		t.Error("New of a device of more than 4 TiB returned no error")
	}
}

// Reads from the device return zeros, whatever was written and whatever was in
// the buffer, both within the call and in the context's goroutine.
func TestReadsZero(t *testing.T) {
	_, c := open(t, Options{})
	for _, n := range []int{64, maxInCall + 1} {
		p, err := c.MemAlloc(uint64(n))
		if err != nil {
			t.Fatal(err)
		}
		b := bytes.Repeat([]byte{0xee}, n)
		wait(t, "copy to the device", func(done func(error)) error { return c.CopyHtoD(nil, p, b, done) })
		if b[0] != 0xee || b[n-1] != 0xee {
			t.Error("a copy to the device changed its source")
		}
		wait(t, "copy from the device", func(done func(error)) error { return c.CopyDtoH(nil, b, p, done) })
		if !bytes.Equal(b, make([]byte, n)) {
			t.Errorf("read of %d bytes returned bytes that are not zero", n)
		}
	}
}

// Addresses are reused after the whole range has been used, and never belong to
// two allocations.
func TestAddressesComeRound(t *testing.T) {
	const size = 1 << 20
	_, c := open(t, Options{VRAM: 16 * size})
	seen, again := map[uint64]bool{}, false
	var held []uint64
	for range 200 {
		p, err := c.MemAlloc(size)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range held {
			if p < q+size && q < p+size {
				t.Fatalf("allocations at %#x and %#x overlap", p, q)
			}
		}
		again = again || seen[p]
		seen[p] = true
		if held = append(held, p); len(held) > 10 {
			i := int(p>>20) % len(held)
			if err := c.MemFree(held[i]); err != nil {
				t.Fatal(err)
			}
			held = append(held[:i], held[i+1:]...)
		}
	}
	if !again {
		t.Error("no address was reused")
	}
}

// A context cannot use the addresses of another.
func TestContextsAreApart(t *testing.T) {
	d, a := open(t, Options{})
	other, err := d.NewContext(0, nil, drivertest.Window(t, abi.MinWindow))
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.MemAlloc(64)
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.StreamCreate(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	e, err := a.EventCreate(0)
	if err != nil {
		t.Fatal(err)
	}
	m, f, _, err := a.ModuleLoad([]byte(source), worker.ModuleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	one := [3]uint32{1, 1, 1}
	for what, c := range map[string]struct{ got, want error }{
		"free":     {other.MemFree(p), abi.ErrInvalidValue},
		"copy":     {other.CopyHtoD(nil, p, make([]byte, 8), nil), abi.ErrInvalidValue},
		"stream":   {other.StreamQuery(s), abi.ErrInvalidHandle},
		"destroy":  {other.StreamDestroy(s), abi.ErrInvalidHandle},
		"event":    {other.EventRecord(e, nil), abi.ErrInvalidHandle},
		"module":   {other.ModuleUnload(m), abi.ErrInvalidHandle},
		"function": {other.Launch(nil, f[0], worker.Launch{Grid: one, Block: one}, nil), abi.ErrInvalidHandle},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s of another context = %v, want %v", what, c.got, c.want)
		}
	}
}

func TestLaunchIsChecked(t *testing.T) {
	_, c := open(t, Options{})
	_, f, _, err := c.ModuleLoad([]byte(source), worker.ModuleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	one := [3]uint32{1, 1, 1}
	for what, l := range map[string]struct {
		worker.Launch
		want error
	}{
		"right":             {worker.Launch{Grid: one, Block: one, Params: make([]byte, 12)}, nil},
		"few parameters":    {worker.Launch{Grid: one, Block: one, Params: make([]byte, 11)}, abi.ErrInvalidValue},
		"no grid":           {worker.Launch{Block: one, Params: make([]byte, 12)}, abi.ErrInvalidValue},
		"more than maxntid": {worker.Launch{Grid: one, Block: [3]uint32{129, 1, 1}, Params: make([]byte, 12)}, abi.ErrLaunchResources},
		"shared memory":     {worker.Launch{Grid: one, Block: one, Params: make([]byte, 12), Shared: maxSharedBytes + 1}, abi.ErrInvalidValue},
	} {
		if err := c.Launch(nil, f[0], l.Launch, nil); !errors.Is(err, l.want) {
			t.Errorf("%s: launch = %v, want %v", what, err, l.want)
		}
	}
}

// shutGate blocks until it is opened, and then fails.
type shutGate struct{ opened chan struct{} }

func (g shutGate) Enter() error       { <-g.opened; return abi.ErrUnavailable }
func (shutGate) Expired() bool        { return false }
func (shutGate) Leave(uint64, uint64) {}

// However much work waits for a lease, no call blocks: the worker bounds the
// work. It fails when the session ends.
func TestNoCallWaitsForTheGate(t *testing.T) {
	d, _ := open(t, Options{})
	g := shutGate{make(chan struct{})}
	ctx, err := d.NewContext(0, g, drivertest.Window(t, abi.MinWindow))
	if err != nil {
		t.Fatal(err)
	}
	c := ctx.(*Context)
	p, err := c.MemAlloc(8)
	if err != nil {
		t.Fatal(err)
	}
	for range 100_000 {
		if err := c.Memset(nil, p, 0, 4, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	close(g.opened)
	ended := make(chan error, 1)
	if err := c.Notify(func(err error) { ended <- err }); err != nil {
		ended <- err
	}
	if err := patience.Receive(t, 20*time.Second, "the work's end", ended); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("error of the work after the session's end = %v, want %v", err, abi.ErrUnavailable)
	}
}

func TestModules(t *testing.T) {
	_, c := open(t, Options{})
	for name, l := range map[string]struct {
		image     []byte
		functions string
		params    int // of the first function
		global    string
		size      uint64
	}{
		"PTX":                          {[]byte(source), "first second", 2, "numbers", 16},
		"PTX in a fatbin":              {fatbintest.Wrap(1, []byte(source)), "first second", 2, "numbers", 16},
		"machine code":                 {fatbintest.Cubin(), "k", 2, "v", 24},
		"machine code in a fatbin":     {fatbintest.Wrap(2, fatbintest.Cubin()), "k", 2, "v", 24},
		"PTX with zeros after its end": {append([]byte(source), 0, 0), "first second", 2, "numbers", 16},
	} {
		m, f, info, err := c.ModuleLoad(l.image, worker.ModuleOptions{})
		if err != nil {
			t.Errorf("%s: ModuleLoad = %v, want no error", name, err)
			continue
		}
		var names []string
		for _, f := range info.Functions {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != l.functions || len(f) != len(names) || len(info.Functions[0].Params) != l.params {
			t.Errorf("%s: functions %+v, want %s", name, info.Functions, l.functions)
		}
		if p := info.Functions[0].Params; p[0].Offset != 0 || p[0].Size != 8 || p[1].Offset != 8 || p[1].Size != 4 {
			t.Errorf("%s: parameters %+v, want 8 bytes at 0 and 4 at 8", name, p)
		}
		if len(info.Globals) != 1 || info.Globals[0].Name != l.global || info.Globals[0].Size != l.size {
			t.Errorf("%s: variables %+v, want %s of %d bytes", name, info.Globals, l.global, l.size)
		}
		if err := c.ModuleUnload(m); err != nil {
			t.Errorf("%s: ModuleUnload = %v, want no error", name, err)
		}
		if err := c.ModuleUnload(m); !errors.Is(err, abi.ErrInvalidHandle) {
			t.Errorf("%s: second ModuleUnload = %v, want %v", name, err, abi.ErrInvalidHandle)
		}
	}
	if used := c.d.mem.used; used != 0 {
		t.Errorf("%d bytes in use after all modules were unloaded, want 0", used)
	}
}

func TestBadModules(t *testing.T) {
	_, c := open(t, Options{VRAM: 1 << 20})
	other := fatbintest.Cubin()
	other[18] = 62 // x86-64
	for name, l := range map[string]struct {
		image []byte
		want  error
	}{
		"nothing":             {nil, abi.ErrInvalidPTX},
		"text":                {[]byte("this is no image"), abi.ErrInvalidPTX},
		"no end":              {[]byte(source[:strings.LastIndex(source, "}")]), abi.ErrInvalidPTX},
		"no target":           {[]byte(".version 6.0\n.address_size 64\n"), abi.ErrInvalidPTX},
		"extern variable":     {[]byte(".version 6.0\n.target sm_50\n.extern .global .u32 x;\n"), abi.ErrInvalidPTX},
		"too large variable":  {[]byte(".version 6.0\n.target sm_50\n.global .b8 x[2097152];\n"), abi.ErrOutOfMemory},
		"code for processors": {other, abi.ErrNoBinaryForGPU},
		"empty fatbin":        {fatbintest.Wrap(7, nil), abi.ErrNoBinaryForGPU},
		"cut fatbin":          {fatbintest.Wrap(1, []byte(source))[:100], abi.ErrInvalidImage},
		"text in a fatbin":    {fatbintest.Wrap(1, []byte("text")), abi.ErrInvalidPTX},
	} {
		_, _, info, err := c.ModuleLoad(l.image, worker.ModuleOptions{})
		if !errors.Is(err, l.want) || info.ErrorLog == "" {
			t.Errorf("%s: ModuleLoad = %v with log %q, want %v and a log", name, err, info.ErrorLog, l.want)
		}
	}
	good := fatbintest.Cubin()
	for i := range good { // every truncation is refused, and none panics
		if _, _, _, err := c.ModuleLoad(good[:i], worker.ModuleOptions{}); err == nil {
			t.Errorf("ModuleLoad of the first %d bytes of a cubin returned no error", i)
		}
	}
	if used := c.d.mem.used; used != 0 {
		t.Errorf("%d bytes in use after modules that could not be loaded, want 0", used)
	}
}

// FuzzModuleLoad checks that whatever a guest loads is a module or an error with
// a log.
func FuzzModuleLoad(f *testing.F) {
	for _, image := range [][]byte{[]byte(source), fatbintest.Cubin(), fatbintest.Wrap(1, []byte(source)), fatbintest.Wrap(2, fatbintest.Cubin())} {
		f.Add(image)
	}
	_, c := open(f, Options{VRAM: 64 << 20})
	f.Fuzz(func(t *testing.T, image []byte) {
		m, functions, info, err := c.ModuleLoad(image, worker.ModuleOptions{})
		if err != nil {
			if info.ErrorLog == "" {
				t.Errorf("ModuleLoad = %v without an error log", err)
			}
			return
		}
		if len(functions) != len(info.Functions) {
			t.Errorf("ModuleLoad returned %d functions, want the %d of its info", len(functions), len(info.Functions))
		}
		if err := c.ModuleUnload(m); err != nil {
			t.Error(err)
		}
		if c.d.mem.used != 0 {
			t.Errorf("%d bytes in use after the unload, want 0", c.d.mem.used)
		}
	})
}
