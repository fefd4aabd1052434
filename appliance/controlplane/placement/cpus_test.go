package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
)

const gib = 1 << 30

// nodeOf returns a node with cells of the given CPUs and 16 GiB of memory each, and
// unlimited memory in all.
func nodeOf(reserved string, cells ...api.NodeCell) api.Node {
	n := api.Node{Meta: api.Meta{ID: "n1"}}
	n.Status.ReservedCPUs = reserved
	for i, c := range cells {
		c.ID, c.MemoryBytes = int64(i), 16*gib
		n.Status.Cells = append(n.Status.Cells, c)
	}
	n.Status.Vcpus, n.Status.MemoryBytes = 4*cpusOf(n), 1<<50
	return n
}

// threaded is a node with two cells of four cores with two threads each, of which one
// core is reserved.
func threaded() api.Node {
	return nodeOf("0,8", api.NodeCell{CPUs: "0-3,8-11", Siblings: []string{"0,8", "1,9", "2,10", "3,11"}},
		api.NodeCell{CPUs: "4-7,12-15", Siblings: []string{"4,12", "5,13", "6,14", "7,15"}})
}

// dedicated returns the assignment of an instance with the CPUs of a cell.
func dedicated(cell int64, cpus string, memory int64) api.InstanceAssignment {
	return api.InstanceAssignment{Node: "n1", Vcpus: int64(len(api.KnownCPUs(cpus))), MemoryBytes: memory,
		Cells: []api.InstanceCell{{Cell: cell, CPUs: cpus, MemoryBytes: memory}}}
}

// TestChooseCells chooses CPUs for an instance beside others.
func TestChooseCells(t *testing.T) {
	for name, c := range map[string]struct {
		others []api.InstanceAssignment
		want   Request
		cells  []api.InstanceCell
		why    string
	}{
		"whole cores of the cell that is filled best": {
			want:  Request{VCPUs: 4, Memory: gib},
			cells: []api.InstanceCell{{Cell: 0, CPUs: "1-2,9-10", MemoryBytes: gib}}},
		"a thread of a core of which another instance has a part": {
			others: []api.InstanceAssignment{dedicated(0, "9", gib)}, want: Request{VCPUs: 3, Memory: gib},
			cells: []api.InstanceCell{{Cell: 0, CPUs: "1-2,10", MemoryBytes: gib}}},
		"a cell with enough memory": {
			others: []api.InstanceAssignment{dedicated(0, "1,9", 8*gib)}, want: Request{VCPUs: 2, Memory: 9 * gib},
			cells: []api.InstanceCell{{Cell: 1, CPUs: "4,12", MemoryBytes: 9 * gib}}},
		"the only cell with enough CPUs": {
			want:  Request{VCPUs: 7, Memory: gib},
			cells: []api.InstanceCell{{Cell: 1, CPUs: "4-7,12-14", MemoryBytes: gib}}},
		"both cells, evenly": {
			want:  Request{VCPUs: 10, Memory: 10 * gib},
			cells: []api.InstanceCell{{Cell: 0, CPUs: "1-3,9-10", MemoryBytes: 5 * gib}, {Cell: 1, CPUs: "4-6,12-13", MemoryBytes: 5 * gib}}},
		"whole pages of memory": {
			want:  Request{VCPUs: 10, Memory: 3 * gib, HugePages: api.HugePages1Gi},
			cells: []api.InstanceCell{{Cell: 0, CPUs: "1-3,9-10", MemoryBytes: gib}, {Cell: 1, CPUs: "4-6,12-13", MemoryBytes: 2 * gib}}},
		"memory that cannot be divided": {
			want: Request{VCPUs: 10, Memory: gib, HugePages: api.HugePages1Gi},
			why:  "10 dedicated CPUs requested, which are in several NUMA cells, and 1 GiB of memory in pages of 1 GiB cannot be divided among them"},
		"too few": {
			others: []api.InstanceAssignment{dedicated(0, "1-3,9-11", gib)}, want: Request{VCPUs: 9, Memory: gib},
			why: "9 dedicated CPUs requested, 8 of 14 free"},
		"the cells of a running instance": {
			want: Request{VCPUs: 4, Memory: 2 * gib, Cells: []api.InstanceCell{{Cell: 5, CPUs: "1", MemoryBytes: gib}, {Cell: 7, CPUs: "20-22", MemoryBytes: gib}}},
			// The second, which is larger, is chosen first.
			cells: []api.InstanceCell{{Cell: 0, CPUs: "10", MemoryBytes: gib}, {Cell: 0, CPUs: "1-2,9", MemoryBytes: gib}}},
		"a cell of a running instance that is too large": {
			others: []api.InstanceAssignment{dedicated(1, "4", gib)},
			want:   Request{VCPUs: 8, Memory: 2 * gib, Cells: []api.InstanceCell{{Cell: 0, CPUs: "0-7", MemoryBytes: 2 * gib}}},
			why:    "8 dedicated CPUs in one NUMA cell requested, as the instance has now, the cell with the most free ones has 7"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRoom(nil, nil, nil)
			for _, a := range c.others {
				r.Add(a)
			}
			c.want.Dedicated = true
			for range 2 { // it depends on nothing else
				_, got, why := r.OnCPUs(threaded(), c.want)
				if why != c.why {
					t.Errorf("reason = %q, want %q", why, c.why)
				}
				if diff := cmp.Diff(c.cells, got); diff != "" {
					t.Errorf("cells (-want +got):\n%s", diff)
				}
			}
		})
	}
	if _, _, why := NewRoom(nil, nil, nil).OnCPUs(api.Node{}, Request{VCPUs: 1, Dedicated: true}); !strings.Contains(why, "does not report") {
		t.Errorf("reason of a node of an earlier version = %q, want that it reports no CPUs", why)
	}
}

