package abi

// Flags of a launch, and of a kernel in a graph.
const (
	LaunchCooperative = 1 << 0
	// LaunchClusterShift is the lowest bit of a cluster's size (1.5): 8 bits each
	// for its blocks in x, y and z, all 0 without a cluster.
	LaunchClusterShift = 8
)

// LaunchCluster returns the size of a cluster, in blocks, in a launch's flags.
func LaunchCluster(flags uint32) (cluster [3]uint32) {
	for i := range cluster {
		cluster[i] = flags >> (LaunchClusterShift + 8*i) & 0xff
	}
	return cluster
}
