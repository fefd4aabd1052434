package local

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// pins record which snapshots and volumes are being read: their layers are not
// merged, and the snapshot is not deleted. A pin is a shared lock on a byte of
// the pool's lock file, so that every node with the pool open respects it, and
// it ends when its holder dies.
type pins struct{ file string }

func pinKey(r sds.SnapshotRef) string { return "pin/" + string(r.Volume) + "/" + string(r.ID) }

// hold pins what is to be read. It waits while one of refs is being merged or
// deleted, until ctx ends, and at most for lockWait; then it returns
// unavailable. release must be called once.
func (p *pins) hold(ctx context.Context, refs []sds.SnapshotRef) (release func(), err error) {
	for until := time.Now().Add(lockWait); ; {
		release, blocked, err := p.lock(refs, unix.F_RDLCK)
		if blocked == nil || err != nil {
			return release, err
		}
		if time.Now().After(until) {
			return nil, api.Errorf(api.CodeUnavailable, "layers of volume %s have been merging for more than %v", blocked.Volume, lockWait).
				WithHint("try again later")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}

// exclude prevents refs from being pinned until release is called, which must
// happen once. It returns false if one of them is pinned now.
func (p *pins) exclude(refs []sds.SnapshotRef) (release func(), ok bool, err error) {
	release, blocked, err := p.lock(refs, unix.F_WRLCK)
	return release, blocked == nil && err == nil, err
}

// held reports whether r is being read.
func (p *pins) held(r sds.SnapshotRef) (bool, error) {
	release, ok, err := p.exclude([]sds.SnapshotRef{r})
	if ok {
		release()
	}
	return !ok, err
}

// lock locks all of refs, or none and returns one that is locked otherwise.
func (p *pins) lock(refs []sds.SnapshotRef, kind int16) (release func(), blocked *sds.SnapshotRef, err error) {
	// Open the file for each holder: locks of one open file description do not
	// exclude each other.
	f, err := os.OpenFile(p.file, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	release = func() {
		for _, r := range refs { // a child between fork and exec has the file open too
			_ = setLock(f, pinKey(r), unix.F_UNLCK)
		}
		_ = f.Close()
	}
	for i, r := range refs {
		if err := setLock(f, pinKey(r), kind); err != nil {
			release()
			if errors.Is(err, errLocked) {
				return nil, &refs[i], nil
			}
			return nil, nil, err
		}
	}
	return release, nil, nil
}

// readers returns the snapshots and the volume that read the layer.
func (m *volumeMeta) readers(id api.VolumeID, file string) (refs []sds.SnapshotRef) {
	if slices.Contains(m.chain(m.Disk), file) {
		refs = append(refs, sds.SnapshotRef{Volume: id})
	}
	for i := range m.Snapshots {
		if slices.Contains(m.chain(m.Snapshots[i].File), file) {
			refs = append(refs, sds.SnapshotRef{Volume: id, ID: m.Snapshots[i].ID})
		}
	}
	return refs
}
