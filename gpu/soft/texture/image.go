// Package texture implements the reads and writes of texture and surface instructions:
// the texels of a coordinate, their weights, and their bytes. It is independent of
// lanes, addresses and instructions: an image's bytes are a slice.
//
// Sources: CUDA C++ Programming Guide, "Texture and Surface Memory" and the appendix
// "Texture Fetching"; PTX ISA, "Texture Instructions" and "Surface Instructions".
package texture

import (
	"errors"
	"fmt"
)

// Limits of images, in texels and layers (those of compute capability 6.1 and later:
// programming guide, "Technical Specifications per Compute Capability").
const (
	MaxWidth1D  = 131072
	MaxWidth2D  = 131072
	MaxHeight2D = 65536
	Max3D       = 16384
	MaxWidth1DL = 32768 // layered
	Max2DL      = 32768
	MaxLayers   = 2048
	MaxCube     = 32768
	MaxCubes    = 2046 // faces of a layered cube map
	MaxLinear   = 1 << 28
	MaxLevels   = 18
	MaxPitch    = 1<<31 - 1 // bytes
)

// rowAlign is the alignment of rows in bytes, the widest access of a surface
// instruction.
const rowAlign = 16

// Level is a mipmap level of an image.
type Level struct {
	Offset               uint64 // bytes from the start of the image
	Width, Height, Depth uint32 // in texels; none is 0
	Pitch                uint64 // bytes from row to row
	Slice                uint64 // bytes from layer to layer, or from depth to depth
}

// Image describes the layout of an image's texels. It is immutable.
type Image struct {
	Format  Format
	Dims    int  // 1 to 3
	Layered bool // it has layers, each of Dims dimensions
	Cube    bool // its layers are faces of cubes, six to each
	Linear  bool // texels in linear memory, which are read by index
	Layers  uint32
	Levels  []Level
	Bytes   uint64 // total size
}

// Size has the arguments of NewImage, as for cuArray3DCreate: Depth is the number of
// layers of a layered image, and of faces for a cube map.
type Size struct {
	Width, Height, Depth uint64
	Levels               uint32 // 0 means 1
	Layered, Cube        bool
}

var errSize = errors.New("no image has this size")

// NewImage returns an image whose levels are stored one after the other. Rows begin at
// multiples of 16 bytes.
func NewImage(f Format, s Size) (*Image, error) {
	if !f.Valid() {
		return nil, fmt.Errorf("no texel has %d channels of %d bits", f.Channels, f.Bits)
	}
	im := &Image{Format: f, Dims: 1, Layered: s.Layered || s.Cube, Cube: s.Cube, Layers: 1}
	switch {
	case s.Height != 0 && s.Depth != 0 && !im.Layered:
		im.Dims = 3
	case s.Height != 0:
		im.Dims = 2
	}
	if im.Layered {
		im.Layers = uint32(min(s.Depth, 1<<16))
	}
	if err := im.fits(s); err != nil {
		return nil, err
	}
	w, h, d := uint32(s.Width), uint32(max(1, s.Height)), uint32(1)
	if im.Dims == 3 {
		d = uint32(s.Depth)
	}
	for range max(1, s.Levels) {
		l := Level{Offset: im.Bytes, Width: w, Height: h, Depth: d, Pitch: (uint64(w)*f.Bytes() + rowAlign - 1) &^ (rowAlign - 1)}
		l.Slice = l.Pitch * uint64(h)
		im.Bytes += l.Slice * uint64(d) * uint64(im.Layers)
		im.Levels = append(im.Levels, l)
		w, h, d = max(1, w/2), max(1, h/2), max(1, d/2)
	}
	return im, nil
}

