package native

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// The code that computes the steady registers of a warp: for each one the first lane's
// value, or a predicate. A region executes it once for each warp of a call, when it
// first needs one of them (region.scalars), and for all of them at once. Where values
// wrap around between the lanes, which the forms do not describe, the warp does not use
// them.

// maxScalars is the maximum number of scalars of a region.
const maxScalars = 96

// scalar is the location of a steady value of the first lane: a constant, or memory.
type scalar struct {
	constant bool
	n        uint64
	at       amd64.Arg
	slot     int // of the context, or -1
	class    ir.Class
}

// The values of a predicate in a warp: true in all lanes, in none, or not known.
const (
	holds   = 1
	fails   = 2
	unknown = holds | fails
)

// scalars generates the code. A call of a region stays in one part of it, the blocks
// between barriers (region.parts), and computes what the blocks of that part need.
type scalars struct {
	steady *Steady
	layout layout
	made   map[ir.Ref]scalar
	last   map[ir.Ref]scalar // the last lane's values of rising registers
	slots  int
	nodes  []scalarNode
	node   map[ir.Ref]int // of made
	wraps  map[wrap]int
	in     int                        // the node that is being made, or none
	part   int                        // the part of the region whose blocks are compiled
	roots  map[int][]int              // nodes that the blocks of a part need
	orders map[int][]int              // of order
	fixed  []func(a *amd64.Assembler) // code of values that are the same in all warps
	alike  bool                       // the value that is being made is the same in all warps
	fail   amd64.Label
	kept   int // the slot whose value is in RAX, or -1
}

// scalarNode is the code of a value, or of a check, and the nodes whose code must precede
// it.
type scalarNode struct {
	needs []int
	emits []func(a *amd64.Assembler)
}

// none is the number of no node.
const none = -1

// wrap is a check that a register does not wrap around in the warp.
type wrap struct {
	r      ir.Ref
	signed bool
}

func newScalars(s *Steady, l layout) *scalars {
	return &scalars{steady: s, layout: l, made: map[ir.Ref]scalar{}, last: map[ir.Ref]scalar{}, node: map[ir.Ref]int{}, wraps: map[wrap]int{}, in: none, roots: map[int][]int{}, orders: map[int][]int{}}
}

// emit adds code.
func (c *scalars) emit(f func(a *amd64.Assembler)) {
	if c.alike {
		c.fixed = append(c.fixed, f)
	} else {
		c.nodes[c.in].emits = append(c.nodes[c.in].emits, f)
	}
}

// begin makes a new node the one that is being made, and returns its number and a
// function that ends this.
func (c *scalars) begin() (n int, end func()) {
	n, before := len(c.nodes), c.in
	c.nodes, c.in = append(c.nodes, scalarNode{}), n
	return n, func() { c.in = before }
}

// uses records that the node that is being made, or else a block of the part, needs a
// node.
func (c *scalars) uses(n int) {
	if c.in == none {
		c.roots[c.part] = append(c.roots[c.part], n)
	} else {
		c.nodes[c.in].needs = append(c.nodes[c.in].needs, n)
	}
}

// order returns the nodes that the blocks of a part need, each after those that it
// needs. All needs must have been recorded.
func (c *scalars) order(part int) (list []int) {
	if list, ok := c.orders[part]; ok {
		return list
	}
	defer func() { c.orders[part] = list }()
	seen := make([]bool, len(c.nodes))
	var visit func(n int)
	visit = func(n int) {
		if seen[n] {
			return
		}
		seen[n] = true
		for _, m := range c.nodes[n].needs {
			visit(m)
		}
		list = append(list, n)
	}
	for _, n := range c.roots[part] {
		visit(n)
	}
	return list
}

// known returns the location of a value that the part of the region computes.
func (c *scalars) known(r ir.Ref) (s scalar, ok bool) {
	n, ok := c.node[r]
	return c.made[r], ok && slices.Contains(c.order(c.part), n)
}

