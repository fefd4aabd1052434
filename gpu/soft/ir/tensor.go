package ir

import "fmt"

// CopyTensor is cp.async.bulk.tensor and cp.reduce.async.bulk.tensor: each lane copies
// a box of a tensor, which a tensor map in memory describes, to or from shared memory
// (PTX ISA, "Data Movement and Conversion Instructions: Tensor copy").
type CopyTensor struct {
	Map     Access
	Coords  []Ref // of the box, dimension 0 first
	Box     Access
	Barrier *Access // for a load, the mbarrier whose transactions it completes; nil for a store
	// Multicast: it writes to the blocks of the cluster that a mask names.
	Multicast bool
	Reduce    string // operation of a store on the elements in memory; "" replaces them
}

// Name implements Op.
func (o *CopyTensor) Name() string {
	way := "st"
	if o.Barrier != nil {
		way = "ld"
	}
	return fmt.Sprintf("%s.tensor.%dd.%s", way, len(o.Coords), o.Reduce)
}

// Registers implements Op.
func (o *CopyTensor) Registers() (results, sources []Ref) {
	sources = append(registers(o.Map.Base, o.Box.Base), registers(o.Coords...)...)
	if o.Barrier != nil {
		sources = append(sources, registers(o.Barrier.Base)...)
	}
	return nil, sources
}
