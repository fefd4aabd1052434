package fake

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

func bench(s *Store) drivertest.Bench {
	return drivertest.Bench{Driver: s, Disk: disk{s}, Start: func(_ *testing.T, v sds.Volume, key *sds.Encryption) drivertest.Machine {
		s.SetUsed(v.ID, true)
		return &machine{s: s, v: v, key: key}
	}}
}

type disk struct{ s *Store }

func (d disk) Write(src sds.Source, key *sds.Encryption, pattern byte, at, n int64) error {
	return d.s.WriteAt(src, key, bytes.Repeat([]byte{pattern}, int(n)), at)
}

func (d disk) Holds(src sds.Source, key *sds.Encryption, patterns []byte, at, n int64) error {
	for _, pattern := range patterns {
		got := make([]byte, n)
		if err := d.s.ReadAt(src, key, got, at); err != nil {
			return err
		}
		if !bytes.Equal(got, bytes.Repeat([]byte{pattern}, int(n))) {
			return fmt.Errorf("content from offset %[2]d differs from %#[1]x", pattern, at)
		}
		at += n
	}
	return nil
}

// machine is a machine that has a volume open.
type machine struct {
	s   *Store
	v   sds.Volume
	key *sds.Encryption
}

func (m *machine) Overlay(_ context.Context, path string) error {
	m.v.Source.Path = path
	return nil
}
func (m *machine) Commit(context.Context, string, string) error { return nil }
func (m *machine) Resize(context.Context, int64) error          { return nil }
func (m *machine) Stop(*testing.T)                              { m.s.SetUsed(m.v.ID, false) }

func (m *machine) Write(pattern byte, at, n int64) error {
	return disk{m.s}.Write(m.v.Source, m.key, pattern, at, n)
}

func TestSnapshotConformance(t *testing.T) {
	drivertest.RunSnapshots(t, func(*testing.T) drivertest.Bench { return bench(New(drivertest.Limits)) })
}

func TestSharedSnapshotConformance(t *testing.T) {
	drivertest.RunSnapshots(t, func(*testing.T) drivertest.Bench { return bench(Shared("pool-1", drivertest.Limits, 1)[0]) })
}

func TestMoveConformance(t *testing.T) {
	drivertest.RunMoves(t, func(*testing.T) (from, to drivertest.Bench) {
		return bench(New(drivertest.Limits)), bench(New(drivertest.Limits))
	})
}
