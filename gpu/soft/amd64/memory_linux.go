//go:build linux && amd64

package amd64

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mapCode maps private memory with a copy of b that can be read and executed, and never
// again written: it is writable before it is executable, and never both at once.
func mapCode(b []byte) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, len(b), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes for code: %w", len(b), err)
	}
	copy(m, b)
	if err := unix.Mprotect(m, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		_ = unix.Munmap(m)
		return nil, fmt.Errorf("make %d bytes of code executable: %w", len(b), err)
	}
	return m, nil
}

func unmapCode(m []byte) error { return unix.Munmap(m) }
