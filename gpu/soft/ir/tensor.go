package ir

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// CopyTensor is cp.async.bulk.tensor and cp.reduce.async.bulk.tensor: each lane copies
// a box of a tensor, which a tensor map in memory describes, to or from shared memory
// (PTX ISA, "Data Movement and Conversion Instructions: Tensor copy").
type CopyTensor struct {
	Map     Access
	Coords  []Ref // of the box, dimension 0 first
	Offsets []Ref // of a load with a map of im2col: the place in the filter
	Im2col  bool
	Box     Access
	Barrier *Access // for a load, the mbarrier whose transactions it completes; nil for a store
	// Blocks is the mask of the blocks of the cluster that a load writes to, each at the
	// same address; None: that of the address.
	Blocks Ref
	Reduce string // operation of a store on the elements in memory; "" replaces them
}

// Name implements Op.
func (o *CopyTensor) Name() string {
	way := "st"
	if o.Barrier != nil {
		way = "ld"
	}
	if o.Im2col {
		way += ".im2col"
	}
	return fmt.Sprintf("%s.tensor.%dd.%s", way, len(o.Coords), o.Reduce)
}

// Registers implements Op.
func (o *CopyTensor) Registers() (results, sources []Ref) {
	sources = append(registers(o.Map.Base, o.Box.Base, o.Blocks), registers(o.Coords...)...)
	sources = append(sources, registers(o.Offsets...)...)
	if o.Barrier != nil {
		sources = append(sources, registers(o.Barrier.Base)...)
	}
	return nil, sources
}

// ReplaceTensorField replaces in each lane a field of a tensor map in memory
// (tensormap.replace).
type ReplaceTensorField struct {
	Access
	F     *ops.TensorField
	Index int // the dimension of the value
	S     Ref
}

// Name implements Op.
func (o *ReplaceTensorField) Name() string {
	return fmt.Sprintf("tensormap.%s[%d].%s", o.F.Name, o.Index, o.text())
}

// Registers implements Op.
func (o *ReplaceTensorField) Registers() (results, sources []Ref) {
	return nil, registers(o.Base, o.S)
}
