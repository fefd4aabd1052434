package compile

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// bulkForm has the qualifiers of a bulk copy after "async.bulk".
type bulkForm struct {
	spaces    []string // of the destination and the source: "shared", "global"
	completes string   // "mbarrier", "bulk_group"
	multicast bool     // to the blocks of a cluster: an operand with a mask follows
	rest      []string
}

func bulkFormOf(mods []string) (f bulkForm) {
	for _, m := range mods {
		switch {
		case sharedSpace(m):
			f.spaces = append(f.spaces, "shared")
		case m == "global":
			f.spaces = append(f.spaces, m)
		case m == "mbarrier::complete_tx::bytes":
			f.completes = "mbarrier"
		case m == "bulk_group":
			f.completes = m
		case m == "multicast::cluster":
			f.multicast = true
		default:
			f.rest = append(f.rest, m)
		}
	}
	return f
}

// operands returns the number of operands of a form with n operands in any case.
func (f *bulkForm) operands(n int) int {
	for _, more := range []bool{f.completes == "mbarrier", f.multicast} {
		if more {
			n++
		}
	}
	return n
}

// copyBulk compiles cp.async.bulk. Copies are executed at once, so commits and waits
// have no effect.
func (c *compiler) copyBulk(in *ptx.Inst, mods []string) ([]ir.Op, error) {
	switch mods[0] {
	case "commit_group", "wait_group", "prefetch":
		return nil, nil
	}
	if mods[0] == "tensor" {
		return c.copyTensor(in, mods[1:], "")
	}
	f := bulkFormOf(mods)
	if len(f.rest) > 0 {
		return nil, missing(in, "cp.async.bulk with qualifiers %s", qualifiers(f.rest))
	}
	o, err := c.bulk(in, &f)
	return []ir.Op{o}, err
}

// bulk compiles the operands of a copy or a reduction.
func (c *compiler) bulk(in *ptx.Inst, f *bulkForm) (o *ir.CopyBulk, err error) {
	ways := []string{"shared global mbarrier", "shared shared mbarrier", "global shared bulk_group"}
	if way := strings.Join(append(slices.Clone(f.spaces), f.completes), " "); len(f.spaces) != 2 || !slices.Contains(ways, way) {
		return nil, broken(in, qualifiers(in.Mods), "a bulk copy must be from global or shared to shared memory with %s, or from shared to global memory with .bulk_group", "."+completesBytes)
	}
	if err := operands(in, f.operands(3)); err != nil {
		return nil, err
	}
	o = &ir.CopyBulk{Blocks: ir.None}
	if o.To, err = c.spaceAddress(in, f.spaces[0], &in.Args[0]); err != nil {
		return nil, err
	}
	if o.From, err = c.spaceAddress(in, f.spaces[1], &in.Args[1]); err != nil {
		return nil, err
	}
	if f.completes == "mbarrier" {
		b, err := c.spaceAddress(in, "shared", &in.Args[3])
		if err != nil {
			return nil, err
		}
		o.Barrier = &b
	}
	if o.Blocks, err = c.blocks(in, f); err != nil {
		return nil, err
	}
	o.Bytes, err = c.source(&in.Args[2], ir.Class32, ptx.U32)
	return o, err
}

// blocks compiles the last operand of a multicast, the mask of blocks.
func (c *compiler) blocks(in *ptx.Inst, f *bulkForm) (ir.Ref, error) {
	if !f.multicast {
		return ir.None, nil
	}
	if f.completes != "mbarrier" {
		return ir.None, broken(in, qualifiers(in.Mods), "a copy with .multicast::cluster must have .%s", completesBytes)
	}
	return c.source(&in.Args[len(in.Args)-1], ir.Class32, ptx.U16)
}

// reduceBulk compiles cp.reduce.async.bulk. Two halves are one element.
func (c *compiler) reduceBulk(in *ptx.Inst) ([]ir.Op, error) {
	if len(in.Mods) < 4 || in.Mods[0] != "async" || in.Mods[1] != "bulk" {
		return nil, broken(in, qualifiers(in.Mods), "the qualifiers of cp.reduce must begin with .async.bulk and name the spaces")
	}
	if in.Mods[2] == "tensor" {
		return c.reduceTensor(in, in.Mods[3:])
	}
	f := bulkFormOf(in.Mods[2:])
	if f.rest = slices.DeleteFunc(f.rest, func(m string) bool { return m == "noftz" }); len(f.rest) != 2 {
		return nil, broken(in, qualifiers(f.rest), "cp.reduce.async.bulk must have an operation and a type after the spaces")
	}
	t, ok := ptx.TypeByName(f.rest[1])
	switch t {
	case ptx.F16:
		t = ptx.F16x2
	case ptx.BF16:
		t = ptx.BF16x2
	}
	update := ops.UpdateFor(f.rest[0], t)
	if !ok || update == nil || f.rest[0] == "cas" || f.rest[0] == "exch" {
		return nil, missing(in, "cp.reduce.async.bulk with qualifiers %s", qualifiers(f.rest))
	}
	o, err := c.bulk(in, &f)
	if err != nil {
		return nil, err
	}
	o.F, o.What, o.To.Size = update, strings.Join(f.rest, "."), uint64(t.Size())
	return []ir.Op{o}, nil
}
