// Package drivertest is the suite that every worker.Driver must pass.
package drivertest

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Options describe what the driver can do; the zero value is a complete driver.
type Options struct {
	// Image replaces Kernels for a driver that does not execute PTX, and skips
	// the tests of PTX.
	Image []byte
	// Loops is the parameter of delay that makes it run for a noticeable time,
	// some tens of milliseconds; 0 is 100,000.
	Loops uint64
	// NoData is for a device that computes nothing (gpu/null): kernels do not run
	// and memory keeps no data, so everything that is read must be zero; the
	// suite checks that instead of the contents. Tests that need running kernels
	// are skipped: a fault, and an error in a kernel's body.
	NoData bool
	// Unplaced means that the device chooses addresses itself (a card without
	// virtual memory management). If the guest finds an address outside the
	// window, it reserves it in its own process.
	Unplaced bool
	// LooseVariables means that libcuda chooses the addresses of modules'
	// variables.
	LooseVariables bool
	// NoHostMemory means that the device cannot access the guest's memory, and
	// must report that.
	NoHostMemory bool
	// FaultsEndAll means that a fault of one context is one of all contexts of the
	// process (seen on an H100, driver 580).
	FaultsEndAll bool
	// OneProcess means that the drivers of a test process are one process of the device,
	// which cannot open memory that it shares itself: the tests of sharing are skipped.
	OneProcess bool
	// NoReasons means that a kernel which cannot run is only detected when it is
	// launched, and that the reason is not reported. This is the case behind another
	// libcuda.
	NoReasons bool
}

// Window reserves an address window of size bytes for a test, and releases it at
// the test's end.
func Window(t testing.TB, size uint64) *worker.Window {
	t.Helper()
	var last error
	for _, w := range abi.Windows() {
		w.Size = size
		window, err := worker.ReserveWindow(w)
		if err == nil {
			t.Cleanup(window.Close)
			return window
		}
		last = err
	}
	t.Fatalf("no address window is free: %v", last)
	return nil
}

// suite lists the tests; ptx marks those for drivers that execute PTX.
var suite = []struct {
	name string
	run  func(*tester)
	ptx  bool
}{
	{"Info", testInfo, false},
	{"Memory", testMemory, false},
	{"AddressesLieInTheWindow", testAddressesLieInTheWindow, false},
	{"SmallWindow", testSmallWindow, false},
	{"MemoryIsLimited", testMemoryIsLimited, false},
	{"Copies", testCopies, false},
	{"Memset", testMemset, false},
	{"BadAddresses", testBadAddresses, false},
	{"HostMemory", whereItReachesHost(testHostMemory), false},
	{"HostMemoryOfTwoContexts", whereItReachesHost(testHostMemoryOfTwoContexts), false},
	{"HostMemoryInUse", whereItReachesHost(testHostMemoryInUse), false},
	{"DestroyWithHostMemory", whereItReachesHost(testDestroyWithHostMemory), false},
	{"EvictedHostMemory", whereItEvicts(whereItReachesHost(testEvictedHostMemory)), false},
	{"HostMemoryOrSaysNot", testHostMemoryOrSaysNot, false},
	{"Mappings", whereItMaps(testMappings), false},
	{"ReservedFirst", whereItMaps(testReservedFirst), false},
	{"MappedTwice", whereItMaps(testMappedTwice), false},
	{"MappingsOutside", whereItMaps(testMappingsOutside), false},
	{"MemoryToMapIsLimited", whereItMaps(testMemoryToMapIsLimited), false},
	{"MappingInUse", whereItMaps(testMappingInUse), false},
	{"NoAccessFaults", whereItMaps(whereKernelsRun(testNoAccessFaults)), true},
	{"EvictedMappings", whereItEvicts(whereItMaps(testEvictedMappings)), false},
	{"DestroyWithMappings", whereItMaps(testDestroyWithMappings), false},
	{"Share", whereItShares(testShare), false},
	{"ShareRefused", whereItShares(testShareRefused), false},
	{"EvictShared", whereItEvicts(whereItShares(testEvictShared)), false},
	{"DestroyShared", whereItShares(testDestroyShared), false},
	{"ShareMapped", whereItShares(testShareMapped), false},
	{"StreamOrder", testStreamOrder, false},
	{"DefaultStreamWaitsForStreams", testDefaultStreamWaits, false},
	{"StreamsWaitForDefaultStream", testStreamsWaitForDefault, false},
	{"NonBlockingStreams", testNonBlockingStreams, false},
	{"MemFreeAsync", testMemFreeAsync, false},
	{"Notify", testNotify, false},
	{"Events", testEvents, false},
	{"Elapsed", testElapsed, false},
	{"WriteValue", testWriteValue, false},
	{"WaitValue", testWaitValue, false},
	{"WaitValueEnds", testWaitValueEnds, false},
	{"EvictedWaitValue", whereItEvicts(testEvictedWaitValue), false},
	{"ErrorsPoisonTheContext", whereKernelsRun(testPoison), false},
	{"ModuleErrors", testModuleErrors, false},
	{"PrintAndAssert", whereKernelsRun(testPrintAndAssert), true},
	{"UnknownInstruction", whereKernelsRun(testUnknownInstruction), true},
	{"LoadsAside", testLoadsAside, false},
	{"DestroyDuringLoads", testDestroyDuringLoads, false},
	{"AllocationsAside", testAllocationsAside, false},
	{"DestroyDuringAllocations", testDestroyDuringAllocations, false},
	{"ManyCommands", testManyCommands, false},
	{"ImageInfo", testImageInfo, true},
	{"ModuleInfo", testModuleInfo, true},
	{"Globals", testGlobals, true},
	{"Grid", testGrid, true},
	{"LaunchErrors", testLaunchErrors, true},
	{"GateCounts", testGateCounts, false},
	{"GateExpires", testGateExpires, false},
	{"GateEnds", testGateEnds, false},
	{"DestroyFreesAll", testDestroyFreesAll, false},
	{"DestroyWhileRunning", testDestroyWhileRunning, false},
	{"EvictsOrSaysNot", testEvictsOrSaysNot, false},
	{"EvictMakesRoom", whereItEvicts(testEvictMakesRoom), false},
	{"EvictPart", whereItEvicts(testEvictPart), false},
	{"EvictWithWorkPending", whereItEvicts(testEvictWithWorkPending), false},
	{"EvictedGoesOn", whereItEvicts(testEvictedGoesOn), false},
	{"DestroyEvicted", whereItEvicts(testDestroyEvicted), false},
	{"EvictAtRandom", whereItEvicts(testEvictAtRandom), false},
}

