package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// ownerMeta is a claim. Its epoch is in the file's name: owner-EPOCH in the
// volume's directory, and the highest one counts. A claim creates that file,
// which only one node can do; no node writes another's file. So a node that
// was frozen in the middle and resumes cannot undo later claims, which a lock
// would not guarantee.
type ownerMeta struct {
	Version  int        `json:"version"` // 1
	Node     api.NodeID `json:"node"`
	Released bool       `json:"released,omitempty"`
}

const (
	ownerPrefix = "owner-"
	claimTries  = 10
)

// ClaimVolume implements sds.Driver.
func (s *Store) ClaimVolume(ctx context.Context, id api.VolumeID, o sds.Owner) error {
	return s.changeOwner(ctx, id, o, func(have *sds.Claim) (bool, bool, error) {
		write, err := o.Decide(id, have)
		return write, false, err
	})
}

// ReleaseVolume implements sds.Driver.
func (s *Store) ReleaseVolume(ctx context.Context, id api.VolumeID, o sds.Owner) error {
	err := s.changeOwner(ctx, id, o, func(have *sds.Claim) (bool, bool, error) {
		return have != nil && have.Owner == o && !have.Released, true, nil
	})
	if api.CodeOf(err) == api.CodeNotFound {
		return nil
	}
	return err
}

func (s *Store) changeOwner(ctx context.Context, id api.VolumeID, o sds.Owner, decide func(*sds.Claim) (write, release bool, err error)) error {
	if err := errors.Join(s.checkPool(ctx), sds.CheckID(string(id)), o.Validate()); err != nil {
		return err
	}
	if s.pool == "" {
		return nil
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(id), lockLocal)
	if err != nil {
		return err
	}
	defer unlock()
	for range claimTries {
		have, err := s.freshClaim(id)
		if err != nil {
			return err
		}
		write, release, err := decide(have)
		if err != nil || !write {
			return err
		}
		err = s.writeClaim(ctx, id, o, release, have != nil && have.Owner == o)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil || release {
			return err
		}
		if have, err = s.freshClaim(id); err != nil { // there must be no higher claim
			return err
		}
		_, err = o.Decide(id, have)
		return err
	}
	return unstable(id)
}

func unstable(id api.VolumeID) error {
	return api.Errorf(api.CodeUnavailable, "the owner of volume %s keeps changing", id).WithHint("try again")
}

// freshClaim returns the claim that counts on the server, regardless of this
// node's cache.
func (s *Store) freshClaim(id api.VolumeID) (*sds.Claim, error) {
	if _, err := s.clock(filepath.Join(volumes, string(id))); errors.Is(err, fs.ErrNotExist) {
		return nil, notFound("volume", string(id))
	} else if err != nil {
		return nil, explain(err)
	}
	return s.claim(id)
}

// writeClaim puts o's file into the volume's directory: ErrExist if another
// node has created it meanwhile. If again is set, the file is o's own, and is
// replaced.
func (s *Store) writeClaim(ctx context.Context, id api.VolumeID, o sds.Owner, release, again bool) error {
	sub, dir := filepath.Join(volumes, string(id)), s.path(volumes, string(id))
	if err := s.sweep(ctx, sub); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain(err)
	}
	tmp, err := s.temp(sub)
	if errors.Is(err, fs.ErrNotExist) {
		return notFound("volume", string(id))
	}
	if err != nil {
		return explain(err)
	}
	defer os.RemoveAll(tmp)
	file := filepath.Join(tmp, "owner")
	if err := writeMeta(file, ownerMeta{Version: 1, Node: o.Node, Released: release}); err != nil {
		return explain(err)
	}
	put := os.Link
	if again {
		put = os.Rename
	}
	err = put(file, filepath.Join(dir, ownerName(o.Epoch)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notFound("volume", string(id))
	case err != nil:
		return explain(err)
	}
	if err := atomicfile.Sync(dir); err != nil {
		return explain(err)
	}
	epochs, err := claimEpochs(dir)
	for _, e := range epochs {
		if e < o.Epoch {
			_ = os.Remove(filepath.Join(dir, ownerName(e))) // it does not count any more
		}
	}
	return err
}

// claim returns the claim that counts; nil: never claimed.
func (s *Store) claim(id api.VolumeID) (*sds.Claim, error) {
	dir := s.path(volumes, string(id))
	for range claimTries {
		epochs, err := claimEpochs(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, notFound("volume", string(id))
		}
		if err != nil || len(epochs) == 0 {
			return nil, explain(err)
		}
		epoch := epochs[len(epochs)-1]
		raw, err := os.ReadFile(filepath.Join(dir, ownerName(epoch)))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESTALE) {
			continue // removed by a later claim
		}
		if err != nil {
			return nil, explain(err)
		}
		var m ownerMeta
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, fmt.Errorf("owner of volume %s: %w", id, err)
		}
		return &sds.Claim{Owner: sds.Owner{Node: m.Node, Epoch: epoch}, Released: m.Released}, nil
	}
	return nil, unstable(id)
}

// ownerName returns the file name of an epoch: with twenty digits the names
// sort by epoch.
func ownerName(epoch int64) string { return fmt.Sprintf("%s%020d", ownerPrefix, epoch) }

// claimEpochs returns the epochs in a volume's directory, ascending.
func claimEpochs(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	var epochs []int64
	for _, e := range entries {
		if digits, ok := strings.CutPrefix(e.Name(), ownerPrefix); ok {
			if epoch, err := strconv.ParseInt(digits, 10, 64); err == nil && ownerName(epoch) == e.Name() {
				epochs = append(epochs, epoch)
			}
		}
	}
	return epochs, err
}

// Owner implements sds.Driver.
func (s *Store) Owner(ctx context.Context, id api.VolumeID) (sds.Owner, error) {
	if err := errors.Join(s.checkPool(ctx), sds.CheckID(string(id))); err != nil || s.pool == "" {
		return sds.Owner{}, err
	}
	c, err := s.freshClaim(id)
	if err != nil || c == nil || c.Released {
		return sds.Owner{}, err
	}
	return c.Owner, nil
}
