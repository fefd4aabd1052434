package local

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

var _ sds.Mover = (*Store)(nil)

// Exportable implements sds.Mover.
func (s *Store) Exportable(ctx context.Context, id api.VolumeID, with ...api.VolumeID) error {
	unlock, err := s.lockOwn(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	m, err := s.exportable(id)
	if err != nil {
		return explain(err)
	}
	for _, snap := range m.Snapshots {
		ref := sds.SnapshotRef{Volume: id, ID: snap.ID}
		if clone, err := s.cloneOf(ref, with...); err != nil {
			return explain(err)
		} else if clone != "" {
			return sds.IsCloned(ref, clone)
		}
	}
	return nil
}

// lockOwn locks a volume of a pool that is not shared.
func (s *Store) lockOwn(ctx context.Context, id api.VolumeID) (unlock func(), err error) {
	if err := errors.Join(s.checkPool(ctx), sds.CheckID(string(id))); err != nil {
		return nil, err
	}
	if s.pool != "" {
		return nil, api.Errorf(api.CodeState, "volume %s is in a shared pool: other nodes have it already", id)
	}
	return s.locks.Lock(ctx, volumes+"/"+string(id), lockExclusive)
}

// exportable returns the metadata of a volume that can be copied. The caller has locked
// it.
func (s *Store) exportable(id api.VolumeID) (*volumeMeta, error) {
	m, err := s.meta(id)
	if err != nil {
		return nil, err
	}
	if err := s.closed(id, m); err != nil {
		return nil, err
	}
	if snap := m.making(); snap != nil {
		return nil, sds.NotReady(snap.public(id))
	}
	return m, nil
}

// ExportVolume implements sds.Mover.
func (s *Store) ExportVolume(ctx context.Context, id api.VolumeID, w io.Writer) error {
	out, err := s.openExport(ctx, id)
	if err != nil {
		return explain(err)
	}
	defer out.close()
	if err := writeManifest(w, out.manifest); err != nil {
		return err
	}
	var sum uint64
	buf := make([]byte, extentHeaderBytes+maxExtent)
	for i, f := range out.files {
		err := allocated(f, out.manifest.Files[i].SizeBytes, func(at, bytes int64) error {
			for ; bytes > 0; bytes -= maxExtent {
				if err := ctx.Err(); err != nil {
					return err
				}
				n := min(bytes, maxExtent)
				h := extentHeader{uint32(i), uint64(at), uint32(n)}
				if _, err := f.ReadAt(h.append(buf[:0])[extentHeaderBytes:extentHeaderBytes+n], at); err != nil {
					return explain(err)
				}
				if _, err := w.Write(buf[:extentHeaderBytes+n]); err != nil {
					return err
				}
				at, sum = at+n, sum+uint64(n)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	_, err = w.Write(extentHeader{File: endOfTransfer, Offset: sum}.append(nil))
	return err
}

// export is a volume that is open for a copy. Its layers are pinned, so that they are
// neither merged nor deleted.
type export struct {
	manifest manifest
	files    []*os.File
	release  func()
}

func (x *export) close() {
	for _, f := range x.files {
		_ = f.Close() // it was only read
	}
	x.release()
}

func (s *Store) openExport(ctx context.Context, id api.VolumeID) (x *export, err error) {
	unlock, err := s.lockOwn(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	m, err := s.exportable(id)
	if err != nil {
		return nil, err
	}
	from, err := s.detached(ctx, id, m)
	defer from.unlock()
	if err != nil {
		return nil, err
	}
	x = &export{manifest: manifest{Volume: from.meta}}
	if x.release, err = s.pins.hold(ctx, from.reads); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			x.close()
		}
	}()
	names, err := s.transferred(id, &from.meta)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		f, err := os.Open(cmp.Or(from.paths[name], s.file(id, name)))
		if err != nil {
			return nil, err
		}
		x.files = append(x.files, f)
		st, err := f.Stat()
		if err != nil {
			return nil, err
		}
		x.manifest.Files = append(x.manifest.Files, transferFile{Name: name, SizeBytes: st.Size()})
		if sys, ok := st.Sys().(*syscall.Stat_t); ok {
			x.manifest.AllocatedBytes += sys.Blocks * 512
		}
	}
	return x, nil
}

// transferred returns the names of the files of a copy: the layers, and the states of
// the machine. A state for a snapshot that does not exist is an obsolete one.
func (s *Store) transferred(id api.VolumeID, m *volumeMeta) (names []string, err error) {
	for _, l := range m.Layers {
		names = append(names, l.File)
	}
	entries, err := os.ReadDir(s.path(volumes, string(id)))
	for _, e := range entries {
		of, isSnap := strings.CutPrefix(e.Name(), snapStatePrefix)
		if isState(e.Name()) && (!isSnap || m.snapshot(api.SnapshotID(of)) != nil) && !slices.Contains(names, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// DiscardVolume implements sds.Mover.
func (s *Store) DiscardVolume(ctx context.Context, id api.VolumeID) error {
	unlock, err := s.lockOwn(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	m, err := s.meta(id)
	if api.CodeOf(err) == api.CodeNotFound {
		return nil
	}
	if err != nil {
		return explain(err)
	}
	if err := s.unused(id, m); err != nil {
		return explain(err)
	}
	for _, snap := range m.Snapshots {
		ref := sds.SnapshotRef{Volume: id, ID: snap.ID}
		if clone, err := s.cloneOf(ref); err != nil || clone != "" {
			return explain(errors.Join(err, sds.HasClones(ref, clone)))
		}
		if read, err := s.pins.held(ref); err != nil || read {
			return explain(errors.Join(err, sds.BeingRead(ref)))
		}
	}
	return s.remove(volumes, string(id))
}
