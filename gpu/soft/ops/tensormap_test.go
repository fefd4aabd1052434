package ops

import (
	"bytes"
	"testing"
)

// FuzzTensorMap checks that any bytes are either refused or a map whose rows are inside
// of its box and of the dimensions that it names, and that replacing a field of them
// leaves bytes that are decoded alike.
func FuzzTensorMap(f *testing.F) {
	boxes := TensorMap{Type: 6, Rank: 3, Address: 1 << 20, Dim: [5]uint64{64, 9, 7}, Stride: [5]uint64{0, 128, 1152}, Box: [5]uint32{32, 3, 2, 1, 1}, Step: [5]uint32{1, 1, 2, 1, 1}, Swizzle: 2}
	columns := boxes
	columns.Rank, columns.Dim[3], columns.Stride[3], columns.Im2col = 4, 2, 8064, &Im2col{Pixels: 40, Lower: [3]int32{-1, -2}, Upper: [3]int32{-1, 1}}
	for _, t := range []*TensorMap{&boxes, &columns} {
		b := t.Encode()
		f.Add(b[:], int32(0), uint16(1), "rank", 0, uint64(2))
		f.Add(b[:], int32(-3), uint16(0), "box_dim", 4, uint64(256))
		f.Add(b[:], int32(1<<31-1), uint16(1<<16-1), "global_stride", 3, uint64(1<<63))
	}
	f.Fuzz(func(t *testing.T, b []byte, at int32, offset uint16, field string, i int, value uint64) {
		if m, err := DecodeTensorMap(b); err == nil {
			if b := m.Encode(); !bytes.Equal(decoded(t, b[:]), b[:]) {
				t.Errorf("map %x is encoded as %x after it is decoded", b, decoded(t, b[:]))
			}
			checkRows(t, m, at, offset)
		}
		x := TensorFieldByName(field)
		if x == nil || i < 0 || i >= x.Dimensions() || x.Values > 0 && value >= x.Values {
			return
		}
		before := bytes.Clone(b)
		if err := x.Replace(b, i, value); err != nil && !bytes.Equal(b, before) {
			t.Errorf("replacing field %s failed with %v and changed the map", field, err)
		}
	})
}

func decoded(t *testing.T, b []byte) []byte {
	m, err := DecodeTensorMap(b)
	if err != nil {
		t.Fatalf("decode an encoded map: %v", err)
	}
	again := m.Encode()
	return again[:]
}

func checkRows(t *testing.T, m *TensorMap, at int32, offset uint16) {
	if m.BoxBytes() > 1<<20 {
		return // valid, and slow
	}
	n := uint64(0)
	err := m.Rows([5]int32{at, at, at, at, at}, [3]uint16{offset, offset, offset}, func(r BoxRow) error {
		if r.Offset != n || r.First > r.Last || r.Last > uint64(m.Box[0]) {
			t.Fatalf("row %+v of a box of %+v, want offset %d and elements in the box", r, m, n)
		}
		n += m.rowBytes()
		return nil
	})
	if err != nil || n != m.BoxBytes() {
		t.Fatalf("rows of %d bytes, error %v, want the %d of the box", n, err, m.BoxBytes())
	}
}
