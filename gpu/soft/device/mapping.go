package device

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// mappings is the state of memory that is mapped at addresses that the guest chooses.
// Each is one more mapping of the file's pages into a mirror of the addresses, so that
// memory at several addresses has the same bytes, and adjacent mappings of a mirror are
// one region.
type mappings struct {
	mirrors []mirror
	at      map[uint64]*mapped // by address
	shown   map[uint64]bool    // the bases of their regions in the table
}

// mirror is address space of this process for a range of device addresses: the
// window's device part, or a range outside of the window that is reserved
// (outside.go). It is made when something is mapped in the range for the first time.
type mirror struct {
	base  uint64
	bytes []byte
}

// part returns the bytes for a range of device addresses, or nil if it is not in the
// mirror.
func (m mirror) part(address, size uint64) []byte {
	off, room := address-m.base, uint64(len(m.bytes))
	if off > room || size > room-off {
		return nil
	}
	return m.bytes[off : off+size : off+size]
}

// mirrorOf returns the mirror that contains a range, if there is one.
func (m *mappings) mirrorOf(address, size uint64) (mirror, bool) {
	i := slices.IndexFunc(m.mirrors, func(r mirror) bool { return r.part(address, size) != nil })
	if i < 0 {
		return mirror{}, false
	}
	return m.mirrors[i], true
}

// mapped is a mapping of memory at one address.
type mapped struct {
	size   uint64
	access worker.Access
	memory uint64 // the number of the mapped memory; 0 for that of another process (share.go)
}

// split returns how many of a context's addresses MemAlloc uses, from the first one on.
// The rest, at least a quarter if the device's memory allows it, is for mappings.
func (m *memory) split(room uint64) uint64 {
	if part := room / 4 * 3; m.half > part && 2*m.limit <= part {
		return part
	}
	return min(m.half, room)
}

// MemCreate implements worker.Mapper. The memory has a number in place of an address,
// which is in no table.
func (c *Context) MemCreate(size uint64) (uint64, error) {
	return c.allocating(size, func(size uint64) (uint64, error) {
		memory, _, err := c.obtain(size, c.d.mem.placeShared)
		return memory, err
	})
}

// MemRelease implements worker.Mapper.
func (c *Context) MemRelease(memory uint64) error {
	c.mu.Lock()
	e, foreign := c.imported[memory]
	if foreign {
		delete(c.imported, memory)
		c.dropShared(memory)
	}
	c.mu.Unlock()
	if !foreign {
		return c.MemFree(memory)
	}
	c.d.mem.free(e.off)
	return nil
}

// space returns the mirror's part for a range of addresses. The caller must hold mu.
func (c *Context) space(address, size uint64) ([]byte, error) {
	if m, ok := c.mappings.mirrorOf(address, size); ok {
		return m.part(address, size), nil
	}
	w := abi.Window{Base: c.spaces.Device, Size: c.spaces.DeviceBytes()}
	if !w.Contains(address, size) {
		var ok bool
		if w, ok = c.d.outside.find(address, size); !ok {
			return nil, abi.ErrInvalidValue
		}
	}
	bytes, err := unix.Mmap(-1, 0, int(w.Size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	m := mirror{w.Base, bytes}
	c.mappings.mirrors = append(c.mappings.mirrors, m)
	return m.part(address, size), nil
}

// MemMap implements worker.Mapper.
func (c *Context) MemMap(address, size, memory uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.allocs[memory]
	if !ok {
		e, ok = c.imported[memory]
	}
	switch {
	case c.closed:
		return abi.ErrInvalidContext
	case !ok || e.off < c.d.mem.half || size > e.size || c.mappings.at[address] != nil:
		return abi.ErrInvalidValue
	}
	space, err := c.space(address, size)
	if err == nil {
		err = c.mapMemory(space, memory, e)
	}
	if err != nil {
		return err
	}
	c.mappings.at[address] = &mapped{size: size, memory: memory}
	return nil
}

// mapMemory maps the beginning of memory into a part of the mirror. The caller must
// hold mu.
func (c *Context) mapMemory(space []byte, memory uint64, e extent) error {
	if m := c.shared[memory]; m != nil {
		return mapFile(space, int(m.file.Fd()), 0)
	}
	return mapFile(space, c.d.mem.file, e.off-c.d.mem.half)
}

// MemSetAccess implements worker.Mapper. Memory with read access can be written, too.
// Work that is running keeps the access with which it began.
func (c *Context) MemSetAccess(address uint64, access worker.Access) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.mappings.at[address]
	if m == nil || c.closed {
		return abi.ErrInvalidValue
	}
	m.access = access
	c.showMappings()
	return nil
}

// showMappings inserts the regions of mappings with access into the table. The caller
// must hold mu.
func (c *Context) showMappings() {
	m := &c.mappings
	table := slices.DeleteFunc(slices.Clone(*c.table.Load()), func(r exec.Region) bool { return m.shown[r.Base] })
	clear(m.shown)
	var runs []exec.Region
	for _, at := range slices.Sorted(maps.Keys(m.at)) {
		size := m.at[at].size
		if m.at[at].access == worker.AccessNone {
			continue
		}
		if n := len(runs) - 1; n >= 0 && runs[n].Base+uint64(len(runs[n].Data)) == at {
			all := at + size - runs[n].Base
			if r, ok := m.mirrorOf(runs[n].Base, all); ok {
				runs[n].Data = r.part(runs[n].Base, all)
				continue
			}
		}
		r, _ := m.mirrorOf(at, size)
		runs = append(runs, exec.Region{Base: at, Data: r.part(at, size)})
		m.shown[at] = true
	}
	table = append(table, runs...)
	slices.SortFunc(table, func(a, b exec.Region) int {
		if a.Base < b.Base {
			return -1
		}
		return 1
	})
	c.table.Store(&table)
}

// MemUnmap implements worker.Mapper.
func (c *Context) MemUnmap(address uint64, done func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.mappings.at[address]
	if m == nil || c.closed {
		return abi.ErrInvalidValue
	}
	hide := func() {
		m.access = worker.AccessNone
		c.showMappings()
	}
	c.retire(hide, func() {
		c.mu.Lock()
		delete(c.mappings.at, address)
		if space, err := c.space(address, wholePages(m.size)); err == nil {
			_ = unmapFile(space) // on error it stays mapped, but is not accessible by any address
		}
		c.mu.Unlock()
		done()
	})
	return nil
}

// dropMappings removes all mappings. No work may be running. The caller must hold mu.
func (c *Context) dropMappings() {
	for _, m := range c.mappings.mirrors {
		_ = unix.Munmap(m.bytes)
	}
	c.mappings = mappings{}
}
