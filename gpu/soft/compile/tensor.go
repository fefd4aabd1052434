package compile

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// reduceTensor compiles cp.reduce.async.bulk.tensor. mods begin with the number of
// dimensions.
func (c *compiler) reduceTensor(in *ptx.Inst, mods []string) ([]ir.Op, error) {
	reductions := []string{"add", "min", "max", "inc", "dec", "and", "or", "xor"}
	i := slices.IndexFunc(mods, func(m string) bool { return slices.Contains(reductions, m) })
	if i < 0 {
		return nil, broken(in, qualifiers(mods), "cp.reduce.async.bulk.tensor must have one of the operations .%s", strings.Join(reductions, ", ."))
	}
	return c.copyTensor(in, slices.Delete(slices.Clone(mods), i, i+1), mods[i])
}

// tensorModes are the modes of a tensor copy, besides that of boxes: those of a load and
// of a store with a map of im2col.
var tensorModes = map[bool]string{true: "im2col", false: "im2col_no_offs"}

// copyTensor compiles cp.async.bulk.tensor.
func (c *compiler) copyTensor(in *ptx.Inst, mods []string, reduce string) ([]ir.Op, error) {
	f := bulkFormOf(mods)
	way := strings.Join(append(f.spaces, f.completes), " ")
	load := way == "shared global mbarrier" && reduce == ""
	o := &ir.CopyTensor{Reduce: reduce, Im2col: slices.Contains(f.rest, tensorModes[load])}
	f.rest = slices.DeleteFunc(f.rest, func(m string) bool { return m == "tile" || m == tensorModes[load] })
	if len(f.rest) != 1 {
		return nil, missing(in, "a copy of a tensor with qualifiers %s", qualifiers(f.rest))
	}
	if !load && way != "global shared bulk_group" {
		return nil, broken(in, qualifiers(in.Mods), "a copy of a tensor must be from global to shared memory with .%s, or from shared to global memory with .bulk_group", completesBytes)
	}
	base := 2
	if load && o.Im2col {
		base = 3 // the offsets
	}
	if err := operands(in, f.operands(base)); err != nil {
		return nil, err
	}
	tensor, box := &in.Args[1], &in.Args[0]
	if !load {
		tensor, box = box, tensor
	}
	var err error
	if o.Box, err = c.spaceAddress(in, "shared", box); err != nil {
		return nil, err
	}
	if err := c.tensor(in, o, tensor, f.rest[0]); err != nil {
		return nil, err
	}
	if load {
		b, err := c.spaceAddress(in, "shared", &in.Args[2])
		if err != nil {
			return nil, err
		}
		o.Barrier = &b
	}
	if base == 3 {
		if err := c.im2colOffsets(in, o, &in.Args[3]); err != nil {
			return nil, err
		}
	}
	o.Blocks, err = c.blocks(in, &f)
	return []ir.Op{o}, err
}

// im2colOffsets compiles the vector of offsets of a load with a map of im2col.
func (c *compiler) im2colOffsets(in *ptx.Inst, o *ir.CopyTensor, v *ptx.Operand) error {
	if len(o.Coords) < 3 {
		return broken(in, len(o.Coords), "a copy with .im2col must have 3 to 5 dimensions")
	}
	if v.Kind != ptx.KindVec || len(v.List) != len(o.Coords)-2 {
		return wrongLength(in, v, len(o.Coords)-2)
	}
	for i := range v.List {
		if err := c.checkOperand(&v.List[i], ptx.U16, agrees); err != nil {
			return err
		}
		r, err := c.source(&v.List[i], ir.Class32, ptx.U16)
		if err != nil {
			return err
		}
		o.Offsets = append(o.Offsets, r)
	}
	return nil
}

// tensor compiles the operand [map, {coordinates}] with a number of dimensions.
func (c *compiler) tensor(in *ptx.Inst, o *ir.CopyTensor, mem *ptx.Operand, dims string) error {
	if len(dims) != 2 || dims[0] < '1' || dims[0] > '5' || dims[1] != 'd' {
		return missing(in, "a copy of a tensor with qualifier .%s", dims)
	}
	if mem.Kind != ptx.KindMem || len(mem.List) != 2 || mem.List[1].Kind != ptx.KindVec {
		return broken(in, kindOf(mem), "the tensor must be [map, {coordinates}]")
	}
	if n := len(mem.List[1].List); int(dims[0]-'0') != n {
		return broken(in, n, "the tensor must have %c coordinates for .%s", dims[0], dims)
	}
	address := *mem
	address.List = mem.List[:1]
	var err error
	if o.Map, err = c.spaceAddress(in, "", &address); err != nil {
		return err
	}
	for i := range mem.List[1].List {
		r, err := c.source(&mem.List[1].List[i], ir.Class32, ptx.S32)
		if err != nil {
			return err
		}
		o.Coords = append(o.Coords, r)
	}
	return nil
}
