package soft

import (
	"fmt"
	"sort"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// region is one allocation as kernels see it. A context's table of them is
// replaced, never changed, so kernels look addresses up without a lock.
type region struct {
	base uint64 // device address
	data []byte
}

// find gives the region that holds the address.
func find(table []region, addr uint64) (region, bool) {
	i := sort.Search(len(table), func(i int) bool { return table[i].base > addr })
	if i == 0 {
		return region{}, false
	}
	r := table[i-1]
	return r, addr-r.base < uint64(len(r.data))
}

// slice gives size bytes at a device address; all of them in one allocation.
func slice(table []region, addr, size uint64) ([]byte, error) {
	r, ok := find(table, addr)
	if !ok || size > uint64(len(r.data))-(addr-r.base) {
		return nil, fmt.Errorf("%w: %d bytes at %#x", abi.ErrIllegalAddress, size, addr)
	}
	return r.data[addr-r.base:][:size], nil
}
