package placement

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// freeCell is a NUMA cell of a node with those of its CPUs that can be dedicated to an
// instance, by core: the threads of a core are next to each other.
type freeCell struct {
	id    int64
	cores [][]int // each in ascending order, with at least one CPU; whole[i] reports whether core i is complete
	whole []bool
	left  int64 // bytes of memory beside that of instances with dedicated CPUs there
}

func (c freeCell) count() (n int64) {
	for _, core := range c.cores {
		n += int64(len(core))
	}
	return n
}

// take returns n CPUs of the cell, ascending. Instances do not share cores where that can
// be avoided: whole cores are taken first, and then threads of cores that are not whole.
func (c freeCell) take(n int64) (cpus []int) {
	for i, core := range c.cores {
		if c.whole[i] && int64(len(core)) <= n {
			cpus, n = append(cpus, core...), n-int64(len(core))
		}
	}
	for _, whole := range []bool{false, true} {
		for i, core := range c.cores {
			if c.whole[i] != whole || n == 0 || slices.Contains(cpus, core[0]) {
				continue
			}
			some := core[:min(n, int64(len(core)))]
			cpus, n = append(cpus, some...), n-int64(len(some))
		}
	}
	slices.Sort(cpus)
	return cpus
}

// addCPUs counts the CPUs that an assigned instance has of its own on a node, or
// subtracts them.
func (r *Room) addCPUs(n api.NodeID, cells []api.InstanceCell, sign int) {
	for _, c := range cells {
		cpus, err := api.ParseCPUs(c.CPUs)
		if err != nil { // the planner writes only valid lists
			continue
		}
		used := r.cpus[n]
		if used == nil {
			used = map[int]int{}
			r.cpus[n] = used
		}
		for _, cpu := range cpus {
			if used[cpu] += sign; used[cpu] == 0 {
				delete(used, cpu)
			}
		}
		r.cells[nodeCell{n, c.Cell}] += int64(sign) * c.MemoryBytes
	}
}

// nodeCell is a NUMA cell of a node.
type nodeCell struct {
	node api.NodeID
	cell int64
}

// freeCells returns the CPUs of a node that can be dedicated to an instance: those that
// are not reserved for the node and that no instance has, by cell.
func (r *Room) freeCells(n api.Node) (all []freeCell) {
	id := api.NodeID(n.Meta.ID)
	taken := r.cpus[id]
	reserved := map[int]bool{}
	for _, cpu := range api.KnownCPUs(n.Status.ReservedCPUs) {
		reserved[cpu] = true
	}
	for _, c := range n.Status.Cells {
		free := freeCell{id: c.ID, left: c.MemoryBytes - r.cells[nodeCell{id, c.ID}]}
		for _, core := range c.Cores() {
			kept := slices.DeleteFunc(slices.Clone(core), func(cpu int) bool { return reserved[cpu] || taken[cpu] > 0 })
			if len(kept) > 0 {
				free.cores, free.whole = append(free.cores, kept), append(free.whole, len(kept) == len(core))
			}
		}
		all = append(all, free)
	}
	slices.SortFunc(all, func(a, b freeCell) int { return cmp.Compare(a.id, b.id) })
	return all
}

// chooseCells chooses n CPUs, and where memory bytes in pages of a size are, among the
// free cells: in one cell if one has enough CPUs, preferring one with enough memory and
// then the one that is filled best; otherwise in as few cells as possible, as evenly as
// possible. It returns nil if there are not enough. It depends on nothing but its
// arguments.
func chooseCells(free []freeCell, n, memory, page int64) []api.InstanceCell {
	if n < 1 {
		return nil
	}
	if c, ok := bestCell(free, n, memory); ok {
		return []api.InstanceCell{{Cell: c.id, CPUs: api.FormatCPUs(c.take(n)), MemoryBytes: memory}}
	}
	page = max(page, 1<<20) // sizes of guests' memory are whole MiB
	sorted := slices.Clone(free)
	slices.SortStableFunc(sorted, func(a, b freeCell) int { return cmp.Compare(b.count(), a.count()) })
	sum, most := int64(0), memory/page // each cell has memory
	for i, c := range sorted {
		if sum += c.count(); sum >= n && int64(i+1) <= most {
			return spread(sorted[:i+1], n, memory, page)
		}
	}
	return nil
}

