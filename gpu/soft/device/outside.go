package device

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

var _ worker.Reserver = (*device)(nil)

// outside is the list of address ranges outside of the window that are reserved for
// mappings. It is safe for concurrent use.
type outside struct {
	mu   sync.Mutex // locked after Context.mu
	list []abi.Window
}

// find returns the range that contains size bytes from an address on.
func (o *outside) find(address, size uint64) (abi.Window, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.list, func(w abi.Window) bool { return w.Contains(address, size) })
	if i < 0 {
		return abi.Window{}, false
	}
	return o.list[i], true
}

// Reserve implements worker.Reserver. Device addresses are not addresses of this process,
// so it is enough that no other range of the device has them.
func (d *device) Reserve(w abi.Window) error {
	d.outside.mu.Lock()
	defer d.outside.mu.Unlock()
	if slices.ContainsFunc(d.outside.list, w.Overlaps) {
		return abi.ErrInvalidValue
	}
	d.outside.list = append(d.outside.list, w)
	return nil
}

// Unreserve implements worker.Reserver.
func (d *device) Unreserve(w abi.Window) error {
	d.outside.mu.Lock()
	i := slices.Index(d.outside.list, w)
	if i >= 0 {
		d.outside.list = slices.Delete(d.outside.list, i, i+1)
	}
	d.outside.mu.Unlock()
	if i < 0 {
		return abi.ErrInvalidValue
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.contexts {
		c.dropMirror(w.Base)
	}
	return nil
}

// dropMirror removes the mirror of a range in which nothing is mapped any more.
func (c *Context) dropMirror(base uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &c.mappings
	if i := slices.IndexFunc(m.mirrors, func(r mirror) bool { return r.base == base }); i >= 0 {
		_ = unix.Munmap(m.mirrors[i].bytes)
		m.mirrors = slices.Delete(m.mirrors, i, i+1)
	}
}
