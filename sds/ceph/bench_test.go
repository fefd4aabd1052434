package ceph

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

// disks opens disks as a hypervisor does: with the monitors' addresses and the
// user's key, without a ceph.conf.
type disks struct{ drivertest.QEMU }

func qemu(t *testing.T) disks {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(cluster.Keys.Client)
	if err != nil {
		t.Fatal(err)
	}
	return disks{drivertest.QEMU{CephKey: key}}
}

func bench(t *testing.T, d sds.Driver) drivertest.Bench {
	return drivertest.Bench{Driver: d, Disk: qemu(t), Start: qemu(t).Start, Steady: true}
}

// Holds does not check for zeros on an encrypted disk: parts that were never
// written read as noise.
func (d disks) Holds(src sds.Source, key *sds.Encryption, patterns []byte, at, bytes int64) error {
	if !src.Encrypted {
		return d.QEMU.Holds(src, key, patterns, at, bytes)
	}
	var errs []error
	for i, p := range patterns {
		if p != 0 {
			errs = append(errs, d.QEMU.Holds(src, key, []byte{p}, at+int64(i)*bytes, bytes))
		}
	}
	return errors.Join(errs...)
}
