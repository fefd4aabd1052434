package worker

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// maxGraphMemory bounds the memory of all executable graphs of a session in this
// process, in bytes.
const maxGraphMemory = 256 << 20

// graphObject is an executable graph. The nodes contain handles, not the objects
// behind them: each launch looks them up, so that a module that was unloaded is
// an error of the launch. A driver with graphs of its own (cuGraphLaunch) would
// take nodes and plan at instantiation and replace submit; only graph_submit.go
// would change.
type graphObject struct {
	ctx   *contextObject
	nodes []abi.GraphNode
	plan  graphPlan
	cost  graphCost

	events   []Event // those of the plan
	mark     Event   // the graph's beginning, and the ends of lanes
	done     Event   // the end of the last launch
	launched bool
}

// graphCost is what nodes need.
type graphCost struct {
	memory uint64 // bytes, counted in Session.graphMemory
	rows   uint64 // of copies and memsets that are not contiguous
	ops    int64  // operations that a launch passes to the driver
}

func (c graphCost) add(o graphCost) graphCost {
	return graphCost{c.memory + o.memory, satAdd(c.rows, o.rows), c.ops + o.ops}
}

func (c graphCost) sub(o graphCost) graphCost {
	return graphCost{c.memory - o.memory, c.rows - o.rows, c.ops - o.ops}
}

// checkHandles checks that a node's handles exist. Each launch looks them up
// again.
func (s *Session) checkHandles(ctx *contextObject, n abi.GraphNode) error {
	switch b := n.Body.(type) {
	case abi.GraphKernel:
		f, err := lookup[*functionObject](&s.handles, b.Function)
		if err != nil {
			return err
		}
		if f.ctx != ctx {
			return abi.ErrInvalidHandle
		}
	case abi.GraphEvent:
		e, err := s.handles.event(uint64(b))
		if err != nil {
			return err
		}
		if e.ctx != ctx && n.Kind == abi.GraphNodeEventRecord {
			return abi.ErrInvalidHandle
		}
	}
	return nil
}

// costOf returns what a node needs, or an error if the node is invalid: its
// shape, sums that overflow, or more rows than a graph may have.
func costOf(n abi.GraphNode) (c graphCost, err error) {
	c.memory = 256 + 4*uint64(len(n.Deps))
	if k, ok := n.Body.(abi.GraphKernel); ok {
		c.memory += uint64(len(k.Params)) + abi.StreamAttrValueWire*uint64(len(k.Attributes))
	}
	ops, err := operations(n)
	switch {
	case err != nil:
		return c, err
	case ops > abi.MaxGraphRows:
		return c, abi.ErrInvalidValue
	case ops > 1:
		c.rows = ops
	}
	c.ops = int64(ops)
	return c, nil
}

// operations returns how many operations of the driver a node consists of.
func operations(n abi.GraphNode) (uint64, error) {
	switch b := n.Body.(type) {
	case abi.GraphKernel:
		for i := range 3 {
			if b.Grid[i] == 0 || b.Block[i] == 0 {
				return 0, abi.ErrInvalidValue
			}
		}
		return 1, nil
	case abi.GraphCopy:
		if b.What > abi.GraphCopyDtoH || (b.What == abi.GraphCopyDtoD) != (b.Region == 0) {
			return 0, abi.ErrInvalidValue
		}
		return copyPieces(b)
	case abi.GraphMemset:
		if b.Width != 1 && b.Width != 2 && b.Width != 4 || b.Columns > 1<<48 || b.Rows > 1 && b.Pitch < b.Columns*uint64(b.Width) {
			return 0, abi.ErrInvalidValue
		}
		_, err := extent(b.Dst, b.Columns*uint64(b.Width), b.Rows, 1, b.Pitch, 0)
		return b.Rows, err
	}
	return 0, nil
}

