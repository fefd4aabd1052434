// Package iso9660 writes the small discs that guests get, and reads discs such
// as the installation medium: ECMA-119 (ISO 9660) with the Rock Ridge
// extensions (IEEE P1282, RRIP 1.10), which store real names, permissions and
// links. The same tree produces the same bytes.
//
// Plain ISO names are numbers: the readers of these discs, Linux and the BSDs,
// support Rock Ridge.
package iso9660

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"time"
)

// Limits, so that a record with its Rock Ridge fields fits into 255 bytes
// without continuation areas.
const (
	sector      = 2048
	systemArea  = 16 // sectors that the format reserves for the system
	maxNames    = 150
	maxEntries  = 10_000
	maxFileSize = 1<<32 - sector
)

var labelForm = regexp.MustCompile(`^[A-Z0-9_-]{1,32}$`)

// node is a file, directory or link of the tree.
type node struct {
	path, name string
	mode       fs.FileMode
	size       int64
	link       string // a link's target
	parent     *node
	children   []*node // sorted by name
	number     int     // of a directory in the path table, from 1
	extent     uint32  // first sector
}

func (n *node) dir() bool { return n.mode.IsDir() }

// Write writes a disc with the label and everything in tree: directories,
// plain files and symbolic links, owned by root. at is the time of every
// entry.
func Write(w io.Writer, label string, tree fs.FS, at time.Time) error {
	if !labelForm.MatchString(label) {
		return fmt.Errorf("iso9660: label %q is not 1 to 32 of A-Z, 0-9, '_', '-'", label)
	}
	root, err := read(tree)
	if err != nil {
		return err
	}
	d := &disc{label: label, at: at.UTC()}
	d.assignSectors(root)
	out := &sectorWriter{w: w}
	out.zeros(systemArea * sector)
	out.write(d.primary())
	out.write(terminator())
	out.write(d.pathTable(little))
	out.write(d.pathTable(big))
	for _, n := range d.dirs {
		out.write(d.directory(n))
	}
	for _, n := range d.files {
		out.file(tree, n)
	}
	return out.err
}

// read builds the tree of nodes.
func read(tree fs.FS) (*node, error) {
	root := &node{path: "."}
	nodes := map[string]*node{".": root}
	err := fs.WalkDir(tree, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if p == "." {
			root.mode = info.Mode()
			return nil
		}
		n := &node{path: p, name: path.Base(p), mode: info.Mode(), parent: nodes[path.Dir(p)]}
		switch n.mode.Type() {
		case 0:
			n.size = info.Size()
		case fs.ModeSymlink:
			if n.link, err = fs.ReadLink(tree, p); err != nil {
				return err
			}
		case fs.ModeDir:
		default:
			return fmt.Errorf("iso9660: %s is not a directory, regular file or symbolic link", p)
		}
		if len(n.name)+len(n.link) > maxNames || n.size > maxFileSize || len(nodes) >= maxEntries {
			return fmt.Errorf("iso9660: %s: name too long, file too large or too many files", p)
		}
		n.parent.children = append(n.parent.children, n) // WalkDir visits in the order of names
		nodes[p] = n
		return nil
	})
	return root, err
}

// sectorWriter pads to whole sectors and keeps the first error.
type sectorWriter struct {
	w   io.Writer
	err error
}

func (s *sectorWriter) write(b []byte) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
	s.zeros(pad(int64(len(b))))
}

func (s *sectorWriter) zeros(n int64) {
	if s.err == nil && n > 0 {
		_, s.err = s.w.Write(make([]byte, n))
	}
}

func (s *sectorWriter) file(tree fs.FS, n *node) {
	if s.err != nil {
		return
	}
	f, err := tree.Open(n.path)
	if err != nil {
		s.err = err
		return
	}
	defer func() { _ = f.Close() }()
	got, err := io.Copy(s.w, io.LimitReader(f, n.size+1))
	switch {
	case err != nil:
		s.err = err
	case got != n.size:
		s.err = fmt.Errorf("iso9660: %s changed while it was read", n.path)
	default:
		s.zeros(pad(n.size))
	}
}

// pad returns how many bytes fill n up to whole sectors.
func pad(n int64) int64 { return (sector - n%sector) % sector }

func sectors(n int64) uint32 { return uint32((n + sector - 1) / sector) }
