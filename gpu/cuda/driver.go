package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Options configure Open.
type Options struct {
	Library string   // empty: DefaultLibrary
	UUID    [16]byte // of the card; zero: the first card
	Cache   Cache    // of compiled code; nil: none
	// Output returns the output of kernels, before the first context is created, so that
	// libcuda's own messages until then are in the log; nil: it is not collected.
	Output func() (Output, error)
}

// driver is the worker.Driver of one card.
type driver struct {
	lib     *library
	cache   Cache                  // nil: none
	output  func() (Output, error) // nil: what kernels print is lost
	device  uintptr
	info    abi.DeviceInfoReply
	memory  ranges
	staging ranges // memory that copies pass through, which no guest may use
	hosts   hosts
	granule uint64 // of virtual memory, in bytes; 0: the card has none

	printing sync.Mutex // held while a context collects output, so that no other context takes a part of a line

	mu       sync.Mutex // guards the following
	contexts map[*context]bool
	windows  map[*worker.Window]int // windows whose device part libcuda has reserved, with the number of their contexts
}

// attributes is the number of CUdevice_attribute that are queried (CUDA 12.4: 1
// to 136).
const attributes = 137

// waitAttributes are those that report support for waits for a value in memory: CAN_USE_STREAM_MEM_OPS_V1
// and related ones. A wait on the card would hold the session's lease, but the work that ends
// it may need the next lease, which is only granted after that.
var waitAttributes = [...]int{92, 93, 94, 122, 123}

// Open opens libcuda and finds the card.
func Open(o Options) (worker.Driver, error) {
	if o.Library == "" {
		o.Library = DefaultLibrary
	}
	lib, err := openLibrary(o.Library)
	if err != nil {
		return nil, err
	}
	d := &driver{lib: lib, cache: o.Cache, output: o.Output, contexts: map[*context]bool{}, windows: map[*worker.Window]int{}, hosts: hosts{all: map[uint64]*registered{}}}
	if err := lib.call(0, cuInit, 0); err != nil {
		return nil, fmt.Errorf("cuInit: %w", err)
	}
	if err := d.find(o.UUID); err != nil {
		return nil, err
	}
	if err := d.readInfo(); err != nil {
		return nil, err
	}
	if d.granule = d.findVirtual(); !d.maps() {
		d.info.Attributes[attributeVirtualMemory] = 0
	}
	d.findHosts()
	return d, nil
}

// find selects the card by UUID.
func (d *driver) find(want [16]byte) error {
	n := newOut[int32]()
	defer n.free()
	if err := d.lib.call(0, cuDeviceGetCount, n.at()); err != nil {
		return fmt.Errorf("cuDeviceGetCount: %w", err)
	}
	dev, uuid := newOut[int32](), newOut[[16]byte]()
	defer dev.free()
	defer uuid.free()
	for i := range *n.value {
		if err := d.lib.call(0, cuDeviceGet, dev.at(), uintptr(i)); err != nil {
			return fmt.Errorf("cuDeviceGet: %w", err)
		}
		if err := d.lib.call(0, cuDeviceGetUuid, uuid.at(), uintptr(*dev.value)); err != nil {
			return fmt.Errorf("cuDeviceGetUuid: %w", err)
		}
		if want == ([16]byte{}) || want == *uuid.value {
			d.device, d.info.UUID = uintptr(*dev.value), *uuid.value
			return nil
		}
	}
	return fmt.Errorf("%w: none of %d GPUs has UUID %x", abi.ErrNoDevice, *n.value, want)
}

func (d *driver) readInfo() error {
	name, total, version, value := newOut[[256]byte](), newOut[uint64](), newOut[int32](), newOut[int32]()
	defer name.free()
	defer total.free()
	defer version.free()
	defer value.free()
	err := errors.Join(
		d.lib.call(0, cuDeviceGetName, name.at(), 255, d.device),
		d.lib.call(0, cuDeviceTotalMem, total.at(), d.device),
		d.lib.call(0, cuDriverGetVersion, version.at()),
	)
	if err != nil {
		return fmt.Errorf("read GPU attributes: %w", err)
	}
	text, _, _ := bytes.Cut(name.value[:], []byte{0})
	d.info.Name, d.info.TotalMemory, d.info.CUDAVersion = string(text), *total.value, uint32(*version.value)
	d.info.Attributes = make([]int32, attributes)
	for i := 1; i < attributes; i++ {
		*value.value = 0
		if d.lib.call(0, cuDeviceGetAttribute, value.at(), uintptr(i), d.device) == nil { // otherwise this driver does not know the attribute
			d.info.Attributes[i] = *value.value
		}
	}
	for _, i := range waitAttributes {
		d.info.Attributes[i] = 0
	}
	d.info.Attributes[attributeDescriptors] = 0
	d.info.DriverVersion = kernelDriverVersion()
	return nil
}

var versionPattern = regexp.MustCompile(`\b(\d{3}\.\d+(\.\d+)?)\b`)

// kernelDriverVersion returns the version of NVIDIA's kernel module.
func kernelDriverVersion() string {
	b, err := os.ReadFile("/proc/driver/nvidia/version")
	if v := versionPattern.Find(b); err == nil && v != nil {
		return string(v)
	}
	return "unknown"
}

// Info implements worker.Driver.
func (d *driver) Info() abi.DeviceInfoReply { return d.info }

// contextFlags are the flags of a guest that its context gets: CU_CTX_MAP_HOST
// and CU_CTX_LMEM_RESIZE_TO_MAX (cuda.h). The guest cannot choose how a thread of
// the worker waits, nor core dumps, which would be files on this host.
const contextFlags = 0x18

// NewContext implements worker.Driver.
func (d *driver) NewContext(flags uint32, gate worker.Gate, w *worker.Window) (worker.Context, error) {
	if d.granule == 0 {
		return d.newContext(flags, gate, w)
	}
	if err := d.occupy(w); err != nil {
		return nil, err
	}
	c, err := d.newContext(flags, gate, w)
	if err != nil {
		return nil, errors.Join(err, d.vacate(w))
	}
	return c, nil
}

func (d *driver) newContext(flags uint32, gate worker.Gate, w *worker.Window) (worker.Context, error) {
	var output Output
	if d.output != nil {
		var err error
		if output, err = d.output(); err != nil {
			return nil, fmt.Errorf("collect the output of kernels: %w", err)
		}
	}
	handle := newOut[uintptr]()
	defer handle.free()
	if err := d.lib.call(0, cuCtxCreate, handle.at(), uintptr(flags&contextFlags), d.device); err != nil {
		return nil, fmt.Errorf("cuCtxCreate: %w", err)
	}
	forgetCurrent() // the new context is current for a thread that has stored another one
	c, err := newContext(d, *handle.value, gate, w)
	if err != nil {
		return nil, errors.Join(err, d.lib.call(0, cuCtxDestroy, *handle.value))
	}
	c.output = output
	c.registerStaged()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.contexts[c] = true
	return c, nil
}

// Close implements worker.Driver.
func (d *driver) Close() error {
	d.mu.Lock()
	var all []*context
	for c := range d.contexts {
		all = append(all, c)
	}
	d.mu.Unlock()
	var errs []error
	for _, c := range all {
		errs = append(errs, c.Destroy())
	}
	return errors.Join(errs...)
}
