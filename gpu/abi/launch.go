package abi

// The flags of a launch, of its own and of a graph's kernel.
const (
	LaunchCooperative = 1 << 0
	// LaunchClusterShift is where a cluster's size begins (1.5): 8 bits each for its
	// blocks in x, y and z, all 0 without a cluster.
	LaunchClusterShift = 8
)

// LaunchCluster returns the blocks of a cluster that a launch's flags say.
func LaunchCluster(flags uint32) (cluster [3]uint32) {
	for i := range cluster {
		cluster[i] = flags >> (LaunchClusterShift + 8*i) & 0xff
	}
	return cluster
}
