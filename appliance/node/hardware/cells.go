package hardware

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// Cells returns the NUMA cells that have CPUs, by number
// (Documentation/ABI/stable/sysfs-devices-node), with those of their CPUs that this
// process may use.
func Cells(f fs.FS) (all []api.NodeCell) {
	const dir = "sys/devices/system/node"
	may := allowed(f)
	for _, name := range names(f, dir, "node") {
		id, err := strconv.ParseInt(strings.TrimPrefix(name, "node"), 10, 16)
		if err != nil {
			continue
		}
		cpus := slices.DeleteFunc(api.KnownCPUs(line(f, dir, name, "cpulist")), func(cpu int) bool { return may != nil && !slices.Contains(may, cpu) })
		if len(cpus) == 0 { // memory alone
			continue
		}
		c := api.NodeCell{ID: id, CPUs: api.FormatCPUs(cpus), Siblings: siblings(f, cpus), HugePages: pagesIn(f, path.Join(dir, name, "hugepages"))}
		c.MemoryBytes, c.FreeBytes = cellMemory(read(f, path.Join(dir, name, "meminfo")))
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b api.NodeCell) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// allowed returns the CPUs that this process may use (proc(5), Cpus_allowed_list), or nil
// if that is unknown.
func allowed(f fs.FS) []int {
	for text := range strings.Lines(read(f, "proc/self/status")) {
		if list, ok := strings.CutPrefix(text, "Cpus_allowed_list:"); ok {
			return api.KnownCPUs(list)
		}
	}
	return nil
}

// siblings returns the CPUs of each core, of those with several.
func siblings(f fs.FS, cpus []int) (all []string) {
	seen := map[int]bool{}
	for _, cpu := range cpus {
		core := slices.DeleteFunc(api.KnownCPUs(line(f, "sys/devices/system/cpu", fmt.Sprintf("cpu%d", cpu), "topology/thread_siblings_list")),
			func(other int) bool { return seen[other] || !slices.Contains(cpus, other) })
		for _, other := range core {
			seen[other] = true
		}
		if len(core) > 1 {
			all = append(all, api.FormatCPUs(core))
		}
	}
	return all
}

// cellMemory returns a cell's memory in bytes and what of it is unused or holds only
// cached files, from its meminfo.
func cellMemory(meminfo string) (total, free int64) {
	kib := map[string]int64{}
	for text := range strings.Lines(meminfo) { // "Node 0 MemTotal:  1024 kB"
		name, value, ok := strings.Cut(text, ":")
		words := strings.Fields(name)
		if !ok || len(words) == 0 {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 50)
		if err == nil {
			kib[words[len(words)-1]] = n
		}
	}
	total = kib["MemTotal"]
	free = kib["MemFree"] + max(kib["FilePages"]-kib["Shmem"], 0) + kib["SReclaimable"]
	return total << 10, min(max(free, 0), total) << 10
}
