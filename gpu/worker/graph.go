package worker

import (
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// maxGraphMemory bounds what all executable graphs of a session take in this
// process, bytes.
const maxGraphMemory = 256 << 20

// graphObject is an executable graph. The nodes name handles, not the objects
// behind them: each launch looks them up, so that a module unloaded meanwhile is
// an error of the launch. A driver with graphs of its own (cuGraphLaunch) would
// take nodes and plan at instantiation and replace submit; nothing outside
// graph_submit.go would change.
type graphObject struct {
	ctx    *contextObject
	nodes  []abi.GraphNode
	plan   graphPlan
	memory uint64 // counted in Session.graphMemory
	ops    int64  // operations that a launch gives the driver

	events   []Event // the plan's
	mark     Event   // the graph's begin, and the ends of lanes
	done     Event   // the end of the last launch
	launched bool
}

// checkNode holds a node to what does not depend on the time of its launch:
// handles, shapes, sums that do not overflow. It returns the node's operations.
func (s *Session) checkNode(ctx *contextObject, n abi.GraphNode) (ops uint64, err error) {
	switch b := n.Body.(type) {
	case abi.GraphKernel:
		f, err := lookup[*functionObject](&s.handles, b.Function)
		if err != nil {
			return 0, err
		}
		if f.ctx != ctx {
			return 0, abi.ErrInvalidHandle
		}
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
	case abi.GraphEvent:
		e, err := lookup[*eventObject](&s.handles, uint64(b))
		if err != nil {
			return 0, err
		}
		if e.ctx != ctx && n.Kind == abi.GraphNodeEventRecord {
			return 0, abi.ErrInvalidHandle
		}
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

// mergeRows makes one row of rows that follow each other on both sides, and one
// of layers that do.
func mergeRows(b abi.GraphCopy) abi.GraphCopy {
	if b.Height > 1 && b.DstPitch == b.Width && b.SrcPitch == b.Width {
		b.Width, b.Height = b.Width*b.Height, 1
	}
	if b.Height == 1 && b.Depth > 1 && b.DstSlice == b.Width && b.SrcSlice == b.Width {
		b.Width, b.Depth = b.Width*b.Depth, 1
	}
	return b
}

// extent returns how many bytes lie from the first to the last of layers of
// rows that begin at address, or an error if the sum does not fit 64 bits.
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

// nodeMemory is what a node counts in maxGraphMemory.
func nodeMemory(n abi.GraphNode) uint64 {
	size := 256 + 4*uint64(len(n.Deps))
	if k, ok := n.Body.(abi.GraphKernel); ok {
		size += uint64(len(k.Params))
	}
	return size
}

// measureGraph checks all nodes and returns what a graph of them takes.
func (s *Session) measureGraph(ctx *contextObject, nodes []abi.GraphNode) (memory uint64, ops int64, err error) {
	var pieces uint64
	for _, n := range nodes {
		k, err := s.checkNode(ctx, n)
		if err != nil {
			return 0, 0, err
		}
		if k > 1 {
			if pieces = satAdd(pieces, k); pieces > abi.MaxGraphRows {
				return 0, 0, abi.ErrInvalidValue
			}
		}
		ops += int64(k)
		memory += nodeMemory(n)
	}
	return memory, ops, nil
}

// holdGraph counts an executable graph's memory in place of what was counted before.
func (s *Session) holdGraph(ctx *contextObject, before, memory uint64) error {
	if s.graphMemory-before+memory > maxGraphMemory {
		return abi.ErrOutOfMemory
	}
	s.graphMemory += memory - before
	ctx.graphMemory += memory - before
	return nil
}

// dropGraphs forgets the graphs of a context that ends; its driver frees them.
func (s *Session) dropGraphs(ctx *contextObject) {
	s.graphMemory -= ctx.graphMemory
	ctx.graphMemory = 0
}
