package device

import (
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// firstWithTensors is the first compute capability with tensor maps.
const firstWithTensors = 90

// TensorMapEncodeTiled implements worker.Context. Interleaved tensors are not
// supported.
func (c *Context) TensorMapEncodeTiled(dataType int32, rank uint32, address uint64, dim, strides [5]uint64, box, steps [5]uint32, interleave, swizzle, _, fill int32) (abi.TensorMap, error) {
	if c.d.o.Capability < firstWithTensors || interleave != 0 {
		return abi.TensorMap{}, abi.ErrNotSupported
	}
	if dataType < 0 || dataType > 255 || rank > 5 || fill < 0 || fill > 1 {
		return abi.TensorMap{}, abi.ErrInvalidValue
	}
	t := ops.TensorMap{Type: ops.TensorType(dataType), Rank: int(rank), Address: address, Dim: dim, Box: box, Step: steps, Swizzle: int(swizzle), NaN: fill == 1}
	copy(t.Stride[1:], strides[:])
	if err := t.Check(); err != nil {
		return abi.TensorMap{}, abi.ErrInvalidValue
	}
	return abi.DecodeTensorMap(t.Encode()), nil
}

// TensorMapEncodeIm2col implements worker.Context. Interleaved tensors are not
// supported.
func (c *Context) TensorMapEncodeIm2col(dataType int32, rank uint32, address uint64, dim, strides [5]uint64, lower, upper [5]int32, channels, pixels uint32, steps [5]uint32, interleave, swizzle, _, fill int32) (abi.TensorMap, error) {
	if c.d.o.Capability < firstWithTensors || interleave != 0 {
		return abi.TensorMap{}, abi.ErrNotSupported
	}
	if dataType < 0 || dataType > 255 || rank < 3 || rank > 5 || fill < 0 || fill > 1 {
		return abi.TensorMap{}, abi.ErrInvalidValue
	}
	// The box of a map of im2col has the channels of a pixel, and one step of the others.
	t := ops.TensorMap{
		Type: ops.TensorType(dataType), Rank: int(rank), Address: address, Dim: dim, Box: [5]uint32{channels, 1, 1, 1, 1}, Step: steps, Swizzle: int(swizzle), NaN: fill == 1,
		Im2col: &ops.Im2col{Pixels: pixels, Lower: [3]int32(lower[:3]), Upper: [3]int32(upper[:3])},
	}
	copy(t.Stride[1:], strides[:])
	if err := t.Check(); err != nil {
		return abi.TensorMap{}, abi.ErrInvalidValue
	}
	return abi.DecodeTensorMap(t.Encode()), nil
}

// TensorMapReplaceAddress implements worker.Context.
func (c *Context) TensorMapReplaceAddress(m abi.TensorMap, address uint64) (abi.TensorMap, error) {
	if c.d.o.Capability < firstWithTensors {
		return m, abi.ErrNotSupported
	}
	bytes := m.Bytes()
	t, err := ops.DecodeTensorMap(bytes[:])
	if err != nil {
		return m, abi.ErrInvalidValue
	}
	t.Address = address
	if err := t.Check(); err != nil {
		return m, abi.ErrInvalidValue
	}
	return abi.DecodeTensorMap(t.Encode()), nil
}