// slot allocates a location for a value.
func (c *scalars) slot(class ir.Class) scalar {
	n := c.slots
	c.slots++
	return scalar{at: amd64.Mem(regContext, scalarOffset(n%maxScalars)), slot: n, class: class}
}

// need returns the location where the value of a steady register will be.
func (c *scalars) need(r ir.Ref) scalar {
	n, ok := c.node[r]
	if !ok {
		var end func()
		n, end = c.begin()
		c.made[r] = c.make(r, c.steady.of(r))
		c.node[r] = n
		end()
	}
	c.uses(n)
	return c.made[r]
}

func (c *scalars) make(r ir.Ref, x *steady) scalar {
	before := c.alike
	c.alike = c.steady.alike(r)
	defer func() { c.alike = before }()
	if n, ok := c.steady.constant(r); ok {
		return scalar{constant: true, n: n, slot: -1, class: r.Class}
	}
	if x.of == nil { // a special register: read the first lane's value
		return scalar{at: c.layout.memory(nil, place{kind: file32, n: uint64(r.Slot)}), slot: -1, class: r.Class}
	}
	switch o := x.of.Op.(type) {
	case *ir.Load:
		d, at := c.slot(r.Class), int32(0)
		n, _ := c.steady.param(o)
		at = int32(n)
		c.emit(func(a *amd64.Assembler) {
			a.Emit(amd64.MOV, amd64.Q(room), amd64.Mem(regContext, paramsOffset+windowData))
			a.Emit(amd64.MOV, d.reg(amd64.RAX), amd64.Mem(room, at))
			c.store(a, d)
		})
		return d
	case *ir.Logic:
		return c.logic(o)
	default:
		op := x.of.Op.(*ir.Arith)
		rule := c.steady.rules[op.F.Name]
		if rule.same || op.F.Name == "plus.b64" && op.F.Constants[0] == 0 {
			return c.need(op.S[0])
		}
		for _, s := range op.S {
			c.need(s)
		}
		d := c.slot(r.Class)
		if x.form == rising {
			c.last[r] = c.slot(r.Class)
		}
		rule.code(c, op, d)
		return d
	}
}

// reg returns a register as wide as the value.
func (s scalar) reg(r amd64.Reg) amd64.Arg {
	if s.class == ir.Class64 {
		return amd64.Q(r)
	}
	return amd64.D(r)
}

// load loads a value into a register; one of 32 bits is zero-extended.
func (c *scalars) load(a *amd64.Assembler, r amd64.Reg, s scalar) {
	if r == amd64.RAX {
		kept := c.kept
		if c.kept = -1; s.slot >= 0 && s.slot == kept {
			return
		}
	}
	switch {
	case !s.constant:
		a.Emit(amd64.MOV, s.reg(r), s.at)
	case s.class == ir.Class64 && int64(s.n) != int64(int32(s.n)):
		a.Emit(amd64.MOV, amd64.Q(r), amd64.Imm(int64(s.n)))
	default:
		a.Emit(amd64.MOV, s.reg(r), amd64.Imm(int64(int32(s.n))))
	}
}

// with applies an instruction to RAX and a value.
func (c *scalars) with(a *amd64.Assembler, in *amd64.Inst, s scalar) {
	switch {
	case !s.constant:
		a.Emit(in, s.reg(amd64.RAX), s.at)
	case in == amd64.IMUL || s.class == ir.Class64 && int64(s.n) != int64(int32(s.n)):
		c.load(a, room, s)
		a.Emit(in, s.reg(amd64.RAX), s.reg(room))
	default:
		a.Emit(in, s.reg(amd64.RAX), amd64.Imm(int64(int32(s.n))))
	}
}

// store stores RAX to a location.
func (c *scalars) store(a *amd64.Assembler, d scalar) {
	a.Emit(amd64.MOV, d.at, d.reg(amd64.RAX))
	c.kept = d.slot
}

