package hardware

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
)

// TestCells reads the NUMA cells of a machine with two processors with threads, of memory
// without CPUs, and a process that may not use all CPUs.
func TestCells(t *testing.T) {
	const node, cpu = "sys/devices/system/node/", "sys/devices/system/cpu/"
	f := fstest.MapFS{}
	for name, text := range map[string]string{
		node + "node10/cpulist":                                  "2,6\n",
		node + "node10/meminfo":                                  "Node 10 MemTotal: 2097152 kB\nNode 10 MemFree: 1048576 kB\n",
		node + "node0/cpulist":                                   "0-1,4-5\n",
		node + "node0/meminfo":                                   "Node 0 MemTotal:       4194304 kB\nNode 0 MemFree: 1048576 kB\nNode 0 FilePages: 2048 kB\nNode 0 Shmem: 1024 kB\nNode 0 SReclaimable: 512 kB\n",
		node + "node0/hugepages/hugepages-2048kB/nr_hugepages":   "512\n",
		node + "node0/hugepages/hugepages-2048kB/free_hugepages": "256\n",
		node + "node3/cpulist":                                   "\n", // memory alone
		node + "node3/meminfo":                                   "Node 3 MemTotal: 4194304 kB\n",
		cpu + "cpu0/topology/thread_siblings_list":               "0,4\n",
		cpu + "cpu4/topology/thread_siblings_list":               "0,4\n",
		cpu + "cpu1/topology/thread_siblings_list":               "1,5\n",
		cpu + "cpu5/topology/thread_siblings_list":               "1,5\n",
		cpu + "cpu2/topology/thread_siblings_list":               "2,6\n",
		"proc/self/status":                                       "Name:\tbasaltd\nCpus_allowed_list:\t0-5\n",
	} {
		f[name] = &fstest.MapFile{Data: []byte(text)}
	}
	want := []api.NodeCell{
		{ID: 0, CPUs: "0-1,4-5", Siblings: []string{"0,4", "1,5"}, MemoryBytes: 4 << 30, FreeBytes: 1<<30 + 1<<20 + 512<<10,
			HugePages: []api.NodeHugePages{{Size: api.HugePages2Mi, TotalBytes: 1 << 30, FreeBytes: 512 << 20}}},
		{ID: 10, CPUs: "2", MemoryBytes: 2 << 30, FreeBytes: 1 << 30},
	}
	got := Cells(f)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	if cells := Cells(fstest.MapFS{}); cells != nil {
		t.Errorf("cells of a kernel that shows none = %+v, want none", cells)
	}
}
