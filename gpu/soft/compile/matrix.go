package compile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// The matrix instructions (PTX ISA, "Warp Level Matrix Instructions"): mma, wmma,
// ldmatrix, stmatrix and movmatrix.

// matrixForm has the qualifiers of a matrix instruction, regardless of their order, of
// which several are in use.
type matrixForm struct {
	m, n, k  int    // of the shape; k is 0 for .m8n8
	cols     []bool // .row, .col, in order
	types    []*ops.Element
	tiles    int // .x1, .x2, .x4
	trans    bool
	space    string
	saturate bool
	bitwise  string
	mode     ops.Rounding
	rest     []string // the others
}

var roundings = map[string]ops.Rounding{"rn": ops.Nearest, "rz": ops.TowardZero, "rm": ops.TowardMinus, "rp": ops.TowardPlus}

func formOf(mods []string) (f matrixForm) {
	f.mode = ops.Nearest
	for _, m := range mods {
		e := ops.ElementByName(m)
		rounding, known := roundings[m]
		switch {
		case known:
			f.mode = rounding
		case f.shape(m):
		case m == "row" || m == "col":
			f.cols = append(f.cols, m == "col")
		case m == "s32.satfinite":
		case e != nil:
			f.types = append(f.types, e)
		case m == "x1" || m == "x2" || m == "x4":
			f.tiles = int(m[1] - '0')
		case m == "trans":
			f.trans = true
		case m == "shared" || m == "shared::cta" || m == "global":
			f.space = m
		case m == "satfinite":
			f.saturate = true
		case m == "xor" || m == "and":
			f.bitwise = m
		case m == "sync", m == "aligned", m == "popc":
		default:
			f.rest = append(f.rest, m)
		}
	}
	return f
}

// shaped matches a qualifier such as m16n8k16 or m8n8.
var shaped = regexp.MustCompile(`^m(\d{1,3})n(\d{1,3})(?:k(\d{1,3}))?$`)

// shape decodes such a qualifier, and reports whether it is one.
func (f *matrixForm) shape(s string) bool {
	if s == "" || s[0] != 'm' {
		return false
	}
	parts := shaped.FindStringSubmatch(s)
	if parts == nil {
		return false
	}
	for i, n := range []*int{&f.m, &f.n, &f.k} {
		*n, _ = strconv.Atoi(parts[i+1]) // digits, or nothing, which is 0
	}
	return true
}

// warpWide has the instructions that a whole warp executes together.
var warpWide = map[string]func(c *compiler, in *ptx.Inst, f matrixForm) (ir.Op, error){
	"mma": (*compiler).mma, "wmma": (*compiler).wmma, "wgmma": (*compiler).wgmma,
	"ldmatrix": (*compiler).ldmatrix, "stmatrix": (*compiler).stmatrix, "movmatrix": (*compiler).movmatrix,
}

// wholeWarp reports whether an instruction is one of them. Instructions that only order
// wgmma.mma_async are not.
func wholeWarp(in *ptx.Inst) bool {
	return warpWide[in.Op] != nil && (in.Op != "wgmma" || in.Has("mma_async"))
}

// ordersWgmma compiles wgmma.fence, wgmma.commit_group and wgmma.wait_group, which have
// no effect.
func (c *compiler) ordersWgmma(in *ptx.Inst) ([]ir.Op, error) {
	if len(in.Mods) == 3 && listedAny(in.Mods[0], "fence", "commit_group", "wait_group") {
		return nil, nil
	}
	return nil, missingQualifiers(in, in.Mods)
}

// aligned compiles one of them. Its kind is its own, so that lanes at other
// instructions do not take part.
func (c *compiler) aligned(in *ptx.Inst) (*ir.Aligned, error) {
	if !in.Has("sync") {
		return nil, broken(in, qualifiers(in.Mods), "%s must have the qualifier .sync", in.Op)
	}
	do, err := warpWide[in.Op](c, in, formOf(in.Mods))
	o := &ir.Aligned{Exchange: *ir.NewExchange(fmt.Sprintf("%s %p", in.Op, in)), Do: do}
	o.Constant, o.Mask, o.Members = true, ^uint32(0), c.constant(ir.Class32, 1<<32-1)
	return o, err
}

