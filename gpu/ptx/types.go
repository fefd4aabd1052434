package ptx

// Type is a fundamental type (PTX ISA, "Types").
type Type uint8

// The types. Packed types count as one register of their full width.
const (
	NoType Type = iota
	B8
	B16
	B32
	B64
	B128
	U8
	U16
	U32
	U64
	S8
	S16
	S32
	S64
	F16
	F16x2
	BF16
	BF16x2
	TF32
	F32
	F64
	Pred
	E4M3x2
	E5M2x2
	U16x2
	S16x2
	TexRef // opaque types: a variable of one is bound to an image or a sampler
	SamplerRef
	SurfRef
)

var typeNames = map[string]Type{
	"b8": B8, "b16": B16, "b32": B32, "b64": B64, "b128": B128,
	"u8": U8, "u16": U16, "u32": U32, "u64": U64,
	"s8": S8, "s16": S16, "s32": S32, "s64": S64,
	"f16": F16, "f16x2": F16x2, "bf16": BF16, "bf16x2": BF16x2, "tf32": TF32,
	"f32": F32, "f64": F64, "pred": Pred, "e4m3x2": E4M3x2, "e5m2x2": E5M2x2, "u16x2": U16x2, "s16x2": S16x2,
	"texref": TexRef, "samplerref": SamplerRef, "surfref": SurfRef,
}

// TypeByName returns the type of a modifier, given without its dot.
func TypeByName(s string) (Type, bool) { t, ok := typeNames[s]; return t, ok }

func (t Type) String() string {
	for s, v := range typeNames {
		if v == t {
			return s
		}
	}
	return "none"
}

// Size returns the size in bytes; 1 for a predicate.
func (t Type) Size() uint32 {
	switch t {
	case B8, U8, S8, Pred:
		return 1
	case B16, U16, S16, F16, BF16, E4M3x2, E5M2x2:
		return 2
	case B32, U32, S32, F32, F16x2, BF16x2, TF32, U16x2, S16x2:
		return 4
	case B64, U64, S64, F64, TexRef, SamplerRef, SurfRef:
		return 8
	case B128:
		return 16
	}
	return 0
}

// Float reports whether values are IEEE (or bfloat) numbers.
func (t Type) Float() bool { return t >= F16 && t <= F64 }

// Opaque reports whether programs cannot access the value of a variable (PTX ISA,
// "Texture Sampler and Surface Types").
func (t Type) Opaque() bool { return t >= TexRef && t <= SurfRef }

// Signed reports whether values are two's complement integers.
func (t Type) Signed() bool { return t >= S8 && t <= S64 }

// Space is a state space (PTX ISA, "State Spaces").
type Space uint8

// These are the state spaces that can contain variables.
const (
	Generic Space = iota
	Register
	Param
	Global
	Const
	Shared
	Local
)

var spaceNames = map[string]Space{
	"reg": Register, "param": Param, "global": Global, "const": Const,
	"shared": Shared, "local": Local,
}

// SpaceByName returns the space of a modifier, given without its dot.
func SpaceByName(s string) (Space, bool) { v, ok := spaceNames[s]; return v, ok }

func (s Space) String() string {
	for n, v := range spaceNames {
		if v == s {
			return n
		}
	}
	return "generic"
}
