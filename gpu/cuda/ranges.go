package cuda

import (
	"fmt"
	"slices"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// ranges is the memory that guests of this process may address: allocations, variables of modules,
// and registered host memory. A copy outside of it is refused before libcuda sees it, because there
// it could end the context, or the process.
type ranges struct {
	mu   sync.Mutex // guards list
	list []span     // sorted, without overlaps
}

type span struct {
	start, size uint64
	global      bool // a module's variable: cannot be freed
	host        bool // host memory: cannot be freed
	mapped      bool // mapped by the guest: cannot be freed, and adjacent ones count as one
}

func (r *ranges) search(address uint64) (int, bool) {
	return slices.BinarySearchFunc(r.list, address, func(s span, a uint64) int {
		switch {
		case s.start < a:
			return -1
		case s.start > a:
			return 1
		}
		return 0
	})
}

func (r *ranges) add(s span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i, found := r.search(s.start); !found {
		r.list = slices.Insert(r.list, i, s)
	}
}

// find returns the piece that contains all of the bytes from address on.
func (r *ranges) find(address, size uint64) (s span, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := r.search(address)
	if !found {
		i--
	}
	for ; i >= 0 && i < len(r.list) && address-r.list[i].start <= r.list[i].size; i++ {
		left := r.list[i].size - (address - r.list[i].start)
		if size <= left {
			return r.list[i], true
		}
		if address, size = address+left, size-left; !r.list[i].mapped || i+1 == len(r.list) || !r.list[i+1].mapped || r.list[i+1].start != address {
			break
		}
	}
	return s, false
}

// check reports whether all of the bytes from address on are in one piece.
func (r *ranges) check(address, size uint64) error {
	if _, ok := r.find(address, size); ok {
		return nil
	}
	return fmt.Errorf("%w: %d bytes at %#x are not memory of this device", abi.ErrInvalidValue, size, address)
}

// remove removes an allocation, or a module's variable.
func (r *ranges) remove(address uint64, global bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := r.search(address)
	if !found || r.list[i].global != global || r.list[i].host || r.list[i].mapped {
		return fmt.Errorf("%w: %#x was not allocated", abi.ErrInvalidValue, address)
	}
	r.list = slices.Delete(r.list, i, i+1)
	return nil
}

// removeMapped removes a mapping, if it exists.
func (r *ranges) removeMapped(address uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i, found := r.search(address); found && r.list[i].mapped {
		r.list = slices.Delete(r.list, i, i+1)
	}
}

// removeHost removes host memory.
func (r *ranges) removeHost(address uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i, found := r.search(address); found && r.list[i].host {
		r.list = slices.Delete(r.list, i, i+1)
	}
}
