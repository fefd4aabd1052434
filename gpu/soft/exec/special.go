package exec

import "github.com/basalt-gpu/basalt/gpu/soft/ir"

// Special registers (PTX ISA, "Special Registers") are ordinary registers that
// the machine fills: once for what a lane is, per block for where the block is.

// fixedSpecials fills what is the same for all blocks of a launch.
func (m *machine) fixedSpecials() {
	for name, slot := range m.p.Specials {
		v := m.v32(slot, 0, m.warps)
		for i := range v {
			v[i] = m.laneSpecial(name, uint32(i))
		}
	}
}

func (m *machine) laneSpecial(name string, i uint32) uint32 {
	b, g := m.env.Block, m.env.Grid
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
	case "%envreg1": // with %envreg2 the workspace, as cooperative groups read it
		return uint32(m.env.Workspace >> 32)
	case "%envreg2":
		return uint32(m.env.Workspace)
	}
	return 0
}

// blockSpecials fills what depends on the block.
func (m *machine) blockSpecials() {
	for i, name := range [3]string{"%ctaid.x", "%ctaid.y", "%ctaid.z"} {
		if slot, ok := m.p.Specials[name]; ok {
			fill(m.v32(slot, 0, m.warps), m.ctaid[i])
		}
	}
	if slot, ok := m.p.Specials["%smid"]; ok {
		fill(m.v32(slot, 0, m.warps), m.ctaid[0]%m.env.SMs)
	}
}
