package cuda

import (
	"errors"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

const (
	// maxHoles bounds how many places of the window are tried for one block.
	maxHoles = 12
	// firstSkip is how far from a place that libcuda refused the next is tried;
	// it doubles each time, so that all tries together cross a large window.
	firstSkip = 64 << 20
)

// errMoved: libcuda reserved other addresses than it was asked for.
var errMoved = errors.New("libcuda reserved other addresses")

// reserve reserves addresses in the session's window. libcuda takes an address
// as a wish (CUDA driver API, cuMemAddressReserve), and only where nothing is
// mapped: our own reservation is given up for it. A place that it refuses stays
// lent until the search is over, so that it is not tried again.
func (c *context) reserve(size uint64) (uint64, error) {
	w := c.virtual.window
	var refused []uint64
	defer func() {
		for _, at := range refused {
			_ = w.Return(at) // something else is there: it stays lent
		}
	}()
	var last error
	for skip := uint64(0); len(refused) < maxHoles; skip = max(2*skip, firstSkip) {
		at, err := w.Lend(size, c.virtual.granule, skip)
		if err != nil {
			return 0, errors.Join(err, last)
		}
		if err = c.reserveAt(at, size); err == nil {
			return at, nil
		}
		refused = append(refused, at)
		if !errors.Is(err, errMoved) && !errors.Is(err, abi.ErrInvalidValue) {
			return 0, err // not about the address
		}
		last = err
	}
	return 0, fmt.Errorf("%w: %d places of address window %v were refused: %w", abi.ErrOutOfMemory, maxHoles, w.Window, last)
}

// reserveAt asks libcuda for exactly these addresses.
func (c *context) reserveAt(at, size uint64) error {
	got := newOut[uint64]()
	defer got.free()
	if err := c.call(cuMemAddressReserve, got.at(), uintptr(size), 0, uintptr(at), 0); err != nil {
		return err
	}
	if *got.value == at {
		return nil
	}
	err := fmt.Errorf("%w: %#x, want %#x", errMoved, *got.value, at)
	return errors.Join(err, c.call(cuMemAddressFree, uintptr(*got.value), uintptr(size)))
}

// unreserve gives addresses back to libcuda and to the window. If libcuda keeps
// them, so does the window.
func (c *context) unreserve(at, size uint64) {
	if c.call(cuMemAddressFree, uintptr(at), uintptr(size)) == nil {
		_ = c.virtual.window.Return(at)
	}
}
