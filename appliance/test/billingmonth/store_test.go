package billingmonth

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/api/storetest"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/test/kit/memory"
)

// killableStore is a store that can be killed.
type killableStore interface {
	storetest.Store
	kill(t *testing.T)
}

// disk is the real store with one node: Raft's log and bbolt in a directory.
type disk struct {
	*store.Store
	dir string
}

func newDisk(t *testing.T) *disk {
	d := &disk{}
	d.open(t, filepath.Join(newDir(t), "store"))
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// newDir returns a directory of the store's own, in memory. Its path is short because socket
// paths are limited.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := memory.Folder("month", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (d *disk) open(t *testing.T, dir string) {
	t.Helper()
	s, err := store.Open(store.Options{Dir: dir, NodeID: "node-000000000001", Reserve: 1, SnapshotEvery: 4096})
	if err != nil {
		t.Fatal(err)
	}
	d.Store, d.dir = s, dir
}

// kill reopens the store with a copy of its files as they are now, without anything that
// closing it would write.
func (d *disk) kill(t *testing.T) {
	t.Helper()
	dir := filepath.Join(newDir(t), "store")
	if err := os.CopyFS(dir, os.DirFS(d.dir)); err != nil {
		t.Fatal(err)
	}
	old := d.Store
	d.open(t, dir)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
}
