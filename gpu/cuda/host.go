package cuda

import (
	"errors"
	"fmt"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// CUdevice_attribute and flags, from cuda.h.
const (
	attributeMapHostMemory     = 19
	attributeManagedMemory     = 83
	attributeConcurrentManaged = 89
	attributeRegisteredPointer = 91

	hostRegisterPortable  = 1
	hostRegisterDeviceMap = 2
)

// hosts is the host memory that the card can access: pages of the guest, at the
// guest's address, registered with libcuda once for all contexts (portable). One
// context owns the registration; when it is destroyed before the others, libcuda
// unregisters the pages, and another context registers them again. Work of the
// others that uses the pages at that moment fails.
type hosts struct {
	mu     sync.Mutex // guards the following; held while libcuda registers
	all    map[uint64]*registered
	staged []byte // memory that copies pass through (Stage); nil: none
}

// registered is a piece of host memory.
type registered struct {
	size  uint64
	in    *ranges // the list that contains it
	owner *context
	users map[*context]func() // contexts whose work may access it; the function is called when none may any more
	named int                 // contexts that have not been told to unregister it
}

// findHosts determines from the attributes what the card can do with host memory.
// A guest's managed memory is host memory that both sides use: it is not moved,
// and the card reads and writes it over the bus.
func (d *driver) findHosts() {
	can := int32(1)
	for f := cuMemHostRegister; f <= cuMemHostGetDevicePointer; f++ {
		if !d.lib.has(f) {
			can = 0
		}
	}
	if d.info.Attributes[attributeRegisteredPointer] == 0 || d.info.Attributes[attributeMapHostMemory] == 0 {
		can = 0 // the card would use another address
	}
	for _, a := range []int{attributeMapHostMemory, attributeManagedMemory, attributeConcurrentManaged} {
		d.info.Attributes[a] = can
	}
}

// HostRegister implements worker.Context.
func (c *context) HostRegister(address uint64, memory []byte) error {
	if c.d.info.Attributes[attributeMapHostMemory] == 0 {
		return fmt.Errorf("%w: this GPU cannot access host memory at the host's addresses", abi.ErrNotSupported)
	}
	if err := c.failed(); err != nil {
		return err
	}
	c.d.hosts.mu.Lock()
	defer c.d.hosts.mu.Unlock()
	return c.register(address, memory, &c.d.memory)
}

// Stage implements worker.Stager. The pages are registered with each context like other
// host memory, but no guest may use them as memory of the device.
func (d *driver) Stage(memory []byte) {
	if d.info.Attributes[attributeMapHostMemory] != 0 {
		d.hosts.mu.Lock()
		defer d.hosts.mu.Unlock()
		d.hosts.staged = memory
	}
}

// registerStaged lets a new context copy directly from and to staged memory; if
// libcuda cannot register it, copies go through our own chunks.
func (c *context) registerStaged() {
	c.d.hosts.mu.Lock()
	defer c.d.hosts.mu.Unlock()
	if m := c.d.hosts.staged; len(m) > 0 {
		_ = c.register(uint64(addressOf(&m[0])), m, &c.d.staging)
	}
}

// register adds memory to a list; callers hold the hosts' mu.
func (c *context) register(address uint64, memory []byte, in *ranges) error {
	h := &c.d.hosts
	r := h.all[address]
	if r == nil {
		r = &registered{size: uint64(len(memory)), in: in, owner: c, users: map[*context]func(){}}
		if err := c.pin(address, r.size); err != nil {
			return err
		}
		h.all[address] = r
		in.add(span{start: address, size: r.size, host: true})
	}
	if _, twice := r.users[c]; twice || r.size != uint64(len(memory)) || r.named == 0 && len(r.users) > 0 {
		return fmt.Errorf("%w: host memory at %#x is already registered", abi.ErrInvalidValue, address)
	}
	r.users[c] = nil
	r.named++
	return nil
}

// pin registers pages with libcuda, which must use the same address.
func (c *context) pin(address, size uint64) error {
	if err := c.call(cuMemHostRegister, uintptr(address), uintptr(size), hostRegisterPortable|hostRegisterDeviceMap); err != nil {
		return err
	}
	at := newOut[uint64]()
	defer at.free()
	err := c.call(cuMemHostGetDevicePointer, at.at(), uintptr(address), 0)
	if err == nil && *at.value != address {
		err = fmt.Errorf("%w: the GPU maps host memory at %#x, want %#x", abi.ErrNotSupported, *at.value, address)
	}
	if err != nil {
		return errors.Join(err, c.call(cuMemHostUnregister, uintptr(address)))
	}
	return nil
}

// HostUnregister implements worker.Context. Copies are refused from now on; the
// pages stay registered until what was enqueued is done.
func (c *context) HostUnregister(address uint64, done func()) error {
	h := &c.d.hosts
	h.mu.Lock()
	r := h.all[address]
	if r == nil {
		h.mu.Unlock()
		return fmt.Errorf("%w: host memory at %#x is not registered", abi.ErrInvalidValue, address)
	}
	if told, there := r.users[c]; !there || told != nil {
		h.mu.Unlock()
		return fmt.Errorf("%w: host memory at %#x is not registered in the context", abi.ErrInvalidValue, address)
	}
	r.users[c] = done
	if r.named--; r.named == 0 {
		r.in.removeHost(address)
	}
	h.mu.Unlock()
	if c.whenDrained(func() { c.releaseHost(address) }) != nil {
		c.releaseHost(address) // poisoned: no work runs
	}
	return nil
}

// releaseHost ends a context's use of host memory; none of its work is left.
func (c *context) releaseHost(address uint64) {
	h := &c.d.hosts
	h.mu.Lock()
	r := h.all[address]
	if r == nil {
		h.mu.Unlock()
		return
	}
	done, there := r.users[c]
	delete(r.users, c)
	if there && len(r.users) == 0 {
		_ = r.owner.call(cuMemHostUnregister, uintptr(address)) // poisoned: libcuda keeps the pages
		delete(h.all, address)
	}
	h.mu.Unlock()
	if done != nil {
		done()
	}
}

// destroy destroys the CUcontext, and ends all of its use of host memory. In the
// meantime no other context may query the one being destroyed.
func (c *context) destroy() error {
	h := &c.d.hosts
	h.mu.Lock()
	err := c.d.lib.call(c.handle, cuCtxDestroy, c.handle) // and everything in it
	forgetCurrent()
	var calls []func()
	for address, r := range h.all {
		done, there := r.users[c]
		if !there {
			continue
		}
		if delete(r.users, c); done != nil {
			calls = append(calls, done)
		} else if r.named--; r.named == 0 {
			r.in.removeHost(address)
		}
		c.pass(address, r)
	}
	h.mu.Unlock()
	for _, done := range calls {
		done()
	}
	return err
}

// pass transfers the registration of a destroyed context to another one; callers
// hold mu.
func (c *context) pass(address uint64, r *registered) {
	if len(r.users) == 0 {
		if r.owner != c {
			_ = r.owner.call(cuMemHostUnregister, uintptr(address))
		}
		delete(c.d.hosts.all, address)
		return
	}
	for other := range r.users {
		if r.owner != c {
			break
		}
		_ = other.call(cuMemHostUnregister, uintptr(address)) // if cuCtxDestroy has not unregistered it
		if other.pin(address, r.size) == nil {
			r.owner = other
		}
	}
	if r.owner == c { // no context could: it must not be used any more
		r.in.removeHost(address)
		for other := range r.users {
			r.owner = other
		}
	}
}

// hostAddress returns the address of a guest's bytes, if the card can access them
// there: a copy then does not need staging.
func (c *context) hostAddress(b []byte) (address uintptr, ok bool) {
	if len(b) == 0 {
		return 0, false
	}
	address = addressOf(&b[0])
	if s, ok := c.d.memory.find(uint64(address), uint64(len(b))); ok {
		return address, s.host
	}
	_, ok = c.d.staging.find(uint64(address), uint64(len(b)))
	return address, ok
}
