package exec

import (
	"fmt"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"slices"
	"sort"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// heapAlign is the alignment in bytes of the addresses that malloc returns, as on a
// GPU.
const heapAlign = 16

// Heap is the memory of malloc and free in kernels, which all blocks share. It is safe
// for concurrent use.
type Heap struct {
	mu   sync.Mutex
	free []hole // sorted, none next to another
	used map[uint64]uint64
	size uint64 // in total
}

type hole struct{ at, size uint64 }

// NewHeap returns a heap of size bytes of device memory at an address.
func NewHeap(at, size uint64) *Heap {
	return &Heap{size: size, free: []hole{{at, size}}, used: map[uint64]uint64{}}
}

// alloc returns the address of size bytes, or 0 if there is not enough free memory.
func (h *Heap) alloc(size uint64) uint64 {
	if size == 0 || size > h.size {
		return 0
	}
	size = (size + heapAlign - 1) &^ (heapAlign - 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.free {
		f := &h.free[i]
		if f.size < size {
			continue
		}
		at := f.at
		if f.at, f.size = f.at+size, f.size-size; f.size == 0 {
			h.free = slices.Delete(h.free, i, i+1)
		}
		h.used[at] = size
		return at
	}
	return 0
}

// release frees memory that alloc has returned. It returns false for any other address.
func (h *Heap) release(at uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	size, ok := h.used[at]
	if !ok {
		return false
	}
	delete(h.used, at)
	i := sort.Search(len(h.free), func(i int) bool { return h.free[i].at > at })
	h.free = slices.Insert(h.free, i, hole{at, size})
	if i+1 < len(h.free) && at+size == h.free[i+1].at {
		h.free[i].size += h.free[i+1].size
		h.free = slices.Delete(h.free, i+1, i+2)
	}
	if i > 0 && h.free[i-1].at+h.free[i-1].size == at {
		h.free[i-1].size += h.free[i].size
		h.free = slices.Delete(h.free, i, i+1)
	}
	return true
}

func malloc(o *ir.Malloc) step {
	result, size := word{o.Result}, word{o.Size}
	return masked(func(m *machine, act []uint32) error {
		eachLane(act, func(l int) { result.set(m, l, m.env.Heap.alloc(size.get(m, l))) })
		return nil
	})
}

func free(o *ir.Free) step {
	at := word{o.Address}
	return masked(func(m *machine, act []uint32) error {
		return eachLaneErr(act, func(l int) error {
			if p := at.get(m, l); p != 0 && !m.env.Heap.release(p) {
				return fmt.Errorf("%w: free of address %#x, want one that malloc has returned and that is not freed", abi.ErrIllegalAddress, p)
			}
			return nil
		})
	})
}
