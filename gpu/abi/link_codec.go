package abi

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// LinkImage contains several objects to be linked.
type LinkImage struct {
	OptLevel, MaxRegisters uint32 // as in ModuleLoad
	Objects                []LinkObject
}

// Types of objects, of CUjitInputType (CUDA Driver API, "Data types used by CUDA
// driver"): PTX, host objects as created by nvcc -c, and archives of these.
const (
	LinkPTX        = 1
	LinkHostObject = 3
	LinkLibrary    = 4
)

// Linked returns the image that the objects were linked into when the program was
// built, or nil, and removes it from the list. A device that can load it does so
// instead of linking the objects: nvcc -rdc=true leaves both in a program.
func (l *LinkImage) Linked() []byte {
	if len(l.Objects) < 2 || l.Objects[0].Type != LinkLinked {
		return nil
	}
	image := l.Objects[0].Image
	l.Objects = l.Objects[1:]
	return image
}

// LinkObject is one of the objects. Type is a CUjitInputType.
type LinkObject struct {
	Type  uint32
	Name  string
	Image []byte
}

// IsLinkImage reports whether an image contains objects to be linked.
func IsLinkImage(b []byte) bool {
	return len(b) >= 4 && binary.LittleEndian.Uint32(b) == LinkMagic
}

// Append encodes the image.
func (l *LinkImage) Append(b []byte) []byte {
	start := len(b)
	le := binary.LittleEndian
	b = le.AppendUint32(b, LinkMagic)
	b = le.AppendUint32(b, LinkVersion)
	b = le.AppendUint64(b, 0)
	b = le.AppendUint32(b, uint32(len(l.Objects)))
	b = le.AppendUint32(b, l.OptLevel)
	b = le.AppendUint32(b, l.MaxRegisters)
	b = le.AppendUint32(b, 0)
	for _, o := range l.Objects {
		b = le.AppendUint32(b, o.Type)
		b = le.AppendUint32(b, uint32(len(o.Name)))
		b = le.AppendUint64(b, uint64(len(o.Image)))
		b = append(append(b, o.Name...), o.Image...)
		b = append(b, make([]byte, -(len(b)-start)&7)...)
	}
	le.PutUint64(b[start+8:], uint64(len(b)-start))
	return b
}

// DecodeLinkImage decodes an image that a guest has sent. The images of the
// objects are slices of b.
func DecodeLinkImage(b []byte) (*LinkImage, error) {
	bad := func(format string, args ...any) (*LinkImage, error) {
		return nil, fmt.Errorf("%w: decode objects to link: %s", ErrInvalidImage, fmt.Sprintf(format, args...))
	}
	le := binary.LittleEndian
	if len(b) < LinkHeadSize || !IsLinkImage(b) {
		return bad("header has %d bytes", len(b))
	}
	if v := le.Uint32(b[4:]); v != LinkVersion {
		return bad("unsupported version %d, want %d", v, LinkVersion)
	}
	if n := le.Uint64(b[8:]); n != uint64(len(b)) {
		return bad("header has size %d, want %d", n, len(b))
	}
	n := le.Uint32(b[16:])
	if n == 0 || n > MaxLinkObjects {
		return bad("%d objects, want 1 to %d", n, MaxLinkObjects)
	}
	l := &LinkImage{OptLevel: le.Uint32(b[20:]), MaxRegisters: le.Uint32(b[24:])}
	rest := b[LinkHeadSize:]
	for i := range n {
		if len(rest) < LinkObjectSize {
			return bad("object %d of %d is truncated", i, n)
		}
		o := LinkObject{Type: le.Uint32(rest)}
		name, size := uint64(le.Uint32(rest[4:])), le.Uint64(rest[8:])
		rest = rest[LinkObjectSize:]
		if name == 0 || name > MaxLinkName || name > uint64(len(rest)) || size > uint64(len(rest))-name {
			return bad("object %d of %d: name of %d bytes and image of %d bytes exceed the remaining %d bytes", i, n, name, size, len(rest))
		}
		o.Name, o.Image = printable(rest[:name]), rest[name:name+size:name+size]
		l.Objects = append(l.Objects, o)
		rest = rest[min((name+size+7)&^7, uint64(len(rest))):]
	}
	if len(rest) > 0 {
		return bad("%d bytes after the last object", len(rest))
	}
	return l, nil
}

// printable makes a name safe for logs.
func printable(name []byte) string {
	return string(bytes.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name))
}
