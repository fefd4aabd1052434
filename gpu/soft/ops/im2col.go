package ops

import (
	"encoding/binary"
	"fmt"
)

// Im2col is the mode of a tensor map in which a copy moves pixels of images, one row of
// the box each (PTX ISA, "im2col mode"). The dimensions of the tensor are the channels,
// one to three dimensions of an image, and the images. The channels of a pixel that are
// moved are Box[0] of the map.
type Im2col struct {
	Pixels uint32
	// Lower and Upper are the corners of the box in which the filter's corner moves, by
	// dimension of an image: from Lower to the last pixel plus Upper.
	Lower, Upper [3]int32
}

// maxPixels is the maximum number of pixels of a copy (CUDA driver API,
// cuTensorMapEncodeIm2col).
const maxPixels = 1024

// check returns an error unless cuTensorMapEncodeIm2col accepts the corners for a number
// of dimensions of the tensor.
func (m *Im2col) check(rank int) error {
	if m == nil {
		return nil
	}
	if rank < 3 {
		return fmt.Errorf("%d dimensions of an im2col map, want 3 to 5", rank)
	}
	if m.Pixels < 1 || m.Pixels > maxPixels {
		return fmt.Errorf("%d pixels per column, want 1 to %d", m.Pixels, maxPixels)
	}
	most := [3]int32{1 << 15, 1 << 7, 1 << 4}[rank-3]
	for i := range rank - 2 {
		for _, v := range []int32{m.Lower[i], m.Upper[i]} {
			if v < -most || v >= most {
				return fmt.Errorf("corner %d of dimension %d, want %d to %d", v, i+1, -most, most-1)
			}
		}
	}
	return nil
}

// encode writes the mode to the end of a map.
func (m *Im2col) encode(b []byte) {
	if m == nil {
		return
	}
	le := binary.LittleEndian
	b[0] = 1
	le.PutUint16(b[2:], uint16(m.Pixels))
	for i := range m.Lower {
		le.PutUint16(b[4+2*i:], uint16(m.Lower[i]))
		le.PutUint16(b[10+2*i:], uint16(m.Upper[i]))
	}
}

// decodeIm2col reads what encode has written, or returns nil.
func decodeIm2col(b []byte) *Im2col {
	if b[0] == 0 {
		return nil
	}
	le := binary.LittleEndian
	m := &Im2col{Pixels: uint32(le.Uint16(b[2:]))}
	for i := range m.Lower {
		m.Lower[i], m.Upper[i] = int32(int16(le.Uint16(b[4+2*i:]))), int32(int16(le.Uint16(b[10+2*i:])))
	}
	return m
}

// pixels is Rows of a map of im2col. The filter's corner moves along the dimensions of
// an image, in steps, and on to the next image; the offsets are the place in the filter.
func (t *TensorMap) pixels(at [5]int32, offsets [3]uint16, row func(BoxRow) error) error {
	images := t.Rank - 1
	var corner [5]int64
	for i, x := range at {
		corner[i] = int64(x)
	}
	for n := range uint64(t.Im2col.Pixels) {
		place := corner
		for i := 1; i < images; i++ {
			place[i] += int64(offsets[i-1])
		}
		if err := row(t.line(n, place)); err != nil {
			return err
		}
		i := 1
		for ; i < images; i++ {
			if corner[i] += int64(t.Step[i]); corner[i] < int64(t.Dim[i])+int64(t.Im2col.Upper[i-1]) {
				break
			}
			corner[i] = int64(t.Im2col.Lower[i-1])
		}
		if i == images {
			corner[images]++
		}
	}
	return nil
}
