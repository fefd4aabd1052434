// Package placement computes what still fits on nodes and GPUs. It is pure, and the
// only place that implements the rules of capacity: the planner places an instance
// where at least one of its size fits, and offers show how many do.
//
//	nodes, GPUs, pools, assignments ─► Room ─► OnNode(node, want) ─► how many, the GPU with the most room, or why none
package placement
