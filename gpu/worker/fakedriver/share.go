package fakedriver

import (
	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// Share implements worker.Sharer. The mapping stays until the process ends, because a
// slice of it may still be in use.
func (c *Context) Share(address uint64) (worker.Shared, error) {
	if f := c.d.o.FailShare; f != nil {
		if err := f(); err != nil {
			return worker.Shared{}, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.memory[address]
	if m == nil || c.inside || c.freeing[address] {
		return worker.Shared{}, abi.ErrInvalidValue
	}
	file, err := shm.NewFile("fake-gpu-shared", uint64(len(m)))
	if err != nil {
		return worker.Shared{}, err
	}
	bytes, err := view(worker.Shared{Size: uint64(len(m)), File: file})
	if err != nil {
		_ = file.Close()
		return worker.Shared{}, err
	}
	copy(bytes, m)
	c.memory[address], c.shared[address] = bytes, true
	return worker.Shared{Size: uint64(len(m)), File: file}, nil
}

func view(m worker.Shared) ([]byte, error) {
	if err := shm.CheckFile(m.File, m.Size); err != nil {
		return nil, err
	}
	return unix.Mmap(int(m.File.Fd()), 0, int(m.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// OpenShared implements worker.Sharer.
func (c *Context) OpenShared(address uint64, m worker.Shared) error {
	bytes, err := view(m)
	if err != nil {
		return abi.ErrInvalidValue
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hosts[address] = bytes
	return nil
}

// CloseShared implements worker.Sharer.
func (c *Context) CloseShared(address uint64, done func()) error {
	gone := func(error) {
		c.mu.Lock()
		delete(c.hosts, address)
		c.mu.Unlock()
		done()
	}
	if err := c.enqueue(nil, operation{done: gone}); err != nil {
		gone(err) // no operation runs any more
	}
	return nil
}

// ImportShared implements worker.Sharer. Unlike in other drivers, it counts as
// the device's memory, which no test checks.
func (c *Context) ImportShared(m worker.Shared) (uint64, error) {
	bytes, err := view(m)
	if err != nil {
		return 0, abi.ErrInvalidValue
	}
	memory, err := c.MemAlloc(m.Size)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory[memory], c.shared[memory] = bytes, true
	return memory, nil
}
