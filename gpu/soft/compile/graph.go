package compile

import "github.com/basalt-gpu/basalt/gpu/ptx"

// node is a basic block that has no number yet.
type node struct {
	sync  *ptx.Inst   // first instruction, if it synchronizes
	insts []*ptx.Inst // plain instructions
	term  termKind
	inst  *ptx.Inst // the terminator
	succ  []int     // node numbers; for a conditional branch taken, not taken
}

type termKind uint8

const (
	termJump termKind = iota
	termBranch
	termTable // brx.idx
	termCall  // succ[0] is where it returns to
	termReturned
	termRet
	termExit
)

// synchronizes reports whether lanes wait for each other at an instruction.
func synchronizes(in *ptx.Inst) bool {
	switch in.Op {
	case "bar", "barrier":
		return true
	case "shfl", "vote", "match", "redux", "elect":
		return in.Has("sync")
	}
	return wholeWarp(in)
}

func terminates(in *ptx.Inst) bool {
	switch in.Op {
	case "bra", "brx", "ret", "exit":
		return true
	case "call":
		return !builtinCall(in)
	}
	return false
}

// buildGraph divides a function into nodes; node 0 is the entry. A guarded call, return
// or synchronizing instruction becomes a branch around it.
func buildGraph(f *ptx.Func) ([]node, error) {
	body := f.Body
	leader := make([]bool, len(body)+1)
	leader[0] = true
	for i := range body {
		in := &body[i]
		if terminates(in) {
			leader[i+1] = true
		}
		if synchronizes(in) {
			leader[i], leader[i+1] = true, leader[i+1] || in.Guard >= 0
		}
		for _, a := range in.Args {
			if a.Kind == ptx.KindLabel {
				leader[a.Target] = true
			}
			for _, t := range a.Targets {
				leader[t] = true
			}
		}
	}
	var nodes []node
	at := make([]int, len(body)+1) // node that starts at an instruction
	// Successors are first instruction numbers (>= 0) or ^node; they are resolved below.
	add := func(n node) int { nodes = append(nodes, n); return len(nodes) - 1 }
	for i := 0; i < len(body); {
		n := node{}
		start := i
		if synchronizes(&body[i]) && body[i].Guard < 0 {
			n.sync = &body[i]
			i++
		}
		for i < len(body) && (i == start || !leader[i]) && !terminates(&body[i]) && !(synchronizes(&body[i])) {
			n.insts = append(n.insts, &body[i])
			i++
		}
		if i >= len(body) || leader[i] && (i > start) || !terminates(&body[i]) && !synchronizes(&body[i]) {
			n.term, n.succ = termJump, []int{i}
			at[start] = add(n)
			continue
		}
		in := &body[i]
		i++
		if synchronizes(in) { // guarded
			s := add(node{sync: in, term: termJump, succ: []int{i}})
			n.term, n.inst, n.succ = termBranch, in, []int{^s, i}
			at[start] = add(n)
			continue
		}
		target, err := terminator(in, i, add)
		if err != nil {
			return nil, err
		}
		if in.Guard >= 0 && in.Op != "bra" {
			s := add(target)
			n.term, n.inst, n.succ = termBranch, in, []int{^s, i}
		} else {
			n.term, n.inst, n.succ = target.term, in, target.succ
		}
		at[start] = add(n)
	}
	at[len(body)] = add(node{term: termRet}) // the end of the body is a return
	for i := range nodes {
		for j, s := range nodes[i].succ {
			if s < 0 {
				nodes[i].succ[j] = ^s
			} else {
				nodes[i].succ[j] = at[s]
			}
		}
	}
	if e := at[0]; e != 0 { // the entry is first
		swapNodes(nodes, 0, e)
	}
	return nodes, nil
}

func swapNodes(nodes []node, a, b int) {
	nodes[a], nodes[b] = nodes[b], nodes[a]
	for i := range nodes {
		for j, s := range nodes[i].succ {
			switch s {
			case a:
				nodes[i].succ[j] = b
			case b:
				nodes[i].succ[j] = a
			}
		}
	}
}

