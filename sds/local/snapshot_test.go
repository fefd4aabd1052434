package local

import (
	"testing"

	"github.com/basalt-gpu/basalt/sds/drivertest"
)

func TestSnapshotConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("runs qemu-img some hundred times")
	}
	drivertest.RunSnapshots(t, func(t *testing.T) drivertest.Bench {
		q := drivertest.QEMU{}
		return drivertest.Bench{Driver: open(t, Options{Limits: drivertest.Limits, MaxLayers: 12}), Disk: q, Start: q.Start}
	})
}

// TestSharedSnapshotConformance leaves out encryption, which does not depend
// on sharing.
func TestSharedSnapshotConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("runs qemu-img some hundred times")
	}
	drivertest.RunSnapshots(t, func(t *testing.T) drivertest.Bench {
		q := drivertest.QEMU{}
		s := open(t, Options{Limits: drivertest.Limits, MaxLayers: 12, Shared: true})
		return drivertest.Bench{Driver: s, Disk: q, Start: q.Start}
	}, "Encryption", "EncryptionRefused", "EncryptedImage")
}
