package worker

import (
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// Place maps a region of the guest at the guest's address. The address is chosen
// by the guest: it must be in the host part, and no other memory of the guest may
// be mapped there. A *ProtocolError means that the address is invalid; any other
// error means that these pages cannot be mapped, and the addresses stay reserved.
func (w *Window) Place(address uint64, extents []shm.Extent) (*shm.Mapping, error) {
	var size uint64
	for _, e := range extents {
		size += e.Length
	}
	at := abi.Window{Base: address, Size: size}
	if size == 0 || address%abi.PageSize != 0 || !w.Host().Contains(address, size) {
		return nil, protocol("memory at %v is not in the host part %v of address window %v", at, w.Host(), w.Window)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reserved {
		return nil, fmt.Errorf("address window %v is not reserved in this process", w.Window)
	}
	if i := overlap(w.placed, at); i >= 0 {
		return nil, fmt.Errorf("%w: memory at %v overlaps %v, which is still in use", abi.ErrOutOfMemory, at, w.placed[i])
	}
	m, err := shm.MapAt(address, extents)
	if err != nil {
		return nil, err
	}
	w.placed = insert(w.placed, at)
	return m, nil
}

// overlap returns the index of a range of the list that overlaps at, or -1.
func overlap(list []abi.Window, at abi.Window) int {
	i, _ := slices.BinarySearchFunc(list, at.Base, byBase)
	if i < len(list) && list[i].Base < at.Base+at.Size {
		return i
	}
	if i > 0 && list[i-1].Base+list[i-1].Size > at.Base {
		return i - 1
	}
	return -1
}

// Remove unmaps what Place has mapped, which must not be in use any more. While
// the window is open its reservation is restored atomically.
func (w *Window) Remove(address uint64, m *shm.Mapping) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i, found := slices.BinarySearchFunc(w.placed, address, byBase)
	if !found {
		return fmt.Errorf("nothing is mapped at %#x of address window %v", address, w.Window)
	}
	if !w.reserved {
		m.Close()
	} else if err := m.Reserve(); err != nil {
		return err // it stays mapped, and its addresses stay in use
	}
	w.placed = slices.Delete(w.placed, i, i+1)
	return nil
}