// binary adds an operation on two values.
func (c *scalars) binary(o *ir.Arith, d scalar, in *amd64.Inst) {
	x, y := c.need(o.S[0]), c.need(o.S[1])
	c.emit(func(a *amd64.Assembler) {
		c.load(a, amd64.RAX, x)
		c.with(a, in, y)
		c.store(a, d)
	})
}

func (c *scalars) add(o *ir.Arith, d scalar) { c.binary(o, d, amd64.ADD) }
func (c *scalars) sub(o *ir.Arith, d scalar) { c.binary(o, d, amd64.SUB) }
func (c *scalars) and(o *ir.Arith, d scalar) { c.binary(o, d, amd64.AND) }
func (c *scalars) or(o *ir.Arith, d scalar)  { c.binary(o, d, amd64.OR) }

// plus adds the addition of a constant.
func (c *scalars) plus(o *ir.Arith, d scalar) {
	x, k := c.need(o.S[0]), scalar{constant: true, n: o.F.Constants[0], class: ir.Class64}
	c.emit(func(a *amd64.Assembler) {
		c.load(a, amd64.RAX, x)
		c.with(a, amd64.ADD, k)
		c.store(a, d)
	})
}

func (c *scalars) mul(o *ir.Arith, d scalar) {
	x, y := c.need(o.S[0]), c.need(o.S[1])
	c.emit(func(a *amd64.Assembler) {
		c.load(a, amd64.RAX, x)
		c.with(a, amd64.IMUL, y)
		if len(o.S) == 3 {
			c.with(a, amd64.ADD, c.made[o.S[2]])
		}
		c.store(a, d)
	})
}

// mulWide adds a multiplication whose factors are widened first.
func (c *scalars) mulWide(o *ir.Arith, d scalar) {
	signed := strings.Contains(o.F.Name, ".s32")
	x, y := c.need(o.S[0]), c.need(o.S[1])
	c.straight(o.S[0], signed)
	c.straight(o.S[1], signed)
	c.emit(func(a *amd64.Assembler) {
		c.wide(a, amd64.RAX, x, signed)
		if y.constant && y.n <= maxStep {
			a.Emit(amd64.IMUL, amd64.Q(amd64.RAX), amd64.Q(amd64.RAX), amd64.Imm(int64(y.n)))
		} else {
			c.wide(a, room, y, signed)
			a.Emit(amd64.IMUL, amd64.Q(amd64.RAX), amd64.Q(room))
		}
		if len(o.S) == 3 {
			c.with(a, amd64.ADD, c.made[o.S[2]])
		}
		c.store(a, d)
	})
}

// wide loads a value of 32 bits, extended to 64.
func (c *scalars) wide(a *amd64.Assembler, r amd64.Reg, s scalar, signed bool) {
	c.load(a, r, s)
	if signed {
		a.Emit(amd64.MOVSXD, amd64.Q(r), amd64.D(r))
	}
}

func (c *scalars) shift(o *ir.Arith, d scalar, in *amd64.Inst) {
	x := c.need(o.S[0])
	k, _ := c.steady.constant(o.S[1])
	c.emit(func(a *amd64.Assembler) {
		c.load(a, amd64.RAX, x)
		a.Emit(in, d.reg(amd64.RAX), amd64.Imm(int64(k)))
		c.store(a, d)
	})
}

func (c *scalars) shl(o *ir.Arith, d scalar) { c.shift(o, d, amd64.SHL) }
func (c *scalars) shr(o *ir.Arith, d scalar) { c.shift(o, d, amd64.SHR) }

// widen adds the conversion of 32 bits to 64.
func (c *scalars) widen(o *ir.Arith, d scalar) {
	signed := strings.HasSuffix(o.F.Name, ".s32")
	x := c.need(o.S[0])
	c.straight(o.S[0], signed)
	c.emit(func(a *amd64.Assembler) {
		c.wide(a, amd64.RAX, x, signed)
		c.store(a, d)
	})
}

