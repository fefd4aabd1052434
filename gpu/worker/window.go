package worker

import (
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// Window is the range of addresses that contains all device memory of one guest
// process. The guest has reserved the same range, so that no address in it can be
// one of its own pointers.
//
// It is safe for concurrent use.
type Window struct {
	abi.Window
	reserved bool // the range is mapped without access, except the device part while it is given

	mu        sync.Mutex // guards the following
	given     bool       // the device part belongs to a library
	allocated []abi.Window
	next      uint64       // where Allocate searches first: addresses are not reused soon
	kept      uint64       // bytes at the beginning of the device part that Allocate does not use
	placed    []abi.Window // mapped memory of the guest, in the host part
}

// NewWindow returns a window that is only used for its numbers: it reserves
// nothing in this process.
func NewWindow(w abi.Window) *Window { return &Window{Window: w, next: w.Base} }

// ReserveWindow reserves the range in this process; it fails when anything is
// mapped there.
func ReserveWindow(w abi.Window) (*Window, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	if err := reserve(w); err != nil {
		return nil, fmt.Errorf("reserve address window %v: %w", w, err)
	}
	return &Window{Window: w, reserved: true, next: w.Base}, nil
}

// GiveDevice releases the reservation of the device part, for a driver's library that
// reserves it instead.
func (w *Window) GiveDevice() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reserved || w.given {
		return nil
	}
	d := w.Device()
	if _, _, errno := unix.Syscall(unix.SYS_MUNMAP, uintptr(d.Base), uintptr(d.Size), 0); errno != 0 {
		return fmt.Errorf("release device part %v of address window %v: %w", d, w.Window, errno)
	}
	w.given = true
	return nil
}

// TakeDevice reserves the device part again, once nothing is mapped there.
func (w *Window) TakeDevice() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.given || !w.reserved { // never given, or closed since
		w.given = false
		return nil
	}
	if err := reserve(w.Device()); err != nil {
		return fmt.Errorf("reclaim device part of address window %v: %w", w.Window, err)
	}
	w.given = false
	return nil
}

// Keep leaves the first size bytes of the device part to a driver that places memory
// there itself.
func (w *Window) Keep(size uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = max(w.kept, size)
}

// AllocateAt allocates the bytes at an address like Allocate, and reports whether they
// were free.
func (w *Window) AllocateAt(at, size uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if got, ok := w.gap(at, size, 1); !ok || got != at {
		return false
	}
	w.allocated = insert(w.allocated, abi.Window{Base: at, Size: size})
	return true
}

// Allocate returns the address of size free bytes of the device part, a multiple of align:
// they are reserved for the caller until Free. The caller is responsible for what is
// mapped there.
func (w *Window) Allocate(size, align uint64) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.gap(w.next, size, align)
	if !ok {
		if at, ok = w.gap(w.Base, size, align); !ok {
			return 0, fmt.Errorf("%w: address window %v has no %d contiguous free bytes", abi.ErrOutOfMemory, w.Window, size)
		}
	}
	w.allocated = insert(w.allocated, abi.Window{Base: at, Size: size})
	w.next = at + size
	return at, nil
}

// insert inserts a range into a list that is sorted by base.
func insert(list []abi.Window, w abi.Window) []abi.Window {
	i, _ := slices.BinarySearchFunc(list, w.Base, byBase)
	return slices.Insert(list, i, w)
}

func byBase(l abi.Window, at uint64) int {
	switch {
	case l.Base < at:
		return -1
	case l.Base > at:
		return 1
	}
	return 0
}

// gap returns the first address at or after from of size bytes that are not allocated.
func (w *Window) gap(from, size, align uint64) (at uint64, ok bool) {
	up := func(n uint64) uint64 { return (n + align - 1) / align * align }
	at = up(max(from, w.Base+w.kept))
	for _, l := range w.allocated {
		if l.Base+l.Size <= at {
			continue
		}
		if at < l.Base && l.Base-at >= size {
			break
		}
		at = up(l.Base + l.Size)
	}
	return at, w.Device().Contains(at, size)
}

// Free releases a range that Allocate returned.
func (w *Window) Free(at uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i, found := slices.BinarySearchFunc(w.allocated, at, byBase)
	if !found {
		return fmt.Errorf("free in address window %v: %#x is not in use", w.Window, at)
	}
	w.allocated = slices.Delete(w.allocated, i, i+1)
	return nil
}

// Close releases the range, except a device part that was given to a library, and
// memory of the guest that is still mapped.
func (w *Window) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reserved {
		return
	}
	w.reserved = false
	at := w.Base
	if w.given {
		at = w.Host().Base
	}
	for _, l := range slices.Concat(w.placed, []abi.Window{{Base: w.Base + w.Size}}) {
		if l.Base > at {
			_, _, _ = unix.Syscall(unix.SYS_MUNMAP, uintptr(at), uintptr(l.Base-at), 0)
		}
		at = l.Base + l.Size
	}
}

// reserve maps the range without access, if nothing is mapped there: it never
// replaces a mapping. A kernel before Linux 4.17 treats the address only as a
// hint.
func reserve(w abi.Window) error {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE | unix.MAP_FIXED_NOREPLACE
	at, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(w.Base), uintptr(w.Size), unix.PROT_NONE, flags, ^uintptr(0), 0)
	switch {
	case errno == unix.EEXIST:
		return fmt.Errorf("%v: address range is already in use", w)
	case errno != 0:
		return fmt.Errorf("%v: %w", w, errno)
	case uint64(at) != w.Base:
		_, _, _ = unix.Syscall(unix.SYS_MUNMAP, at, uintptr(w.Size), 0)
		return fmt.Errorf("%v: the kernel returned %#x instead", w, at)
	}
	return nil
}

// readWindows copies the windows that the guest offers from the header, the best
// first. It returns none for a library that does not support windows.
func readWindows(m *shm.Mapping, minor uint16) (list []abi.Window, err error) {
	if minor == 0 {
		return nil, nil
	}
	for i := range uint64(abi.MaxWindows) {
		at := abi.OffWindows + i*abi.WindowEntrySize
		w := abi.Window{Base: m.Load64(at), Size: m.Load64(at + 8)}
		if w.Base == 0 {
			break
		}
		if err := w.Check(); err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}

// chooseWindow reserves the first of the offered windows that is free here.
func chooseWindow(offered []abi.Window) (*Window, error) {
	if len(offered) == 0 {
		offered = abi.Windows()
	}
	var first error
	for _, o := range offered {
		w, err := ReserveWindow(o)
		if err == nil {
			return w, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, fmt.Errorf("%w: none of %d address windows is free in the worker of the vGPU: %w", abi.ErrOutOfMemory, len(offered), first)
}
