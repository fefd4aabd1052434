package placement

import (
	"fmt"
	"math"

	"github.com/basalt-gpu/basalt/api"
)

// pagePool is the huge pages of one size on a node.
type pagePool struct {
	node api.NodeID
	size api.HugePages
}

// addPages adds the huge pages of an assigned instance on a node, or subtracts them.
func (r *Room) addPages(n api.NodeID, a api.InstanceAssignment, sign int64) {
	if a.HugePages != "" {
		r.pages[pagePool{n, a.HugePages}] += sign * a.MemoryBytes
	}
}

// freePages returns how many bytes of a node's huge pages of a size are not assigned to
// instances; it is negative if more are assigned than exist.
func (r *Room) freePages(n api.Node, size api.HugePages) int64 {
	return n.HugePages(size).TotalBytes - r.pages[pagePool{api.NodeID(n.Meta.ID), size}]
}

// OnPages returns for how many instances a node's huge pages suffice, or why for none.
// A stopped instance keeps its pages: it could not start without them.
func (r *Room) OnPages(n api.Node, w Request) (int64, string) {
	if w.HugePages == "" {
		return math.MaxInt64, ""
	}
	page, total := w.HugePages.Bytes(), n.HugePages(w.HugePages).TotalBytes
	free := r.freePages(n, w.HugePages)
	switch {
	case w.VRAM > 0:
		return 0, api.HugePagesWithoutVGPU
	case page == 0:
		return 0, "knows no huge pages of size " + string(w.HugePages)
	case w.Memory%page != 0:
		return 0, fmt.Sprintf("%s of RAM requested, not a whole number of huge pages of %s", api.FormatBytes(w.Memory), api.FormatBytes(page))
	case total == 0:
		return 0, "has no huge pages of " + api.FormatBytes(page)
	case w.Memory > max(free, w.HasPages):
		return 0, fmt.Sprintf("%s of RAM in huge pages of %s requested, %s of %s free", api.FormatBytes(w.Memory), api.FormatBytes(page), api.FormatBytes(max(free, 0)), api.FormatBytes(total))
	}
	return times(max(free, w.HasPages), w.Memory), ""
}

// FreeAfter returns how many bytes remain of what backs the memory of such an instance
// after one more is placed on the node: of its huge pages, or of its ordinary memory.
func (r *Room) FreeAfter(n api.Node, w Request) int64 {
	if w.HugePages != "" {
		return r.freePages(n, w.HugePages) - w.Memory
	}
	return r.FreeMemory(n) - w.Taken()
}