// randomNode returns a node with up to four cells, whose cores have one or two threads.
func randomNode(r *rand.Rand) api.Node {
	var cells []api.NodeCell
	next := 0
	for range 1 + r.IntN(4) {
		cores, threads := 1+r.IntN(5), 1+r.IntN(2)
		var c api.NodeCell
		var all []int
		for range cores {
			core := []int{next, next + 1}[:threads]
			next += 2
			all = append(all, core...)
			if threads > 1 {
				c.Siblings = append(c.Siblings, api.FormatCPUs(core))
			}
		}
		c.CPUs = api.FormatCPUs(all)
		cells = append(cells, c)
	}
	n := nodeOf(fmt.Sprint(api.KnownCPUs(cells[0].CPUs)[0]), cells...)
	if r.IntN(2) == 0 { // the node keeps some time for itself, less than what is never dedicated
		cpus := cpusOf(n)
		own := r.Int64N(1001)
		n.Status.Processors = api.NodeProcessors{CPUs: cpus, InstancesMilliCPUs: cpus*1000 - own, VCPUsPerCPU: 4}
		n.Status.Vcpus = n.Status.Processors.InstancesMilliCPUs * 4 / 1000
	}
	return n
}

// checkCells checks that the cells are what was wanted: CPUs of the node that nobody
// else has, one for each vCPU, and all of the memory in whole pages.
func checkCells(t *testing.T, n api.Node, w Request, cells []api.InstanceCell, owner map[int]string, id string) {
	t.Helper()
	var cpus, memory int64
	for _, c := range cells {
		for _, cpu := range api.KnownCPUs(c.CPUs) {
			if owner[cpu] != "" {
				t.Fatalf("CPU %d is given to %s, and %s has it", cpu, id, owner[cpu])
			}
			owner[cpu] = id
			cpus++
		}
		memory += c.MemoryBytes
		if page := max(w.HugePages.Bytes(), 1<<20); c.MemoryBytes <= 0 || c.MemoryBytes%page != 0 {
			t.Fatalf("memory of %s in cell %d = %d bytes, want whole pages of %d", id, c.Cell, c.MemoryBytes, page)
		}
	}
	if cpus != w.VCPUs || memory != w.Memory || !HasCPUs(n, cells) {
		t.Fatalf("cells of %s = %+v with %d CPUs and %d bytes, want %d and %d, of node %+v", id, cells, cpus, memory, w.VCPUs, w.Memory, n.Status.Cells)
	}
}

