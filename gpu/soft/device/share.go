package device

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// sharedMemory is the memory of an allocation that other processes may use: a file that
// contains nothing else. Its extent in the arena is unused.
type sharedMemory struct {
	file  *os.File
	bytes []byte // whole pages
}

func wholePages(size uint64) uint64 { return (size + 4095) &^ 4095 }

// mapShared maps a file of size bytes. It takes ownership of the file, and closes it on
// error.
func mapShared(file *os.File, size uint64) (*sharedMemory, error) {
	bytes, err := unix.Mmap(int(file.Fd()), 0, int(wholePages(size)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", abi.ErrOutOfMemory, err), file.Close())
	}
	return &sharedMemory{file: file, bytes: bytes}, nil
}

// Share implements worker.Sharer. It replaces the region of the allocation in the
// table. Work that begins or continues after this uses the new table.
func (c *Context) Share(addr uint64) (worker.Shared, error) {
	c.move.Lock()
	defer c.move.Unlock()
	c.mu.Lock()
	e, ok := c.allocs[addr]
	m := c.shared[addr]
	ok = ok && !c.closed
	c.mu.Unlock()
	if !ok {
		return worker.Shared{}, abi.ErrInvalidValue
	}
	if m == nil {
		var err error
		if m, err = c.moveToFile(addr, e); err != nil {
			return worker.Shared{}, err
		}
	}
	file, err := shm.Duplicate(m.file)
	return worker.Shared{Size: e.size, File: file}, err
}

// moveToFile moves an allocation that is on the device to a file.
func (c *Context) moveToFile(addr uint64, e extent) (*sharedMemory, error) {
	if err := c.beginMove(); err != nil {
		return nil, err
	}
	defer c.endMove()
	file, err := shm.NewFile("soft-gpu-shared", e.size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", abi.ErrOutOfMemory, err)
	}
	m, err := mapShared(file, e.size)
	if err != nil {
		return nil, err
	}
	if err := c.copyOut(m.bytes[:e.size], e.off, 0); err != nil {
		m.close()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shared[addr] = m
	if err := c.showShared(addr, m, e); err != nil {
		delete(c.shared, addr)
		m.close()
		return nil, err
	}
	c.d.mem.zero(e.off, e.size)
	return m, nil
}

// showShared replaces the memory of an allocation by the file that is a copy of it: in
// the table, or where the memory is mapped. The caller must hold mu.
func (c *Context) showShared(addr uint64, m *sharedMemory, e extent) error {
	if _, ok := c.allocs[addr]; !ok || c.away.evicted {
		return abi.ErrInvalidValue
	}
	if e.off < c.d.mem.half {
		table := slices.Clone(*c.table.Load())
		i := slices.IndexFunc(table, func(r exec.Region) bool { return r.Base == addr })
		if i < 0 {
			return abi.ErrInvalidValue
		}
		table[i].Data = m.bytes[:e.size:e.size]
		c.table.Store(&table)
		return nil
	}
	for at, mapped := range c.mappings.at {
		if mapped.memory != addr {
			continue
		}
		space, err := c.space(at, mapped.size)
		if err == nil {
			err = c.mapMemory(space, addr, e)
		}
		if err != nil { // the memory is in an inconsistent state
			c.poisoned = errors.Join(abi.ErrUnknown, err)
			return c.poisoned
		}
	}
	return nil
}

// ImportShared implements worker.Sharer. The number is that of an extent of the
// device's address space that stays unused.
func (c *Context) ImportShared(m worker.Shared) (uint64, error) {
	if err := shm.CheckFile(m.File, m.Size); err != nil || m.Size == 0 {
		return 0, errors.Join(abi.ErrInvalidValue, err)
	}
	file, err := shm.Duplicate(m.File)
	if err != nil {
		return 0, err
	}
	shared, err := mapShared(file, m.Size)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	off, err := c.d.mem.placeShared(m.Size)
	if err == nil && c.closed {
		c.d.mem.free(off)
		err = abi.ErrInvalidContext
	}
	if err != nil {
		shared.close()
		return 0, err
	}
	memory := c.spaces.Device + off
	c.shared[memory], c.imported[memory] = shared, extent{off, m.Size}
	return memory, nil
}

// dropShared closes the file of an allocation that no new work can use, after the work
// that began with the old table. The caller must hold mu.
func (c *Context) dropShared(addr uint64) {
	m := c.shared[addr]
	if m == nil {
		return
	}
	delete(c.shared, addr)
	meanwhile := c.tailsLocked()
	go func() {
		await(c, meanwhile)
		m.close()
	}()
}

func (m *sharedMemory) close() {
	_ = unix.Munmap(m.bytes)
	_ = m.file.Close()
}

// OpenShared implements worker.Sharer.
func (c *Context) OpenShared(addr uint64, m worker.Shared) error {
	if err := shm.CheckFile(m.File, m.Size); err != nil || m.Size == 0 {
		return errors.Join(abi.ErrInvalidValue, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return abi.ErrInvalidContext
	}
	if c.mappings.at[addr] != nil {
		return abi.ErrInvalidValue
	}
	space, err := c.space(addr, wholePages(m.Size))
	if err == nil {
		err = mapFile(space, int(m.File.Fd()), 0)
	}
	if err != nil {
		return err
	}
	c.mappings.at[addr] = &mapped{size: m.Size, access: worker.AccessReadWrite}
	c.showMappings()
	return nil
}

// CloseShared implements worker.Sharer.
func (c *Context) CloseShared(addr uint64, done func()) error { return c.MemUnmap(addr, done) }
