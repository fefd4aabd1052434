package ops

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// TensorMap is a tensor in device memory and the box of it that a bulk tensor copy
// moves (PTX ISA, "Tensors"; CUDA driver API, cuTensorMapEncodeTiled and
// cuTensorMapEncodeIm2col). Dimension 0 is contiguous.
type TensorMap struct {
	Type    TensorType
	Rank    int
	Address uint64
	Dim     [5]uint64 // in elements
	Stride  [5]uint64 // bytes from element to element; for dimension 0 the size of an element
	Box     [5]uint32 // number of elements that a box spans
	Step    [5]uint32 // one element of that many is in the box
	Swizzle int       // 0: none; else rows of 32, 64 or 128 bytes are permuted
	NaN     bool      // elements outside of the tensor are NaN instead of zero
	Im2col  *Im2col   // nil for a map of boxes
}

// TensorType is a CUtensorMapDataType.
type TensorType uint8

var tensorTypes = [...]ptx.Type{
	ptx.U8, ptx.U16, ptx.U32, ptx.S32, ptx.U64, ptx.S64, ptx.F16, ptx.F32, ptx.F64, ptx.BF16, ptx.F32, ptx.TF32, ptx.TF32,
}

// Size returns the bytes of an element.
func (t TensorType) Size() uint64 { return uint64(tensorTypes[t].Size()) }

// Update returns the operation of a reduction on an element, or nil.
func (t TensorType) Update(op string) Update { return UpdateFor(op, tensorTypes[t]) }

// TensorMapBytes is the size of a tensor map, which is opaque to programs, and
// tensorMapKind its first word.
const (
	TensorMapBytes = 128
	tensorMapKind  = 0x314d5442 // "BTM1"
)

// errTensorMap is the error of bytes that cuTensorMapEncodeTiled has not written.
var errTensorMap = errors.New("bytes that are not a tensor map")

// Check returns an error unless cuTensorMapEncodeTiled accepts the map (CUDA driver
// API, "Tensor Map Object Management").
func (t *TensorMap) Check() error {
	switch {
	case int(t.Type) >= len(tensorTypes):
		return fmt.Errorf("type %d of elements, want less than %d", t.Type, len(tensorTypes))
	case t.Rank < 1 || t.Rank > 5:
		return fmt.Errorf("%d dimensions, want 1 to 5", t.Rank)
	case t.Address%16 != 0:
		return fmt.Errorf("address %#x, want a multiple of 16", t.Address)
	case t.Swizzle < 0 || t.Swizzle > 3:
		return fmt.Errorf("swizzle %d, want 0 to 3", t.Swizzle)
	case t.NaN && !tensorTypes[t.Type].Float():
		return fmt.Errorf("elements of type %d that are filled with NaN, want a floating-point type", t.Type)
	}
	if err := t.Im2col.check(t.Rank); err != nil {
		return err
	}
	for i := range t.Rank {
		if t.Dim[i] < 1 || t.Dim[i] > 1<<32 || t.Box[i] < 1 || t.Box[i] > 256 || t.Step[i] < 1 || t.Step[i] > 8 {
			return fmt.Errorf("dimension %d: size %d, box %d and step %d, want 1 to %d, 1 to 256 and 1 to 8", i, t.Dim[i], t.Box[i], t.Step[i], uint64(1)<<32)
		}
		if i > 0 && (t.Stride[i]%16 != 0 || t.Stride[i] >= 1<<40) {
			return fmt.Errorf("dimension %d: stride of %d bytes, want a multiple of 16 below %d", i, t.Stride[i], uint64(1)<<40)
		}
	}
	row := t.rowBytes()
	if row%16 != 0 || t.Swizzle > 0 && row > 16<<t.Swizzle {
		return fmt.Errorf("rows of a box of %d bytes with swizzle %d, want a multiple of 16 that the swizzle covers", row, t.Swizzle)
	}
	return nil
}

// Encode returns the map as bytes.
func (t *TensorMap) Encode() (b [TensorMapBytes]byte) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], tensorMapKind)
	b[4], b[5], b[6] = byte(t.Type), byte(t.Rank), byte(t.Swizzle)
	if t.NaN {
		b[7] = 1
	}
	le.PutUint64(b[8:], t.Address)
	for i := range t.Dim { // beyond the rank too, which a program may replace
		le.PutUint32(b[16+4*i:], uint32(t.Dim[i]-1))
		le.PutUint64(b[40+8*i:], t.Stride[i])
		b[80+i], b[85+i] = byte(t.Box[i]-1), byte(t.Step[i])
	}
	t.Im2col.encode(b[90:])
	return b
}