// Names returns the names of the suite's tests.
func Names() (names []string) {
	for _, c := range suite {
		names = append(names, c.name)
	}
	return names
}

// Run runs the suite. newDriver returns a driver with at least 64 MiB of memory,
// all of it free; the suite closes it.
func Run(t *testing.T, newDriver func(t *testing.T) worker.Driver, o Options) {
	if o.Loops == 0 {
		o.Loops = 100_000
	}
	for _, c := range suite {
		if c.ptx && o.Image != nil {
			continue // the driver does not execute PTX
		}
		t.Run(c.name, func(t *testing.T) {
			d := newDriver(t)
			x := &tester{T: t, o: o, driver: d, newDriver: newDriver, window: Window(t, abi.MaxWindow), gate: &gate{}}
			c.run(x)
			for _, ctx := range x.contexts {
				x.check(ctx.Destroy())
			}
			x.check(d.Close())
			if n := x.late.Load(); n != 0 {
				t.Errorf("operations minus calls of done = %d, want 0: each calls done once", n)
			}
			if in, out := x.gate.counts(); in != out {
				t.Errorf("gate entered %d times and left %d times, want the same", in, out)
			}
		})
	}
}

// whereItEvicts skips devices that report that they cannot evict;
// testEvictsOrSaysNot checks that report.
func whereItEvicts(test func(*tester)) func(*tester) {
	return func(x *tester) {
		if x.driver.Evicts() {
			test(x)
		}
	}
}

// whereItReachesHost skips devices that cannot access the guest's memory;
// testHostMemoryOrSaysNot checks that.
func whereItReachesHost(test func(*tester)) func(*tester) {
	return func(x *tester) {
		if !x.o.NoHostMemory {
			test(x)
		}
	}
}

// whereKernelsRun skips devices that compute nothing: what only a kernel can do,
// such as a fault, does not happen there.
func whereKernelsRun(test func(*tester)) func(*tester) {
	return func(x *tester) {
		if !x.o.NoData {
			test(x)
		}
	}
}

// patience is how long an operation may take on a loaded machine.
const patience = 60 * time.Second

type tester struct {
	*testing.T
	o      Options
	driver worker.Driver
	// newDriver returns another driver, as of another process.
	newDriver func(*testing.T) worker.Driver
	window    *worker.Window
	gate      *gate
	contexts  []worker.Context
	late      atomic.Int64 // operations whose done has not been called
}

