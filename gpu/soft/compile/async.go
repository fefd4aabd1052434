package compile

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// completesBytes is the qualifier of instructions that complete transactions of an
// mbarrier.
const completesBytes = "mbarrier::complete_tx::bytes"

// storesAsync has the types of st.async, also those of vector elements.
var storesAsync = []string{"b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"}

// reducesAsync has the operations of red.async with their types.
var reducesAsync = []string{"inc.u32", "dec.u32", "min.u32", "min.s32", "max.u32", "max.s32", "add.u32", "add.s32", "add.u64", "and.b32", "or.b32", "xor.b32"}

// async compiles st.async and red.async (PTX ISA, "Data Movement": st.async; "Parallel
// Synchronization": red.async): a store to shared memory of the cluster, or a reduction
// there, and the completion of its bytes on an mbarrier. Both are executed at once.
func (c *compiler) async(in *ptx.Inst, compiled decoder) ([]ir.Op, error) {
	if in.Mods[0] != "async" || !in.Has(completesBytes) {
		return nil, broken(in, qualifiers(in.Mods), "%s.async must have .async as its first qualifier, and .%s", in.Op, completesBytes)
	}
	if err := operands(in, 3); err != nil {
		return nil, err
	}
	plain, space := *in, ""
	plain.Args, plain.Mods = in.Args[:2], nil
	for _, m := range in.Mods[1:] {
		switch {
		case m == "shared::cluster":
			space = m
		case m != completesBytes && !listedAny(m, "weak", "relaxed", "cluster"):
			plain.Mods = append(plain.Mods, m)
		}
	}
	what := strings.Join(plain.Mods, ".")
	forms := reducesAsync
	if in.Op == "st" {
		forms = storesAsync
		if vector, typ, ok := strings.Cut(what, "."); ok && listedAny(vector, "v2", "v4") {
			what = typ
		}
	}
	if !slices.Contains(forms, what) {
		return nil, missing(in, "%s.async with qualifiers %s", in.Op, qualifiers(plain.Mods))
	}
	if space != "" {
		plain.Mods = slices.Insert(plain.Mods, 0, space)
	}
	if err := c.typeCheck(&plain); err != nil {
		return nil, err
	}
	list, err := compiled(c, &plain)
	if err != nil {
		return nil, err
	}
	bytes := uint64(0)
	for _, o := range list {
		switch o := o.(type) {
		case *ir.Store:
			bytes += o.Size * uint64(o.N)
		case *ir.Atomic:
			bytes += o.Size
		}
	}
	b, err := c.spaceAddress(in, space, &in.Args[2])
	return append(list, &ir.MBarrier{Access: b, What: ir.MBarrierComplete, N: c.constant(ir.Class32, bytes), D: ir.None}), err
}