// DecodeTensorMap decodes a map and checks it, as programs can write to it.
func DecodeTensorMap(b []byte) (*TensorMap, error) {
	t, err := decodeTensorMap(b)
	if err != nil {
		return nil, err
	}
	return t, t.Check()
}

// decodeTensorMap decodes a map whose fields need not fit each other.
func decodeTensorMap(b []byte) (*TensorMap, error) {
	le := binary.LittleEndian
	if len(b) < TensorMapBytes || le.Uint32(b) != tensorMapKind || b[5] > 5 {
		return nil, errTensorMap
	}
	t := &TensorMap{Type: TensorType(b[4]), Rank: int(b[5]), Swizzle: int(b[6]), NaN: b[7] == 1, Address: le.Uint64(b[8:]), Im2col: decodeIm2col(b[90:])}
	for i := range t.Dim {
		t.Dim[i], t.Stride[i] = uint64(le.Uint32(b[16+4*i:]))+1, le.Uint64(b[40+8*i:])
		t.Box[i], t.Step[i] = uint32(b[80+i])+1, uint32(b[85+i])
	}
	return t, nil
}

// count returns how many elements of a dimension are in a box. Steps do not apply to
// dimension 0.
func (t *TensorMap) count(i int) uint64 {
	if i == 0 {
		return uint64(t.Box[0])
	}
	return uint64((t.Box[i] + t.Step[i] - 1) / t.Step[i])
}

func (t *TensorMap) rowBytes() uint64 { return uint64(t.Box[0]) * t.Type.Size() }

// BoxBytes returns the size of a box in shared memory.
func (t *TensorMap) BoxBytes() uint64 {
	n := t.rowBytes()
	if t.Im2col != nil {
		return n * uint64(t.Im2col.Pixels)
	}
	for i := 1; i < t.Rank; i++ {
		n *= t.count(i)
	}
	return n
}

// BoxRow is a row of a box along dimension 0. Its elements First to Last-1 are inside
// of the tensor.
type BoxRow struct {
	Offset      uint64 // bytes from the start of the box
	First, Last uint64
	Address     uint64 // device address of element First
}

// Rows calls row with each row of the box at some coordinates, until it returns an
// error. The offsets are those of an instruction on a map of im2col.
func (t *TensorMap) Rows(at [5]int32, offsets [3]uint16, row func(BoxRow) error) error {
	if t.Im2col != nil {
		return t.pixels(at, offsets, row)
	}
	for n := range t.BoxBytes() / t.rowBytes() {
		place, rest := [5]int64{int64(at[0])}, n
		for i := 1; i < t.Rank; i++ {
			place[i] = int64(at[i]) + int64(rest%t.count(i)*uint64(t.Step[i]))
			rest /= t.count(i)
		}
		if err := row(t.line(n, place)); err != nil {
			return err
		}
	}
	return nil
}

// line returns row number n of a box, which begins at an element.
func (t *TensorMap) line(n uint64, at [5]int64) BoxRow {
	r := BoxRow{Offset: n * t.rowBytes(), Address: t.Address}
	for i := 1; i < t.Rank; i++ {
		if at[i] < 0 || uint64(at[i]) >= t.Dim[i] {
			return r
		}
		r.Address += uint64(at[i]) * t.Stride[i]
	}
	r.First = uint64(min(max(-at[0], 0), int64(t.Box[0])))
	r.Last = max(r.First, uint64(min(max(int64(t.Dim[0])-at[0], 0), int64(t.Box[0]))))
	r.Address += uint64(at[0]+int64(r.First)) * t.Type.Size()
	return r
}

// Place returns the address of a byte of a box that begins at an address of shared
// memory. Swizzling permutes units of 16 bytes.
func (t *TensorMap) Place(box, offset uint64) uint64 {
	at := box + offset
	return at ^ at>>7&(1<<t.Swizzle-1)<<4
}

// Outside fills elements that are outside of the tensor.
func (t *TensorMap) Outside(b []byte) {
	clear(b)
	if !t.NaN {
		return
	}
	size := int(t.Type.Size())
	if size == 8 {
		for ; len(b) > 0; b = b[8:] {
			binary.LittleEndian.PutUint64(b, nan64)
		}
		return
	}
	for i := range b { // the NaNs of f16, bf16 and f32 that instructions return
		if b[i] = 0xff; i%size == size-1 {
			b[i] = 0x7f
		}
	}
}

// Loaded changes elements as their type requires on a load: FLOAT32_FTZ and
// TFLOAT32_FTZ flush subnormal numbers.
func (t *TensorMap) Loaded(b []byte) {
	if t.Type != 10 && t.Type != 12 {
		return
	}
	for ; len(b) >= 4; b = b[4:] {
		binary.LittleEndian.PutUint32(b, flush(binary.LittleEndian.Uint32(b)))
	}
}