// low adds the conversion of 64 bits to the low 32.
func (c *scalars) low(o *ir.Arith, d scalar) {
	x := c.need(o.S[0])
	c.emit(func(a *amd64.Assembler) {
		c.load(a, amd64.RAX, x)
		c.store(a, d)
	})
}

// straight checks that a register does not wrap around from the first lane to the last.
func (c *scalars) straight(r ir.Ref, signed bool) {
	x := c.steady.of(r)
	if x.form != affine || x.step == 0 || x.small {
		return
	}
	if n, ok := c.wraps[wrap{r, signed}]; ok {
		c.uses(n)
		return
	}
	n, end := c.begin()
	c.wraps[wrap{r, signed}] = n
	s, more := c.need(r), x.step*(ir.WarpSize-1)
	c.emit(func(a *amd64.Assembler) {
		c.load(a, amd64.RAX, s)
		if more > 0 {
			a.Emit(amd64.ADD, amd64.D(amd64.RAX), amd64.Imm(more))
		} else {
			a.Emit(amd64.SUB, amd64.D(amd64.RAX), amd64.Imm(-more))
		}
		if signed {
			a.JumpIf(amd64.CondO, c.fail)
		} else {
			a.JumpIf(amd64.CondB, c.fail)
		}
	})
	end()
	c.uses(n)
}

// end loads the value of a register in the last lane.
func (c *scalars) end(a *amd64.Assembler, to amd64.Reg, r ir.Ref) {
	x := c.steady.of(r)
	if x.form == rising {
		c.load(a, to, c.last[r])
		return
	}
	c.load(a, to, c.made[r])
	c.fromFirst(a, to, r)
}

// fromFirst replaces the value of a register in the first lane by that in the last.
func (c *scalars) fromFirst(a *amd64.Assembler, to amd64.Reg, r ir.Ref) {
	switch x := c.steady.of(r); {
	case x.form == rising:
		c.load(a, to, c.last[r])
	case x.step != 0:
		a.Emit(amd64.ADD, amd64.D(to), amd64.Imm(x.step*(ir.WarpSize-1)))
	}
}

// choose adds the minimum or maximum of two values, in the first lane and in the last.
func (c *scalars) choose(o *ir.Arith, d scalar) {
	signed := strings.HasSuffix(o.F.Name, ".s32")
	keep := map[bool][2]amd64.Cond{false: {amd64.CondB, amd64.CondA}, true: {amd64.CondL, amd64.CondG}}[signed][0]
	if strings.HasPrefix(o.F.Name, "max") {
		keep = map[bool]amd64.Cond{false: amd64.CondA, true: amd64.CondG}[signed]
	}
	x, y := c.need(o.S[0]), c.need(o.S[1])
	c.straight(o.S[0], signed)
	c.straight(o.S[1], signed)
	pick := func(a *amd64.Assembler, to scalar) {
		a.Emit(amd64.CMP, amd64.D(room), amd64.D(amd64.RAX))
		a.Emit(amd64.CMOV[keep], amd64.D(amd64.RAX), amd64.D(room))
		c.store(a, to)
	}
	last, rises := c.last[o.D]
	c.emit(func(a *amd64.Assembler) {
		c.load(a, amd64.RAX, x)
		c.load(a, room, y)
		pick(a, d)
		if rises {
			c.end(a, amd64.RAX, o.S[0])
			c.end(a, room, o.S[1])
			pick(a, last)
		}
	})
}

// conditions has the conditions of comparisons, unsigned and signed.
var conditions = map[string][2]amd64.Cond{
	"eq": {amd64.CondE, amd64.CondE}, "ne": {amd64.CondNE, amd64.CondNE},
	"lt": {amd64.CondB, amd64.CondL}, "le": {amd64.CondBE, amd64.CondLE},
	"gt": {amd64.CondA, amd64.CondG}, "ge": {amd64.CondAE, amd64.CondGE},
}

