// Package pages checks a bbolt file before bbolt maps it into memory: bbolt trusts the
// content of its pages, and a damaged one ends the process, or causes an endless loop.
// The package checks pages, their references and the order of keys; values have no
// checksum, and are not checked.
//
// The format is that of go.etcd.io/bbolt, version 2, in the byte order of the
// machine (internal/common/page.go, meta.go, inode.go there).
package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

const (
	headerSize  = 16 // id uint64, flags uint16, count uint16, overflow uint32
	elementSize = 16 // branch: pos, ksize uint32, page uint64; leaf: flags, pos, ksize, vsize uint32
	bucketSize  = 16 // root page, sequence: uint64; a page follows when the root is 0
	metaSize    = 64

	branch = 0x01
	leaf   = 0x02
	bucket = 0x01 // of a leaf's element

	magic   = 0xED0CDAED
	version = 2

	maxDepth = 64
)

// ErrNone means that the file has no meta page that bbolt would accept: it is not a
// database, or not one of this version.
var ErrNone = errors.New("invalid database")

// Check reads all pages that are in use. An empty or missing file is valid: bbolt
// creates it. An error of the content names the page.
func Check(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	return check(f, info.Size())
}

// file is a file that is being checked.
type file struct {
	r        io.ReaderAt
	pageSize uint64
	end      uint64   // number of the first page that was never used
	seen     []uint64 // one bit per page
}

func check(r io.ReaderAt, size int64) error {
	m, err := readMeta(r, size)
	if err != nil {
		return err
	}
	if m.end > uint64(size)/m.pageSize {
		return fmt.Errorf("it was truncated to %d bytes, but has pages up to %d", size, m.end*m.pageSize)
	}
	f := &file{r: r, pageSize: m.pageSize, end: m.end, seen: make([]uint64, m.end/64+1)}
	return f.page(m.root, span{root: true})
}

type meta struct{ pageSize, root, end, txid uint64 }

// readMeta reads the newer of the two meta pages that are valid. The second one is one
// page behind the first, whose size only a valid one contains: otherwise all page sizes
// are tried.
func readMeta(r io.ReaderAt, size int64) (best meta, err error) {
	for at := int64(0); at <= 64<<10; at = max(2*at, 1<<10) {
		raw := make([]byte, headerSize+metaSize)
		if _, err := r.ReadAt(raw, at); err != nil {
			break
		}
		m, ok := decodeMeta(raw[headerSize:])
		if ok && (at == 0 || uint64(at) == m.pageSize) && m.txid >= best.txid && m.pageSize >= 1<<10 && m.pageSize <= 64<<10 {
			best = m
		}
	}
	if best.pageSize == 0 || best.end < 2 || size < int64(best.pageSize) {
		return best, ErrNone
	}
	return best, nil
}

func decodeMeta(b []byte) (m meta, ok bool) {
	sum := fnv.New64a()
	sum.Write(b[:56])
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	m = meta{pageSize: uint64(u32(b[8:])), root: u64(b[16:]), end: u64(b[40:]), txid: u64(b[48:])}
	return m, u32(b) == magic && u32(b[4:]) == version && u64(b[56:]) == sum.Sum64()
}

// span is the position of a page: its keys are in [from, to); nil means unbounded.
type span struct {
	from, to []byte
	depth    int
	root     bool // of the file: every element is a bucket
}

// page checks a page and its descendants.
func (f *file) page(id uint64, at span) error {
	raw, err := f.read(id)
	if err != nil {
		return err
	}
	if at.depth > maxDepth {
		return fmt.Errorf("page %d: it is the %dth below another", id, at.depth)
	}
	err = f.elements(raw, at)
	var inner *pageError
	if err != nil && !errors.As(err, &inner) {
		return &pageError{fmt.Errorf("page %d: %w", id, err)}
	}
	return err
}

// pageError is an error that already names its page.
type pageError struct{ error }

func (e *pageError) Unwrap() error { return e.error }

