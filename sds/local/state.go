package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/sds"
)

// statePrefix is the prefix of the files with a volume's state, which end with
// the epoch like those of claims: a node only writes the file of its own
// epoch, and the highest one counts.
const statePrefix = "state-"

// snapStatePrefix is the prefix of the files with the states for snapshots, which
// end with the snapshot's ID.
const snapStatePrefix = "snapstate-"

func snapStateName(id api.SnapshotID) string { return snapStatePrefix + string(id) }

func stateName(epoch int64) string { return fmt.Sprintf("%s%020d", statePrefix, epoch) }

// KeepState implements sds.StateKeeper.
func (s *Store) KeepState(ctx context.Context, id api.VolumeID, epoch int64, state []byte) error {
	if err := errors.Join(s.checkPool(ctx), sds.CheckState(id, epoch, state)); err != nil {
		return err
	}
	dir := s.path(volumes, string(id))
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return notFound("volume", string(id))
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(id), lockLocal)
	if err != nil {
		return err
	}
	defer unlock()
	if err := atomicfile.WriteFile(filepath.Join(dir, stateName(epoch)), state, 0o600); err != nil {
		return explain(err)
	}
	epochs, err := stateEpochs(dir)
	for _, e := range epochs {
		if e < epochs[len(epochs)-1] {
			_ = os.Remove(filepath.Join(dir, stateName(e))) // it does not count any more
		}
	}
	return explain(err)
}

// KeptState implements sds.StateKeeper.
func (s *Store) KeptState(ctx context.Context, id api.VolumeID) (state []byte, epoch int64, err error) {
	if err := errors.Join(s.checkPool(ctx), sds.CheckID(string(id))); err != nil {
		return nil, 0, err
	}
	if s.pool != "" { // read the latest state from the server, and not from the cache
		if _, err := s.clock(filepath.Join(volumes, string(id))); errors.Is(err, fs.ErrNotExist) {
			return nil, 0, notFound("volume", string(id))
		} else if err != nil {
			return nil, 0, explain(err)
		}
	}
	dir := s.path(volumes, string(id))
	for range claimTries {
		epochs, err := stateEpochs(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, 0, notFound("volume", string(id))
		}
		if err != nil || len(epochs) == 0 {
			return nil, 0, explain(err)
		}
		epoch = epochs[len(epochs)-1]
		state, err := readState(filepath.Join(dir, stateName(epoch)))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESTALE) {
			continue // removed by a later one
		}
		return state, epoch, explain(err)
	}
	return nil, 0, unstable(id)
}

// KeepSnapshotState implements sds.StateKeeper.
func (s *Store) KeepSnapshotState(ctx context.Context, ref sds.SnapshotRef, state []byte) error {
	if err := errors.Join(s.checkPool(ctx), sds.CheckSnapshotState(ref, state)); err != nil {
		return err
	}
	dir := s.path(volumes, string(ref.Volume))
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return notFound("volume", string(ref.Volume))
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(ref.Volume), lockLocal)
	if err != nil {
		return err
	}
	defer unlock()
	if len(state) == 0 {
		return explain(s.dropSnapshotState(ref))
	}
	return explain(atomicfile.WriteFile(filepath.Join(dir, snapStateName(ref.ID)), state, 0o600))
}

// SnapshotState implements sds.StateKeeper.
func (s *Store) SnapshotState(ctx context.Context, ref sds.SnapshotRef) ([]byte, error) {
	if err := errors.Join(s.checkPool(ctx), ref.Validate()); err != nil {
		return nil, err
	}
	dir := s.path(volumes, string(ref.Volume))
	if s.pool != "" { // read the latest state from the server, and not from the cache
		if _, err := s.clock(filepath.Join(volumes, string(ref.Volume))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, explain(err)
		}
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, notFound("volume", string(ref.Volume))
	}
	state, err := readState(filepath.Join(dir, snapStateName(ref.ID)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return state, explain(err)
}

// dropSnapshotState removes the state for a snapshot, if there is one. The caller
// holds the volume's lock.
func (s *Store) dropSnapshotState(ref sds.SnapshotRef) error {
	err := os.Remove(filepath.Join(s.path(volumes, string(ref.Volume)), snapStateName(ref.ID)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func readState(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, sds.MaxStateBytes+1))
	if err == nil && len(raw) > sds.MaxStateBytes {
		err = fmt.Errorf("%s is longer than %d bytes", path, sds.MaxStateBytes)
	}
	return raw, err
}

// stateEpochs returns the epochs of the states in a volume's directory,
// ascending.
func stateEpochs(dir string) (epochs []int64, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if digits, ok := strings.CutPrefix(e.Name(), statePrefix); ok {
			if epoch, err := strconv.ParseInt(digits, 10, 64); err == nil && stateName(epoch) == e.Name() {
				epochs = append(epochs, epoch)
			}
		}
	}
	return epochs, err
}
