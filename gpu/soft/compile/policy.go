package compile

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// A cache policy (PTX ISA, "Cache Eviction Priority Hints") is a hint for a cache that
// the soft GPU does not have.

// withoutPolicy returns a memory instruction without its policy, the last operand.
func (c *compiler) withoutPolicy(in *ptx.Inst) (*ptx.Inst, error) {
	i := slices.Index(in.Mods, "L2::cache_hint")
	if i < 0 || len(in.Args) == 0 {
		return in, nil
	}
	last := len(in.Args) - 1
	if _, err := c.source(&in.Args[last], ir.Class64, ptx.B64); err != nil {
		return nil, err
	}
	plain := *in
	plain.Mods, plain.Args = slices.Delete(slices.Clone(in.Mods), i, i+1), in.Args[:last]
	return &plain, nil
}

// createPolicy compiles createpolicy. All policies have the same value.
func (c *compiler) createPolicy(in *ptx.Inst) ([]ir.Op, error) {
	if len(in.Args) == 0 {
		return nil, fewOperands(in, 0, 1)
	}
	d, err := c.dest(&in.Args[0], ir.Class64)
	return []ir.Op{copied(d, c.constant(ir.Class64, 0))}, err
}