// terminator returns the node that an unguarded terminator would end.
func terminator(in *ptx.Inst, next int, add func(node) int) (node, error) {
	n := node{inst: in}
	switch in.Op {
	case "bra":
		if err := operands(in, 1); err != nil {
			return n, err
		}
		if in.Args[0].Kind != ptx.KindLabel {
			return n, broken(in, kindOf(&in.Args[0]), "the operand of bra must be a label")
		}
		n.term, n.succ = termJump, []int{in.Args[0].Target}
		if in.Guard >= 0 {
			n.term, n.succ = termBranch, []int{in.Args[0].Target, next}
		}
	case "brx":
		if err := operands(in, 2); err != nil {
			return n, err
		}
		if in.Args[1].Kind != ptx.KindTargets {
			return n, broken(in, kindOf(&in.Args[1]), "operand 2 of brx.idx must be the label of a .branchtargets table")
		}
		n.term = termTable
		n.succ = append(n.succ, in.Args[1].Targets...)
	case "call":
		r := add(node{term: termReturned, inst: in, succ: []int{next}})
		n.term, n.succ = termCall, []int{^r}
	case "ret":
		n.term = termRet
	case "exit":
		n.term = termExit
	}
	return n, nil
}

// orderNodes numbers nodes so that forward edges lead to higher numbers and every loop
// is contiguous: strongly connected components in topological order, each with its
// header first and ordered recursively.
func orderNodes(nodes []node) []int {
	all := make([]int, len(nodes))
	for i := range all {
		all[i] = i
	}
	o := &orderer{nodes: nodes, in: make([]int, len(nodes))}
	o.order(all, 0, 1)
	return o.out
}

type orderer struct {
	nodes []node
	in    []int // the innermost region of each node
	next  int   // last region number given
	out   []int
}

// maxLoopDepth limits the work for hostile graphs. Deeper loops are executed correctly,
// but their lanes may not reconverge.
const maxLoopDepth = 64

func (o *orderer) order(set []int, entry, depth int) {
	o.next++
	region := o.next
	for _, n := range set {
		o.in[n] = region
	}
	comps := o.components(set, region)
	for i := len(comps) - 1; i >= 0; i-- {
		c := comps[i]
		head := o.header(c, entry, region)
		o.out = append(o.out, head)
		rest := make([]int, 0, len(c))
		for _, n := range c {
			if n != head {
				rest = append(rest, n)
			}
		}
		switch {
		case len(rest) == 0:
		case depth >= maxLoopDepth:
			o.out = append(o.out, rest...)
		default:
			o.order(rest, head, depth+1)
		}
	}
}

// header returns the node of a loop that is entered first.
func (o *orderer) header(c []int, entry, region int) int {
	if len(c) == 1 {
		return c[0]
	}
	o.next++
	inside := o.next
	for _, n := range c {
		o.in[n] = inside
		if n == entry {
			return n
		}
	}
	for _, n := range o.out { // entered from nodes that have been placed
		for _, s := range o.nodes[n].succ {
			if o.in[s] == inside {
				return s
			}
		}
	}
	return c[len(c)-1]
}

// components returns the strongly connected components of a region in reverse
// topological order, by Tarjan's algorithm with an explicit stack.
func (o *orderer) components(set []int, region int) [][]int {
	index := make(map[int]int, len(set))
	low := make(map[int]int, len(set))
	on := make(map[int]bool, len(set))
	var stack []int
	var comps [][]int
	type frame struct{ n, i int }
	visit := func(root int) {
		frames := []frame{{root, 0}}
		for len(frames) > 0 {
			f := &frames[len(frames)-1]
			n := f.n
			if f.i == 0 {
				index[n] = len(index) + 1
				low[n] = index[n]
				stack = append(stack, n)
				on[n] = true
			}
			descended := false
			for f.i < len(o.nodes[n].succ) {
				s := o.nodes[n].succ[f.i]
				f.i++
				if o.in[s] != region {
					continue
				}
				if index[s] == 0 {
					frames = append(frames, frame{s, 0})
					descended = true
					break
				}
				if on[s] {
					low[n] = min(low[n], index[s])
				}
			}
			if descended {
				continue
			}
			if low[n] == index[n] {
				var c []int
				for {
					v := stack[len(stack)-1]
					stack = stack[:len(stack)-1]
					on[v] = false
					c = append(c, v)
					if v == n {
						break
					}
				}
				comps = append(comps, c)
			}
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				p := frames[len(frames)-1].n
				low[p] = min(low[p], low[n])
			}
		}
	}
	for _, n := range set {
		if index[n] == 0 {
			visit(n)
		}
	}
	return comps
}
