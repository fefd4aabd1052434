package exec

import (
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Special registers (PTX ISA, "Special Registers") are ordinary registers that the
// machine fills: once per launch with properties of lanes, and per block with
// properties of the block.

// fixedSpecials fills the registers that are the same for all blocks of a launch.
func (m *machine) fixedSpecials() {
	for name, slot := range m.p.Specials {
		v := m.v32(slot, 0, m.warps)
		for i := range v {
			v[i] = m.laneSpecial(name, uint32(i))
		}
	}
	for i := range m.placed {
		m.placed[i].known = false
	}
}

func (m *machine) laneSpecial(name string, i uint32) uint32 {
	b, g, c := m.env.Block, m.env.Grid, m.env.Cluster
	lane := i % ir.WarpSize
	switch name {
	case "%tid.x":
		return i % b[0]
	case "%tid.y":
		return i / b[0] % b[1]
	case "%tid.z":
		return i / b[0] / b[1]
	case "%ntid.x":
		return b[0]
	case "%ntid.y":
		return b[1]
	case "%ntid.z":
		return b[2]
	case "%nctaid.x":
		return g[0]
	case "%nctaid.y":
		return g[1]
	case "%nctaid.z":
		return g[2]
	case "%cluster_nctaid.x":
		return c[0]
	case "%cluster_nctaid.y":
		return c[1]
	case "%cluster_nctaid.z":
		return c[2]
	case "%cluster_nctarank":
		return c[0] * c[1] * c[2]
	case "%nclusterid.x":
		return g[0] / c[0]
	case "%nclusterid.y":
		return g[1] / c[1]
	case "%nclusterid.z":
		return g[2] / c[2]
	case "%laneid":
		return lane
	case "%warpid":
		return i / ir.WarpSize
	case "%nwarpid":
		return uint32(m.warps)
	case "%nsmid":
		return m.env.SMs
	case "%lanemask_eq":
		return 1 << lane
	case "%lanemask_lt":
		return 1<<lane - 1
	case "%lanemask_le":
		return 2<<lane - 1
	case "%lanemask_gt":
		return ^uint32(2<<lane - 1)
	case "%lanemask_ge":
		return ^uint32(1<<lane - 1)
	case "%dynamic_smem_size":
		return m.env.Shared
	case "%total_smem_size":
		return uint32(len(m.shared))
	case "%envreg1": // with %envreg2 the address of the workspace, as cooperative groups read it
		return uint32(m.env.Workspace >> 32)
	case "%envreg2":
		return uint32(m.env.Workspace)
	}
	return 0
}

// placed is a special register that depends on the block.
type placed struct {
	slot  int
	value func(m *machine) uint32
	now   uint32 // the value of the register, if known
	known bool
}

var placedSpecials = map[string]func(m *machine) uint32{
	"%ctaid.x":         func(m *machine) uint32 { return m.ctaid[0] },
	"%ctaid.y":         func(m *machine) uint32 { return m.ctaid[1] },
	"%ctaid.z":         func(m *machine) uint32 { return m.ctaid[2] },
	"%cluster_ctaid.x": func(m *machine) uint32 { return m.ctaid[0] % m.env.Cluster[0] },
	"%cluster_ctaid.y": func(m *machine) uint32 { return m.ctaid[1] % m.env.Cluster[1] },
	"%cluster_ctaid.z": func(m *machine) uint32 { return m.ctaid[2] % m.env.Cluster[2] },
	"%clusterid.x":     func(m *machine) uint32 { return m.ctaid[0] / m.env.Cluster[0] },
	"%clusterid.y":     func(m *machine) uint32 { return m.ctaid[1] / m.env.Cluster[1] },
	"%clusterid.z":     func(m *machine) uint32 { return m.ctaid[2] / m.env.Cluster[2] },
	"%cluster_ctarank": func(m *machine) uint32 { return m.rank },
	"%smid":            func(m *machine) uint32 { return m.ctaid[0] % m.env.SMs },
}

// vectors reports whether the processor supports the instructions of machine code.
var vectors = amd64.Available()

// fillLanes sets a register in all lanes.
func fillLanes(d []uint32, v uint32) {
	if vectors {
		amd64.Fill32(d, v)
	} else {
		fill(d, v)
	}
}

// blockSpecials fills the registers that depend on the block.
func (m *machine) blockSpecials() {
	for i := range m.placed {
		p := &m.placed[i]
		if v := p.value(m); !p.known || p.now != v {
			fillLanes(m.v32(p.slot, 0, m.warps), v)
			p.now, p.known = v, true
		}
	}
}
