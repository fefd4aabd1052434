package shm

// Coalesce joins adjacent extents that are contiguous in one file: the pages of a
// machine arrive one by one, and every mapping costs the kernel an area
// (vm.max_map_count, 65,530 by default).
func Coalesce(extents []Extent) (all []Extent) {
	for _, e := range extents {
		if n := len(all); n > 0 && all[n-1].FD == e.FD && all[n-1].Offset+all[n-1].Length == e.Offset {
			all[n-1].Length += e.Length
			continue
		}
		all = append(all, e)
	}
	return all
}
