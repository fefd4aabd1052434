package soft

import (
	"encoding/binary"
	"os"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/installer/dev/patience"
)

// testWindow is where the tests' contexts have their device memory.
var testWindow = worker.NewWindow(abi.Windows()[0])

// rig is one context with a module, for tests.
type rig struct {
	testing.TB
	c     worker.Context
	funcs map[string]worker.Function
}

func newRig(t testing.TB, src string) *rig {
	t.Helper()
	d, err := New(Options{VRAM: 256 << 20, SMs: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := d.NewContext(0, nil, testWindow)
	if err != nil {
		t.Fatal(err)
	}
	_, funcs, info, err := c.ModuleLoad([]byte(src), worker.ModuleOptions{})
	if err != nil {
		t.Fatalf("%v\n%s", err, info.ErrorLog)
	}
	r := &rig{TB: t, c: c, funcs: map[string]worker.Function{}}
	for i, f := range info.Functions {
		r.funcs[f.Name] = funcs[i]
	}
	return r
}

func kernelFile(t testing.TB, name string) string {
	t.Helper()
	src, err := os.ReadFile("testdata/kernels/" + name + ".ptx")
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

func (r *rig) buffer(data []byte) uint64 {
	r.Helper()
	a, err := r.c.MemAlloc(uint64(len(data)))
	if err != nil {
		r.Fatal(err)
	}
	if err := r.c.CopyHtoD(nil, a, data, nil); err != nil {
		r.Fatal(err)
	}
	return a
}

// read waits for the default stream.
func (r *rig) read(a uint64, n int) ([]byte, error) {
	out := make([]byte, n)
	ch := make(chan error, 1)
	if err := r.c.CopyDtoH(nil, out, a, func(err error) { ch <- err }); err != nil {
		return nil, err
	}
	return out, <-ch
}

// expect waits for the kernels so far and compares n words.
func (r *rig) expect(a uint64, n int, want func(i int) uint32) {
	r.Helper()
	got := make([]byte, 4*n)
	done := make(chan error, 1)
	if err := r.c.CopyDtoH(nil, got, a, func(err error) { done <- err }); err != nil {
		r.Fatal(err)
	}
	if err := patience.Receive(r.TB, time.Minute, "the kernel ends", done); err != nil {
		r.Fatal(err)
	}
	for i, v := range i32s(got) {
		if uint32(v) != want(i) {
			r.Errorf("word %d = %#x, want %#x", i, uint32(v), want(i))
		}
	}
}

// launch packs u64 and u32 arguments; the values' types say which.
func (r *rig) launch(name string, grid, block [3]uint32, shared uint32, args ...any) {
	r.Helper()
	f := r.funcs[name]
	if f == nil {
		r.Fatalf("no kernel %s", name)
	}
	if err := r.c.Launch(nil, f, worker.Launch{Grid: grid, Block: block, Shared: shared, Params: pack(args...)}, nil); err != nil {
		r.Fatal(err)
	}
}

func pack(args ...any) []byte {
	var p []byte
	for _, a := range args {
		switch a := a.(type) {
		case uint64:
			for len(p)%8 != 0 {
				p = append(p, 0)
			}
			p = binary.LittleEndian.AppendUint64(p, a)
		case uint32:
			p = binary.LittleEndian.AppendUint32(p, a)
		case int:
			p = binary.LittleEndian.AppendUint32(p, uint32(a))
		case []byte:
			for len(p)%8 != 0 {
				p = append(p, 0)
			}
			p = append(p, a...)
		}
	}
	return p
}
