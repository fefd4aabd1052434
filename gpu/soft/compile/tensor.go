package compile

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// reduceTensor is cp.reduce.async.bulk.tensor, whose qualifiers begin with the number of
// dimensions.
func (c *compiler) reduceTensor(in *ptx.Inst, mods []string) ([]ir.Op, error) {
	reductions := []string{"add", "min", "max", "inc", "dec", "and", "or", "xor"}
	i := slices.IndexFunc(mods, func(m string) bool { return slices.Contains(reductions, m) })
	if i < 0 {
		return nil, in.Errorf("unsupported instruction")
	}
	return c.copyTensor(in, slices.Delete(slices.Clone(mods), i, i+1), mods[i])
}

// copyTensor is cp.async.bulk.tensor, of tiles.
func (c *compiler) copyTensor(in *ptx.Inst, mods []string, reduce string) ([]ir.Op, error) {
	f := bulkFormOf(mods)
	f.rest = slices.DeleteFunc(f.rest, func(m string) bool { return m == "tile" })
	way := strings.Join(append(f.spaces, f.completes), " ")
	load := way == "shared global mbarrier" && reduce == ""
	if len(f.rest) != 1 || !load && way != "global shared bulk_group" || len(in.Args) != f.operands(2) {
		return nil, in.Errorf("unsupported instruction")
	}
	tensor, box := &in.Args[1], &in.Args[0]
	if !load {
		tensor, box = box, tensor
	}
	o := &ir.CopyTensor{Reduce: reduce}
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
	return []ir.Op{o}, nil
}

// tensor compiles [map, {coordinates}] of so many dimensions.
func (c *compiler) tensor(in *ptx.Inst, o *ir.CopyTensor, mem *ptx.Operand, dims string) error {
	if mem.Kind != ptx.KindMem || len(mem.List) != 2 || mem.List[1].Kind != ptx.KindVec || len(dims) != 2 || dims[1] != 'd' ||
		int(dims[0]-'0') != len(mem.List[1].List) || len(mem.List[1].List) > 5 {
		return in.Errorf("unsupported instruction")
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
