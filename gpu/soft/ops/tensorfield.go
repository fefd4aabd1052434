package ops

import "fmt"

// TensorField is a field of a tensor map that kernels can replace (PTX ISA,
// "tensormap.replace").
type TensorField struct {
	Name string
	Bits int  // of the new value
	Each bool // it has a value for each dimension; the instruction has its number
	// Values is the number of values of a field whose new value is a constant, else 0.
	Values uint64
}

// tensorFields has these fields. The maps of a GPU have more: the layout of interleaved
// tensors, and what began with later compute capabilities.
var tensorFields = []TensorField{
	{Name: "global_address", Bits: 64}, {Name: "rank", Bits: 32},
	{Name: "box_dim", Bits: 32, Each: true}, {Name: "global_dim", Bits: 32, Each: true},
	{Name: "global_stride", Bits: 64, Each: true}, {Name: "element_stride", Bits: 32, Each: true},
	{Name: "elemtype", Bits: 32, Values: 13}, {Name: "interleave_layout", Bits: 32, Values: 1},
	{Name: "swizzle_mode", Bits: 32, Values: 4}, {Name: "fill_mode", Bits: 32, Values: 2},
}

// TensorFieldByName returns a field, or nil.
func TensorFieldByName(name string) *TensorField {
	for i := range tensorFields {
		if tensorFields[i].Name == name {
			return &tensorFields[i]
		}
	}
	return nil
}

// tensorTypeOf has the types by the numbers of the instruction, which are not those of
// CUtensorMapDataType (PTX ISA, table "Tensormap new_val validity").
var tensorTypeOf = [...]TensorType{0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12}

// Dimensions returns the number of dimensions that the field has a value for, or 1.
// Strides begin with that of dimension 1.
func (f *TensorField) Dimensions() int {
	switch {
	case f.Name == "global_stride":
		return 4
	case f.Each:
		return 5
	}
	return 1
}

// Replace changes the field of a map in memory, for dimension number i. It returns an
// error for bytes that are no map and for a value that a map cannot have. Whether the
// fields fit each other is checked where the map is used, as a kernel replaces several.
func (f *TensorField) Replace(b []byte, i int, v uint64) error {
	t, err := decodeTensorMap(b)
	if err != nil {
		return err
	}
	low, high := uint64(0), ^uint64(0)
	switch f.Name {
	case "global_address":
		t.Address = v
	case "rank":
		t.Rank, high = int(v&7)+1, 4
	case "box_dim":
		t.Box[i], low, high = uint32(v), 1, 256
	case "global_dim":
		t.Dim[i], low, high = v, 1, 1<<32-1
	case "global_stride":
		t.Stride[i+1] = v
	case "element_stride":
		t.Step[i], low, high = uint32(v), 1, 8
	case "elemtype":
		t.Type, high = tensorTypeOf[v], f.Values-1
	case "swizzle_mode":
		t.Swizzle, high = int(v), f.Values-1
	case "fill_mode":
		t.NaN, high = v == 1, f.Values-1
	}
	if v < low || v > high {
		return fmt.Errorf("value %d of field .%s, want %d to %d", v, f.Name, low, high)
	}
	bytes := t.Encode()
	copy(b, bytes[:])
	return nil
}
