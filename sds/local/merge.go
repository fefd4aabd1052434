package local

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/qemuimg"
)

// tidy merges the layers that no snapshot names any more with what stands on
// them, where that can be done now. What cannot is left for the next time: it
// takes room and harms nothing.
//
// A merge writes the child's content, which is the smaller as a rule, into the
// layer below it. The child shows the same before, during and after that.
//
//	nobody has either open: qemu-img does it, then the lower file gets the
//	  child's name, so that whatever stands on the child, clones in other
//	  volumes too, need not hear of it
//	nobody has either open, and a clone reads them: the same with copies of both
//	  files, as the clone's machine may start at any moment, also on another
//	  node, and cannot open what qemu-img writes to
//	a machine has both below what it writes to: it does it itself, and what
//	  stands on the child names the lower file from then on, which must be the
//	  machine's own layer and no clone
//	the child is what a machine writes to: later. The machine would go over
//	  to the lower file, and after a crash nobody could tell which one counts
func (s *Store) tidy(ctx context.Context, id api.VolumeID, m *volumeMeta, a sds.Access) error {
	for progress := true; progress; {
		progress = false
		for _, g := range m.mergeable() {
			done, err := s.merge(ctx, id, m, g, a)
			if err != nil {
				return err
			}
			if done {
				progress = true
				break // the pairs are others now
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
// and after that the chain shows the same, so that a crash needs no repair but
// to remove the copies (prune).
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
		_ = os.Remove(top.Path) // what stays after a crash, prune removes
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
		// A machine that has them open on another node may lose them with their
		// names (NFS).
		free, ok, err := seize(file)
		if err != nil || !ok {
			return false, err
		}
		defer free()
	}
	if err := errors.Join(os.Rename(top.Backing.Path, child), atomicfile.Sync(filepath.Dir(child))); err != nil {
		return false, err
	}
	m.mergedUp(g)
	return true, s.keep(id, m)
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

// copyFile makes to, with the content of from; without copying it where the file
// system can (copy_file_range(2)).
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
		const step = 64 << 20 // bytes between two looks at ctx
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
	// What follows is repeated from the beginning after a crash, until the
	// rename is done.
	m.Merging = &g
	if err := s.keep(id, m); err != nil {
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
	return s.keep(id, m)
}

// clonedThrough reports whether a clone reads the layer. Clones that stand on
// layers below it are not in the way: what is merged lies above all that they
// read.
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
		return false, err // a clone's machine has them open, and not the volume's
	}
	if read, err := s.clonedThrough(id, m, g.Child); err != nil || read {
		return false, err // a clone's machine may have both files open
	}
	if err := a.Live.Commit(ctx, s.file(id, g.Child), s.file(id, g.Into)); err != nil {
		return false, err
	}
	if err := atomicfile.Sync(s.file(id, g.Into)); err != nil {
		return false, err
	}
	m.mergedDown(g)
	return true, s.keep(id, m)
}
