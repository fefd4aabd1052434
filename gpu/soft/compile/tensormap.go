package compile

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// tensormap compiles tensormap.replace and tensormap.cp_fenceproxy (PTX ISA, "Data
// Movement and Conversion Instructions: tensormap.replace"; "Parallel Synchronization
// and Communication Instructions: tensormap.cp_fenceproxy").
func (c *compiler) tensormap(in *ptx.Inst) ([]ir.Op, error) {
	switch {
	case len(in.Mods) > 0 && in.Mods[0] == "replace":
		return c.replaceTensorField(in, in.Mods[1:])
	case len(in.Mods) > 0 && in.Mods[0] == "cp_fenceproxy":
		return c.copyTensorMap(in, in.Mods[1:])
	}
	return nil, missingQualifiers(in, in.Mods)
}

func (c *compiler) replaceTensorField(in *ptx.Inst, mods []string) ([]ir.Op, error) {
	if len(mods) < 4 || mods[0] != "tile" || mods[len(mods)-2] != "b1024" {
		return nil, broken(in, qualifiers(mods), "tensormap.replace must have .tile, a field, .b1024 and a type")
	}
	f := ops.TensorFieldByName(mods[1])
	if f == nil {
		return nil, missing(in, "tensormap.replace with field .%s", mods[1])
	}
	t, class := ptx.B32, ir.Class32
	if f.Bits == 64 {
		t, class = ptx.B64, ir.Class64
	}
	if typ := mods[len(mods)-1]; typ != t.String() {
		return nil, broken(in, "."+typ, "the type of field .%s must be .%s", f.Name, t)
	}
	space := strings.Join(mods[2:len(mods)-2], ".")
	if !slices.Contains([]string{"", "global", "shared::cta"}, space) {
		return nil, broken(in, "."+space, "the space of tensormap.replace must be .global, .shared::cta or generic")
	}
	count := 2
	if f.Each {
		count = 3
	}
	if err := operands(in, count); err != nil {
		return nil, err
	}
	o := &ir.ReplaceTensorField{F: f}
	var err error
	if o.Access, err = c.spaceAddress(in, space, &in.Args[0]); err != nil {
		return nil, err
	}
	value := &in.Args[count-1]
	switch index := &in.Args[1]; {
	case f.Each && (index.Kind != ptx.KindInt || index.Bits >= uint64(f.Dimensions())):
		return nil, broken(in, foundOf(index), "operand 2 of tensormap.replace with .%s must be a number from 0 to %d", f.Name, f.Dimensions()-1)
	case f.Each:
		o.Index = int(index.Bits)
	case f.Values > 0 && value.Kind != ptx.KindInt:
		return nil, broken(in, kindOf(value), "the new value of field .%s must be a constant", f.Name)
	case f.Values > 0 && value.Bits >= f.Values:
		return nil, missing(in, "tensormap.replace with value %d of field .%s", value.Bits, f.Name)
	}
	if err := c.checkOperand(value, t, agrees); err != nil {
		return nil, err
	}
	o.S, err = c.source(value, class, t)
	return []ir.Op{o}, err
}

// copyTensorMap compiles tensormap.cp_fenceproxy: a copy from shared to global memory,
// and a fence, which has no effect. All lanes of the warp execute it, and copy the same
// bytes.
func (c *compiler) copyTensorMap(in *ptx.Inst, mods []string) ([]ir.Op, error) {
	if len(mods) != 7 || strings.Join(mods[:4], ".") != "global.shared::cta.tensormap::generic.release" ||
		!slices.Contains([]string{"cta", "cluster", "gpu", "sys"}, mods[4]) || strings.Join(mods[5:], ".") != "sync.aligned" {
		return nil, missingQualifiers(in, in.Mods)
	}
	if err := operands(in, 3); err != nil {
		return nil, err
	}
	if size := &in.Args[2]; size.Kind != ptx.KindInt || size.Bits != ops.TensorMapBytes {
		return nil, broken(in, foundOf(size), "operand 3 of tensormap.cp_fenceproxy must be %d (bytes)", ops.TensorMapBytes)
	}
	o := &ir.CopyBulk{Blocks: ir.None}
	var err error
	if o.To, err = c.spaceAddress(in, "global", &in.Args[0]); err != nil {
		return nil, err
	}
	if o.From, err = c.spaceAddress(in, "shared", &in.Args[1]); err != nil {
		return nil, err
	}
	o.Bytes = c.constant(ir.Class32, ops.TensorMapBytes)
	return []ir.Op{o}, nil
}
