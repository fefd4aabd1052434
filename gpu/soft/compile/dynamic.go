package compile

import "github.com/basalt-gpu/basalt/gpu/soft/ir"

// dynamic reports whether a function is called dynamically.
func (fr *frame) dynamic() bool { return fr.callee != nil }

// dynamics finds the functions of a kernel that are called dynamically: those whose
// address is taken, and those that may call themselves. A call of an address may be one
// of any function whose address is taken.
func (c *compiler) dynamics() {
	list := make([]*frame, 0, len(c.frames))
	for _, fr := range c.frames {
		fr.index = len(list)
		list = append(list, fr)
	}
	hub := len(list) // represents every call of an address
	nodes := make([]node, hub+1)
	self := make([]bool, hub+1)
	for i, fr := range list {
		for _, f := range fr.calls {
			nodes[i].succ = append(nodes[i].succ, c.frames[f].index)
			self[i] = self[i] || c.frames[f] == fr
		}
		if fr.callsAddress {
			nodes[i].succ = append(nodes[i].succ, hub)
		}
	}
	if c.callsAddress {
		for _, f := range c.mod.taken {
			nodes[hub].succ = append(nodes[hub].succ, c.frames[f].index)
		}
	}
	o := &orderer{nodes: nodes, in: make([]int, len(nodes))}
	all := make([]int, len(nodes))
	for i := range all {
		all[i] = i
	}
	for _, comp := range o.components(all, 0) {
		for _, i := range comp {
			if i != hub && (len(comp) > 1 || self[i]) {
				list[i].enter(true)
			}
		}
	}
	if c.callsAddress {
		for _, f := range c.mod.taken {
			fr := c.frames[f]
			fr.enter(fr.dynamic() && fr.callee.Recursive)
			c.p.Code[c.mod.code[f]] = fr.callee
		}
	}
	c.placeStacks(list)
	for _, fr := range list {
		if fr.dynamic() {
			c.handOverMost = max(c.handOverMost, handOverSize(fr.f.Params), handOverSize(fr.f.Returns))
		}
	}
	c.handOverAt = (c.p.LocalBytes + handOverAlign - 1) &^ (handOverAlign - 1)
	c.p.LocalBytes = c.handOverAt + uint32(c.handOverMost)
}

// enter makes a function one that is called dynamically.
func (fr *frame) enter(recursive bool) {
	if fr.callee == nil {
		fr.callee = &ir.Callee{Name: fr.f.Name, Signature: signatureOf(fr.f), Entry: fr.prologue, Regs: fr.regs, From: fr.from, To: fr.to}
	}
	fr.callee.Recursive = recursive
}