// read reads a page with its overflow pages, which must not have been read before.
func (f *file) read(id uint64) ([]byte, error) {
	if id < 2 || id >= f.end {
		return nil, fmt.Errorf("page %d does not exist, want one of %d", id, f.end)
	}
	head := make([]byte, headerSize)
	if _, err := f.r.ReadAt(head, int64(id*f.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	own, overflow := binary.NativeEndian.Uint64(head), uint64(binary.NativeEndian.Uint32(head[12:]))
	if own != id {
		return nil, fmt.Errorf("page %d claims to be page %d", id, own)
	}
	if overflow >= f.end-id {
		return nil, fmt.Errorf("page %d: it continues for %d pages, beyond the end", id, overflow)
	}
	for i := id; i <= id+overflow; i++ {
		if f.seen[i/64]&(1<<(i%64)) != 0 {
			return nil, fmt.Errorf("page %d is used twice", i)
		}
		f.seen[i/64] |= 1 << (i % 64)
	}
	raw := make([]byte, (1+overflow)*f.pageSize)
	if _, err := f.r.ReadAt(raw, int64(id*f.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return raw, nil
}

// elements checks the elements of a page, and their descendants.
func (f *file) elements(raw []byte, at span) error {
	if len(raw) < headerSize {
		return errors.New("it has no header")
	}
	flags, count := binary.NativeEndian.Uint16(raw[8:]), int(binary.NativeEndian.Uint16(raw[10:]))
	if flags != branch && flags != leaf {
		return fmt.Errorf("its type is %#x", flags)
	}
	if headerSize+count*elementSize > len(raw) || flags == branch && count == 0 {
		return fmt.Errorf("it has %d elements", count)
	}
	var keys [][]byte
	var below []uint64
	for i := range count {
		e, err := elementOf(raw, headerSize+i*elementSize, flags)
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		// A branch's first key may be greater than keys that were inserted before it.
		if i > 0 && bytes.Compare(keys[i-1], e.key) >= 0 || flags == leaf && bytes.Compare(at.from, e.key) > 0 || at.to != nil && bytes.Compare(e.key, at.to) >= 0 {
			return fmt.Errorf("element %d: its key is out of order", i)
		}
		if at.root && flags == leaf && !e.bucket {
			return fmt.Errorf("element %d: it is not a bucket", i)
		}
		keys, below = append(keys, e.key), append(below, e.page)
		if e.bucket {
			if err := f.bucket(e.value, at.depth); err != nil {
				return err
			}
		}
	}
	if flags == leaf {
		return nil
	}
	for i, id := range below {
		next := span{from: at.from, to: at.to, depth: at.depth + 1, root: at.root}
		if i > 0 {
			next.from = keys[i]
		}
		if i+1 < count {
			next.to = keys[i+1]
		}
		if err := f.page(id, next); err != nil {
			return err
		}
	}
	return nil
}

type element struct {
	key, value []byte
	page       uint64
	bucket     bool
}

func elementOf(raw []byte, at int, flags uint16) (e element, err error) {
	u32 := func(i int) uint64 { return uint64(binary.NativeEndian.Uint32(raw[at+i:])) }
	var pos, ksize, vsize uint64
	if flags == branch {
		pos, ksize, e.page = u32(0), u32(4), binary.NativeEndian.Uint64(raw[at+8:])
	} else {
		e.bucket, pos, ksize, vsize = u32(0) == bucket, u32(4), u32(8), u32(12)
		if f := u32(0); f > bucket {
			return e, fmt.Errorf("its flags are %#x", f)
		}
	}
	begin := uint64(at) + pos
	if begin+ksize+vsize > uint64(len(raw)) || ksize == 0 {
		return e, fmt.Errorf("its %d bytes of key and %d of value are not within the page", ksize, vsize)
	}
	e.key, e.value = raw[begin:begin+ksize], raw[begin+ksize:begin+ksize+vsize]
	return e, nil
}

// bucket checks a bucket's header and content.
func (f *file) bucket(value []byte, depth int) error {
	if len(value) < bucketSize {
		return fmt.Errorf("a bucket of %d bytes", len(value))
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return f.page(root, span{depth: depth + 1})
	}
	if depth > maxDepth {
		return errors.New("buckets are nested without end")
	}
	if err := f.elements(value[bucketSize:], span{depth: depth + 1}); err != nil {
		return fmt.Errorf("a bucket in it: %w", err)
	}
	return nil
}
