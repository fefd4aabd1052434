package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// The reserve of a node's disk, and the overcommit of the rest, in percent.
const (
	defaultStorageReserve    = 5
	defaultStorageOvercommit = 200
	maxStorageOvercommit     = 1000

	minStorageReserve = 256 << 20 // bytes
	maxStorageReserve = 64 << 30  // bytes
)

// checkStorage returns the number of reserved bytes of the file system with --data.
func checkStorage(c config) (int64, error) {
	if c.storageReserve < 0 || c.storageReserve > 50 {
		return 0, fmt.Errorf("--storage-reserve-percent %d: want 0 to 50", c.storageReserve)
	}
	if c.storageOvercommit < 100 || c.storageOvercommit > maxStorageOvercommit {
		return 0, fmt.Errorf("--storage-overcommit-percent %d: want 100 (no overcommit) to %d", c.storageOvercommit, maxStorageOvercommit)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(c.data, &st); err != nil {
		return 0, fmt.Errorf("find the size of the file system of %s: %w", c.data, err)
	}
	return storageReserve(int64(st.Blocks)*st.Bsize, c.storageReserve), nil
}

// storageReserve returns the reserve in bytes of a file system of that size.
func storageReserve(size, percent int64) int64 {
	return min(max(size/100*percent, minStorageReserve), maxStorageReserve)
}
