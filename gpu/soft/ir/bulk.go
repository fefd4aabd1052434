package ir

import "github.com/basalt-gpu/basalt/gpu/soft/ops"

// CopyBulk is cp.async.bulk and cp.reduce.async.bulk: each lane copies a range of
// bytes, or combines it with the destination (PTX ISA, "Data Movement and Conversion
// Instructions: Asynchronous copy"). It is executed at once, like CopyAsync.
type CopyBulk struct {
	To, From Access
	Bytes    Ref
	Barrier  *Access    // the mbarrier whose transactions it completes, or nil
	F        ops.Update // for elements of To.Size bytes; nil for a copy
	What     string     // the operation and type of F
	// Blocks is the mask of the blocks of the cluster that it writes to, each at the same
	// address; None: that of the address.
	Blocks Ref
}

// Name implements Op.
func (o *CopyBulk) Name() string {
	name := "copy.bulk."
	if o.F != nil {
		name = "reduce.bulk." + o.What + "."
	}
	if o.Barrier != nil {
		name += "mbarrier."
	}
	return name + o.To.text() + "." + o.From.text()
}

// Registers implements Op.
func (o *CopyBulk) Registers() (results, sources []Ref) {
	sources = registers(o.To.Base, o.From.Base, o.Bytes, o.Blocks)
	if o.Barrier != nil {
		sources = append(sources, registers(o.Barrier.Base)...)
	}
	return nil, sources
}
