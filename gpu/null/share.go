package null

import (
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// Share implements worker.Sharer: it returns a file that is never written.
func (c *Context) Share(address uint64) (worker.Shared, error) {
	size, err := c.d.mem.share(c, address)
	if err != nil {
		return worker.Shared{}, err
	}
	file, err := shm.NewFile("null-gpu-shared", size)
	if err != nil {
		return worker.Shared{}, err
	}
	return worker.Shared{Size: size, File: file}, nil
}

// share marks the block at an address, which is then never evicted.
func (m *memory) share(c *Context, address uint64) (size uint64, err error) {
	if m.hold(c, address, 1, false) != nil && m.hold(c, address, 1, true) != nil {
		return 0, abi.ErrInvalidValue
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.after(address - c.window.Base)
	if i == len(m.blocks) || m.blocks[i].at != address-c.window.Base || m.blocks[i].away > 0 {
		return 0, abi.ErrInvalidValue
	}
	m.blocks[i].shared = true
	return m.blocks[i].size, nil
}

// OpenShared implements worker.Sharer.
func (c *Context) OpenShared(address uint64, m worker.Shared) error {
	if err := shm.CheckFile(m.File, m.Size); err != nil || m.Size == 0 {
		return abi.ErrInvalidValue
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.mapped[address]; twice || !c.window.Device().Contains(address, m.Size) {
		return abi.ErrInvalidValue
	}
	c.mapped[address] = mapped{size: m.Size, access: worker.AccessReadWrite}
	return nil
}

// ImportShared implements worker.Sharer.
func (c *Context) ImportShared(m worker.Shared) (uint64, error) {
	if err := shm.CheckFile(m.File, m.Size); err != nil || m.Size == 0 {
		return 0, abi.ErrInvalidValue
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return 0, err
	}
	return c.d.mem.alloc(c, block{size: m.Size, hidden: true, shared: true, foreign: true}, false)
}

// CloseShared implements worker.Sharer.
func (c *Context) CloseShared(address uint64, done func()) error { return c.MemUnmap(address, done) }
