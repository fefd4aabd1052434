package cuda

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin/fatbintest"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/codecache"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
)

// newCache returns a function that opens a new cache as a worker does.
func newCache(t *testing.T) func() *codecache.Cache {
	t.Helper()
	f, err := codecache.Create()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return func() *codecache.Cache {
		fd := must[int](t)(unix.Dup(int(f.Fd())))
		c := must[*codecache.Cache](t)(codecache.Open(fd))
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

// start returns a context as a worker that is started with the cache has it.
func start(t *testing.T, d *double, cache Cache) worker.Context {
	t.Helper()
	dev := must[worker.Driver](t)(Open(Options{Library: d.library, Cache: cache}))
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return must[worker.Context](t)(dev.NewContext(0, &gate{}, drivertest.Window(t, abi.MaxWindow)))
}

// compiles reports whether libcuda compiles an image that a new worker loads, which must
// have the functions and variables of source.
func compiles(t *testing.T, d *double, cache Cache, image []byte, o worker.ModuleOptions) bool {
	t.Helper()
	c := start(t, d, cache)
	d.take(t)
	m, functions, info, err := c.ModuleLoad(image, o)
	if err != nil {
		t.Fatal(err, info.ErrorLog)
	}
	if len(functions) != 2 || len(info.Globals) != 1 {
		t.Errorf("%d functions, %d variables, want 2 and 1", len(functions), len(info.Globals))
	}
	log := d.take(t)
	if !slices.Contains(log, "cuModuleLoadDataEx") {
		t.Errorf("libcuda received %q, want that it loads a module", log)
	}
	if err := c.ModuleUnload(m); err != nil {
		t.Error(err)
	}
	return slices.ContainsFunc(log, func(l string) bool { return len(l) > 13 && l[:13] == "cuLinkAddData" })
}

// PTX is compiled once: the next worker of the vGPU loads the code, unless anything that
// it depends on is different.
func TestCompiledCodeIsKept(t *testing.T) {
	d, cache := newDouble(t), newCache(t)
	linked := linkImage(abi.LinkObject{Type: 1, Name: "a.ptx", Image: []byte(source)}, abi.LinkObject{Type: 2, Name: "b", Image: []byte("\x50\xed\x55\xba double:")})
	for _, test := range []struct {
		name  string
		image []byte
		o     worker.ModuleOptions
		want  bool
	}{
		{"first start", []byte(source), worker.ModuleOptions{OptLevel: 4}, true},
		{"second start", []byte(source), worker.ModuleOptions{OptLevel: 4}, false},
		{"with a NUL", []byte(source + "\x00"), worker.ModuleOptions{OptLevel: 4, Lazy: true}, false},
		{"in a fatbin", fatbintest.WrapFor(1, 70, []byte(source)), worker.ModuleOptions{OptLevel: 4}, false},
		{"other PTX in a fatbin", fatbintest.WrapFor(1, 70, []byte(source+"// in a fatbin")), worker.ModuleOptions{OptLevel: 4}, true},
		{"other PTX in a fatbin again", fatbintest.WrapFor(1, 70, []byte(source+"// in a fatbin")), worker.ModuleOptions{OptLevel: 4}, false},
		{"other registers", []byte(source), worker.ModuleOptions{OptLevel: 4, MaxRegisters: 32}, true},
		{"other level", []byte(source), worker.ModuleOptions{OptLevel: 3}, true},
		{"other PTX", []byte(source + " "), worker.ModuleOptions{OptLevel: 4}, true},
		{"several objects", linked, worker.ModuleOptions{OptLevel: 4}, true},
		{"several objects again", linked, worker.ModuleOptions{OptLevel: 4}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := compiles(t, d, cache(), test.image, test.o); got != test.want {
				t.Errorf("compiled is %v, want %v", got, test.want)
			}
		})
	}
	t.Run("another vGPU", func(t *testing.T) {
		if !compiles(t, d, newCache(t)(), []byte(source), worker.ModuleOptions{OptLevel: 4}) {
			t.Error("a worker of another vGPU loaded code without compiling it")
		}
	})
}

// The driver's version and the kind of card are part of the key.
func TestCodeOfAnotherDriver(t *testing.T) {
	objects := []abi.LinkObject{{Type: 1, Name: "module", Image: []byte(source)}}
	base := func() *driver {
		return &driver{info: abi.DeviceInfoReply{Name: "card", DriverVersion: "580.1", CUDAVersion: 13000, Attributes: make([]int32, attributes)}}
	}
	keys := map[[32]byte]string{}
	for name, change := range map[string]func(*driver){
		"none": func(*driver) {}, "name": func(d *driver) { d.info.Name = "card 2" }, "driver": func(d *driver) { d.info.DriverVersion = "580.2" },
		"CUDA": func(d *driver) { d.info.CUDAVersion++ }, "major": func(d *driver) { d.info.Attributes[75] = 9 }, "minor": func(d *driver) { d.info.Attributes[76] = 9 },
	} {
		d := base()
		change(d)
		key := d.codeKey(objects, worker.ModuleOptions{OptLevel: 4})
		if other, twice := keys[key]; twice {
			t.Errorf("cards that differ in %q and in %q have the same key", name, other)
		}
		keys[key] = name
	}
}

// brokenCache returns code that libcuda refuses, and keeps nothing.
type brokenCache struct{ puts int }

func (*brokenCache) Get([32]byte) ([]byte, bool) { return []byte("broken\x00"), true }
func (b *brokenCache) Put([32]byte, []byte)      { b.puts++ }

// Code that libcuda refuses is compiled again; PTX that the linker refuses is loaded
// directly.
func TestRefusedCode(t *testing.T) {
	d, broken := newDouble(t), &brokenCache{}
	if !compiles(t, d, broken, []byte(source), worker.ModuleOptions{OptLevel: 4}) || broken.puts != 1 {
		t.Errorf("%d pieces of code are kept after code from the cache was refused, want 1, which is compiled", broken.puts)
	}
	c := start(t, d, newCache(t)())
	d.play(t, "cuLinkComplete 218\n")
	d.take(t)
	_, _, info, err := c.ModuleLoad([]byte(source), worker.ModuleOptions{OptLevel: 4})
	if log := d.take(t); err != nil || info.InfoLog != "double: info" || !slices.Contains(log, "cuModuleLoadDataEx") {
		t.Errorf("PTX that the linker refuses: %v with log %q, libcuda received %q; want that it is loaded", err, info.InfoLog, log)
	}
	d.play(t, "cuLinkComplete 218\n")
	_, _, info, err = c.ModuleLoad(fatbintest.WrapFor(1, 70, []byte(source+"//")), worker.ModuleOptions{OptLevel: 4})
	if log := d.take(t); err != nil || info.InfoLog != "double: info" || !slices.Contains(log, "cuModuleLoadDataEx") {
		t.Errorf("PTX in a fatbin that the linker refuses: %v with log %q, libcuda received %q; want that the fatbin is loaded", err, info.InfoLog, log)
	}
	// What libcuda chooses among is left to it: here, of unknown architecture.
	_, _, _, err = c.ModuleLoad(fatbintest.Wrap(2, fatbintest.Cubin()), worker.ModuleOptions{OptLevel: 4})
	if log := d.take(t); err != nil || count(log, "cuLinkDestroy") != 0 || count(log, "cuModuleLoadDataEx") != 1 {
		t.Errorf("fatbin with machine code: %v, libcuda received %q, want that it is loaded only", err, log)
	}
	if _, _, info, err := c.ModuleLoad([]byte("broken"), worker.ModuleOptions{OptLevel: 4}); err == nil || info.ErrorLog != "double: line 1: broken" {
		t.Errorf("ModuleLoad of a broken image = %v with log %q, want an error with double: line 1: broken", err, info.ErrorLog)
	}
}

// counting counts what a cache is used for.
type counting struct {
	Cache
	hits, puts int
}

func (c *counting) Get(key [32]byte) ([]byte, bool) {
	code, ok := c.Cache.Get(key)
	if ok {
		c.hits++
	}
	return code, ok
}

func (c *counting) Put(key [32]byte, code []byte) {
	c.puts++
	c.Cache.Put(key, code)
}

const storePTX = `.version 6.0
.target sm_50
.address_size 64
.visible .entry store(.param .u64 at)
{
	.reg .u64 %p;
	ld.param.u64 %p, [at];
	cvta.to.global.u64 %p, %p;
	st.global.u32 [%p], 1234567;
	ret;
}
`

// TestCardCompiledCode runs a kernel on a card that was compiled, and then one from the
// cache.
func TestCardCompiledCode(t *testing.T) {
	for name, image := range map[string][]byte{"PTX": []byte(storePTX), "Fatbin": fatbintest.WrapFor(1, 50, []byte(storePTX))} {
		t.Run(name, func(t *testing.T) { testCompiledCode(t, image) })
	}
}

func testCompiledCode(t *testing.T, image []byte) {
	d := card(t)
	t.Cleanup(func() { _ = d.Close() })
	cache := &counting{Cache: newCache(t)()}
	d.cache = cache
	c := must[worker.Context](t)(d.NewContext(0, &gate{}, drivertest.Window(t, abi.MaxWindow)))
	p := must[uint64](t)(c.MemAlloc(4))
	for i := range 2 {
		_, f, info, err := c.ModuleLoad(image, worker.ModuleOptions{OptLevel: 4})
		if err != nil {
			t.Fatal(err, info.ErrorLog)
		}
		if cache.puts != 1 || cache.hits != i {
			t.Errorf("load %d: %d pieces of code put into the cache and %d taken, want 1 and %d", i, cache.puts, cache.hits, i)
		}
		if err := wait(t, func(done func(error)) error { return c.Memset(nil, p, 0, 4, 1, done) }); err != nil {
			t.Fatal(err)
		}
		l := oneThread
		l.Params = binary.LittleEndian.AppendUint64(nil, p)
		if err := wait(t, func(done func(error)) error { return c.Launch(nil, f[0], l, done) }); err != nil {
			t.Fatal(err)
		}
		host := make([]byte, 4)
		if err := wait(t, func(done func(error)) error { return c.CopyDtoH(nil, host, p, done) }); err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint32(host); got != 1234567 {
			t.Errorf("load %d: the kernel stored %d, want 1234567", i, got)
		}
	}
}
