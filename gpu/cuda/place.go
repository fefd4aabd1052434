package cuda

import (
	"errors"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// occupy has libcuda reserve the whole device part of a session's window, once for all
// its contexts, and memory is mapped anywhere in it. libcuda takes an address as a wish
// (CUDA driver API, cuMemAddressReserve) where nothing is mapped, so our own reservation
// is given up for it; for small pieces (2 MiB, driver 580) it has a place of its own and
// does not follow.
func (d *driver) occupy(w *worker.Window) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.windows[w]++; d.windows[w] > 1 {
		return nil
	}
	part := w.Device()
	err := w.GiveDevice()
	if err == nil {
		if err = d.reserveAt(part.Base, part.Size); err == nil {
			return nil
		}
		err = errors.Join(err, w.TakeDevice())
	}
	delete(d.windows, w)
	return fmt.Errorf("%w: reserve device part %v of address window %v: %w", abi.ErrOutOfMemory, part, w.Window, err)
}

// reserveAt asks libcuda for exactly these addresses.
func (d *driver) reserveAt(at, size uint64) error {
	got := newOut[uint64]()
	defer got.free()
	if err := d.lib.call(0, cuMemAddressReserve, got.at(), uintptr(size), 0, uintptr(at), 0); err != nil {
		return fmt.Errorf("cuMemAddressReserve: %w", err)
	}
	if *got.value == at {
		return nil
	}
	err := fmt.Errorf("libcuda reserved %#x instead", *got.value)
	return errors.Join(err, d.lib.call(0, cuMemAddressFree, uintptr(*got.value), uintptr(size)))
}

// vacate gives a window its device part back when its last context is gone.
func (d *driver) vacate(w *worker.Window) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.windows[w]--; d.windows[w] > 0 {
		return nil
	}
	delete(d.windows, w)
	part := w.Device()
	if err := d.lib.call(0, cuMemAddressFree, uintptr(part.Base), uintptr(part.Size)); err != nil {
		return fmt.Errorf("cuMemAddressFree: %w", err) // libcuda keeps the addresses, and so they stay given
	}
	return w.TakeDevice()
}
