package oracle

import (
	"errors"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// The products with a sparse A (PTX ISA, "Sparse matrix storage" and "Matrix fragments
// for multiply-accumulate operation with sparse matrix A"). The tables have the formulas
// of the text for A, by the depth of the shape and the width of an element; for the
// metadata, which the text has in figures, see gpu/soft/DESIGN.md.

// isSparse reports whether A of an mma or a wgmma.mma_async is sparse.
func isSparse(in *ptx.Inst) bool { return in.Has("sp") || in.Has("sp::ordered_metadata") }

// span has the row of an element of A, and the columns in which it is one of the
// elements that are not zero.
type span func(l, i int) (row, first, last int)

var sparseA = map[string]span{
	"k16/16": func(l, i int) (int, int, int) { return l>>2 + pick(i < 2, 0, 8), l % 4 * 4, l%4*4 + 3 },
	"k32/16": func(l, i int) (int, int, int) {
		first := l%4*4 + pick(i < 4, 0, 16)
		return l>>2 + pick(i < 2 || i >= 4 && i < 6, 0, 8), first, first + 3
	},
	"k8/32": func(l, i int) (int, int, int) { return l>>2 + pick(i == 0, 0, 8), l % 4 * 2, l%4*2 + 1 },
	"k16/32": func(l, i int) (int, int, int) {
		first := l%4*2 + pick(i < 2, 0, 8)
		return l>>2 + pick(i == 0 || i == 2, 0, 8), first, first + 1
	},
	"k32/8": func(l, i int) (int, int, int) { return l>>2 + pick(i < 4, 0, 8), l % 4 * 8, l%4*8 + 7 },
	"k64/8": func(l, i int) (int, int, int) {
		first := l%4*8 + pick(i < 8, 0, 32)
		return l>>2 + pick(i < 4 || i >= 8 && i < 12, 0, 8), first, first + 7
	},
	"k64/4": func(l, i int) (int, int, int) { return l>>2 + pick(i < 8, 0, 8), l % 4 * 16, l%4*16 + 15 },
	"k128/4": func(l, i int) (int, int, int) {
		first := l%4*16 + pick(i < 16, 0, 64)
		return l>>2 + pick(i < 8 || i >= 16 && i < 24, 0, 8), first, first + 15
	},
}

// sparseB has the layouts of B that mma with a dense A does not have.
var sparseB = map[string]layout{
	"m16n8k32/16": func(l, i int) (int, int) { return i/2*8 + l%4*2 + i%2, l >> 2 },
	"m16n8k16/32": func(l, i int) (int, int) { return i*4 + l%4, l >> 2 },
	"m16n8k64/8":  func(l, i int) (int, int) { return i/4*16 + l%4*4 + i%4, l >> 2 },
	"m16n8k128/4": func(l, i int) (int, int) { return i/8*32 + l%4*8 + i%8, l >> 2 },
}

// metadata has where the four bits number j of the metadata of a lane are: the row and
// the chunk. ok is false for a lane whose metadata the selector does not select.
var metadata = map[string]func(l, j, selector int) (row, chunk int, ok bool){
	"k16/16": func(l, j, s int) (int, int, bool) { return l>>2 + pick(j < 4, 0, 8), j % 4, l%4 == s },
	"k8/32":  func(l, j, s int) (int, int, bool) { return l>>2 + pick(j < 4, 0, 8), j % 4, l%4 == s },
	"k32/16": pairOfHalves,
	"k16/32": pairOfHalves,
	"k32/8":  pairOfRows,
	"k64/4":  pairOfRows,
	"k64/8":  wholeRows,
	"k128/4": wholeRows,
}

// pairOfHalves: the first lane of a pair has the first four chunks of both rows, the
// second one the others.
func pairOfHalves(l, j, selector int) (row, chunk int, ok bool) {
	return l>>2 + pick(j < 4, 0, 8), j%4 + pick(l%2 == 0, 0, 4), l%4/2 == selector
}

// pairOfRows: the first lane of a pair has the upper row, the second one the lower.
func pairOfRows(l, j, selector int) (row, chunk int, ok bool) {
	return l>>2 + pick(l%2 == 0, 0, 8), j, l%4/2 == selector
}

// wholeRows: the first pair has the first eight chunks of both rows, the second one the
// others.
func wholeRows(l, j, _ int) (row, chunk int, ok bool) {
	return l>>2 + pick(l%2 == 0, 0, 8), j + pick(l%4 < 2, 0, 8), true
}

// sparsity is the sparse A of an instruction: chunks of width columns, and four bits for
// each of them, by row and chunk.
type sparsity struct {
	key   string // of the tables
	width int
	bits  map[[2]int]int
}

// sparsityOf reads the metadata. at is the index of its operand, which the selector
// follows.
func sparsityOf(in *ptx.Inst, lanes [warpSize]*thread, at int, typ string) (*sparsity, error) {
	_, _, _, depth := shape(in)
	s := &sparsity{key: fmt.Sprintf("k%d/%d", depth, widths[typ]), width: map[uint]int{32: 2, 16: 4, 8: 4, 4: 8}[widths[typ]], bits: map[[2]int]int{}}
	where := metadata[s.key]
	if where == nil {
		return nil, missing("%s with a depth of %d and sparse A of type .%s", in.Op, depth, typ)
	}
	for l, t := range lanes {
		v := t.val(&t.inst().Args[at], ptx.B32)
		for j := range 8 {
			if row, chunk, ok := where(l, j, int(in.Args[at+1].Bits)); ok {
				s.bits[[2]int{row, chunk}] = int(v>>(4*j)) & 15
			}
		}
	}
	return s, nil
}

// column returns the column of a row's element number n of those that are not zero.
func (s *sparsity) column(row, n int) int {
	half := s.width / 2
	chunk, m := n/half, n%half
	bits := s.bits[[2]int{row, chunk}]
	switch s.width {
	case 2: // 0b0100 is the first column, 0b1110 the second
		return chunk*2 + pick(bits == 0b1110, 1, 0)
	case 4:
		return chunk*4 + bits>>(2*m)&3
	}
	return chunk*8 + bits>>(m/2*2)&3*2 + m%2
}

// sparseSum evaluates an element of D. It adds, in the order of the depth, the products of the
// elements of A that are not zero.
func sparseSum(in *ptx.Inst, at [2]int, sum number, a, b map[[2]int]uint64, types []string, negated bool) number {
	_, _, _, depth := shape(in)
	for k := range depth {
		x, there := a[[2]int{at[0], k}]
		if !there {
			continue
		}
		u := valueOf(x, types[0])
		u.neg = u.neg != negated
		sum = decode(add(sum, mul(u, valueOf(b[[2]int{k, at[1]}], types[1])), "rn").encode(f64format, "rn"), f64format)
	}
	return sum
}

// multiplySparse executes mma.sp.
func multiplySparse(in *ptx.Inst, lanes [warpSize]*thread) error {
	o, types := mmaOperands(in), matrixTypes(in)
	s, err := sparsityOf(in, lanes, 4, types[1])
	if err != nil {
		return err
	}
	if o[2].at == nil {
		name, _, _, _ := shape(in)
		o[2].at = sparseB[fmt.Sprintf("%s/%d", name, widths[types[2]])]
	}
	a := map[[2]int]uint64{}
	for l, t := range lanes {
		list := &t.inst().Args[1]
		for i := range len(elements(list)) * max(1, 32/int(widths[types[1]])) {
			row, first, last := sparseA[s.key](l, i)
			// Half of the columns are of elements that are not zero.
			n := first/2 + i%((last-first+1)/2)
			a[[2]int{row, s.column(row, n)}] = t.element(list, i, types[1])
		}
	}
	b, c := dense(lanes, 2, o[2]), dense(lanes, 3, o[3])
	d := map[[2]int]uint64{}
	for at, x := range c {
		d[at] = rounded(sparseSum(in, at, valueOf(x, types[3]), a, b, types[1:], false), types[0], in.Has("satfinite"))
	}
	writeMatrix(lanes, o[0], d)
	return nil
}

// warpgroupSparse executes wgmma.mma_async.sp for one warp of the warpgroup.
func warpgroupSparse(in *ptx.Inst, lanes [warpSize]*thread) error {
	_, _, n, depth := shape(in)
	types := matrixTypes(in)
	s, err := sparsityOf(in, lanes, 3, types[1])
	if err != nil {
		return err
	}
	options := in.Args[6:]
	inRegisters := in.Args[1].Kind == ptx.KindVec
	option := func(i int) uint64 {
		if i < 0 || i >= len(options) {
			return 0
		}
		return options[i].Bits
	}
	flips := len(options) > 2
	read := func(arg, row, k int, typ string, across bool) (uint64, error) {
		at := place(lanes[0].val(&in.Args[arg], ptx.U64), row, k, widths[typ], across)
		if at >= uint64(len(lanes[0].b.shared)) {
			return 0, errors.New("the descriptor of a matrix reaches beyond shared memory")
		}
		return readUint(lanes[0].b.shared[at:][:widths[typ]/8]), nil
	}
	a, b := map[[2]int]uint64{}, map[[2]int]uint64{}
	for row := range 16 {
		for i := range depth / 2 {
			if inRegisters {
				break
			}
			if a[[2]int{row, s.column(row, i)}], err = read(1, int(lanes[0].index/warpSize%4*16)+row, i, types[1], flips && option(2) == 1); err != nil {
				return err
			}
		}
	}
	if inRegisters {
		for l, t := range lanes {
			for i := range 4 * 32 / int(widths[types[1]]) {
				row, first, last := sparseA[s.key](l, i)
				a[[2]int{row, s.column(row, first/2+i%((last-first+1)/2))}] = t.element(&t.inst().Args[1], i, types[1])
			}
		}
	}
	for k := range depth {
		for col := range n {
			if b[[2]int{k, col}], err = read(2, col, k, types[2], flips && option(len(options)-1) == 1); err != nil {
				return err
			}
		}
	}
	o := operand{types[0], func(l, i int) (int, int) { return l>>2 + i/2%2*8, i/4*8 + l%4*2 + i%2 }}
	d := map[[2]int]uint64{}
	for at, x := range dense(lanes, 0, o) {
		sum := zeroOf(false)
		if lanes[0].val(&in.Args[5], ptx.Pred) != 0 {
			sum = valueOf(x, types[0])
		}
		negated := len(options) >= 2 && int64(option(0)) != int64(option(1))
		d[at] = rounded(sparseSum(in, at, sum, a, b, types[1:], negated), types[0], in.Has("satfinite"))
	}
	writeMatrix(lanes, o, d)
	return nil
}
