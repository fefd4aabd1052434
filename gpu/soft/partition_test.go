package soft_test

// partitionCases are kernels of partitions of a warp.
var partitionCases = []kernelCase{
	{file: "partition", name: "binaries", elem: 4, blocks: []int{32, 48, 64, 256}, ref: ofWarps(func(x, y, out []int32) {
		for l := range out {
			odd := peers(len(x), func(k int) bool { return (x[k]^x[l])&1 == 0 })
			both := peers(len(x), func(k int) bool { return (x[k]^x[l])&1 == 0 && (y[k]^y[l])&1 == 0 })
			mirror := odd[len(odd)-1-rank(odd, l)]
			out[l] = sumFrom(x, both, l)*3 + y[mirror] + int32(len(both))*1000
		}
	})},
	{file: "partition", name: "labels", elem: 4, blocks: []int{32, 48, 64, 256}, ref: ofWarps(func(x, y, out []int32) {
		for l := range out {
			g := peers(len(x), func(k int) bool { return k/16 == l/16 && (y[k]^y[l])&3 == 0 })
			h := peers(len(x), func(k int) bool { return k/16 == l/16 && (y[k]^y[l])&3 == 0 && (x[k]^x[l])&1 == 0 })
			out[l] = sumFrom(x, g, l) + 7*sumFrom(y, h, l) + int32(100*rank(g, l)+rank(h, l))
		}
	})},
	{file: "partition", name: "aggregated", elem: 4, blocks: []int{32, 48, 64, 256}, ref: ofWarps(func(x, y, out []int32) {
		for l := range out {
			g := peers(len(x), func(k int) bool { return (y[k]^y[l])&3 == 0 })
			rounds := int32(0)
			for _, k := range g {
				rounds = max(rounds, x[k]&3)
			}
			size, slot := int32(len(g)), int32(0)
			count := 10*(y[l]&3) + rounds*size
			if rounds > 0 {
				slot = count - size
			}
			out[l] = (slot+int32(rank(g, l)))*1000 + count
		}
	})},
}

// peers returns the lanes of a partition.
func peers(lanes int, in func(k int) bool) (list []int) {
	for k := range lanes {
		if in(k) {
			list = append(list, k)
		}
	}
	return list
}

// rank returns the index of a lane among its peers.
func rank(peers []int, l int) int {
	for i, k := range peers {
		if k == l {
			return i
		}
	}
	return -1
}

// sumFrom returns the sum of the values of a lane and of its peers after it.
func sumFrom(v []int32, peers []int, l int) (sum int32) {
	for _, k := range peers {
		if k >= l {
			sum += v[k]
		}
	}
	return sum
}
