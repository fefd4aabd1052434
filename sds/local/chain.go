package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/qemuimg"
)

// maxLayers is how many layers QEMU opens for one disk, through all volumes
// that it is cloned from: each costs memory and time, and libvirt's limit is
// 200.
const maxLayers = 32

// meta reads the metadata of a volume. To change it, the caller must hold the
// volume's lock.
func (s *Store) meta(id api.VolumeID) (*volumeMeta, error) {
	var m volumeMeta
	found, err := s.readMeta(volumes, string(id), &m)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, notFound("volume", string(id))
	case m.Version > volumeVersion:
		return nil, api.Errorf(api.CodeState, "volume %s was written by a newer version of Basalt", id).WithHint("upgrade this node")
	}
	m.normal()
	if m.Merging != nil {
		// Its second to last step is a rename: if the file does not exist it was
		// done.
		if _, err := os.Lstat(s.file(id, m.Merging.Into)); errors.Is(err, fs.ErrNotExist) {
			m.mergedUp(*m.Merging)
		} else if err != nil {
			return nil, err
		}
		m.Merging = nil // the merge is started again
	}
	return &m, nil
}

// saveMeta writes a volume's changed metadata, and removes the files that it
// does not name any more.
func (s *Store) saveMeta(id api.VolumeID, m *volumeMeta) error {
	m.Version = volumeVersion
	if err := s.replaceMeta(volumes, string(id), m); err != nil {
		return explain(err)
	}
	return s.prune(id, m)
}

// prune removes the files of the volume that its metadata does not name:
// obsolete ones, and incomplete ones of processes that died.
func (s *Store) prune(id api.VolumeID, m *volumeMeta) error {
	named := map[string]bool{}
	for _, l := range m.Layers {
		named[l.File] = true
	}
	disks, err := filepath.Glob(s.file(id, diskName+"*"))
	for _, file := range disks {
		if named[filepath.Base(file)] {
			continue
		}
		if gone := os.Remove(file); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return explain(err)
}

func (s *Store) file(id api.VolumeID, name string) string {
	return filepath.Join(s.path(volumes, string(id)), name)
}

// source returns the source of a layer, with all layers below it, and their
// number.
func (s *Store) source(id api.VolumeID, m *volumeMeta, file string) (src sds.Source, deep int, err error) {
	return s.sourceWithin(id, m, file, 2*maxLayers)
}

func (s *Store) sourceWithin(id api.VolumeID, m *volumeMeta, file string, room int) (src sds.Source, deep int, err error) {
	base, deep, err := s.origin(m, room)
	if api.CodeOf(err) == api.CodeNotFound {
		err = fmt.Errorf("the source of volume %s is lost: %s", id, err.Error()) // the volume itself exists
	}
	if err != nil {
		return src, 0, err
	}
	chain := m.chain(file)
	for i := len(chain) - 1; i >= 0; i-- {
		base = &sds.Source{Path: s.file(id, chain[i]), Format: sds.QCOW2, Encrypted: m.Encrypted, Backing: base}
	}
	return *base, deep + len(chain), nil
}

// origin returns what the volume is created from and reads; nil: nothing.
func (s *Store) origin(m *volumeMeta, room int) (src *sds.Source, deep int, err error) {
	switch {
	case m.image() != "":
		img, err := s.image(m.image())
		return &sds.Source{Path: img.Path, Format: img.Format}, 1, err
	case m.clone():
		if room <= 0 {
			return nil, 0, api.Errorf(api.CodeInternal, "the chain of clones contains a cycle")
		}
		of, snap, err := s.snapshotOf(m.ref())
		if err != nil {
			return nil, 0, err
		}
		got, deep, err := s.sourceWithin(m.From.Volume, of, snap.File, room-1)
		return &got, deep, err
	}
	return nil, 0, nil
}

// snapshotOf returns a snapshot that is ready.
func (s *Store) snapshotOf(r sds.SnapshotRef) (*volumeMeta, *snapshotMeta, error) {
	of, err := s.meta(r.Volume)
	if err != nil {
		return nil, nil, err
	}
	snap := of.snapshot(r.ID)
	switch {
	case snap == nil:
		return nil, nil, sds.SnapshotNotFound(r.Volume, r.ID)
	case snap.Making:
		return nil, nil, sds.NotReady(snap.public(r.Volume))
	}
	return of, snap, nil
}

// size returns the size of the disk in a layer.
func (s *Store) size(id api.VolumeID, file string) (int64, error) {
	f, err := os.Open(s.file(id, file))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	head := make([]byte, sds.HeadBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, err
	}
	return sds.VirtualBytes(head[:n])
}

// diskSecret is the ID of the secret object that opens encrypted layers.
const diskSecret = "luks"

func secrets(e *sds.Encryption) map[string][]byte {
	if e == nil {
		return nil
	}
	return map[string][]byte{diskSecret: e.Passphrase}
}

// imageName returns qemu-img's name for exactly the files of a source.
func imageName(src sds.Source, readOnly bool) (string, error) {
	raw, err := json.Marshal(src.BlockDev(readOnly, diskSecret, ""))
	return "json:" + string(raw), err
}

// checkKey returns an error for a key that does not open the layer.
func (s *Store) checkKey(ctx context.Context, id api.VolumeID, m *volumeMeta, file string, a sds.Access) error {
	if err := a.CheckKey(id, m.Encrypted); err != nil || !m.Encrypted {
		return err
	}
	name, err := imageName(sds.Source{Path: s.file(id, file), Format: sds.QCOW2, Encrypted: true}, true)
	if err != nil {
		return err
	}
	// The cheapest command that requires the key; a machine may have it open.
	_, err = qemuimg.Own(ctx, secrets(a.Encryption), "snapshot", "-l", "-U", name)
	return wrongKey(id, err)
}

func wrongKey(id api.VolumeID, err error) error {
	if qemuimg.WrongKey(err) {
		return sds.WrongKey(id)
	}
	return err
}
