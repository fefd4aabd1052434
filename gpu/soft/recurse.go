package soft

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// Limits of what calls one another while it runs.
const (
	maxStack = 1 << 10   // calls of one lane
	maxSaved = 128 << 20 // bytes of saved frames, of one running block
)

// entered is what a machine needs to know of a function called dynamically.
type entered struct {
	name      string
	signature string
	entry     int // basic block
	regs      []ref
	from, to  uint32 // its part of local memory
	recursive bool   // it may be entered again before it returns
	local     bool   // it has .local variables, whose addresses it may hand on
}

// call is one entry of a group's stack.
type call struct {
	back  int      // basic block to return to
	fn    *entered // nil for one that is entered only once at a time
	saved bool     // the frame's older content is to be restored
}

// frameKey names a place for saved frames: each lane has at most one there.
type frameKey struct {
	depth int
	fn    *entered
}

// enter brings a group into a function that is called dynamically.
func (m *machine) enter(g *group, f *entered, back int) bool {
	if len(g.stack) >= maxStack {
		m.fault = fmt.Errorf("%w: function %s is called %d calls deep", abi.ErrLaunchFailed, f.name, len(g.stack))
		return false
	}
	again := f.recursive && slices.ContainsFunc(g.stack, func(c call) bool { return c.fn == f })
	if again {
		if m.fault = m.saveFrame(len(g.stack), f, g.act[:m.warps]); m.fault != nil {
			return false
		}
	}
	g.stack = append(g.stack, call{back: back, fn: f, saved: again})
	g.pc = f.entry
	return true
}

// words is what a lane's frame takes when saved.
func (f *entered) words() int { return len(f.regs) + int(f.to-f.from+7)/8 }

func (m *machine) saveFrame(depth int, f *entered, act []uint32) error {
	if f.local {
		return fmt.Errorf("%w: function %s calls itself and has .local variables: not supported", abi.ErrLaunchFailed, f.name)
	}
	key := frameKey{depth, f}
	store := m.saved[key]
	if store == nil {
		n := f.words() * m.lanes
		if m.savedBytes += 8 * n; m.savedBytes > maxSaved {
			return fmt.Errorf("%w: recursion of function %s takes more than %d MiB", abi.ErrLaunchFailed, f.name, maxSaved>>20)
		}
		store = make([]uint64, n)
		if m.saved == nil {
			m.saved = map[frameKey][]uint64{}
		}
		m.saved[key] = store
	}
	eachLane(act, func(l int) {
		v := store[l*f.words():][:f.words()]
		for i, r := range f.regs {
			v[i] = m.get(r, l)
		}
		for i := range v[len(f.regs):] {
			var b [8]byte
			copy(b[:], m.local[uint32(l)*m.stride+f.from:][8*i:f.to-f.from])
			v[len(f.regs)+i] = binary.LittleEndian.Uint64(b[:])
		}
	})
	return nil
}

func (m *machine) restoreFrame(depth int, f *entered, act []uint32) {
	store := m.saved[frameKey{depth, f}]
	eachLane(act, func(l int) {
		v := store[l*f.words():][:f.words()]
		for i, r := range f.regs {
			m.set(r, l, v[i])
		}
		for i, w := range v[len(f.regs):] {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], w)
			copy(m.local[uint32(l)*m.stride+f.from:][8*i:f.to-f.from], b[:])
		}
	})
}

// dynamic reports whether a function is called dynamically.
func (fr *frame) dynamic() bool { return fr.entered != nil }

// dynamics finds the functions of a kernel that are called dynamically: those
// whose address is taken, and those that may call themselves. A call of an
// address may be one of any function whose address is taken.
func (c *compiler) dynamics() {
	list := make([]*frame, 0, len(c.frames))
	for _, fr := range c.frames {
		fr.index = len(list)
		list = append(list, fr)
	}
	hub := len(list) // stands for every call of an address
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
			fr.enter(fr.dynamic() && fr.entered.recursive)
			c.p.code[c.mod.code[f]] = fr.entered
		}
	}
	for _, fr := range list {
		if fr.dynamic() {
			c.handOverMost = max(c.handOverMost, handOverSize(fr.f.Params), handOverSize(fr.f.Returns))
		}
	}
	c.handOverAt = (c.p.localBytes + handOverAlign - 1) &^ (handOverAlign - 1)
	c.p.localBytes = c.handOverAt + uint32(c.handOverMost)
}

// enter makes a function one that is called dynamically.
func (fr *frame) enter(recursive bool) {
	if fr.entered == nil {
		fr.entered = &entered{name: fr.f.Name, signature: signatureOf(fr.f), entry: fr.prologue, regs: fr.regs, from: fr.from, to: fr.to}
		for _, v := range fr.f.Vars {
			fr.entered.local = fr.entered.local || v.Space == ptx.Local
		}
	}
	fr.entered.recursive = recursive
}
