package ir

import "github.com/basalt-gpu/basalt/gpu/soft/ops"

// CopyBulk is cp.async.bulk and cp.reduce.async.bulk: each lane copies a stretch of
// bytes, or combines it with what is there (PTX ISA, "Data Movement and Conversion
// Instructions: Asynchronous copy"). It is done at once, like CopyAsync.
type CopyBulk struct {
	To, From Access
	Bytes    Ref
	Barrier  *Access    // the mbarrier whose transactions it completes; nil: none
	F        ops.Update // of elements of To.Size bytes; nil: a copy
	What     string     // F's operation and type
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
	sources = registers(o.To.Base, o.From.Base, o.Bytes)
	if o.Barrier != nil {
		sources = append(sources, registers(o.Barrier.Base)...)
	}
	return nil, sources
}