// fits returns an error unless a size is within the limits.
func (im *Image) fits(s Size) error {
	longest, ok := s.Width, s.Width > 0
	switch {
	case s.Cube:
		most := uint64(6)
		if s.Layered {
			most = MaxCubes
		}
		ok = ok && s.Width == s.Height && s.Width <= MaxCube && s.Depth >= 6 && s.Depth <= most && s.Depth%6 == 0
	case s.Layered && im.Dims == 1:
		ok = ok && s.Width <= MaxWidth1DL && s.Depth > 0 && s.Depth <= MaxLayers
	case s.Layered:
		ok = ok && s.Width <= Max2DL && s.Height <= Max2DL && s.Depth > 0 && s.Depth <= MaxLayers
	case im.Dims == 3:
		ok = ok && s.Width <= Max3D && s.Height <= Max3D && s.Depth <= Max3D
		longest = max(longest, s.Depth)
	case im.Dims == 2:
		ok = ok && s.Width <= MaxWidth2D && s.Height <= MaxHeight2D
	default:
		ok = ok && s.Width <= MaxWidth1D && s.Depth == 0
	}
	longest = max(longest, s.Height)
	if !ok || s.Levels > MaxLevels || s.Levels > 1 && longest>>(s.Levels-1) == 0 {
		return fmt.Errorf("%w: %d × %d × %d, %d levels", errSize, s.Width, s.Height, s.Depth, s.Levels)
	}
	return nil
}

// NewLinear returns an image of texels in linear memory.
func NewLinear(f Format, texels uint64) (*Image, error) {
	if !f.Valid() || texels == 0 || texels > MaxLinear {
		return nil, fmt.Errorf("%w: %d texels in a row", errSize, texels)
	}
	n := texels * f.Bytes()
	return &Image{Format: f, Dims: 1, Linear: true, Layers: 1, Bytes: n,
		Levels: []Level{{Width: uint32(texels), Height: 1, Depth: 1, Pitch: n, Slice: n}}}, nil
}

// NewPitched returns an image of two dimensions with pitch bytes from row to row.
func NewPitched(f Format, width, height, pitch uint64) (*Image, error) {
	if !f.Valid() || width == 0 || height == 0 || width > MaxWidth2D || height > MaxHeight2D || pitch < width*f.Bytes() || pitch > MaxPitch {
		return nil, fmt.Errorf("%w: %d × %d with a pitch of %d bytes", errSize, width, height, pitch)
	}
	n := pitch*(height-1) + width*f.Bytes()
	return &Image{Format: f, Dims: 2, Layers: 1, Bytes: n,
		Levels: []Level{{Width: uint32(width), Height: uint32(height), Depth: 1, Pitch: pitch, Slice: pitch * height}}}, nil
}

// View returns an image of some levels and layers, both ends included, whose texels
// have another format of the same size. It has the memory of im, which is not changed.
func (im *Image) View(f Format, firstLevel, lastLevel, firstLayer, lastLayer uint32) (*Image, error) {
	if !f.Valid() || f.Bytes() != im.Format.Bytes() {
		return nil, fmt.Errorf("a texel of %d bytes cannot be seen as one of %d", im.Format.Bytes(), f.Bytes())
	}
	if firstLevel > lastLevel || uint64(lastLevel) >= uint64(len(im.Levels)) || firstLayer > lastLayer || lastLayer >= im.Layers {
		return nil, fmt.Errorf("levels %d to %d and layers %d to %d of an image with %d and %d", firstLevel, lastLevel, firstLayer, lastLayer, len(im.Levels), im.Layers)
	}
	v := *im
	v.Format, v.Layers, v.Levels = f, lastLayer-firstLayer+1, nil
	v.Cube = im.Cube && v.Layers%6 == 0 // else its layers are ordinary layers
	for _, l := range im.Levels[firstLevel : lastLevel+1] {
		l.Offset += uint64(firstLayer) * l.Slice
		v.Levels = append(v.Levels, l)
	}
	return &v, nil
}

// at returns the offset of a texel, which must be in the level.
func (im *Image) at(l *Level, x, y, z, layer uint64) uint64 {
	return l.Offset + (z+layer)*l.Slice + y*l.Pitch + x*im.Format.Bytes()
}
