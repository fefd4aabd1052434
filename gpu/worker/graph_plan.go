package worker

import "github.com/basalt-gpu/basalt/gpu/abi"

// maxLanes is the number of nodes of a graph that can run concurrently: one in
// the launch's own stream, and one in each of maxLanes-1 streams that all graphs
// of a context share.
const maxLanes = 8

// graphPlan has the stream of each node of a graph and what the node waits for.
// Lane 0 is the stream of the launch.
type graphPlan struct {
	steps  []graphStep // one per node, in the nodes' order
	lanes  int
	events int
	joins  []int // lanes that lane 0 waits for at the end
}

// graphStep is a node's part of a plan.
type graphStep struct {
	lane  int
	first bool  // first in a lane other than 0: it waits for the graph's beginning
	waits []int // events
	event int   // recorded after the node; -1: none
}

// planGraph distributes nodes over lanes. A node continues the lane of a
// dependency that no other node has continued, so a chain needs no event; other
// nodes open lanes as long as there are free ones. Nodes depend only on nodes
// before them, and are submitted in order, so no distribution can cause a
// deadlock.
func planGraph(nodes []abi.GraphNode) graphPlan {
	p := graphPlan{steps: make([]graphStep, len(nodes))}
	var tails [maxLanes]int // last node of each lane
	var seen [maxLanes][maxLanes]int
	for i := range tails {
		tails[i] = -1
		for k := range seen[i] {
			seen[i][k] = -1
		}
	}
	for i, n := range nodes {
		st := &p.steps[i]
		st.event = -1
		st.lane = p.choose(n, &tails)
		st.first = st.lane > 0 && tails[st.lane] < 0
		for _, dep := range n.Deps {
			from := &p.steps[dep]
			if from.lane == st.lane || seen[st.lane][from.lane] >= int(dep) {
				continue
			}
			if from.event < 0 {
				from.event = p.events
				p.events++
			}
			st.waits = append(st.waits, from.event)
			seen[st.lane][from.lane] = int(dep)
		}
		tails[st.lane] = i
	}
	for lane := 1; lane < p.lanes; lane++ {
		if seen[0][lane] < tails[lane] {
			p.joins = append(p.joins, lane)
		}
	}
	return p
}

// choose returns the lane of the next node. Copies to the host are in the stream of
// the launch: whoever waits for that stream must find their bytes, even if a driver
// writes them after the card has continued.
func (p *graphPlan) choose(n abi.GraphNode, tails *[maxLanes]int) int {
	if b, ok := n.Body.(abi.GraphCopy); ok && b.What == abi.GraphCopyDtoH {
		p.lanes = max(p.lanes, 1)
		return 0
	}
	for _, dep := range n.Deps {
		if lane := p.steps[dep].lane; tails[lane] == int(dep) {
			return lane
		}
	}
	if p.lanes < maxLanes {
		p.lanes++
		return p.lanes - 1
	}
	oldest := 0
	for lane, tail := range tails {
		if tail < tails[oldest] {
			oldest = lane
		}
	}
	return oldest
}
