// Package null is a device that computes nothing: a worker.Driver that completes
// every operation at once. It is used to measure and fuzz everything between a
// program and a device; the results of programs on it are wrong.
//
// What it does:
//
//   - An allocation gets an address and counts against the limit. It has no
//     memory.
//   - A copy to the device, a copy within it, a memset and a launch check their
//     arguments and do nothing. A copy from the device writes zero bytes, so
//     that its reader never sees what was in the buffer before. Variables of
//     modules are read as zero too, whatever their initialisers are.
//   - A module is any PTX, cubin or fatbin of which the kernels' names and
//     parameters can be read. Bodies of functions are not examined.
//   - No kernel faults, because none runs.
//   - Evicting and restoring change counts and copy no bytes.
//   - Each device operation counts one nanosecond of device time.
//
// All operations of a context, of whatever stream, complete in the order in which
// they were issued; that is an order that every stream allows. While a context is
// inside the gate its operations complete in the call. Otherwise they wait in a
// queue for the context's goroutine, which enters the gate, and leaves it when
// the lease has expired or no work has arrived for a while.
//
// Lock order: Context.mu before memory.mu.
package null

import (
	"fmt"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Name is the default name of the device. It fits into the 26 columns of
// nvidia-smi's table.
const Name = "Null GPU, computes nothing"

// maxVRAM is the largest device for which there are enough addresses, in bytes.
const maxVRAM = 4 << 40

// Options describe a null device. The zero value is a small one.
type Options struct {
	Name string   // default Name
	VRAM uint64   // bytes; default 1 GiB
	SMs  int      // multiprocessors that it reports; default 1
	UUID [16]byte // default all zero
}

// device is the Driver.
type device struct {
	o   Options
	mem *memory

	mu       sync.Mutex // guards the following
	contexts map[*Context]bool
	closed   bool
}

// New returns a null device. It uses memory only for its tables.
func New(o Options) (worker.Driver, error) {
	if o.Name == "" {
		o.Name = Name
	}
	if o.VRAM == 0 {
		o.VRAM = 1 << 30
	}
	if o.VRAM > maxVRAM {
		return nil, fmt.Errorf("null device: size of %d bytes is too large, want at most 4 TiB", o.VRAM)
	}
	if o.SMs <= 0 {
		o.SMs = 1
	}
	return &device{o: o, mem: newMemory(o.VRAM), contexts: map[*Context]bool{}}, nil
}

// Info implements worker.Driver.
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
	o, err := read(image)
	if err != nil {
		return info, err
	}
	for _, k := range o.kernels {
		info.Functions = append(info.Functions, abi.FunctionInfo{Name: k.name, Params: k.params})
	}
	return info, nil
}

// Evicts implements worker.Driver.
func (d *device) Evicts() bool { return true }

// KeepIn implements worker.Keeper.
func (d *device) KeepIn(w *worker.Window) { w.Keep(d.mem.room(w.Window)) }

// NewContext implements worker.Driver.
func (d *device) NewContext(_ uint32, gate worker.Gate, w *worker.Window) (worker.Context, error) {
	if gate == nil {
		gate = openGate{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, abi.ErrDeinitialized
	}
	d.KeepIn(w)
	c := newContext(d, gate, w.Window)
	d.contexts[c] = true
	return c, nil
}

// Close implements worker.Driver.
func (d *device) Close() error {
	d.mu.Lock()
	d.closed = true
	list := make([]*Context, 0, len(d.contexts))
	for c := range d.contexts {
		list = append(list, c)
	}
	d.mu.Unlock()
	for _, c := range list {
		_ = c.Destroy() // it never fails
	}
	return nil
}

// openGate admits everything.
type openGate struct{}

func (openGate) Enter() error         { return nil }
func (openGate) Expired() bool        { return false }
func (openGate) Leave(uint64, uint64) {}

// linger is how long a context stays inside the gate after its last work: long
// enough that a program that synchronizes after each launch enters once, and
// short enough that others hardly wait for it.
const linger = time.Millisecond
