package iso9660

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Limits when reading a disc, which is untrusted.
const (
	maxDescriptors    = 32
	maxDirectoryBytes = 8 << 20
	maxContinuations  = 8
	maxNameBytes      = 255
)

// Disc is a disc that is read: a file system of directories and plain files,
// with their Rock Ridge names, or their plain ones. It is safe for concurrent
// use.
type Disc struct {
	r    io.ReaderAt
	size int64
	root entry
	skip int // bytes before the Rock Ridge fields of each record (SP, SUSP 1.12 section 5.3)
}

// entry is a directory entry.
type entry struct {
	name   string
	extent int64 // in bytes
	size   int64
	mode   fs.FileMode
}

// Open reads the descriptors of a disc of size bytes. The error names what is
// invalid.
func Open(r io.ReaderAt, size int64) (*Disc, error) {
	d := &Disc{r: r, size: size}
	for i := range int64(maxDescriptors) {
		b, err := d.bytes((systemArea+i)*sector, sector)
		if err != nil {
			return nil, fmt.Errorf("iso9660: no volume descriptor: %w", err)
		}
		if string(b[1:6]) != "CD001" || b[0] == 255 {
			break
		}
		if b[0] != 1 {
			continue
		}
		if d.root, _, err = record(b[156:190]); err != nil {
			return nil, err
		}
		d.root.name = "."
		if !d.root.mode.IsDir() || little.Uint16(b[128:]) != sector {
			return nil, errors.New("iso9660: the volume descriptor has no root directory, or sectors that are not of 2048 bytes")
		}
		return d, d.readSkip()
	}
	return nil, errors.New("iso9660: not an ISO image: it has no primary volume descriptor")
}

// bytes reads n bytes of the disc at the offset; io.ErrUnexpectedEOF if they
// extend beyond its end.
func (d *Disc) bytes(at, n int64) ([]byte, error) {
	if at < 0 || n < 0 || at > d.size-n {
		return nil, fmt.Errorf("the image ends at %d bytes, want %d: %w", d.size, at+n, io.ErrUnexpectedEOF)
	}
	b := make([]byte, n)
	if got, err := d.r.ReadAt(b, at); got < len(b) {
		return nil, fmt.Errorf("read at %d bytes: %w", at, err)
	}
	return b, nil
}

// record decodes the directory record at the start of b (ECMA-119 section
// 9.1), and returns what follows its name: the SUSP fields.
func record(b []byte) (e entry, susp []byte, err error) {
	if len(b) < 34 || 33+int(b[32]) > len(b) {
		return e, nil, errors.New("iso9660: a directory record is too short")
	}
	if b[25]&0x80 != 0 || b[26] != 0 || b[27] != 0 {
		return e, nil, errors.New("iso9660: files in several parts are not supported")
	}
	name := b[33 : 33+int(b[32])]
	e = entry{
		name:   strings.TrimSuffix(strings.TrimSuffix(string(name), ";1"), "."),
		extent: (int64(little.Uint32(b[2:])) + int64(b[1])) * sector,
		size:   int64(little.Uint32(b[10:])),
		mode:   0o444,
	}
	if b[25]&2 != 0 {
		e.mode = fs.ModeDir | 0o555
	}
	at := 33 + len(name)
	return e, b[min(at+(at%2), len(b)):], nil
}

// readSkip reads SP from the root's first record, the only one that has it.
func (d *Disc) readSkip() error {
	b, err := d.bytes(d.root.extent, sector)
	if err != nil {
		return fmt.Errorf("iso9660: root directory: %w", err)
	}
	if n := int(b[0]); n <= len(b) {
		if _, susp, err := record(b[:n]); err == nil && len(susp) >= 7 && string(susp[:2]) == "SP" {
			d.skip = int(susp[6])
		}
	}
	return nil
}

