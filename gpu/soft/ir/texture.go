package ir

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
	"github.com/basalt-gpu/basalt/gpu/soft/texture"
)

// BoundObject is set in the number of an object that is a reference of the program's
// module; the other bits are its index. The launch has the objects that are bound.
const BoundObject = 1 << 63

// Packing is the format of the four channels of a fetch in registers.
type Packing uint8

// The packings.
const (
	Words     Packing = iota
	Halves            // of 16 bits, one per register
	HalfPairs         // two halves per register
)

// Fetch is tex or tld4. Operands that are absent are None.
type Fetch struct {
	Object   Ref
	Sampler  Ref   // an object whose sampler is used instead, or None
	D        []Ref // the channels, None for those that are not used
	Packing  Packing
	Resident Ref // the predicate that reports whether the texels are resident
	At       [3]Ref
	Whole    bool // At has integers
	Cube     bool
	Layer    Ref
	Offset   [3]Ref
	Detail   texture.Detail
	Level    Ref
	DX, DY   [3]Ref
	Gather   bool
	Channel  int // of a gather
}

// Name implements Op.
func (o *Fetch) Name() string {
	name := "fetch"
	if o.Gather {
		name = fmt.Sprintf("gather.%d", o.Channel)
	}
	if o.Cube {
		name += ".cube"
	}
	if o.Whole {
		name += ".whole"
	}
	return name + [...]string{"", ".level", ".gradient"}[o.Detail] + [...]string{"", ".f16", ".f16x2"}[o.Packing]
}

// Registers implements Op.
func (o *Fetch) Registers() (results, sources []Ref) {
	sources = []Ref{o.Object, o.Sampler, o.Layer, o.Level}
	for _, three := range [][3]Ref{o.At, o.Offset, o.DX, o.DY} {
		sources = append(sources, three[:]...)
	}
	return registers(append([]Ref{o.Resident}, o.D...)...), registers(sources...)
}

// TextureProperty is txq, or suq with Surface.
type TextureProperty struct {
	D, Object, Level Ref
	Property         texture.Property
	Surface          bool
}

// Name implements Op.
func (o *TextureProperty) Name() string { return fmt.Sprintf("texture.property.%d", o.Property) }

// Registers implements Op.
func (o *TextureProperty) Registers() (results, sources []Ref) {
	return registers(o.D), registers(o.Object, o.Level)
}

// IsTexture is istypep: it reports whether a value is a texture object, or a surface
// object.
type IsTexture struct {
	D, Object Ref
	Surface   bool
}

// Name implements Op.
func (o *IsTexture) Name() string {
	return map[bool]string{true: "is.surface", false: "is.texture"}[o.Surface]
}

// Registers implements Op.
func (o *IsTexture) Registers() (results, sources []Ref) {
	return registers(o.D), registers(o.Object)
}

// Surface has the coordinates of a surface instruction.
type Surface struct {
	Object  Ref
	At      [3]Ref
	Layer   Ref
	Outside texture.Outside
	Texels  bool   // the first of At counts texels instead of bytes
	Size    uint64 // bytes of an element
}

func (o *Surface) text() string {
	return [...]string{"trap", "clamp", "zero"}[o.Outside] + fmt.Sprintf(".b%d", 8*o.Size) + map[bool]string{true: ".texels"}[o.Texels]
}

func (o *Surface) place() []Ref { return registers(o.Object, o.At[0], o.At[1], o.At[2], o.Layer) }

// SurfaceLoad is suld.b, with a register for each element.
type SurfaceLoad struct {
	Surface
	D []Ref
}

// Name implements Op.
func (o *SurfaceLoad) Name() string { return "surface.ld." + o.text() }

// Registers implements Op.
func (o *SurfaceLoad) Registers() (results, sources []Ref) { return registers(o.D...), o.place() }

// SurfaceStore is sust, of elements or of a texel whose channels are converted.
type SurfaceStore struct {
	Surface
	S []Ref
}

// Name implements Op.
func (o *SurfaceStore) Name() string { return "surface.st." + o.text() }

// Registers implements Op.
func (o *SurfaceStore) Registers() (results, sources []Ref) {
	return nil, append(o.place(), registers(o.S...)...)
}

// SurfaceReduce is sured. Signed is the operation on texels with signed channels.
type SurfaceReduce struct {
	Surface
	S         Ref
	F, Signed ops.Update
	What      string // the operation and its type
}

// Name implements Op.
func (o *SurfaceReduce) Name() string { return "surface.red." + o.What + "." + o.text() }

// Registers implements Op.
func (o *SurfaceReduce) Registers() (results, sources []Ref) {
	return nil, append(o.place(), registers(o.S)...)
}
