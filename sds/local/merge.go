package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/qemuimg"
)

// mergeLayers merges the layers that no snapshot names any more with the
// layers above them, where that is possible now. The others are left for the
// next call: they only take up space.
//
// A merge writes the child's content, which is usually smaller, into the layer
// below it. The child has the same content before, during and after the merge.
//
//	neither is open: qemu-img merges them, then the lower file gets the
//	  child's name, so that the layers above the child, also those of clones in
//	  other volumes, need no change
//	neither is open, and a clone reads them: the same with copies of both
//	  files, because the clone's machine may start at any moment, also on
//	  another node, and cannot open what qemu-img writes to
//	a machine has both open below the layer that it writes to: the machine
//	  merges them, and the layer above the child names the lower file from then
//	  on; the machine must be the volume's own, and not that of a clone
//	the child is the layer that a machine writes to: later. The machine would
//	  switch to the lower file, and after a crash it would be unknown which one
//	  counts
func (s *Store) mergeLayers(ctx context.Context, id api.VolumeID, m *volumeMeta, a sds.Access) error {
	for progress := true; progress; {
		progress = false
		for _, g := range m.mergeable() {
			done, err := s.merge(ctx, id, m, g, a)
			if err != nil {
				return err
			}
			if done {
				progress = true
				break // the pairs have changed
			}
		}
	}
	return nil
}

func (s *Store) merge(ctx context.Context, id api.VolumeID, m *volumeMeta, g merging, a sds.Access) (done bool, err error) {
	if m.making() != nil {
		return false, nil
	}
	release, unread, err := s.pins.exclude(m.readers(id, g.Child))
	if err != nil || !unread {
		return false, err
	}
	defer release()
	for _, file := range []string{g.Child, g.Into} {
		used, err := busy(s.file(id, file))
		if err != nil {
			return false, err
		}
		if used {
			return s.mergeLive(ctx, id, m, g, a)
		}
	}
	if read, err := s.clonedThrough(id, m, g.Child); err != nil {
		return false, err
	} else if read {
		return s.mergeAside(ctx, id, m, g, a)
	}
	return true, s.mergeOffline(ctx, id, m, g, a)
}

// mergeAside merges copies of the two files, which stay readable all the time.
// It is done when a file with the content of both has the child's name: before
// and after that the chain has the same content, so after a crash only the
// copies must be removed (prune).
func (s *Store) mergeAside(ctx context.Context, id api.VolumeID, m *volumeMeta, g merging, a sds.Access) (done bool, err error) {
	top, _, err := s.source(id, m, g.Child)
	if err != nil {
		return false, err
	}
	child, into := top.Path, top.Backing.Path
	if fits, err := s.fits(ctx, child, into); err != nil || !fits {
		return false, err
	}
	top.Path, top.Backing.Path = child+".copy", into+".copy"
	defer func() {
		_ = os.Remove(top.Path) // after a crash, prune removes the copies
		_ = os.Remove(top.Backing.Path)
	}()
	name, err := imageName(top, false)
	if err == nil {
		err = errors.Join(copyFile(ctx, child, top.Path), copyFile(ctx, into, top.Backing.Path))
	}
	if err != nil {
		return false, err
	}
	if _, err := qemuimg.Own(ctx, secrets(a.Encryption), "commit", "-q", "-d", name); err != nil {
		return false, s.full(ctx, wrongKey(id, err))
	}
	if err := atomicfile.Sync(top.Backing.Path); err != nil {
		return false, err
	}
	for _, file := range []string{child, into} {
		// A machine that has them open on another node may lose them when their
		// names are replaced (NFS).
		free, ok, err := lockDisk(file)
		if err != nil || !ok {
			return false, err
		}
		defer free()
	}
	if err := errors.Join(os.Rename(top.Backing.Path, child), atomicfile.Sync(filepath.Dir(child))); err != nil {
		return false, err
	}
	m.mergedUp(g)
	return true, s.saveMeta(id, m)
}

// fits reports whether copies of the files fit into the pool.
func (s *Store) fits(ctx context.Context, files ...string) (bool, error) {
	var bytes int64
	for _, file := range files {
		st, err := os.Stat(file)
		if err != nil {
			return false, err
		}
		bytes += st.Size()
	}
	err := s.room(ctx, bytes+1<<20)
	if api.CodeOf(err) == api.CodeDiskFull {
		return false, nil
	}
	return err == nil, err
}

// copyFile creates to with the content of from, without copying it if the file
// system supports that (copy_file_range(2)).
func copyFile(ctx context.Context, from, to string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	st, err := src.Stat()
	if err != nil {
		return err
	}
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, st.Mode().Perm())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	for {
		const step = 64 << 20 // bytes between two checks of ctx
		if err := ctx.Err(); err != nil {
			return err
		}
		if n, err := io.CopyN(dst, src, step); n < step {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
	}
}

func (s *Store) mergeOffline(ctx context.Context, id api.VolumeID, m *volumeMeta, g merging, a sds.Access) error {
	child, _, err := s.source(id, m, g.Child)
	if err != nil {
		return err
	}
	name, err := imageName(child, false)
	if err != nil {
		return err
	}
	// After a crash the following is repeated from the start, until the rename is
	// done.
	m.Merging = &g
	if err := s.saveMeta(id, m); err != nil {
		return err
	}
	if _, err := qemuimg.Own(ctx, secrets(a.Encryption), "commit", "-q", "-d", name); err != nil {
		return s.full(ctx, wrongKey(id, err))
	}
	into := s.file(id, g.Into)
	if err := atomicfile.Sync(into); err != nil {
		return err
	}
	if err := os.Rename(into, s.file(id, g.Child)); err != nil {
		return err
	}
	if err := atomicfile.Sync(s.path(volumes, string(id))); err != nil {
		return err
	}
	m.mergedUp(g)
	return s.saveMeta(id, m)
}

// clonedThrough reports whether a clone reads the layer. Clones of layers
// below it do not matter: the merged layer is above all that they read.
func (s *Store) clonedThrough(id api.VolumeID, m *volumeMeta, file string) (bool, error) {
	for i := range m.Snapshots {
		if !slices.Contains(m.chain(m.Snapshots[i].File), file) {
			continue
		}
		if clone, err := s.cloneOf(sds.SnapshotRef{Volume: id, ID: m.Snapshots[i].ID}); err != nil || clone != "" {
			return clone != "", err
		}
	}
	return false, nil
}

func (s *Store) mergeLive(ctx context.Context, id api.VolumeID, m *volumeMeta, g merging, a sds.Access) (done bool, err error) {
	chain := m.chain(m.Disk)
	if a.Live == nil || g.Child == m.Disk || !slices.Contains(chain, g.Child) || len(m.children(g.Child)) != 1 {
		return false, nil
	}
	if top, err := busy(s.file(id, m.Disk)); err != nil || !top {
		return false, err // the machine of a clone has them open, and not the volume's
	}
	if read, err := s.clonedThrough(id, m, g.Child); err != nil || read {
		return false, err // a clone's machine may have both files open
	}
	if err := a.Live.Commit(ctx, s.file(id, g.Child), s.file(id, g.Into)); err != nil {
		return false, fmt.Errorf("have the instance merge layer %s of volume %s: %w", g.Child, id, err)
	}
	if err := atomicfile.Sync(s.file(id, g.Into)); err != nil {
		return false, err
	}
	m.mergedDown(g)
	return true, s.saveMeta(id, m)
}