// fragment returns the registers of an operand: a list, or one.
func (c *compiler) fragment(o *ptx.Operand, f *ops.Fragment, result bool) ([]ir.Ref, error) {
	list := o.List
	if o.Kind != ptx.KindVec {
		list = []ptx.Operand{*o}
	}
	if len(list) != f.Regs {
		return nil, broken(c.in, len(list), "an operand of .%s must have %s", f.Type.Name, countOf(strconv.Itoa(f.Regs), "register"))
	}
	class, t := ir.Class32, ptx.B32
	switch f.Type.Name {
	case "f64":
		class, t = ir.Class64, ptx.F64
	case "f32":
		t = ptx.F32
	}
	refs := make([]ir.Ref, len(list))
	for i := range list {
		var err error
		if result {
			refs[i], err = c.dest(&list[i], class)
		} else {
			refs[i], err = c.source(&list[i], class, t)
		}
		if err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// mma compiles mma.sync.
func (c *compiler) mma(in *ptx.Inst, f matrixForm) (ir.Op, error) {
	if f.isSparse() {
		return c.sparseProduct(in, f)
	}
	if len(f.rest) > 0 {
		return nil, missing(in, "mma with qualifiers %s", qualifiers(f.rest))
	}
	if len(f.types) != 4 {
		return nil, broken(in, len(f.types), "mma must have 4 types, of D, A, B and C")
	}
	return c.product(in, f, false)
}

// product compiles an mma, or a wmma.mma, with four operands and types.
func (c *compiler) product(in *ptx.Inst, f matrixForm, wmma bool) (ir.Op, error) {
	if len(f.cols) != 2 {
		return nil, broken(in, len(f.cols), "%s must have 2 layouts, each .row or .col", in.Op)
	}
	if err := operands(in, 4); err != nil {
		return nil, err
	}
	p, err := ops.NewMMA(ops.MMAForm{
		Wmma: wmma, M: f.m, N: f.n, K: f.k, D: f.types[0], A: f.types[1], B: f.types[2], C: f.types[3],
		RowA: !f.cols[0], RowB: !f.cols[1], Saturate: f.saturate, Bitwise: f.bitwise, Mode: f.mode,
	})
	if err != nil {
		return nil, missing(in, "%s with %v", in.Op, err)
	}
	o := &ir.Product{F: p}
	for i, r := range []*[]ir.Ref{&o.D, &o.A, &o.B, &o.C} {
		if *r, err = c.fragment(&in.Args[i], []*ops.Fragment{&p.D, &p.A, &p.B, &p.C}[i], i == 0); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// wmma compiles wmma.load, wmma.store and wmma.mma.
func (c *compiler) wmma(in *ptx.Inst, f matrixForm) (ir.Op, error) {
	switch {
	case slices.Equal(f.rest, []string{"mma"}):
		if f16 := ops.ElementByName("f16"); len(f.types) == 2 { // those of D and C; the multiplicands are f16
			f.types = []*ops.Element{f.types[0], f16, f16, f.types[1]}
		}
		if len(f.types) != 4 {
			return nil, broken(in, len(f.types), "wmma.mma must have 2 types, of D and C, or 4")
		}
		return c.product(in, f, true)
	case len(f.rest) == 2 && f.rest[0] == "load" && (f.rest[1] == "a" || f.rest[1] == "b" || f.rest[1] == "c"):
		k, err := c.matrixAccess(in, f, f.rest[1], 1)
		return &ir.LoadMatrix{MatrixAccess: k}, err
	case slices.Equal(f.rest, []string{"store", "d"}):
		k, err := c.matrixAccess(in, f, "d", 0)
		return &ir.StoreMatrix{MatrixAccess: k}, err
	}
	return nil, missing(in, "wmma with qualifiers %s", qualifiers(f.rest))
}

// matrixAccess compiles a wmma.load or a wmma.store, whose address is operand mem.
func (c *compiler) matrixAccess(in *ptx.Inst, f matrixForm, which string, mem int) (k ir.MatrixAccess, err error) {
	if len(f.types) != 1 || len(f.cols) != 1 {
		return k, broken(in, qualifiers(in.Mods), "wmma.load and wmma.store must have one layout, .row or .col, and one type")
	}
	if err := operands(in, 2, 3); err != nil {
		return k, err
	}
	t := f.types[0]
	if !ops.WmmaShape(which, f.m, f.n, f.k, t) {
		return k, missing(in, "wmma of shape .m%dn%dk%d and type .%s", f.m, f.n, f.k, t.Name)
	}
	k.Fragment, k.Col, k.Stride = ops.WmmaFragment(which, f.m, f.n, f.k, t), f.cols[0], ir.None
	if (t.Bits < 8 || t.Name == "b1") && k.Col != (which == "b") {
		return k, broken(in, qualifiers(in.Mods), "the layout of a matrix of type .%s must be .row, and that of B .col", t.Name)
	}
	if k.Access, err = c.spaceAddress(in, f.space, &in.Args[mem]); err != nil {
		return k, err
	}
	k.Size = uint64(max(1, t.Bits/8))
	if k.R, err = c.fragment(&in.Args[1-mem], &k.Fragment, which != "d"); err != nil {
		return k, err
	}
	if len(in.Args) == 3 {
		k.Stride, err = c.source(&in.Args[2], ir.Class32, ptx.U32)
	}
	return k, err
}

// spaceAddress returns a memory operand of a space, or a generic one.
func (c *compiler) spaceAddress(in *ptx.Inst, space string, o *ptx.Operand) (ir.Access, error) {
	side := *in
	side.Mods = []string{"b32"}
	if space != "" {
		side.Mods = []string{space, "b32"}
	}
	a, err := c.access(&side, o, nil)
	return a.Access, err
}

// tile reports whether a form is of matrices of 8 by 8 elements of 16 bits.
func (f *matrixForm) tile() bool {
	return f.m == 8 && f.n == 8 && f.k == 0 && slices.Equal(f.rest, []string{"b16"})
}

// tiles returns the memory operand and the registers of an ldmatrix or a stmatrix.
func (c *compiler) tiles(in *ptx.Inst, f matrixForm, mem int) (a ir.Access, regs []ir.Ref, err error) {
	if err := operands(in, 2); err != nil {
		return a, nil, err
	}
	if !f.tile() || f.tiles == 0 || len(f.types) > 0 {
		return a, nil, missingQualifiers(in, in.Mods)
	}
	if f.space == "global" {
		return a, nil, broken(in, ".global", "the space of %s must be .shared", in.Op)
	}
	if a, err = c.spaceAddress(in, f.space, &in.Args[mem]); err != nil {
		return a, nil, err
	}
	words := ops.Fragment{Regs: f.tiles, Type: ops.ElementByName("b1")}
	regs, err = c.fragment(&in.Args[1-mem], &words, mem == 1)
	return a, regs, err
}

func (c *compiler) ldmatrix(in *ptx.Inst, f matrixForm) (ir.Op, error) {
	a, regs, err := c.tiles(in, f, 1)
	return &ir.LoadTiles{Access: a, D: regs, Trans: f.trans}, err
}

func (c *compiler) stmatrix(in *ptx.Inst, f matrixForm) (ir.Op, error) {
	a, regs, err := c.tiles(in, f, 0)
	return &ir.StoreTiles{Access: a, S: regs, Trans: f.trans}, err
}

func (c *compiler) movmatrix(in *ptx.Inst, f matrixForm) (ir.Op, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if !f.tile() || !f.trans {
		return nil, missingQualifiers(in, in.Mods)
	}
	s, err := c.source(&in.Args[1], ir.Class32, ptx.B32)
	if err != nil {
		return nil, err
	}
	d, err := c.dest(&in.Args[0], ir.Class32)
	return &ir.TransposeTile{D: d, S: s}, err
}
