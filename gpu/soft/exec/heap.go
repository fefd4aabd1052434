package exec

import (
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// HeapBytes is how much the malloc of a module's kernels has: what CUDA's
// cudaLimitMallocHeapSize is at first. It is device memory of the module.
const HeapBytes = 8 << 20

// heapAlign is the alignment of what malloc returns, as on a card.
const heapAlign = 16

// Heap is the memory of malloc and free in kernels, which all blocks share.
type Heap struct {
	mu   sync.Mutex
	free []hole // sorted, none next to another
	used map[uint64]uint64
}

type hole struct{ at, size uint64 }

// NewHeap makes a heap of device memory.
func NewHeap(at, size uint64) *Heap {
	return &Heap{free: []hole{{at, size}}, used: map[uint64]uint64{}}
}

// alloc returns the address of size bytes, or 0 when there is no room.
func (h *Heap) alloc(size uint64) uint64 {
	if size == 0 || size > HeapBytes {
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

// release frees what alloc has returned; it reports false for anything else.
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

// Malloc returns the step that allocates in each lane; 0 is no room.
func Malloc(h *Heap, result, size Word) Step {
	return masked(func(m *machine, act []uint32) error {
		eachLane(act, func(l int) { result.set(m, l, h.alloc(size.get(m, l))) })
		return nil
	})
}

// Free returns the step that frees in each lane what Malloc has given it.
func Free(h *Heap, at Word) Step {
	return masked(func(m *machine, act []uint32) error {
		return eachLaneErr(act, func(l int) error {
			if p := at.get(m, l); p != 0 && !h.release(p) {
				return fmt.Errorf("%w: free of %#x, which malloc has not returned", abi.ErrIllegalAddress, p)
			}
			return nil
		})
	})
}
