package ir

import "fmt"

// CopyTensor is cp.async.bulk.tensor and cp.reduce.async.bulk.tensor: each lane copies
// a box of a tensor, which a tensor map in memory describes, to shared memory or from
// there (PTX ISA, "Data Movement and Conversion Instructions: Tensor copy").
type CopyTensor struct {
	Map     Access
	Coords  []Ref // of the box, dimension 0 first
	Box     Access
	Barrier *Access // of a load: the mbarrier whose transactions it completes; nil: a store
	Reduce  string  // what a store does to the elements that are there; "": it replaces them
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
