// Package virtio implements the device side of virtio 1.2's split virtqueues,
// on guest memory that another process shares as file descriptors (virtio 1.2,
// section 2.7; the section numbers below are of that document).
//
// The guest may write descriptors, rings and buffers while the device reads
// them. So each field is copied once before it is checked; no length, index or
// address is trusted; chains and rings have limits. An error of type *Error
// means that the guest's driver violated the specification: the queue cannot
// be used until the driver resets it, and no other guest is affected.
//
// Nothing in this package is safe for concurrent use: one goroutine owns a
// queue.
package virtio

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// MaxRegions is how many regions a guest's memory may have: the most in one
// vhost-user message.
const MaxRegions = 8

// Region is one piece of guest memory: Size bytes at guest-physical address
// GPA, at UserAddr in the VMM's address space, mapped from FD at Offset.
type Region struct {
	GPA, Size, UserAddr uint64
	FD                  int
	Offset              uint64
}

// Memory is a guest's memory map. It owns its file descriptors and mappings.
type Memory struct {
	regions []mapped // by GPA, disjoint
}

type mapped struct {
	Region
	bytes []byte
}

// Extent is a piece of guest memory relative to a region's file descriptor.
type Extent struct {
	Region         int // index for FD
	Offset, Length uint64
}

// Map maps the regions. It takes ownership of the file descriptors, and closes
// them on failure. It returns an error for a region that overlaps another,
// wraps around, is not page-aligned or extends beyond the end of its file.
func Map(regions []Region) (_ *Memory, err error) {
	m := &Memory{}
	defer func() {
		if err != nil {
			_ = m.Close()
			for _, r := range regions[len(m.regions):] {
				_ = unix.Close(r.FD)
			}
		}
	}()
	if len(regions) > MaxRegions {
		return nil, broken("%d memory regions, want at most %d", len(regions), MaxRegions)
	}
	for _, r := range regions {
		b, err := mapRegion(r)
		if err != nil {
			return nil, err
		}
		m.regions = append(m.regions, mapped{r, b})
	}
	slices.SortFunc(m.regions, func(a, b mapped) int { return cmp.Compare(a.GPA, b.GPA) })
	for i := 1; i < len(m.regions); i++ {
		if a, b := m.regions[i-1], m.regions[i]; a.GPA+a.Size > b.GPA {
			return nil, broken("memory regions at %#x and %#x overlap", a.GPA, b.GPA)
		}
	}
	return m, nil
}

func mapRegion(r Region) ([]byte, error) {
	page := uint64(os.Getpagesize())
	switch {
	case r.Size == 0 || r.GPA+r.Size < r.GPA || r.UserAddr+r.Size < r.UserAddr || r.Offset+r.Size < r.Offset || r.Size >= 1<<47:
		return nil, broken("memory region at %#x has invalid size %#x", r.GPA, r.Size)
	case (r.GPA|r.Size|r.Offset)%page != 0:
		return nil, broken("memory region %#x+%#x at %#x is not page-aligned", r.GPA, r.Size, r.Offset)
	}
	// Access to a page beyond the end of the file would raise SIGBUS.
	var st unix.Stat_t
	if err := unix.Fstat(r.FD, &st); err != nil {
		return nil, fmt.Errorf("stat file of memory region %#x: %w", r.GPA, err)
	}
	if uint64(st.Size) < r.Offset+r.Size {
		return nil, broken("memory region %#x ends at %#x, beyond its file of %#x bytes", r.GPA, r.Offset+r.Size, st.Size)
	}
	b, err := unix.Mmap(r.FD, int64(r.Offset), int(r.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map memory region %#x: %w", r.GPA, err)
	}
	return b, nil
}

// Close unmaps everything. Slices of the memory must not be used afterwards.
func (m *Memory) Close() error {
	var first error
	for _, r := range m.regions {
		if err := unix.Munmap(r.bytes); err != nil && first == nil {
			first = err
		}
		if err := unix.Close(r.FD); err != nil && first == nil {
			first = err
		}
	}
	m.regions = nil
	return first
}

// Regions returns the regions, by guest-physical address.
func (m *Memory) Regions() []Region {
	out := make([]Region, len(m.regions))
	for i, r := range m.regions {
		out[i] = r.Region
	}
	return out
}

// Size returns the size of the guest's memory in bytes.
func (m *Memory) Size() (sum uint64) {
	for _, r := range m.regions {
		sum += r.Size
	}
	return sum
}

// find returns the index of the region that contains gpa, or -1.
func (m *Memory) find(gpa uint64) int {
	for i := range m.regions {
		if r := &m.regions[i]; gpa >= r.GPA && gpa-r.GPA < r.Size {
			return i
		}
	}
	return -1
}

// Bytes returns guest memory [gpa, gpa+n), which must be in one region. The
// guest may change it at any time.
func (m *Memory) Bytes(gpa, n uint64) ([]byte, error) {
	i := m.find(gpa)
	if i < 0 || n > m.regions[i].Size-(gpa-m.regions[i].GPA) {
		return nil, broken("guest memory %#x+%#x does not exist", gpa, n)
	}
	off := gpa - m.regions[i].GPA
	return m.regions[i].bytes[off : off+n : off+n], nil
}

// Extents appends guest memory [gpa, gpa+n) to list as extents, merging
// consecutive ones.
func (m *Memory) Extents(list []Extent, gpa, n uint64) ([]Extent, error) {
	for n > 0 {
		i := m.find(gpa)
		if i < 0 {
			return list, broken("guest memory %#x+%#x does not exist", gpa, n)
		}
		r := &m.regions[i]
		off := gpa - r.GPA
		part := min(n, r.Size-off)
		if last := len(list) - 1; last >= 0 && list[last].Region == i && list[last].Offset+list[last].Length == r.Offset+off {
			list[last].Length += part
		} else {
			list = append(list, Extent{Region: i, Offset: r.Offset + off, Length: part})
		}
		gpa, n = gpa+part, n-part
	}
	return list, nil
}

// FromUser translates an address range of the VMM to its guest-physical
// address.
func (m *Memory) FromUser(addr, n uint64) (uint64, error) {
	for i := range m.regions {
		if r := &m.regions[i]; addr >= r.UserAddr && addr-r.UserAddr < r.Size && n <= r.Size-(addr-r.UserAddr) {
			return r.GPA + (addr - r.UserAddr), nil
		}
	}
	return 0, broken("VMM memory %#x+%#x is not guest memory", addr, n)
}
