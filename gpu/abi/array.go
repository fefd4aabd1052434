package abi

// These are the bits of ArrayCopy.Arrays.
const (
	ArrayCopyDst = 1 // the destination is an array
	ArrayCopySrc = 2 // the source is an array
)

// Flags of ArrayCreate (cuda.h, CUDA_ARRAY3D_…), those that a vGPU supports.
const (
	ArrayLayered = 1
	ArraySurface = 2
	ArrayCubemap = 4
	ArrayGather  = 8
	arrayFlags   = ArrayLayered | ArraySurface | ArrayCubemap | ArrayGather
)

// These limits of arrays prevent the sum of their bytes from overflowing. A device's
// own limits are lower.
const (
	maxArraySide   = 1 << 17
	maxArrayDepth  = 1 << 14
	maxArrayLevels = 18
)

// ChannelBytes returns the size of one channel of a CUarray_format, or 0 if vGPUs do not
// support the format.
func ChannelBytes(format uint32) uint64 {
	switch format {
	case 0x01, 0x08: // UNSIGNED_INT8, SIGNED_INT8
		return 1
	case 0x02, 0x09, 0x10: // UNSIGNED_INT16, SIGNED_INT16, HALF
		return 2
	case 0x03, 0x0a, 0x20: // UNSIGNED_INT32, SIGNED_INT32, FLOAT
		return 4
	}
	return 0
}

// Check returns ErrInvalidValue for a description that is not valid on any
// device.
func (a *ArrayCreate) Check() error {
	channels := a.Channels == 1 || a.Channels == 2 || a.Channels == 4
	if !channels || ChannelBytes(a.Format) == 0 || a.Flags&^arrayFlags != 0 || a.Width == 0 || a.Width > maxArraySide ||
		a.Height > maxArraySide || a.Depth > maxArrayDepth || a.Levels == 0 || a.Levels > maxArrayLevels {
		return ErrInvalidValue
	}
	return nil
}

// layered reports whether Depth counts layers, which do not shrink from level to level.
func (a *ArrayCreate) layered() bool { return a.Flags&(ArrayLayered|ArrayCubemap) != 0 }

// Extent returns a level's bytes in a row, its rows, and its depths or layers.
func (a *ArrayCreate) Extent(level uint32) [3]uint64 {
	half := func(n uint64) uint64 { return max(1, n>>min(level, 63)) }
	depth := max(1, a.Depth)
	if !a.layered() {
		depth = half(depth)
	}
	return [3]uint64{half(a.Width) * uint64(a.Channels) * ChannelBytes(a.Format), half(max(1, a.Height)), depth}
}

// Bytes returns the size of the array: the rows of all its levels, in units of 16
// bytes.
func (a *ArrayCreate) Bytes() (sum uint64) {
	for level := range a.Levels {
		e := a.Extent(level)
		sum += (e[0] + 15) &^ 15 * e[1] * e[2]
	}
	return sum
}

// Holds reports whether a box is inside a level.
func (a *ArrayCreate) Holds(level uint32, at, size [3]uint64) bool {
	if level >= a.Levels {
		return false
	}
	for i, most := range a.Extent(level) {
		if at[i] > most || size[i] > most-at[i] {
			return false
		}
	}
	return true
}

// Check returns ErrInvalidValue for a copy without a direction, or whose device
// memory is not valid on any device.
func (a *ArrayCopy) Check() error {
	const maxPitch, maxRows = 1 << 32, 1 << 17
	if a.Arrays == 0 || a.Arrays > ArrayCopyDst|ArrayCopySrc || a.Pitch > maxPitch || a.Rows > maxRows ||
		a.Size[0] > 1<<40 || a.Size[1] > maxArraySide || a.Size[2] > maxArrayDepth {
		return ErrInvalidValue
	}
	if a.Arrays != ArrayCopyDst|ArrayCopySrc && (a.Size[1] > 1 && a.Pitch < a.Size[0] || a.Size[2] > 1 && a.Rows < a.Size[1]) {
		return ErrInvalidValue
	}
	return nil
}

// Empty reports whether there is nothing to copy.
func (a *ArrayCopy) Empty() bool { return a.Size[0] == 0 || a.Size[1] == 0 || a.Size[2] == 0 }

// Span returns the bytes of device memory from the first to the last that a copy
// accesses; the copy must not be empty.
func (a *ArrayCopy) Span() uint64 {
	return (a.Size[2]-1)*a.Rows*a.Pitch + (a.Size[1]-1)*a.Pitch + a.Size[0]
}

// CUresourcetype (cuda.h).
const (
	ResourceArray     = 0
	ResourceMipmapped = 1
	ResourceLinear    = 2
	ResourcePitch2D   = 3
)

// Flags of TextureCreate (cuda.h, CU_TRSF_…).
const (
	TextureReadAsInteger   = 0x01
	TextureNormalized      = 0x02
	TextureSRGB            = 0x10
	TextureNoTrilinear     = 0x20
	TextureSeamlessCubemap = 0x40
	textureFlags           = TextureReadAsInteger | TextureNormalized | TextureSRGB | TextureNoTrilinear | TextureSeamlessCubemap
	maxResourceViewFormat  = 0x22
	maxAddressMode         = 3
	maxAnisotropy          = 16
)

// Check returns ErrInvalidValue for an invalid description of a texture or a
// surface.
func (a *TextureCreate) Check() error {
	ok := a.Resource <= ResourcePitch2D && a.Surface <= 1 && a.Flags&^textureFlags == 0 && a.Filter <= 1 && a.MipFilter <= 1 &&
		a.Anisotropy <= maxAnisotropy && a.View <= maxResourceViewFormat && a.FirstLevel <= a.LastLevel && a.FirstLayer <= a.LastLayer
	for _, mode := range a.Address {
		ok = ok && mode <= maxAddressMode
	}
	if a.Surface == 1 {
		plain := TextureCreate{Ctx: a.Ctx, Texture: a.Texture, Base: a.Base, Level: a.Level, Surface: 1}
		ok = ok && *a == plain // of an array, and without a sampler
	}
	if a.OnArray() {
		ok = ok && a.Width|a.Height|a.Pitch == 0 && a.Format|a.Channels == 0
	} else {
		ok = ok && a.View == 0 && a.Level == 0 && ChannelBytes(a.Format) != 0 && (a.Channels == 1 || a.Channels == 2 || a.Channels == 4) &&
			a.Width > 0 && a.Width <= 1<<31 && a.Height <= maxArraySide && a.Pitch <= 1<<32
	}
	if !ok {
		return ErrInvalidValue
	}
	return nil
}

// OnArray reports whether Base is an array.
func (a *TextureCreate) OnArray() bool { return a.Resource <= ResourceMipmapped }

// Span returns the bytes of device memory that a checked texture reads.
func (a *TextureCreate) Span() uint64 {
	row := a.Width * uint64(a.Channels) * ChannelBytes(a.Format)
	if a.Resource == ResourcePitch2D && a.Height > 1 {
		return (a.Height-1)*a.Pitch + row
	}
	return row
}
