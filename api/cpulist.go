package api

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxCPU limits the numbers of CPUs: the kernel's largest NR_CPUS on x86-64 is 8192.
const maxCPU = 8191

// ParseCPUs parses a list of CPUs in the kernel's format (cpuset(7), "List format"),
// such as "0-3,8". The result is ascending, without duplicates.
func ParseCPUs(list string) (cpus []int, err error) {
	list = strings.TrimSpace(list)
	if list == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, err1 := strconv.ParseUint(low, 10, 16)
		to, err2 := strconv.ParseUint(high, 10, 16)
		if err1 != nil || err2 != nil || from > to || to > maxCPU {
			return nil, fmt.Errorf("%q is not a list of CPUs, want e.g. 0-3,8", clip(list))
		}
		for c := from; c <= to; c++ {
			cpus = append(cpus, int(c))
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

// FormatCPUs returns the list of CPUs in the kernel's format. The CPUs may be in any
// order.
func FormatCPUs(cpus []int) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(cpus)))
	var parts []string
	for i := 0; i < len(sorted); {
		last := i
		for last+1 < len(sorted) && sorted[last+1] == sorted[last]+1 {
			last++
		}
		part := strconv.Itoa(sorted[i])
		if last > i {
			part += "-" + strconv.Itoa(sorted[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return strings.Join(parts, ",")
}

// KnownCPUs parses a list that a node or the planner has written; an invalid one is
// empty.
func KnownCPUs(list string) []int {
	cpus, err := ParseCPUs(list)
	if err != nil {
		return nil
	}
	return cpus
}

// Cores returns the CPUs of a cell by core, in the order of each core's first CPU.
func (c NodeCell) Cores() (cores [][]int) {
	online, in := KnownCPUs(c.CPUs), map[int]bool{}
	for _, s := range c.Siblings {
		core := slices.DeleteFunc(KnownCPUs(s), func(cpu int) bool { return in[cpu] || !slices.Contains(online, cpu) })
		for _, cpu := range core {
			in[cpu] = true
		}
		if len(core) > 0 {
			cores = append(cores, core)
		}
	}
	for _, cpu := range online {
		if !in[cpu] {
			cores = append(cores, []int{cpu})
		}
	}
	slices.SortFunc(cores, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	return cores
}