func (x *tester) check(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

func (x *tester) want(err error, want abi.Result) {
	x.Helper()
	if !errors.Is(err, want) {
		x.Errorf("error = %v, want %v", err, want)
	}
}

func (x *tester) context() worker.Context {
	x.Helper()
	ctx, err := x.driver.NewContext(0, x.gate, x.window)
	x.check(err)
	x.contexts = append(x.contexts, ctx)
	return ctx
}

// forget removes a context that the test destroys itself.
func (x *tester) forget(ctx worker.Context) {
	for i, c := range x.contexts {
		if c == ctx {
			x.contexts = append(x.contexts[:i], x.contexts[i+1:]...)
			return
		}
	}
}

func (x *tester) stream(ctx worker.Context, flags uint32) worker.Stream {
	x.Helper()
	s, err := ctx.StreamCreate(flags, 0)
	x.check(err)
	return s
}

func (x *tester) event(ctx worker.Context) worker.Event {
	x.Helper()
	e, err := ctx.EventCreate(0)
	x.check(err)
	return e
}

func (x *tester) alloc(ctx worker.Context, size uint64) uint64 {
	x.Helper()
	a, err := ctx.MemAlloc(size)
	x.check(err)
	return a
}

// done returns a function for the driver to call, and one that waits for that
// call.
func (x *tester) done() (done func(error), wait func() error) {
	x.late.Add(1)
	c := make(chan error, 1)
	return func(err error) {
			x.late.Add(-1)
			select {
			case c <- err:
			default: // a second call, which the count in late shows
			}
		}, func() error {
			x.Helper()
			select {
			case err := <-c:
				return err
			case <-time.After(patience):
				x.Fatalf("done was not called within %v", patience)
				return nil
			}
		}
}

// await issues an operation and waits for it; it returns the error of the call or of
// done.
func (x *tester) await(op func(done func(error)) error) error {
	x.Helper()
	done, wait := x.done()
	if err := op(done); err != nil {
		x.late.Add(-1)
		return err
	}
	return wait()
}

func (x *tester) sync(ctx worker.Context) error {
	x.Helper()
	return x.await(ctx.Notify)
}

func (x *tester) write(ctx worker.Context, s worker.Stream, dst uint64, b []byte) {
	x.Helper()
	x.check(x.await(func(done func(error)) error { return ctx.CopyHtoD(s, dst, b, done) }))
}

func (x *tester) read(ctx worker.Context, s worker.Stream, src, n uint64) []byte {
	x.Helper()
	b := make([]byte, n)
	x.check(x.await(func(done func(error)) error { return ctx.CopyDtoH(s, b, src, done) }))
	return b
}

// kept returns the contents of memory after want has been written to it: want, or
// zero bytes on a device that keeps no data.
func (x *tester) kept(want []byte) []byte {
	if x.o.NoData {
		return make([]byte, len(want))
	}
	return want
}

// kept64 is like kept for a number.
func (x *tester) kept64(want uint64) uint64 {
	if x.o.NoData {
		return 0
	}
	return want
}

func (x *tester) read64(ctx worker.Context, s worker.Stream, src uint64) uint64 {
	x.Helper()
	return binary.LittleEndian.Uint64(x.read(ctx, s, src, 8))
}

// kernels loads the image and returns its functions by name.
func (x *tester) kernels(ctx worker.Context) map[string]worker.Function {
	x.Helper()
	_, functions, info, err := ctx.ModuleLoad(x.image(), worker.ModuleOptions{})
	if err != nil {
		x.Fatalf("ModuleLoad: %v\n%s\n%s", err, info.InfoLog, info.ErrorLog)
	}
	if len(functions) != len(info.Functions) {
		x.Fatalf("ModuleLoad returned %d functions, want the %d of its info", len(functions), len(info.Functions))
	}
	all := map[string]worker.Function{}
	for i, f := range info.Functions {
		all[f.Name] = functions[i]
	}
	return all
}

func params(values ...uint64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

func one(values ...uint64) worker.Launch {
	return worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: params(values...)}
}

// gate is a Gate that counts its uses, and that can be closed.
type gate struct {
	mu              sync.Mutex
	entered, left   int
	launches, nanos uint64
	expired         func() bool
	shut            bool
	passes          int // calls of Expired
	held            chan struct{}
}

// hold makes everyone who enters wait, or ends these waits.
func (g *gate) hold(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if on && g.held == nil {
		g.held = make(chan struct{})
	} else if !on && g.held != nil {
		close(g.held)
		g.held = nil
	}
}

func (g *gate) Enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.held != nil {
		held := g.held
		g.mu.Unlock()
		<-held
		g.mu.Lock()
	}
	if g.shut {
		return abi.ErrUnavailable
	}
	g.entered++
	return nil
}

func (g *gate) Expired() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passes++
	return g.shut || g.held != nil || g.expired != nil && g.expired()
}

func (g *gate) Leave(nanos, launches uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left++
	g.nanos += nanos
	g.launches += launches
}

func (g *gate) counts() (entered, left int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.entered, g.left
}

// settle waits until all who entered have left, for a limited time; the test
// reports if they have not.
func (g *gate) settle() {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if in, out := g.counts(); in == out {
			return
		}
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

func (g *gate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
}
