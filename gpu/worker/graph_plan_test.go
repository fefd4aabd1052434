package worker

import (
	"math/rand"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// clock holds, for each lane, how many of its steps have happened before a point.
type clock [maxLanes]int

func (c *clock) join(o clock) {
	for i := range c {
		c[i] = max(c[i], o[i])
	}
}

// TestPlanKeepsDependencies checks, for random graphs, that what a plan submits
// makes each node wait for its dependencies and the end wait for all nodes.
func TestPlanKeepsDependencies(t *testing.T) {
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		nodes := make([]abi.GraphNode, 1+r.Intn(60))
		for i := range nodes {
			for k := r.Intn(4); k > 0 && i > 0; k-- {
				nodes[i].Deps = append(nodes[i].Deps, uint32(r.Intn(i)))
			}
		}
		for i := range nodes {
			if r.Intn(5) == 0 {
				nodes[i].Body = abi.GraphCopy{What: abi.GraphCopyDtoH}
			}
		}
		p := planGraph(nodes)
		var lanes [maxLanes]clock
		events := make([]clock, p.events)
		place := make([]int, len(nodes)) // the node's index in its lane, from 1
		for i, st := range p.steps {
			if nodes[i].Body != nil && st.lane != 0 {
				t.Fatalf("seed %d: node %d copies to the host in lane %d, want 0", seed, i, st.lane)
			}
			now := &lanes[st.lane]
			for _, e := range st.waits {
				now.join(events[e])
			}
			for _, dep := range nodes[i].Deps {
				if lane := p.steps[dep].lane; now[lane] < place[dep] {
					t.Fatalf("seed %d: node %d in lane %d does not wait for its dependency %d in lane %d", seed, i, st.lane, dep, lane)
				}
			}
			if fresh := st.lane > 0 && now[st.lane] == 0; fresh != st.first {
				t.Fatalf("seed %d: node %d: first of its lane = %v, want %v", seed, i, st.first, fresh)
			}
			now[st.lane]++
			place[i] = now[st.lane]
			if st.event >= 0 {
				events[st.event] = *now
			}
		}
		for _, lane := range p.joins {
			lanes[0].join(lanes[lane])
		}
		for i := range nodes {
			if lane := p.steps[i].lane; lanes[0][lane] < place[i] {
				t.Fatalf("seed %d: the end does not wait for node %d in lane %d", seed, i, lane)
			}
		}
	}
}

func TestPlanOfAChainNeedsNothing(t *testing.T) {
	nodes := make([]abi.GraphNode, 100)
	for i := 1; i < len(nodes); i++ {
		nodes[i].Deps = []uint32{uint32(i - 1)}
	}
	if p := planGraph(nodes); p.lanes != 1 || p.events != 0 || len(p.joins) != 0 {
		t.Errorf("chain: %d lanes, %d events, joins %v; want 1 lane and nothing else", p.lanes, p.events, p.joins)
	}
	wide := make([]abi.GraphNode, 100)
	if p := planGraph(wide); p.lanes != maxLanes || p.events != 0 || len(p.joins) != maxLanes-1 {
		t.Errorf("100 independent nodes: %d lanes, %d events, joins %v; want %d lanes, each joined at the end", p.lanes, p.events, p.joins, maxLanes)
	}
}