// copyPieces returns how many runs of bytes a copy consists of.
func copyPieces(b abi.GraphCopy) (uint64, error) {
	if b.Width == 0 || b.Height == 0 || b.Depth == 0 {
		return 0, nil
	}
	if b.Height > 1 && (b.DstPitch < b.Width || b.SrcPitch < b.Width) {
		return 0, abi.ErrInvalidValue
	}
	if _, err := extent(b.Dst, b.Width, b.Height, b.Depth, b.DstPitch, b.DstSlice); err != nil {
		return 0, err
	}
	if _, err := extent(b.Src, b.Width, b.Height, b.Depth, b.SrcPitch, b.SrcSlice); err != nil {
		return 0, err
	}
	b = mergeRows(b)
	if over, n := bits.Mul64(b.Height, b.Depth); over == 0 {
		return n, nil
	}
	return 0, abi.ErrInvalidValue
}

// mergeRows merges rows that are contiguous on both sides into one, and then
// layers.
func mergeRows(b abi.GraphCopy) abi.GraphCopy {
	if b.Height > 1 && b.DstPitch == b.Width && b.SrcPitch == b.Width {
		b.Width, b.Height = b.Width*b.Height, 1
	}
	if b.Height == 1 && b.Depth > 1 && b.DstSlice == b.Width && b.SrcSlice == b.Width {
		b.Width, b.Depth = b.Width*b.Depth, 1
	}
	return b
}

// extent returns the number of bytes from the first to the last byte of layers of
// rows that begin at address, or an error if the sum overflows 64 bits.
func extent(address, width, height, depth, pitch, slice uint64) (uint64, error) {
	if width == 0 || height == 0 || depth == 0 {
		return 0, nil
	}
	over1, rows := bits.Mul64(height-1, pitch)
	over2, layers := bits.Mul64(depth-1, slice)
	n, c1 := bits.Add64(rows, layers, 0)
	n, c2 := bits.Add64(n, width, 0)
	if _, c3 := bits.Add64(address, n, 0); over1|over2|c1|c2|c3 != 0 {
		return 0, abi.ErrInvalidValue
	}
	return n, nil
}

// measureGraph checks all nodes of a new graph and returns what they need.
func (s *Session) measureGraph(ctx *contextObject, nodes []abi.GraphNode) (total graphCost, err error) {
	for _, n := range nodes {
		if err := s.checkHandles(ctx, n); err != nil {
			return total, err
		}
		c, err := costOf(n)
		if err != nil {
			return total, err
		}
		total = total.add(c)
	}
	if total.rows > abi.MaxGraphRows {
		return total, abi.ErrInvalidValue
	}
	return total, nil
}

// changeGraph returns the nodes of a graph with the changes applied, and what
// they need. The graph itself is not changed.
func (s *Session) changeGraph(g *graphObject, changes []abi.GraphNode) ([]abi.GraphNode, graphCost, error) {
	nodes, total := slices.Clone(g.nodes), g.cost
	for _, n := range changes {
		at := uint64(n.Deps[0])
		if at >= uint64(len(nodes)) || nodes[at].Kind != n.Kind {
			return nil, total, abi.ErrInvalidValue
		}
		if k, ok := n.Body.(abi.GraphKernel); ok {
			k.Params = bytes.Clone(k.Params) // so that a node does not keep the whole record alive
			n.Body = k
		}
		n.Deps = nodes[at].Deps
		before, err := costOf(nodes[at])
		if err != nil {
			return nil, total, err
		}
		after, err := costOf(n)
		if err == nil {
			err = s.checkHandles(g.ctx, n)
		}
		if err != nil {
			return nil, total, err
		}
		nodes[at] = n
		total = total.add(after).sub(before)
	}
	if total.rows > abi.MaxGraphRows {
		return nil, total, abi.ErrInvalidValue
	}
	return nodes, total, nil
}

// holdGraph counts an executable graph's memory instead of before, what was counted
// for it so far.
func (s *Session) holdGraph(ctx *contextObject, before, memory uint64) error {
	if s.graphMemory-before+memory > maxGraphMemory {
		return abi.ErrOutOfMemory
	}
	s.graphMemory += memory - before
	ctx.graphMemory += memory - before
	return nil
}

// dropGraphs removes the graphs of a context that ends; its driver frees them.
func (s *Session) dropGraphs(ctx *contextObject) {
	s.graphMemory -= ctx.graphMemory
	ctx.graphMemory = 0
}
