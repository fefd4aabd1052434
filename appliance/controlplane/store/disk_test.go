package store

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// limitFiles makes writes beyond the given size of any file fail, as a full disk does;
// a negative size removes the limit. It affects the whole process.
func limitFiles(bytes int64) error {
	signal.Ignore(unix.SIGXFSZ)
	l := unix.Rlimit{Cur: uint64(bytes), Max: unix.RLIM_INFINITY}
	if bytes < 0 {
		l.Cur = unix.RLIM_INFINITY
	}
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &l)
}

// fillDisk writes until the disk is full, frees space, and checks that no batch was
// lost or partly applied.
func fillDisk(dir string, next func(k int) api.Batch, done func(s *Store, k int) error) error {
	ctx, cancel := patience.Context(context.Background(), time.Minute)
	defer cancel()
	s, err := Open(Options{Dir: dir, NodeID: "node-a", Reserve: 1})
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Apply(ctx, next(1)); err != nil {
		return err
	}
	if err := limitFiles(512 << 10); err != nil {
		return err
	}
	k := 2
	for ; ; k++ {
		if _, err = s.Apply(ctx, next(k)); err != nil {
			break
		}
		if k > 5000 {
			return errors.New("the disk never became full")
		}
	}
	if api.CodeOf(err) != api.CodeDiskFull {
		return fmt.Errorf("on a full disk: %w", err)
	}
	if _, err := s.Apply(ctx, next(k)); err == nil || api.CodeOf(err) != api.CodeDiskFull {
		return fmt.Errorf("on a disk still full: %w", err)
	}
	// Everything that was acknowledged can be read, and is complete.
	if n, _, err := crashNumber(s, "a", 0); err != nil || (n != 0 && n != k-1) {
		return fmt.Errorf("read on a full disk: number %d of %d: %w", n, k-1, err)
	}
	if err := limitFiles(-1); err != nil {
		return err
	}
	// The batch without an answer is repeated until it succeeds: it is applied once.
	for {
		if _, err := s.Apply(ctx, next(k)); err == nil {
			break
		} else if c := api.CodeOf(err); c != api.CodeDiskFull && c != api.CodeUnavailable {
			return fmt.Errorf("after space returned: %w", err)
		}
	}
	if err := done(s, k); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if s, err = Open(Options{Dir: dir, NodeID: "node-a", Reserve: 1}); err != nil {
		return err
	}
	defer s.Close()
	return done(s, k)
}

// childFillsTables writes batches that make the tables larger than the log.
func childFillsTables(dir string) error {
	return fillDisk(dir, func(k int) api.Batch { return statetest.Batch(0, k) }, func(s *Store, k int) error {
		a, _, errA := crashNumber(s, "a", 0)
		b, _, errB := crashNumber(s, "b", 0)
		records, sum, err := crashUsed(s, 0)
		if a != k || b != k || s.Revision() != int64(2*k) || records != k || sum != int64(k)*int64(k+1)/2 {
			return fmt.Errorf("found %d and %d, and %d records that come to %d, at revision %d, want %d: %w", a, b, records, sum, s.Revision(), k, errors.Join(errA, errB, err))
		}
		return nil
	})
}

// childFillsLog writes batches that change nothing, so that only the log grows.
func childFillsLog(dir string) error {
	data := []byte(`{"pad":"` + strings.Repeat("x", 8000) + `"}`)
	next := func(int) api.Batch {
		return api.Batch{Commands: []api.Command{
			{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Name: "x", Expect: api.AnyRevision, Data: data}}}
	}
	return fillDisk(dir, next, func(s *Store, _ int) error {
		if s.Revision() != 1 {
			return fmt.Errorf("revision %d", s.Revision())
		}
		return nil
	})
}

// childRestartsFull closes and opens the store while the disk is full and an
// entry waits to be applied.
func childRestartsFull(dir string) error {
	ctx, cancel := patience.Context(context.Background(), time.Minute)
	defer cancel()
	o := Options{Dir: dir, NodeID: "node-a", Reserve: 1, StartTimeout: time.Second}
	s, err := Open(o)
	if err != nil {
		return err
	}
	if err := limitFiles(512 << 10); err != nil {
		return err
	}
	k := 1
	for ; err == nil; k++ {
		_, err = s.Apply(ctx, statetest.Batch(0, k))
	}
	last := k - 2 // acknowledged
	if api.CodeOf(err) != api.CodeDiskFull {
		return err
	}
	for restart := range 3 {
		if err := s.Close(); err != nil {
			return fmt.Errorf("close on a full disk: %w", err)
		}
		if s, err = Open(o); err != nil {
			return fmt.Errorf("open on a full disk: %w", err)
		}
		got, err := s.Get(Stale(ctx), api.KindFlavor, "flv-b0")
		if want := fmt.Sprintf(`{"n":%d,`, last); err != nil || !strings.HasPrefix(string(got.Spec), want) {
			return fmt.Errorf("restart %d: read %.20s, want %s: %w", restart, got.Spec, want, err)
		}
		if _, err := s.Apply(ctx, statetest.Batch(0, last+1)); err == nil || api.CodeOf(err) != api.CodeDiskFull {
			return fmt.Errorf("restart %d: write: %w", restart, err)
		}
	}
	if err := limitFiles(-1); err != nil {
		return err
	}
	defer s.Close()
	for {
		if _, err = s.Apply(ctx, statetest.Batch(0, last+1)); err == nil {
			break
		}
		if c := api.CodeOf(err); c != api.CodeDiskFull && c != api.CodeUnavailable {
			return err
		}
	}
	if n, _, err := crashNumber(s, "b", 0); n != last+1 || err != nil || s.Revision() != int64(2*n) {
		return fmt.Errorf("found %d at revision %d, want %d: %w", n, s.Revision(), last+1, err)
	}
	return nil
}

func TestDiskFull(t *testing.T) {
	for _, mode := range []string{"full", "full-log", "full-restart"} {
		t.Run(mode, func(t *testing.T) {
			if testing.Short() && mode == "full-restart" {
				t.Skip("waits for elections that cannot succeed")
			}
			if err := child(t, mode, t.TempDir()).Run(); err != nil {
				t.Errorf("child %s: %v", mode, err)
			}
		})
	}
}

// Below the reserve writes are refused, and reads work.
func TestReserve(t *testing.T) {
	s := open(t, Options{})
	ctx := t.Context()
	if _, err := s.Apply(ctx, statetest.Batch(0, 1)); err != nil {
		t.Fatal(err)
	}
	s.options.Reserve = 1 << 62
	if _, err := s.Apply(ctx, statetest.Batch(0, 2)); api.CodeOf(err) != api.CodeDiskFull {
		t.Errorf("apply below the reserve: %v, want code %s", err, api.CodeDiskFull)
	}
	if n, _, err := crashNumber(s, "a", 0); n != 1 || err != nil {
		t.Errorf("read below the reserve: batch %d, %v; want 1", n, err)
	}
	s.options.Reserve = 1
	if _, err := s.Apply(ctx, statetest.Batch(0, 2)); err != nil {
		t.Errorf("apply above the reserve: %v", err)
	}
}
