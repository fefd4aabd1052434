package compile

import (
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// mov compiles mov (PTX ISA, "Data Movement": mov): copies, packing and unpacking of
// vectors, predicates, addresses, special registers.
func (c *compiler) mov(in *ptx.Inst) ([]ir.Op, error) {
	t, err := c.last(in)
	if err != nil {
		return nil, err
	}
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	d, a := &in.Args[0], &in.Args[1]
	switch {
	case in.Has("v2") || in.Has("v4"):
		return c.movVector(d, a, t)
	case a.Kind == ptx.KindVec:
		return c.pack(d, a, t)
	case d.Kind == ptx.KindVec:
		return c.unpack(d, a, t)
	case t == ptx.Pred:
		return c.logic(in)
	case a.Kind == ptx.KindSpecial && strings.HasPrefix(a.Name, "%clock") || a.Kind == ptx.KindSpecial && strings.HasPrefix(a.Name, "%globaltimer"):
		return c.clock(d, a, t)
	}
	if n := t.Size(); n != 2 && n != 4 && n != 8 {
		return nil, missing(in, "mov of type .%s", t)
	}
	return c.apply(copying(t), in.Args, t)
}

// copying returns the loop that copies a register of a type.
func copying(t ptx.Type) ops.Operation {
	if t.Size() == 8 {
		loop, _ := ops.Find("mov", "b64")
		return loop
	}
	loop, _ := ops.Find("mov", "b32")
	return loop
}

// movVector compiles a copy between vector registers, or from a list of values (PTX
// ISA, "Vectors"). All values are read before the first is written.
func (c *compiler) movVector(d, a *ptx.Operand, t ptx.Type) ([]ir.Op, error) {
	n := len(d.List)
	if t == ptx.Pred || t.Size() > 8 {
		return nil, missing(c.in, "mov of vectors of type .%s", t)
	}
	if d.Kind != ptx.KindVec || a.Kind != ptx.KindVec || len(a.List) != n || !c.in.Has("v"+strconv.Itoa(n)) {
		return nil, broken(c.in, kindOf(d)+" and "+kindOf(a), "both operands of %s must be vectors of its length", nameOf(c.in))
	}
	loop := copying(t)
	var read, write []ir.Op
	for i := range n {
		for _, o := range []*ptx.Operand{&d.List[i], &a.List[i]} {
			if err := c.checkOperand(o, t, agrees); err != nil {
				return nil, err
			}
		}
		src, err := c.source(&a.List[i], classOf(t), t)
		if err != nil {
			return nil, err
		}
		dst, err := c.dest(&d.List[i], classOf(t))
		if err != nil {
			return nil, err
		}
		between := c.fresh(classOf(t))
		read = append(read, &ir.Arith{F: loop, D: between, S: []ir.Ref{src}})
		write = append(write, &ir.Arith{F: loop, D: dst, S: []ir.Ref{between}})
	}
	return append(read, write...), nil
}

// clock compiles a read of %globaltimer, in nanoseconds, or %clock, in cycles.
func (c *compiler) clock(d, a *ptx.Operand, t ptx.Type) ([]ir.Op, error) {
	r, err := c.dest(d, classOf(t))
	if err != nil {
		return nil, err
	}
	shift := 0
	if strings.HasSuffix(a.Name, "_hi") {
		shift = 32
	}
	return []ir.Op{&ir.Clock{D: r, Shift: shift, Cycles: strings.HasPrefix(a.Name, "%clock")}}, nil
}

func (c *compiler) pack(d, a *ptx.Operand, t ptx.Type) ([]ir.Op, error) {
	r, err := c.dest(d, classOf(t))
	if err != nil {
		return nil, err
	}
	n := len(a.List)
	width := int(t.Size()) * 8
	if n != 2 && n != 4 || width/n < 8 {
		return nil, wrongPack(c.in, n, t)
	}
	each := width / n
	src := make([]ir.Ref, n)
	for i := range src {
		et := map[int]ptx.Type{8: ptx.B8, 16: ptx.B16, 32: ptx.B32}[each]
		if src[i], err = c.source(&a.List[i], ir.Class32, et); err != nil {
			return nil, err
		}
	}
	return []ir.Op{&ir.Pack{D: r, S: src, Each: each}}, nil
}

// wrongPack returns the error of a mov between a vector of n elements and one value.
func wrongPack(in *ptx.Inst, n int, t ptx.Type) error {
	return broken(in, n, "a vector that mov packs into a .%s must have 2 or 4 elements of at least 8 bits", t)
}

func (c *compiler) unpack(d, a *ptx.Operand, t ptx.Type) ([]ir.Op, error) {
	n := len(d.List)
	width := int(t.Size()) * 8
	if n != 2 && n != 4 || width/n < 8 {
		return nil, wrongPack(c.in, n, t)
	}
	each := width / n
	src, err := c.source(a, classOf(t), t)
	if err != nil {
		return nil, err
	}
	dst := make([]ir.Ref, n)
	for i := range dst {
		if dst[i], err = c.dest(&d.List[i], ir.Class32); err != nil {
			return nil, err
		}
	}
	return []ir.Op{&ir.Unpack{D: dst, S: src, Each: each}}, nil
}

// predSource returns a predicate operand with its negation.
func (c *compiler) predSource(a *ptx.Operand) (ir.Pred, error) {
	if a.Kind == ptx.KindInt { // a constant predicate
		r := c.fresh(ir.ClassPred) // all zero
		return ir.PredOf(r, a.Bits != 0), nil
	}
	r, err := c.source(a, ir.ClassPred, ptx.Pred)
	return ir.PredOf(r, a.Not), err
}

// logic compiles and, or, xor, not and mov of predicates; for other types they are in
// the table.
func (c *compiler) logic(in *ptx.Inst) ([]ir.Op, error) {
	if !in.Has("pred") {
		return c.tabled(in, in.Mods)
	}
	binary := in.Op != "not" && in.Op != "mov"
	want := 2
	if binary {
		want = 3
	}
	if err := operands(in, want); err != nil {
		return nil, err
	}
	d, err := c.dest(&in.Args[0], ir.ClassPred)
	if err != nil {
		return nil, err
	}
	a, err := c.predSource(&in.Args[1])
	if err != nil {
		return nil, err
	}
	b := a
	if binary {
		if b, err = c.predSource(&in.Args[2]); err != nil {
			return nil, err
		}
	}
	return []ir.Op{&ir.Logic{F: in.Op, D: d, A: a, B: b}}, nil
}

// compare compiles the comparison of setp and set to a new predicate. mods are the
// modifiers without a boolean operator.
func (c *compiler) compare(mods []string, a, b *ptx.Operand, t ptx.Type) (ir.Op, ir.Ref, error) {
	f, ok := ops.Find("setp", mods...)
	if !ok {
		return nil, ir.Ref{}, missing(c.in, "comparison %s", qualifiers(mods))
	}
	d := c.fresh(ir.ClassPred)
	_, src, _ := ir.ShapeOf(f.Loop)
	ra, err := c.source(a, src[0], t)
	if err != nil {
		return nil, d, err
	}
	rb, err := c.source(b, src[1], t)
	return &ir.Arith{F: f, D: d, S: []ir.Ref{ra, rb}, Scratch: true}, d, err
}

// boolOp separates the boolean operator from the other modifiers of setp or set.
func boolOp(mods []string) (op string, rest []string) {
	for _, m := range mods {
		if m == "and" || m == "or" || m == "xor" {
			op = m
			continue
		}
		rest = append(rest, m)
	}
	return op, rest
}

// compared returns the number of operands of setp and set: a boolean operator needs one
// more.
func compared(op string) int {
	if op == "" {
		return 3
	}
	return 4
}

func (c *compiler) setp(in *ptx.Inst) ([]ir.Op, error) {
	t, err := c.last(in)
	op, mods := boolOp(in.Mods)
	if err != nil {
		return nil, err
	}
	if err := operands(in, compared(op)); err != nil {
		return nil, err
	}
	p, q := in.Args[0], ptx.Operand{Kind: ptx.KindSink}
	if p.Kind == ptx.KindPair {
		p, q = p.List[0], p.List[1]
	}
	rp, err := c.dest(&p, ir.ClassPred)
	if err != nil {
		return nil, err
	}
	if t == ptx.F16x2 || t == ptx.BF16x2 {
		return c.setpHalves(mods, op, t, rp, &q)
	}
	if op == "" && q.Kind == ptx.KindSink {
		s, r, err := c.compare(mods, &in.Args[1], &in.Args[2], t)
		if err != nil {
			return nil, err
		}
		return []ir.Op{s, &ir.Logic{F: "mov", D: rp, A: ir.PredOf(r, false), B: ir.PredOf(r, false)}}, nil
	}
	rq, err := c.dest(&q, ir.ClassPred)
	if err != nil {
		return nil, err
	}
	s, r, err := c.compare(mods, &in.Args[1], &in.Args[2], t)
	if err != nil {
		return nil, err
	}
	other := ir.PredOf(r, false)
	if op != "" {
		if other, err = c.predSource(&in.Args[3]); err != nil {
			return nil, err
		}
	}
	return []ir.Op{s, &ir.LogicPair{F: op, P: rp, Q: rq, A: r, B: other}}, nil
}

func (c *compiler) selp(in *ptx.Inst) ([]ir.Op, error) {
	t, err := c.last(in)
	if err != nil {
		return nil, err
	}
	if err := operands(in, 4); err != nil {
		return nil, err
	}
	cl := classOf(t)
	a, err := c.source(&in.Args[1], cl, t)
	if err != nil {
		return nil, err
	}
	b, err := c.source(&in.Args[2], cl, t)
	if err != nil {
		return nil, err
	}
	p, err := c.predSource(&in.Args[3])
	if err != nil {
		return nil, err
	}
	s, err := c.selectInto(&in.Args[0], a, b, p)
	return []ir.Op{s}, err
}

// slct compiles a selection by the sign of the third source.
func (c *compiler) slct(in *ptx.Inst) ([]ir.Op, error) {
	if len(in.Mods) < 2 {
		return nil, broken(in, qualifiers(in.Mods), "slct must have 2 types, of the values and of the number that selects")
	}
	if err := operands(in, 4); err != nil {
		return nil, err
	}
	t, ok := ptx.TypeByName(in.Mods[len(in.Mods)-2])
	if !ok {
		return nil, broken(in, qualifiers(in.Mods), "slct must have 2 types, of the values and of the number that selects")
	}
	mods := append([]string{"ge"}, in.Mods[len(in.Mods)-1])
	if in.Has("ftz") {
		mods = []string{"ge", "ftz", in.Mods[len(in.Mods)-1]}
	}
	ct, _ := ptx.TypeByName(in.Mods[len(in.Mods)-1])
	cmp, p, err := c.compare(mods, &in.Args[3], &ptx.Operand{Kind: ptx.KindInt}, ct)
	if err != nil {
		return nil, err
	}
	a, err := c.source(&in.Args[1], classOf(t), t)
	if err != nil {
		return nil, err
	}
	b, err := c.source(&in.Args[2], classOf(t), t)
	if err != nil {
		return nil, err
	}
	s, err := c.selectInto(&in.Args[0], a, b, ir.PredOf(p, false))
	return []ir.Op{cmp, s}, err
}

func (c *compiler) selectInto(d *ptx.Operand, a, b ir.Ref, p ir.Pred) (ir.Op, error) {
	r, err := c.dest(d, a.Class)
	return &ir.Select{D: r, A: a, B: b, P: p}, err
}

func (c *compiler) lop3(in *ptx.Inst) ([]ir.Op, error) {
	combined := len(in.Mods) == 2 && (in.Mods[0] == "or" || in.Mods[0] == "and")
	if len(in.Mods) != 1 && !combined {
		return nil, missingQualifiers(in, in.Mods)
	}
	count := 5
	if combined {
		count = 6
	}
	if err := operands(in, count); err != nil {
		return nil, err
	}
	if in.Args[4].Kind != ptx.KindInt {
		return nil, broken(in, kindOf(&in.Args[4]), "operand 5 of lop3, its table, must be an integer")
	}
	f := ops.Lop3(uint32(in.Args[4].Bits))
	if combined {
		return c.lop3Combined(in, f)
	}
	return c.apply(f, in.Args[:4], ptx.B32)
}

// lop3Combined compiles the form with a second result: whether the first one is not
// zero, combined with a predicate.
func (c *compiler) lop3Combined(in *ptx.Inst, f ops.Operation) ([]ir.Op, error) {
	pair := &in.Args[0]
	if pair.Kind != ptx.KindPair {
		return nil, broken(in, kindOf(pair), "the result of lop3.%s must be a register and a predicate", in.Mods[0])
	}
	// The value is computed in a new register, as the result may be one of the sources.
	value, p := c.fresh(ir.Class32), c.fresh(ir.ClassPred)
	sources := make([]ir.Ref, 3)
	for i := range sources {
		var err error
		if sources[i], err = c.source(&in.Args[i+1], ir.Class32, ptx.B32); err != nil {
			return nil, err
		}
	}
	d, err := c.dest(&pair.List[0], ir.Class32)
	if err != nil {
		return nil, err
	}
	dp, err := c.dest(&pair.List[1], ir.ClassPred)
	if err != nil {
		return nil, err
	}
	q, err := c.predSource(&in.Args[5])
	differs, _ := ops.Find("setp", "ne", "b32")
	return []ir.Op{
		&ir.Arith{F: f, D: value, S: sources, Scratch: true},
		&ir.Arith{F: differs, D: p, S: []ir.Ref{value, c.constant(ir.Class32, 0)}, Scratch: true},
		copied(d, value), &ir.Logic{F: in.Mods[0], D: dp, A: ir.PredOf(p, false), B: q},
	}, err
}

// cvta compiles the conversion of addresses of a space to generic ones and back (PTX
// ISA, "Data Movement": cvta, isspacep).
func (c *compiler) cvta(in *ptx.Inst) ([]ir.Op, error) {
	if !in.Has("u64") {
		return nil, broken(in, qualifiers(in.Mods), "the type of cvta must be .u64")
	}
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	var delta uint64
	for _, m := range in.Mods {
		if base, ok := spaceBase(&c.mod.spaces, m); ok {
			delta = base
		}
	}
	if in.Has("to") {
		delta = -delta
	}
	return c.apply(ops.Plus(delta), in.Args, ptx.U64)
}

func (c *compiler) isspacep(in *ptx.Inst) ([]ir.Op, error) {
	if len(in.Mods) != 1 {
		return nil, broken(in, qualifiers(in.Mods), "isspacep must have one qualifier, a state space")
	}
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	base, size, ok := spaceArea(&c.mod.spaces, in.Mods[0])
	if !ok {
		return nil, missingQualifiers(in, in.Mods)
	}
	return c.apply(ops.Within(base, size), in.Args, ptx.U64)
}
