package exec

import (
	"sort"
)

// Region is one allocation of device memory. A context's table of regions is replaced
// and never changed, so kernels search it without a lock.
type Region struct {
	Base uint64 // device address
	Data []byte
}

// FindRegion returns the region that contains the address.
func FindRegion(table []Region, addr uint64) (Region, bool) {
	i := sort.Search(len(table), func(i int) bool { return table[i].Base > addr })
	if i == 0 {
		return Region{}, false
	}
	r := table[i-1]
	return r, addr-r.Base < uint64(len(r.Data))
}

// SliceRegion returns size bytes at a device address, which must be in one allocation.
func SliceRegion(table []Region, addr, size uint64) ([]byte, error) {
	r, ok := FindRegion(table, addr)
	if !ok || size > uint64(len(r.Data))-(addr-r.Base) {
		return nil, unallocated(size, addr)
	}
	return r.Data[addr-r.Base:][:size], nil
}