// compare adds the evaluation of a comparison in all lanes. If its results in the first
// and in the last lane are the same, so are those between them, as it changes at most
// once. Two numbers that differ at both ends differ between them if the same one is
// greater at both.
func (c *scalars) compare(o *ir.Arith, d scalar) {
	parts := strings.Split(o.F.Name, ".")
	signed, sign := parts[2] == "s32", 0
	if signed {
		sign = 1
	}
	x, y := c.need(o.S[0]), c.need(o.S[1])
	c.straight(o.S[0], signed)
	c.straight(o.S[1], signed)
	differs := parts[1] == "eq" || parts[1] == "ne"
	cond := conditions[parts[1]][sign]
	const atFirst, less, lessAtLast = lane, offset, lanesLeft
	if c.steady.of(o.S[0]).step == 0 && c.steady.of(o.S[1]).step == 0 && c.steady.of(o.S[0]).form == affine && c.steady.of(o.S[1]).form == affine {
		c.emit(func(a *amd64.Assembler) {
			c.load(a, room, y)
			c.load(a, amd64.RAX, x)
			a.Emit(amd64.XOR, amd64.D(lane), amd64.D(lane))
			a.Emit(amd64.CMP, amd64.D(amd64.RAX), amd64.D(room))
			a.Emit(amd64.SET[cond^1], amd64.B(lane))
			a.Emit(amd64.LEA, amd64.Q(amd64.RAX), amd64.Mem(lane, holds))
			c.store(a, d)
		})
		return
	}
	c.emit(func(a *amd64.Assembler) {
		c.load(a, amd64.RAX, x)
		c.load(a, room, y)
		a.Emit(amd64.CMP, amd64.D(amd64.RAX), amd64.D(room))
		a.Emit(amd64.SET[cond], amd64.B(atFirst))
		if differs {
			a.Emit(amd64.SET[conditions["lt"][sign]], amd64.B(less))
		}
		c.fromFirst(a, amd64.RAX, o.S[0])
		c.fromFirst(a, room, o.S[1])
		a.Emit(amd64.CMP, amd64.D(amd64.RAX), amd64.D(room))
		a.Emit(amd64.SET[cond], amd64.B(amd64.RAX))
		if differs {
			a.Emit(amd64.SET[conditions["lt"][sign]], amd64.B(lessAtLast))
		}
		c.same(a, atFirst)
		if differs {
			known := a.Label()
			a.Emit(amd64.XOR, amd64.D(lessAtLast), amd64.D(less))
			a.Emit(amd64.TEST, amd64.D(lessAtLast), amd64.Imm(1))
			a.JumpIf(amd64.CondE, known)
			a.Emit(amd64.MOV, amd64.D(amd64.RAX), amd64.Imm(unknown))
			a.Bind(known)
		}
		c.store(a, d)
	})
}

// same combines the lowest bits of RAX and another register, the results at both ends,
// to the value of a predicate in RAX.
func (c *scalars) same(a *amd64.Assembler, other amd64.Reg) {
	a.Emit(amd64.AND, amd64.D(amd64.RAX), amd64.Imm(1))
	a.Emit(amd64.AND, amd64.D(other), amd64.Imm(1))
	a.Emit(amd64.MOV, amd64.D(room), amd64.D(amd64.RAX))
	a.Emit(amd64.OR, amd64.D(room), amd64.D(other)) // true at one end
	a.Emit(amd64.AND, amd64.D(amd64.RAX), amd64.D(other))
	a.Emit(amd64.XOR, amd64.D(amd64.RAX), amd64.Imm(1)) // false at one end
	a.Emit(amd64.LEA, amd64.Q(amd64.RAX), amd64.Mem(room, 0).Index(amd64.RAX, 2))
}

