// Package placement counts what still fits on nodes and GPUs. It is pure, and the one
// place that knows the rules of capacity: the planner places an instance where at
// least one of its kind fits, and offers show how many do.
//
//	nodes, GPUs, pools, assignments ─► Room ─► OnNode(node, want) ─► how many, the GPU with most room, or why none
package placement
