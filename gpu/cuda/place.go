package cuda

import (
	"errors"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

var _ worker.Reserver = (*driver)(nil)

// occupy lets libcuda reserve the whole device part of a session's window, once for all
// its contexts; memory is then mapped anywhere in it. libcuda treats an address as a
// hint (CUDA driver API, cuMemAddressReserve) and uses it if nothing is mapped there, so
// our own reservation is released for it. For small pieces (2 MiB, driver 580) it uses
// addresses of its own and ignores the hint.
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

// reserveAt reserves exactly these addresses with libcuda.
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

// Reserve implements worker.Reserver: libcuda reserves the addresses, if nothing is mapped
// there in this process.
func (d *driver) Reserve(w abi.Window) error {
	if !d.maps() {
		return fmt.Errorf("%w: the GPU does not support mapping memory", abi.ErrNotSupported)
	}
	return d.reserveAt(w.Base, w.Size)
}

// Unreserve implements worker.Reserver.
func (d *driver) Unreserve(w abi.Window) error {
	if err := d.lib.call(0, cuMemAddressFree, uintptr(w.Base), uintptr(w.Size)); err != nil {
		return fmt.Errorf("cuMemAddressFree: %w", err)
	}
	return nil
}

// vacate reserves a window's device part again when its last context was
// destroyed.
func (d *driver) vacate(w *worker.Window) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.windows[w]--; d.windows[w] > 0 {
		return nil
	}
	delete(d.windows, w)
	part := w.Device()
	if err := d.lib.call(0, cuMemAddressFree, uintptr(part.Base), uintptr(part.Size)); err != nil {
		return fmt.Errorf("cuMemAddressFree: %w", err) // libcuda keeps the addresses, so they stay given
	}
	return w.TakeDevice()
}
