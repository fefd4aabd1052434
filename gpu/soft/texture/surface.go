package texture

import (
	"errors"
	"fmt"
)

// Outside is the behavior of a surface instruction outside of the surface (PTX ISA,
// "Surface Instructions": the modifier .clamp).
type Outside uint8

// The ways: the kernel fails, the nearest element is accessed, or the access has no
// effect.
const (
	Trap Outside = iota
	Nearest
	Nothing
)

// Place has the coordinates of a surface instruction.
type Place struct {
	X, Y, Z int32 // X in units of Locate
	Layer   uint32
}

// ErrOutside is the error of an access outside of a surface, which fails its kernel.
var ErrOutside = errors.New("outside of the surface")

// Locate returns the offset of size bytes in the image's first level; unit is the
// number of bytes that X counts. It returns false if the access has no effect, and an
// error that wraps ErrOutside if it fails.
func (im *Image) Locate(p Place, unit, size uint64, o Outside) (uint64, bool, error) {
	l := &im.Levels[0]
	row := int64(uint64(l.Width) * im.Format.Bytes())
	x, n := int64(p.X)*int64(unit), int64(size)
	if x%n != 0 {
		return 0, false, fmt.Errorf("%w: %d bytes at %d of a row", ErrOutside, size, x)
	}
	at := [4]int64{x, int64(p.Y), int64(p.Z), int64(p.Layer)}
	most := [4]int64{row/n*n - n, int64(l.Height) - 1, int64(l.Depth) - 1, int64(im.Layers) - 1}
	if im.Dims < 2 {
		at[1] = 0
	}
	if im.Dims < 3 {
		at[2] = 0
	}
	for i, v := range at {
		if v >= 0 && v <= most[i] {
			continue
		}
		switch {
		case o == Nothing:
			return 0, false, nil
		case o == Trap || most[i] < 0: // or an element does not fit
			return 0, false, fmt.Errorf("%w: byte %d of row %d, depth %d, layer %d", ErrOutside, x, p.Y, p.Z, p.Layer)
		}
		at[i] = max(0, min(v, most[i]))
	}
	return l.Offset + uint64(at[2]+at[3])*l.Slice + uint64(at[1])*l.Pitch + uint64(at[0]), true, nil
}
