package main

import "testing"

func TestStorageReserve(t *testing.T) {
	for _, c := range []struct{ size, percent, want int64 }{
		{100 << 30, 5, 5 * (100 << 30 / 100)},
		{320 << 20, 5, minStorageReserve},
		{16 << 30, 0, minStorageReserve},
		{16 << 40, 5, maxStorageReserve},
		{0, 5, minStorageReserve},
	} {
		if got := storageReserve(c.size, c.percent); got != c.want {
			t.Errorf("storageReserve(%d, %d) = %d, want %d", c.size, c.percent, got, c.want)
		}
	}
}

func TestCheckStorage(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		reserve, overcommit int64
		ok                  bool
	}{{5, 200, true}, {0, 100, true}, {50, 1000, true}, {-1, 200, false}, {51, 200, false}, {5, 99, false}, {5, 1001, false}} {
		if _, err := checkStorage(config{data: dir, storageReserve: c.reserve, storageOvercommit: c.overcommit}); (err == nil) != c.ok {
			t.Errorf("checkStorage with reserve %d %%, overcommit %d %%: error %v, want success = %t", c.reserve, c.overcommit, err, c.ok)
		}
	}
}
