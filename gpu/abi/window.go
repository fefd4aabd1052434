package abi

import "fmt"

// Window is a range of virtual addresses, in bytes. The guest process and its
// worker reserve the same one, and every address of device memory is in it.
type Window struct{ Base, Size uint64 }

func (w Window) String() string { return fmt.Sprintf("%#x+%#x", w.Base, w.Size) }

// Check returns why a session cannot use the window, or nil. The values may come
// from a hostile guest.
func (w Window) Check() error {
	switch {
	case w.Base%WindowUnit != 0 || w.Size%WindowUnit != 0:
		return fmt.Errorf("address window %v: base and size must be multiples of %#x", w, uint64(WindowUnit))
	case w.Size < MinWindow || w.Size > MaxWindow:
		return fmt.Errorf("address window %v: size must be %#x to %#x", w, uint64(MinWindow), uint64(MaxWindow))
	case w.Base < WindowLowest || w.Base > WindowEnd-w.Size: // size is at most MaxWindow: no overflow
		return fmt.Errorf("address window %v: must lie between %#x and %#x", w, uint64(WindowLowest), uint64(WindowEnd))
	}
	return nil
}

// Contains reports whether all of the n bytes from address on are in the window.
func (w Window) Contains(address, n uint64) bool {
	return address >= w.Base && address-w.Base <= w.Size && n <= w.Size-(address-w.Base)
}

// Overlaps reports whether an address is in both ranges, of which neither reaches the end
// of the address space.
func (w Window) Overlaps(o Window) bool { return w.Base < o.Base+o.Size && o.Base < w.Base+w.Size }

// Host returns the part of the window in which the guest chooses addresses, for
// regions that are the same memory on both sides.
func (w Window) Host() Window {
	size := w.Size / HostPart / WindowUnit * WindowUnit
	return Window{w.Base + w.Size - WindowTail - size, size}
}

// Device returns the part of the window in which the worker chooses addresses,
// for device memory.
func (w Window) Device() Window { return Window{w.Base, w.Host().Base - w.Base} }

// Windows returns the windows that a worker tries for a guest that offers none: a
// library of version 1.0, and one that allocates nothing. The guest library has a
// list of its own (gpu/guest/src/window.c), which also gives the reasons.
func Windows() []Window {
	var list []Window
	for _, base := range []uint64{
		0x400000000000, 0x300000000000, 0x680000000000, 0x200000000000,
		0x700000000000, 0x740000000000, 0x100000000000, 0x780000000000,
	} {
		list = append(list, Window{base, MaxWindow})
	}
	return list
}
