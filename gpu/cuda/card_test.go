package cuda

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/conformance/nested"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
	"github.com/basalt-gpu/basalt/gpu/worker/stdio"
)

// TestMain lets the tests of a card collect what libcuda writes, as a worker does.
func TestMain(m *testing.M) {
	if err := stdio.Separate(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// card opens the library that the GPU check sets, or the host's.
func card(t testing.TB) *driver {
	t.Helper()
	d, err := Open(Options{Library: os.Getenv("BASALT_CUDA_LIBRARY"), Output: func() (Output, error) { return stdio.Start() }})
	if err != nil {
		if os.Getenv("BASALT_CHECK_CARD") != "" {
			t.Fatal(err)
		}
		t.Skipf("GPU: needs an NVIDIA card: %v", err)
	}
	return d.(*driver)
}

// TestCard runs the drivers' suite on a card; on a real one it runs each test in a
// process of its own, because a fault ends everything that the process has on the
// card.
func TestCard(t *testing.T) {
	card(t)
	if os.Getenv("BASALT_CHECK_CARD") == nested.Check {
		cardSuite(t, drivertest.Options{LooseVariables: true, NoHostMemory: true, OneProcess: true, NoReasons: true})
		return
	}
	for _, name := range drivertest.Names() {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestCardAlone$/^"+name+"$", "-test.v")
			cmd.Env = append(os.Environ(), "CARD_ALONE=1")
			if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestCardAlone/"+name)) {
				t.Errorf("%s in a process of its own: %v\n%s", name, err, out)
			}
		})
	}
}

// TestCardAlone runs one test of the suite in such a process.
func TestCardAlone(t *testing.T) {
	if os.Getenv("CARD_ALONE") == "" {
		return // only TestCard runs it
	}
	cardSuite(t, drivertest.Options{LooseVariables: true, FaultsEndAll: true})
}

func cardSuite(t *testing.T, o drivertest.Options) {
	drivertest.Run(t, func(t *testing.T) worker.Driver { return card(t) }, o)
}

// bench has a context with a kernel and a buffer; raw is its CUstream.
type bench struct {
	c    *context
	f    *kernel
	raw  uintptr
	s    worker.Stream
	p    uint64
	host []byte
	pin  *chunk
}

const (
	benchBytes = 64 << 20
	emptyPTX   = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry first() // double: bench\n{\n\tret;\n}\n"
)

func newBench(b *testing.B) *bench {
	b.Helper()
	d := card(b)
	ctx, err := d.NewContext(0, &gate{}, drivertest.Window(b, abi.MaxWindow))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	x := &bench{c: ctx.(*context), host: make([]byte, benchBytes)}
	_, fs, _, err := ctx.ModuleLoad([]byte(emptyPTX), worker.ModuleOptions{OptLevel: 4})
	if err == nil {
		x.f = fs[0].(*kernel)
		x.s, err = ctx.StreamCreate(worker.StreamNonBlocking, 0)
	}
	if err == nil {
		x.raw, err = x.c.newStream(worker.StreamNonBlocking, 0)
	}
	if err == nil {
		x.p, err = ctx.MemAlloc(benchBytes)
	}
	pin := newOut[uintptr]()
	defer pin.free()
	if err == nil {
		err = x.c.call(cuMemHostAlloc, pin.at(), benchBytes, 0)
	}
	if err != nil {
		b.Fatal(err)
	}
	x.pin = &chunk{*pin.value, nil}
	b.ResetTimer()
	return x
}

func (x *bench) check(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

var oneThread = worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}

func (x *bench) wait(b *testing.B, start func(done func(error)) error) {
	done := make(chan error, 1)
	x.check(b, start(func(err error) { done <- err }))
	select {
	case err := <-done:
		x.check(b, err)
	case <-time.After(time.Minute):
		b.Fatal("operation not done within a minute")
	}
}

func (x *bench) launchRaw() error {
	return x.c.call(cuLaunchKernel, x.f.handle, 1, 1, 1, 1, 1, 1, 0, x.raw, 0, 0)
}

// These are pairs of Driver and Raw; run.sh prints their ratios.

func BenchmarkLaunchDriver(b *testing.B) {
	x := newBench(b)
	for range b.N {
		x.check(b, x.c.Launch(x.s, x.f, oneThread, nil))
	}
	x.wait(b, x.c.Notify)
}

func BenchmarkLaunchRaw(b *testing.B) {
	x := newBench(b)
	for range b.N {
		x.check(b, x.launchRaw())
	}
	x.check(b, x.c.call(cuStreamSynchronize, x.raw))
}

func BenchmarkSyncDriver(b *testing.B) {
	x := newBench(b)
	for range b.N {
		x.wait(b, func(done func(error)) error { return x.c.Launch(x.s, x.f, oneThread, done) })
	}
}

func BenchmarkSyncRaw(b *testing.B) {
	x := newBench(b)
	for range b.N {
		x.check(b, x.launchRaw())
		x.check(b, x.c.call(cuStreamSynchronize, x.raw))
	}
}

func BenchmarkCopyHtoDDriver(b *testing.B) {
	x := newBench(b)
	b.SetBytes(benchBytes)
	for range b.N {
		x.wait(b, func(done func(error)) error { return x.c.CopyHtoD(x.s, x.p, x.host, done) })
	}
}

func BenchmarkCopyHtoDRaw(b *testing.B) {
	x := newBench(b)
	b.SetBytes(benchBytes)
	for range b.N {
		x.check(b, x.c.call(cuMemcpyHtoDAsync, uintptr(x.p), x.pin.address, benchBytes, x.raw))
		x.check(b, x.c.call(cuStreamSynchronize, x.raw))
	}
}

func BenchmarkCopyDtoHDriver(b *testing.B) {
	x := newBench(b)
	b.SetBytes(benchBytes)
	for range b.N {
		x.wait(b, func(done func(error)) error { return x.c.CopyDtoH(x.s, x.host, x.p, done) })
	}
}

func BenchmarkCopyDtoHRaw(b *testing.B) {
	x := newBench(b)
	b.SetBytes(benchBytes)
	for range b.N {
		x.check(b, x.c.call(cuMemcpyDtoHAsync, x.pin.address, uintptr(x.p), benchBytes, x.raw))
		x.check(b, x.c.call(cuStreamSynchronize, x.raw))
	}
}

// TestCardIsNamed prints the heading of the table.
func TestCardIsNamed(t *testing.T) {
	i := card(t).Info()
	t.Logf("card: %s, %s bytes, driver %s, CUDA %d", i.Name, strconv.FormatUint(i.TotalMemory, 10), i.DriverVersion, i.CUDAVersion)
	if i.Name == "" || len(i.Attributes) < attributes || i.UUID == ([16]byte{}) {
		t.Errorf("device = %+v, want a name, a UUID and at least %d attributes", i, attributes)
	}
}