// TestDedicatedCPUsAreExclusive places and removes random instances with dedicated and
// with shared CPUs: no CPU is given twice or to an instance although it is reserved, an
// instance is in one cell if one has enough CPUs, the count is what fits one after the
// other, and the vCPUs of the others fit on the CPUs that are left.
func TestDedicatedCPUsAreExclusive(t *testing.T) {
	placed, refused := 0, 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(67, seed))
		n, r := randomNode(random), NewRoom(nil, nil, nil)
		owner, there := map[int]string{}, map[string]api.InstanceAssignment{}
		for _, cpu := range api.KnownCPUs(n.Status.ReservedCPUs) {
			owner[cpu] = "the node"
		}
		for i := range 30 {
			if ids := sortedKeys(there); len(ids) > 0 && random.IntN(3) == 0 {
				id := ids[random.IntN(len(ids))]
				r.Remove(there[id])
				delete(there, id)
				for cpu, of := range owner {
					if of == id {
						delete(owner, cpu)
					}
				}
				continue
			}
			w := Request{VCPUs: 1 + random.Int64N(8), Memory: (1 + random.Int64N(8)) << 28, Dedicated: random.IntN(3) > 0}
			if random.IntN(4) == 0 {
				w.HugePages = api.HugePages2Mi
			}
			n.Status.HugePages = []api.NodeHugePages{{Size: api.HugePages2Mi, TotalBytes: 1 << 50}}
			fit := r.ofMachine(n, w)
			if fit.Why != "" {
				refused++
				continue
			}
			id := fmt.Sprint("i", i)
			if w.Dedicated {
				one := slices.ContainsFunc(r.freeCells(n), func(c freeCell) bool { return c.count() >= w.VCPUs })
				if one != (len(fit.Cells) == 1) {
					t.Fatalf("seed %d: %+v has cells %+v, want one: %t", seed, w, fit.Cells, one)
				}
				checkCells(t, n, w, fit.Cells, owner, id)
			}
			a := api.InstanceAssignment{Node: "n1", Vcpus: w.VCPUs, MemoryBytes: w.Memory, HugePages: w.HugePages, Cells: fit.Cells}
			r.Add(a)
			there[id] = a
			placed++
			if after := r.ofMachine(n, w); after.Count != fit.Count-1 {
				t.Fatalf("seed %d: %d more of %+v fit after one of %d was placed", seed, after.Count, w, fit.Count)
			}
			checkShared(t, n, there)
		}
	}
	if placed < 1000 || refused < 500 {
		t.Errorf("%d instances were placed and %d refused, want at least 1000 and 500", placed, refused)
	}
}

// checkShared checks that at most four vCPUs of instances that share CPUs run on each CPU
// that is not dedicated, besides what the node keeps for itself.
func checkShared(t *testing.T, n api.Node, there map[string]api.InstanceAssignment) {
	t.Helper()
	left, shared := cpusOf(n), int64(0)
	for _, a := range there {
		if a.Dedicated() {
			left -= a.Vcpus
		} else {
			shared += a.Vcpus
		}
	}
	own := int64(0)
	if p := n.Status.Processors; p.CPUs > 0 {
		own = p.CPUs*1000 - p.InstancesMilliCPUs
	}
	if shared*1000 > 4*(left*1000-own) {
		t.Fatalf("%d vCPUs share %d CPUs less %d thousandths, want at most four each", shared, left, own)
	}
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
