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

// sharedMemory is where an allocation lies whose memory other processes may use: a file
// of its own, in which there is nothing else. Its place in the arena stays unused.
type sharedMemory struct {
	file  *os.File
	bytes []byte // whole pages
}

func wholePages(size uint64) uint64 { return (size + 4095) &^ 4095 }

// Share implements worker.Sharer. The allocation's region is replaced in the table, which
// kernels that go on after this take anew, as all that runs does.
func (c *Context) Share(addr uint64) (worker.Shared, error) {
	c.move.Lock()
	defer c.move.Unlock()
	c.mu.Lock()
	e, ok := c.allocs[addr]
	m := c.shared[addr]
	ok = ok && !c.closed
	c.mu.Unlock()
	if !ok || e.off >= c.d.mem.half {
		return worker.Shared{}, abi.ErrInvalidValue
	}
	if m == nil {
		var err error
		if m, err = c.moveToFile(addr, e); err != nil {
			return worker.Shared{}, err
		}
	}
	fd, err := unix.FcntlInt(m.file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return worker.Shared{}, fmt.Errorf("share %d bytes at %#x: %w", e.size, addr, err)
	}
	return worker.Shared{Size: e.size, File: os.NewFile(uintptr(fd), m.file.Name())}, nil
}

// moveToFile moves an allocation that is on the device into a file.
func (c *Context) moveToFile(addr uint64, e extent) (*sharedMemory, error) {
	if err := c.beginMove(); err != nil {
		return nil, err
	}
	defer c.endMove()
	file, err := shm.NewFile("soft-gpu-shared", e.size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", abi.ErrOutOfMemory, err)
	}
	bytes, err := unix.Mmap(int(file.Fd()), 0, int(wholePages(e.size)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", abi.ErrOutOfMemory, err), file.Close())
	}
	m := &sharedMemory{file: file, bytes: bytes}
	if err := c.copyOut(bytes[:e.size], e.off, 0); err != nil {
		m.close()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	table := slices.Clone(*c.table.Load())
	i := slices.IndexFunc(table, func(r exec.Region) bool { return r.Base == addr })
	if i < 0 || c.away.evicted {
		m.close()
		return nil, abi.ErrInvalidValue
	}
	table[i].Data = bytes[:e.size:e.size]
	c.table.Store(&table)
	c.shared[addr] = m
	c.d.mem.zero(e.off, e.size)
	return m, nil
}

// dropShared closes the file of an allocation that no new work can use; callers hold mu.
// What began with the old table may still use it.
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