// bestCell returns the cell that n CPUs and memory bytes are best taken from.
func bestCell(free []freeCell, n, memory int64) (best freeCell, ok bool) {
	for _, c := range free {
		if c.count() < n {
			continue
		}
		fits, fitted := c.left >= memory, best.left >= memory
		if !ok || fits && !fitted || fits == fitted && c.count() < best.count() {
			best, ok = c, true
		}
	}
	return best, ok
}

// spread divides n CPUs evenly among cells, the largest of which are first and which have
// at least n, and the memory in proportion, in whole pages.
func spread(cells []freeCell, n, memory, page int64) (all []api.InstanceCell) {
	shares := make([]int64, len(cells))
	for left, i := n, len(cells)-1; i >= 0; i-- { // the smallest first: larger ones have what it lacks
		shares[i] = min(left/int64(i+1), cells[i].count())
		left -= shares[i]
	}
	pages, left := memory/page-int64(len(cells)), memory // each has at least one page
	for i, c := range cells {
		part := (1 + pages*shares[i]/n) * page
		all = append(all, api.InstanceCell{Cell: c.id, CPUs: api.FormatCPUs(c.take(shares[i])), MemoryBytes: part})
		left -= part
	}
	all[0].MemoryBytes += left // what does not divide
	slices.SortFunc(all, func(a, b api.InstanceCell) int { return cmp.Compare(a.Cell, b.Cell) })
	return all
}

// likeCells chooses CPUs for a guest that runs with the given cells: it must find the same
// number of cells, with as many CPUs and as much memory in each. It returns nil if there
// are not enough. Several of the guest's cells may be in one of the node's.
func likeCells(free []freeCell, has []api.InstanceCell) []api.InstanceCell {
	free = slices.Clone(free)
	all := slices.Clone(has)
	order := make([]int, len(has))
	for i := range order {
		order[i] = i
	}
	need := func(i int) int64 { return int64(len(api.KnownCPUs(has[i].CPUs))) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(need(b), need(a)) })
	for _, i := range order {
		c, ok := bestCell(free, need(i), has[i].MemoryBytes)
		if !ok {
			return nil
		}
		cpus := c.take(need(i))
		all[i] = api.InstanceCell{Cell: c.id, CPUs: api.FormatCPUs(cpus), MemoryBytes: has[i].MemoryBytes}
		at := slices.IndexFunc(free, func(f freeCell) bool { return f.id == c.id })
		free[at] = c.without(cpus, has[i].MemoryBytes)
	}
	return all
}

// without returns the cell after CPUs and memory of it were taken.
func (c freeCell) without(cpus []int, memory int64) freeCell {
	left := freeCell{id: c.id, left: c.left - memory}
	for i, core := range c.cores {
		kept := slices.DeleteFunc(slices.Clone(core), func(cpu int) bool { return slices.Contains(cpus, cpu) })
		if len(kept) > 0 {
			left.cores, left.whole = append(left.cores, kept), append(left.whole, c.whole[i] && len(kept) == len(core))
		}
	}
	return left
}

// choose chooses CPUs of the free cells for what is wanted, or returns nil.
func (w Request) choose(free []freeCell) []api.InstanceCell {
	if len(w.Cells) > 0 {
		return likeCells(free, w.Cells)
	}
	return chooseCells(free, w.VCPUs, w.Memory, w.HugePages.Bytes())
}

