package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// Clusters of blocks (PTX ISA, "Parallel Synchronization": barrier.cluster; "Data
// Movement": mapa, getctarank).

// clusterBarrier compiles barrier.cluster. All blocks see memory in the same order, so
// the memory order of the instruction has no effect.
func (c *compiler) clusterBarrier(in *ptx.Inst) (*ir.ClusterBarrier, error) {
	o := &ir.ClusterBarrier{Wait: in.Has("wait")}
	if o.Wait == in.Has("arrive") {
		return nil, broken(in, qualifiers(in.Mods), "barrier.cluster must have either .arrive or .wait")
	}
	if err := operands(in, 0); err != nil {
		return nil, err
	}
	return o, nil
}

func (c *compiler) mapa(in *ptx.Inst) ([]ir.Op, error) {
	switch {
	case in.Has("shared::cluster") && in.Has("u32"):
		return c.apply(ops.Mapa(), in.Args, ptx.U32)
	case in.Has("u64") && !in.Has("shared::cluster"):
		return c.apply(ops.MapaGeneric(c.mod.spaces.Shared), in.Args, ptx.U64)
	}
	return nil, broken(in, qualifiers(in.Mods), "mapa must have .shared::cluster and .u32, or .u64 alone")
}

// getCTARank compiles getctarank, which returns the rank of the block whose shared
// memory contains an address.
func (c *compiler) getCTARank(in *ptx.Inst) ([]ir.Op, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	d, err := c.dest(&in.Args[0], ir.Class32)
	if err != nil {
		return nil, err
	}
	own, err := c.special("%cluster_ctarank", ir.Class32)
	if err != nil {
		return nil, err
	}
	part, t, f := c.fresh(ir.Class32), ptx.U64, ops.PartGeneric(c.mod.spaces.Shared)
	switch {
	case in.Has("u32"):
		t, f = ptx.U32, ops.Part()
	case in.Has("shared::cluster"):
		f = ops.PartGeneric(0)
	}
	a, err := c.source(&in.Args[1], classOf(t), t)
	if err != nil {
		return nil, err
	}
	return []ir.Op{&ir.Arith{F: f, D: part, S: []ir.Ref{a}}, &ir.Arith{F: ops.Rank(), D: d, S: []ir.Ref{part, own}}}, nil
}
