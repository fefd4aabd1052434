package oracle

import (
	"errors"
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// place returns the address in shared memory of an element of a matrix that a
// descriptor names (PTX ISA, "Shared Memory Matrix Layout"). Units of 16 bytes form
// atoms of 8 rows, or with across of 8 steps of the depth, whose width follows from the
// swizzling mode.
func place(desc uint64, row, depth int, width uint, across bool) uint64 {
	part := func(shift uint) uint64 { return (desc >> shift & 0x3fff) * 16 }
	leading, stride := part(16), part(32)
	wide := map[uint64]uint64{0: 1, 1: 8, 2: 4, 3: 2}[desc>>62]
	line, byteAt := uint64(row), uint64(depth)*uint64(width)/8
	if across {
		line, byteAt = uint64(depth), uint64(row)*uint64(width)/8
	}
	unit := byteAt / 16
	atomOfLine, inAtom := line/8, line%8
	var at uint64
	switch {
	case wide == 1 && !across:
		at = atomOfLine*stride + unit*leading + inAtom*16
	case wide == 1:
		at = atomOfLine*leading + unit*stride + inAtom*16
	case !across:
		at = atomOfLine*stride + inAtom*wide*16 + unit*16
	default:
		at = atomOfLine*stride + unit/wide*leading + inAtom*wide*16 + unit%wide*16
	}
	at += part(0)
	chunk := at / 16 % wide
	pattern := (at/128 - desc>>49&7) % wide
	return at - chunk*16 + (chunk^pattern)*16 + byteAt%16
}

// warpgroup executes a wgmma.mma_async for one warp of the warpgroup.
func warpgroup(in *ptx.Inst, lanes [warpSize]*thread) error {
	_, _, n, depth := shape(in)
	types := matrixTypes(in)
	first := int(lanes[0].index / warpSize % 4 * 16)
	options := in.Args[4:]
	negative := func(i int) bool { return len(options) >= 2 && int64(options[i].Bits) == -1 }
	inRegisters := in.Args[1].Kind == ptx.KindVec
	flipA := !inRegisters && len(options) > 2 && options[2].Bits == 1
	flipB := len(options) > 2 && options[len(options)-1].Bits == 1
	read := func(arg, row, k int, typ string, across bool) (uint64, error) {
		w := widths[typ]
		at := place(lanes[0].val(&in.Args[arg], ptx.U64), row, k, w, across)
		if at >= uint64(len(lanes[0].b.shared)) {
			return 0, errors.New("the descriptor of a matrix reaches beyond shared memory")
		}
		v := readUint(lanes[0].b.shared[at:][:(w+7)/8])
		return v >> (uint(k) * w % 8) & (1<<w - 1), nil
	}
	o := operand{types[0], func(l, i int) (int, int) { return l>>2 + i/2%2*8, i/4*8 + l%4*2 + i%2 }}
	c := dense(lanes, 0, o)
	a := map[[2]int]uint64{}
	if inRegisters {
		byWidth := map[uint]layout{16: ofA["m16n8k16/16"], 32: ofA["m16n8k8/32"], 8: ofA["m16n8k32/8"], 1: ofA["m16n8k256/1"]}
		a = dense(lanes, 1, operand{types[1], byWidth[widths[types[1]]]})
	}
	b := map[[2]int]uint64{}
	for k := range depth {
		for col := range n {
			v, err := read(2, col, k, types[2], flipB)
			if err != nil {
				return err
			}
			b[[2]int{k, col}] = v
		}
		for row := range 16 {
			if inRegisters {
				continue
			}
			v, err := read(1, first+row, k, types[1], flipA)
			if err != nil {
				return err
			}
			a[[2]int{row, k}] = v
		}
	}
	adds := lanes[0].val(&in.Args[3], ptx.Pred) != 0
	d := map[[2]int]uint64{}
	for at := range c {
		sum := zeroOf(false)
		if adds {
			sum = valueOf(c[at], types[0])
		}
		ones := 0
		for k := range depth {
			x, y := a[[2]int{at[0], k}], b[[2]int{k, at[1]}]
			if types[1] == "b1" {
				ones += bits.OnesCount64(x & y)
				continue
			}
			u, v := valueOf(x, types[1]), valueOf(y, types[2])
			u.neg, v.neg = u.neg != negative(0), v.neg != negative(1)
			sum = decode(add(sum, mul(u, v), "rn").encode(f64format, "rn"), f64format)
		}
		if ones > 0 {
			sum = add(sum, small(int64(ones)), "rn")
		}
		d[at] = rounded(sum, types[0], in.Has("satfinite"))
	}
	writeMatrix(lanes, o, d)
	return nil
}