// OnCPUs returns for how many instances the CPUs of a node that can be dedicated suffice,
// and those of the first, or why they do not. A stopped instance keeps its CPUs.
func (r *Room) OnCPUs(n api.Node, w Request) (count int64, first []api.InstanceCell, why string) {
	if !w.Dedicated {
		return math.MaxInt64, nil, ""
	}
	if len(n.Status.Cells) == 0 {
		return 0, nil, "does not report CPUs that can be dedicated"
	}
	free := r.freeCells(n)
	total, largest := int64(0), int64(0)
	for _, c := range free {
		total, largest = total+c.count(), max(largest, c.count())
	}
	first = w.choose(free)
	switch {
	case first == nil && w.VCPUs > total:
		return 0, nil, fmt.Sprintf("%d dedicated CPUs requested, %d of %d free", w.VCPUs, total, r.dedicatable(n))
	case first == nil && len(w.Cells) > 0:
		return 0, nil, fmt.Sprintf("%d dedicated CPUs in %s requested, as the instance has now, the cell with the most free ones has %d", w.VCPUs, cellWords(len(w.Cells)), largest)
	case first == nil:
		return 0, nil, fmt.Sprintf("%d dedicated CPUs requested, which are in several NUMA cells, and %s of memory in pages of %s cannot be divided among them", w.VCPUs, api.FormatBytes(w.Memory), api.FormatBytes(max(w.HugePages.Bytes(), 1<<20)))
	}
	for cells := first; cells != nil; cells = w.choose(free) {
		count++
		for _, c := range cells {
			at := slices.IndexFunc(free, func(f freeCell) bool { return f.id == c.Cell })
			free[at] = free[at].without(api.KnownCPUs(c.CPUs), c.MemoryBytes)
		}
	}
	return count, first, ""
}

func cellWords(n int) string {
	if n == 1 {
		return "one NUMA cell"
	}
	return fmt.Sprintf("%d NUMA cells", n)
}

// HasCPUs reports whether a node has the cells, with the CPUs in them, and reserves none of
// these for itself.
func HasCPUs(n api.Node, cells []api.InstanceCell) bool {
	reserved := api.KnownCPUs(n.Status.ReservedCPUs)
	for _, c := range cells {
		at := slices.IndexFunc(n.Status.Cells, func(has api.NodeCell) bool { return has.ID == c.Cell })
		if at < 0 {
			return false
		}
		has := api.KnownCPUs(n.Status.Cells[at].CPUs)
		for _, cpu := range api.KnownCPUs(c.CPUs) {
			if !slices.Contains(has, cpu) || slices.Contains(reserved, cpu) {
				return false
			}
		}
	}
	return true
}

// cpusOf returns how many CPUs a node has.
func cpusOf(n api.Node) (sum int64) {
	for _, c := range n.Status.Cells {
		sum += int64(len(api.KnownCPUs(c.CPUs)))
	}
	return sum
}

// dedicatable returns how many CPUs of a node can be dedicated in all.
func (r *Room) dedicatable(n api.Node) int64 {
	return max(cpusOf(n)-int64(len(api.KnownCPUs(n.Status.ReservedCPUs))), 0)
}

// perCPU returns how many vCPUs of instances share one CPU of a node: so many cannot be
// allocated any more for each CPU that is dedicated. A node of an earlier version does not
// report it.
func perCPU(n api.Node) int64 {
	if ratio := n.Status.Processors.VCPUsPerCPU; ratio > 0 {
		return ratio
	}
	cpus := cpusOf(n)
	if cpus == 0 {
		return 1
	}
	return max((n.Status.Vcpus+cpus-1)/cpus, 1)
}

// freeVCPUs returns how many vCPUs can still be allocated on a node to instances that
// share CPUs; it is negative if more are allocated.
func (r *Room) freeVCPUs(n api.Node) int64 {
	id := api.NodeID(n.Meta.ID)
	return n.Status.Vcpus - r.vcpus[id] - int64(len(r.cpus[id]))*(perCPU(n)-1)
}