// directory returns the entries of a directory, sorted by name. It omits names
// that are not valid in a path.
func (d *Disc) directory(of entry) ([]entry, error) {
	if of.size > maxDirectoryBytes {
		return nil, fmt.Errorf("iso9660: directory %s has %d bytes, want at most %d", of.name, of.size, maxDirectoryBytes)
	}
	b, err := d.bytes(of.extent, of.size)
	if err != nil {
		return nil, fmt.Errorf("iso9660: directory %s: %w", of.name, err)
	}
	var all []entry
	for at := 0; at < len(b); {
		n := int(b[at])
		if n == 0 { // the rest of the sector is empty
			at += sector - at%sector
			continue
		}
		if at+n > len(b) {
			return nil, fmt.Errorf("iso9660: directory %s: a record reaches beyond its end", of.name)
		}
		e, susp, err := record(b[at : at+n])
		if err != nil {
			return nil, err
		}
		at += n
		if e.name == "\x00" || e.name == "\x01" { // . and ..
			continue
		}
		if err := d.rockRidge(&e, susp[min(d.skip, len(susp)):]); err != nil {
			return nil, err
		}
		if e.name != "." && !strings.Contains(e.name, "/") && fs.ValidPath(e.name) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(all, func(a, b entry) bool { return a.name == b.name }), nil
}

// rockRidge sets the name and the type of the file from the SUSP fields.
func (d *Disc) rockRidge(e *entry, susp []byte) error {
	var name []byte
	for hops := 0; len(susp) >= 4; {
		n := int(susp[2])
		if n < 4 || n > len(susp) {
			break
		}
		f := susp[:n]
		susp = susp[n:]
		switch kind := string(f[:2]); {
		case kind == "NM" && n > 5 && f[4]&6 == 0:
			name = append(name, f[5:]...)
		case kind == "PX" && n >= 12:
			if m := little.Uint32(f[4:]) & 0o170000; m != 0o040000 && m != 0o100000 {
				e.mode |= fs.ModeIrregular // such as a link, which is not followed
			}
		case kind == "CE" && n >= 28: // continuation area; it replaces the rest of this one
			if hops++; hops > maxContinuations {
				return errors.New("iso9660: a name is in too many parts")
			}
			rest, err := d.bytes(int64(little.Uint32(f[4:]))*sector+int64(little.Uint32(f[12:])), min(int64(little.Uint32(f[20:])), sector))
			if err != nil {
				return fmt.Errorf("iso9660: name of a file: %w", err)
			}
			susp = append(slices.Clone(susp), rest...)
		case kind == "ST":
			susp = nil
		}
		if len(name) > maxNameBytes {
			return errors.New("iso9660: the name of a file is too long")
		}
	}
	if len(name) > 0 {
		e.name = string(name)
	}
	return nil
}

// Open implements fs.FS.
func (d *Disc) Open(name string) (fs.File, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return f, nil
}

func (d *Disc) open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, fs.ErrInvalid
	}
	at := d.root
	for part := range strings.SplitSeq(name, "/") {
		if part == "." {
			continue
		}
		if !at.mode.IsDir() {
			return nil, fs.ErrNotExist
		}
		all, err := d.directory(at)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(e entry) bool { return e.name == part })
		if i < 0 {
			return nil, fs.ErrNotExist
		}
		at = all[i]
	}
	switch {
	case at.mode.IsDir():
		all, err := d.directory(at)
		return &openDirectory{at, all}, err
	case at.mode&fs.ModeIrregular != 0:
		return nil, errors.New("it is not a plain file")
	case at.size > 0 && at.extent > d.size-at.size:
		return nil, fmt.Errorf("the image is truncated: it has %d bytes, and the file ends at %d: %w", d.size, at.extent+at.size, io.ErrUnexpectedEOF)
	}
	return &openFile{SectionReader: io.NewSectionReader(d.r, at.extent, at.size), entry: at}, nil
}

// openFile is a plain file, which supports random access.
type openFile struct {
	*io.SectionReader
	entry entry
}

func (f *openFile) Stat() (fs.FileInfo, error) { return info{f.entry}, nil }
func (*openFile) Close() error                 { return nil }

// openDirectory is a directory, with the entries that have not been read yet.
type openDirectory struct {
	entry entry
	rest  []entry
}

func (d *openDirectory) Stat() (fs.FileInfo, error) { return info{d.entry}, nil }
func (*openDirectory) Close() error                 { return nil }

func (d *openDirectory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.entry.name, Err: errors.New("it is a directory")}
}

// ReadDir implements fs.ReadDirFile.
func (d *openDirectory) ReadDir(n int) ([]fs.DirEntry, error) {
	take := len(d.rest)
	if n > 0 {
		if take == 0 {
			return nil, io.EOF
		}
		take = min(take, n)
	}
	var out []fs.DirEntry
	for _, e := range d.rest[:take] {
		out = append(out, fs.FileInfoToDirEntry(info{e}))
	}
	d.rest = d.rest[take:]
	return out, nil
}

// info implements fs.FileInfo. It has no modification time: nothing uses it.
type info struct{ entry }

func (i info) Name() string       { return path.Base(i.name) }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
