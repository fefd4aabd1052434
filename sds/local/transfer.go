package local

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// A volume is copied to another node as its files: the layers, and the states of
// its machine. A layer names the file below it by its place relative to the volume,
// so a copy needs no change, and an encrypted layer no key.
//
//	transferMagic
//	length of the manifest (4 bytes), manifest (JSON)
//	extents: index of the file (4), offset (8), length (4), data
//	the end: endOfTransfer (4), sum of all lengths (8), 0 (4)
//
// Numbers are big-endian. Only allocated ranges of the files are in it.
const (
	transferMagic = "basalt-volume-1\n"
	maxManifest   = 1 << 20
	maxExtent     = 1 << 20 // bytes
	maxTransfer   = 1024    // files
	endOfTransfer = ^uint32(0)
)

// manifest describes the files of a volume.
type manifest struct {
	Volume volumeMeta     `json:"volume"`
	Files  []transferFile `json:"files"`
	// AllocatedBytes is about as much as follows.
	AllocatedBytes int64 `json:"allocatedBytes"`
}

type transferFile struct {
	Name      string `json:"name"`
	SizeBytes int64  `json:"sizeBytes"`
}

// extentHeader precedes the data of an extent.
type extentHeader struct {
	File   uint32
	Offset uint64
	Length uint32
}

const extentHeaderBytes = 16

func (h extentHeader) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, h.File)
	b = binary.BigEndian.AppendUint64(b, h.Offset)
	return binary.BigEndian.AppendUint32(b, h.Length)
}

func parseExtentHeader(b []byte) extentHeader {
	return extentHeader{binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:]), binary.BigEndian.Uint32(b[12:])}
}

// check returns why the manifest cannot be one that ExportVolume has written: every
// name becomes a file's on this node.
func (m *manifest) check(limits sds.Limits) error {
	v := &m.Volume
	switch {
	case v.Version > volumeVersion:
		return api.Errorf(api.CodeState, "the volume was written by a newer version of Basalt").WithHint("upgrade this node")
	case v.clone(), v.Merging != nil, v.making() != nil:
		return fmt.Errorf("it is a clone, or is being changed")
	case len(m.Files) == 0 || len(m.Files) > maxTransfer:
		return fmt.Errorf("it has %d files, want 1 to %d", len(m.Files), maxTransfer)
	}
	sizes := map[string]int64{}
	for _, f := range m.Files {
		limit := int64(sds.MaxStateBytes)
		if isLayer(f.Name) {
			limit = 2 * limits.MaxVirtualBytes // qcow2's tables are beside the content
		}
		if _, twice := sizes[f.Name]; twice || !isLayer(f.Name) && !isState(f.Name) || f.SizeBytes < 0 || f.SizeBytes > limit {
			return fmt.Errorf("file %q of %d bytes is not one of a volume", f.Name, f.SizeBytes)
		}
		sizes[f.Name] = f.SizeBytes
	}
	for _, l := range v.Layers {
		if _, ok := sizes[l.File]; !ok || !isLayer(l.File) {
			return fmt.Errorf("layer %q has no file", l.File)
		}
	}
	for _, file := range append(snapshotFiles(v), v.Disk) {
		if _, ok := sizes[file]; !ok {
			return fmt.Errorf("the content of %q is missing", file)
		}
	}
	return nil
}

func snapshotFiles(m *volumeMeta) (files []string) {
	for _, s := range m.Snapshots {
		files = append(files, s.File)
	}
	return files
}

func isLayer(name string) bool {
	return strings.HasPrefix(name, diskName) && filepath.Base(name) == name && len(name) < 64
}

func isState(name string) bool {
	return (strings.HasPrefix(name, statePrefix) || strings.HasPrefix(name, snapStatePrefix)) && filepath.Base(name) == name && len(name) < 128
}

// seeker is a file that knows which of its parts are allocated.
type seeker interface {
	Seek(offset int64, whence int) (int64, error)
}

// allocated calls f with the allocated ranges of a file, in order. A file system that
// does not know them has one range.
func allocated(file seeker, size int64, f func(at, bytes int64) error) error {
	for at := int64(0); at < size; {
		from, err := file.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // only a hole is left
		}
		to := size
		switch {
		case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP):
			from = at
		case err != nil:
			return fmt.Errorf("find data after byte %d: %w", at, err)
		default:
			if to, err = file.Seek(from, unix.SEEK_HOLE); err != nil {
				return fmt.Errorf("find the end of the data at byte %d: %w", from, err)
			}
		}
		if to = min(to, size); from < to {
			if err := f(from, to-from); err != nil {
				return err
			}
		}
		at = max(to, from+1)
	}
	return nil
}

// writeManifest writes the beginning of a transfer.
func writeManifest(w io.Writer, m manifest) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(raw) > maxManifest {
		return fmt.Errorf("the description of the volume has %d bytes, the maximum is %d", len(raw), maxManifest)
	}
	b := binary.BigEndian.AppendUint32([]byte(transferMagic), uint32(len(raw)))
	_, err = w.Write(append(b, raw...))
	return err
}

// readManifest reads the beginning of a transfer.
func readManifest(r io.Reader) (m manifest, err error) {
	head := make([]byte, len(transferMagic)+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return m, err
	}
	bytes := binary.BigEndian.Uint32(head[len(transferMagic):])
	if string(head[:len(transferMagic)]) != transferMagic || bytes > maxManifest {
		return m, fmt.Errorf("it is not the content of a volume")
	}
	raw := make([]byte, bytes)
	if _, err := io.ReadFull(r, raw); err != nil {
		return m, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("decode the description of the volume: %w", err)
	}
	m.Volume.normal()
	return m, nil
}
