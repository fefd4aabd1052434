// Package device implements worker.Driver with a soft GPU: its memory, contexts,
// streams and modules, and the scheduling of launches on the processors.
//
// Stream operations form a graph: each has the operations that must finish before it
// (stream.go). A launch runs in slices, between which the gate may take the device away
// (launch.go) and other kernels the processors (engine.go). Copies are executed by the
// goroutines of their streams, concurrently with kernels. Lock order: Context.mu before
// memory.mu; waits.mu is not held while another lock is taken.
package device

import (
	"cmp"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/compile"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Options describe a soft GPU. The zero value is a small one.
type Options struct {
	// Model is the GPU model that the device reports; default model.Default().
	Model model.Model
	Name  string   // default the model's
	VRAM  uint64   // bytes; default 1 GiB
	SMs   int      // multiprocessors; default the model's, or as many as the host has processors
	UUID  [16]byte // default all zero
	// Capability selects the PTX of a fatbin; default the model's.
	Capability compile.Capability
	// Engine selects how instructions are executed.
	Engine exec.Engine
	// Clock returns the current time; default time.Now.
	Clock func() time.Time
	// Check selects the errors that the device detects in kernels.
	Check model.Checks
	// Fault is the defect that the device simulates.
	Fault model.Fault
	// Faults injects errors in tests.
	Faults Faults
}

func (o *Options) setDefaults() {
	if o.Model == (model.Model{}) {
		o.Model = model.Default()
	}
	o.Name = cmp.Or(o.Name, o.Model.Name)
	o.VRAM = cmp.Or(o.VRAM, 1<<30)
	if o.SMs <= 0 {
		o.SMs = cmp.Or(o.Model.Multiprocessors, runtime.GOMAXPROCS(0))
	}
	o.Capability = cmp.Or(o.Capability, compile.Capability(o.Model.Capability))
	if o.Clock == nil {
		o.Clock = time.Now
	}
}

// Faults has functions that are called before an operation. If one returns an error,
// the operation fails with it.
type Faults struct {
	Alloc  func(size uint64) error
	Launch func(kernel string) error // the launch fails on the device, so the context is poisoned
	Copy   func(size uint64) error
	Evict  func() error
}

// device implements worker.Driver.
type device struct {
	o       Options
	mem     *memory
	waits   waits
	outside outside
	objects atomic.Uint64 // number of texture and surface objects so far: each number is used in one context only

	mu       sync.Mutex
	contexts map[*Context]bool
	closed   bool
}

// New returns a soft GPU. It reserves address space, not memory.
func New(o Options) (worker.Driver, error) {
	o.setDefaults()
	if o.VRAM > 1<<40 {
		return nil, fmt.Errorf("soft GPU with %d bytes of VRAM, want at most %d (1 TiB)", o.VRAM, uint64(1)<<40)
	}
	mem, err := newMemory(o.VRAM)
	if err != nil {
		return nil, err
	}
	return &device{o: o, mem: mem, contexts: map[*Context]bool{}}, nil
}

func (d *device) Info() abi.DeviceInfoReply {
	return abi.DeviceInfoReply{
		TotalMemory: d.o.VRAM, UUID: d.o.UUID, Attributes: attributes(d.o),
		Name: d.o.Name, DriverVersion: "550.163.01", CUDAVersion: 12040,
	}
}

// Multiprocessors implements worker.Partitioner.
func (d *device) Multiprocessors() uint32 { return uint32(d.o.SMs) }

// ImageInfo implements worker.Driver.
func (d *device) ImageInfo(image []byte) (info abi.ModuleInfo, err error) {
	if info.Functions, err = d.o.Capability.Signatures(image); err != nil {
		return info, fmt.Errorf("read the kernels of the image: %w", err)
	}
	return info, nil
}

// Evicts implements worker.Driver.
func (d *device) Evicts() bool { return true }

// KeepIn implements worker.Keeper.
func (d *device) KeepIn(w *worker.Window) {
	w.Keep(d.mem.split(ir.NewSpaces(w.Window).DeviceBytes()))
}

func (d *device) NewContext(_ uint32, gate worker.Gate, w *worker.Window) (worker.Context, error) {
	if gate == nil {
		gate = openGate{}
	}
	if d.o.Fault == model.Lost {
		return nil, fmt.Errorf("%w: the GPU has fallen off the bus: injected by the fault %q of the soft GPU", abi.ErrUnavailable, model.Lost)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, abi.ErrDeinitialized
	}
	c := newContext(d, gate, d.engine(gate), w)
	d.contexts[c] = true
	return c, nil
}

// engine returns the engine of the contexts that share a gate. The caller must hold mu.
func (d *device) engine(gate worker.Gate) *engine {
	for c := range d.contexts {
		if c.gate == gate {
			return c.engine
		}
	}
	return newEngine(min(runtime.NumCPU(), d.o.SMs))
}

func (d *device) Close() error {
	d.mu.Lock()
	d.closed = true
	var list []*Context
	for c := range d.contexts {
		list = append(list, c)
	}
	d.mu.Unlock()
	for _, c := range list {
		if err := c.Destroy(); err != nil {
			return err
		}
	}
	return d.mem.close()
}

// openGate is a gate that never blocks.
type openGate struct{}

func (openGate) Enter() error         { return nil }
func (openGate) Expired() bool        { return false }
func (openGate) Leave(uint64, uint64) {}