// logic adds an operation on predicates.
func (c *scalars) logic(o *ir.Logic) scalar {
	x := c.need(o.A.Ref())
	if o.F == "mov" && !o.A.Not {
		return x
	}
	y, d := c.need(o.B.Ref()), c.slot(ir.ClassPred)
	c.emit(func(a *amd64.Assembler) {
		c.bits(a, amd64.RAX, x, o.A.Not != (o.F == "not"))
		if o.F == "and" || o.F == "or" {
			c.bits(a, room, y, o.B.Not)
			both, one := int64(holds), int64(fails) // of "and"
			if o.F == "or" {
				both, one = one, both
			}
			a.Emit(amd64.MOV, amd64.D(lane), amd64.D(amd64.RAX))
			a.Emit(amd64.AND, amd64.D(lane), amd64.D(room))
			a.Emit(amd64.AND, amd64.D(lane), amd64.Imm(both))
			a.Emit(amd64.OR, amd64.D(amd64.RAX), amd64.D(room))
			a.Emit(amd64.AND, amd64.D(amd64.RAX), amd64.Imm(one))
			a.Emit(amd64.OR, amd64.D(amd64.RAX), amd64.D(lane))
		}
		c.store(a, d)
	})
	return d
}

// bits loads a predicate, or its negation.
func (c *scalars) bits(a *amd64.Assembler, r amd64.Reg, s scalar, not bool) {
	c.load(a, r, s)
	if not { // swap the two bits
		a.Emit(amd64.LEA, amd64.Q(r), amd64.Mem(amd64.NoReg, 0).Index(r, 2))
		a.Emit(amd64.MOV, amd64.D(offset), amd64.D(r))
		a.Emit(amd64.SHR, amd64.D(offset), amd64.Imm(2))
		a.Emit(amd64.OR, amd64.D(r), amd64.D(offset))
		a.Emit(amd64.AND, amd64.D(r), amd64.Imm(unknown))
	}
}

// write writes the code of a part. It continues at fail where a value wraps around. Values that
// are the same in all warps are computed by the first warp of a call for the others.
func (c *scalars) write(a *amd64.Assembler, part int, fail amd64.Label) {
	c.fail, c.kept = fail, -1
	if len(c.fixed) > 0 {
		known := a.Label()
		a.Emit(amd64.CMP, amd64.Mem(regContext, fixedOffset).Size(8), amd64.Imm(0))
		a.JumpIf(amd64.CondNE, known)
		for _, f := range c.fixed {
			f(a)
		}
		a.Emit(amd64.MOV, amd64.Mem(regContext, fixedOffset).Size(8), amd64.Imm(1))
		a.Bind(known)
		c.kept = -1
	}
	for _, n := range c.order(part) {
		for _, f := range c.nodes[n].emits {
			f(a)
		}
	}
}

// decide branches to yes or no where a predicate is the same in all lanes.
func (c *scalars) decide(a *amd64.Assembler, p ir.Pred, yes, no amd64.Label) {
	a.Emit(amd64.MOV, amd64.D(amd64.RAX), c.made[p.Ref()].at)
	if p.Not {
		yes, no = no, yes
	}
	a.Emit(amd64.CMP, amd64.D(amd64.RAX), amd64.Imm(holds))
	a.JumpIf(amd64.CondE, yes)
	a.Emit(amd64.CMP, amd64.D(amd64.RAX), amd64.Imm(fails))
	a.JumpIf(amd64.CondE, no)
}

// refs returns the steady registers that the given ones are computed from, and
// themselves, such that each comes after those that it is computed from.
func (s *Steady) refs(list []ir.Ref) (all []ir.Ref) {
	var visit func(r ir.Ref)
	visit = func(r ir.Ref) {
		x := s.of(r)
		if x == nil || x.of == nil || slices.Contains(all, r) {
			return
		}
		_, sources := x.of.Op.Registers()
		for _, q := range sources {
			visit(q)
		}
		all = append(all, r)
	}
	for _, r := range list {
		visit(r)
	}
	return all
}
