package texture

// Property is a property that txq and suq return (PTX ISA, "Texture Instructions: txq",
// "Surface Instructions: suq").
type Property uint8

// The properties.
const (
	Width Property = iota
	Height
	Depth
	LayerCount
	LevelCount
	SampleCount
	DataType // numbered as in OpenCL
	Order    // numbered as in OpenCL
	NormalizedCoordinates
)

// Of returns a property of a level. Levels are counted from the first of the image;
// beyond the last it is that of the last.
func (p Property) Of(t *Texture, level uint32) uint32 {
	l := &t.Levels[min(uint64(level), uint64(len(t.Levels)-1))]
	switch p {
	case Width:
		return l.Width
	case Height:
		return l.Height
	case Depth:
		return l.Depth
	case LayerCount:
		if t.Cube {
			return t.Layers / 6
		}
		return t.Layers
	case LevelCount:
		return uint32(len(t.Levels))
	case SampleCount:
		return 1
	case DataType:
		return t.dataType()
	case Order:
		return [5]uint32{1: 0x10b0, 2: 0x10b2, 4: 0x10b5}[t.Format.Channels]
	case NormalizedCoordinates:
		if t.Normalized {
			return 1
		}
	}
	return 0
}

// dataType returns OpenCL's number of a channel's type (PTX ISA, "Channel Data Type and
// Channel Order Fields").
func (t *Texture) dataType() uint32 {
	step := uint32(0) // 8, 16, 32 bits
	for bits := t.Format.Bits; bits > 8; bits /= 2 {
		step++
	}
	switch {
	case t.Format.Kind == Float:
		return 0x10dd - 1 + step
	case !t.raw() && t.Format.Kind == Signed:
		return 0x10d0 + step
	case !t.raw():
		return 0x10d2 + step
	case t.Format.Kind == Signed:
		return 0x10d7 + step
	}
	return 0x10da + step
}
