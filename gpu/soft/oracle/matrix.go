package oracle

import (
	"errors"
	"math/bits"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// The matrix instructions that a whole warp executes together.

func warpWide(op string) bool {
	switch op {
	case "mma", "wmma", "ldmatrix", "stmatrix", "movmatrix", "wgmma":
		return true
	}
	return false
}

// matrix executes a matrix instruction for the threads of a warp, all of which must
// take part.
func matrix(in *ptx.Inst, lanes [warpSize]*thread) error {
	for _, t := range lanes {
		if t == nil {
			return errors.New("not all threads of the warp execute the instruction, want all of them")
		}
	}
	switch {
	case in.Op == "wgmma" && !in.Has("mma_async"):
		return nil // it orders operations that the oracle performs at once
	case in.Op == "wgmma" && isSparse(in):
		return warpgroupSparse(in, lanes)
	case in.Op == "wgmma":
		return warpgroup(in, lanes)
	case isSparse(in):
		return multiplySparse(in, lanes)
	case in.Op == "mma":
		return multiply(in, lanes, mmaOperands(in))
	case in.Op == "wmma" && in.Has("mma"):
		return multiply(in, lanes, wmmaOperands(in))
	case in.Op == "wmma":
		return moveMatrix(in, lanes)
	}
	return moveTiles(in, lanes)
}

// layout returns the row and the column of element i of a lane.
type layout func(lane, i int) (row, col int)

// operand is a matrix in the registers of the threads.
type operand struct {
	typ string
	at  layout
}

// shape returns the qualifier such as m16n8k8 with its numbers, or zeros.
func shape(in *ptx.Inst) (name string, m, n, k int) {
	for _, q := range in.Mods {
		if len(q) > 3 && q[0] == 'm' && strings.Contains(q, "n") && q[1] >= '0' && q[1] <= '9' {
			var v [3]int
			for i, s := range strings.FieldsFunc(q, func(r rune) bool { return r == 'm' || r == 'n' || r == 'k' }) {
				v[i], _ = strconv.Atoi(s)
			}
			return q, v[0], v[1], v[2]
		}
	}
	return "", 0, 0, 0
}

// matrixTypes returns the element types among the qualifiers, in order.
func matrixTypes(in *ptx.Inst) (list []string) {
	for _, q := range in.Mods {
		if _, ok := widths[q]; ok {
			list = append(list, q)
		}
	}
	return list
}

var widths = map[string]uint{"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "s32": 32}

// valueOf returns the value of an element of a type.
func valueOf(v uint64, typ string) number {
	switch typ {
	case "f16":
		return decode(v, f16format)
	case "bf16":
		return decode(v, bf16format)
	case "tf32":
		return decode(v>>13<<13, f32format)
	case "f32":
		return decode(v, f32format)
	case "f64":
		return decode(v, f64format)
	case "e5m2":
		return decode(v, format{5, 2})
	case "e4m3":
		if v&0x7f == 0x7f {
			return nan()
		}
		if v>>3&15 == 15 { // e4m3 has no infinities: this exponent is of finite numbers
			n := decode(v&0x87|14<<3, format{4, 3})
			n.e++
			return n
		}
		return decode(v, format{4, 3})
	}
	x := int64(v)
	if typ[0] == 's' {
		x = int64(v<<(64-widths[typ])) >> (64 - widths[typ])
	}
	return small(x)
}

// element returns element i of a thread's operand.
func (t *thread) element(o *ptx.Operand, i int, typ string) uint64 {
	each := max(1, 32/int(widths[typ]))
	ty := map[bool]ptx.Type{true: ptx.F64, false: ptx.B32}[typ == "f64"]
	v := t.val(&elements(o)[i/each], ty) >> (uint(i%each) * widths[typ])
	if widths[typ] == 64 {
		return v
	}
	return v & (1<<widths[typ] - 1)
}

// dense collects a matrix from the registers of the threads, by row and column.
func dense(lanes [warpSize]*thread, arg int, o operand) map[[2]int]uint64 {
	m := map[[2]int]uint64{}
	for l, t := range lanes {
		a := &t.inst().Args[arg]
		for i := range len(elements(a)) * max(1, 32/int(widths[o.typ])) {
			row, col := o.at(l, i)
			m[[2]int{row, col}] = t.element(a, i, o.typ)
		}
	}
	return m
}

// multiply evaluates D = A B + C. Each product is exact, each sum is rounded to f64 in
// the order of the depth, and the last sum is rounded to the type of D.
func multiply(in *ptx.Inst, lanes [warpSize]*thread, o [4]operand) error {
	name, _, _, depth := shape(in)
	for i, x := range o {
		if x.at == nil {
			return missing("%s with shape .%s and %c of type .%s", in.Op, name, "DABC"[i], x.typ)
		}
	}
	a, b, c := dense(lanes, 1, o[1]), dense(lanes, 2, o[2]), dense(lanes, 3, o[3])
	d := map[[2]int]uint64{}
	for at := range c {
		if o[0].typ == "f64" {
			d[at] = fmaChain(in, at, depth, a, b, c[at])
			continue
		}
		sum := valueOf(c[at], o[3].typ)
		ones := 0
		first := 0 // row of B
		if in.Op == "mma" && depth == 4 && o[1].typ == "f16" {
			first = at[0] / 8 * 4
		}
		for k := range depth {
			x, y := a[[2]int{at[0], k}], b[[2]int{first + k, at[1]}]
			switch {
			case in.Has("xor"):
				ones += bits.OnesCount64(x ^ y)
			case in.Has("and"):
				ones += bits.OnesCount64(x & y)
			default:
				sum = decode(add(sum, mul(valueOf(x, o[1].typ), valueOf(y, o[2].typ)), "rn").encode(f64format, "rn"), f64format)
			}
		}
		if ones > 0 {
			sum = add(sum, small(int64(ones)), "rn")
		}
		d[at] = rounded(sum, o[0].typ, in.Has("satfinite"))
	}
	writeMatrix(lanes, o[0], d)
	return nil
}

// fmaChain returns an element of an f64 product, where each step of the depth is one
// fma.
func fmaChain(in *ptx.Inst, at [2]int, depth int, a, b map[[2]int]uint64, sum uint64) uint64 {
	step := &ptx.Inst{Op: "fma", Mods: []string{modeOf(in), "f64"}}
	for k := range depth {
		sum, _ = float(step, ptx.F64, []uint64{a[[2]int{at[0], k}], b[[2]int{k, at[1]}], sum}) // fma does not fail
	}
	return sum
}

// rounded returns a sum as an element of D.
func rounded(n number, typ string, sat bool) uint64 {
	if typ != "s32" {
		return n.encode(formatOf(map[string]ptx.Type{"f16": ptx.F16, "f32": ptx.F32, "f64": ptx.F64}[typ]), "rn")
	}
	v := n.rounded(0, "rz").Int64()
	if n.neg {
		v = -v
	}
	if sat {
		v = min(max(v, -1<<31), 1<<31-1)
	}
	return truncate(uint64(v), 4)
}

// writeMatrix writes D to the registers of the threads.
func writeMatrix(lanes [warpSize]*thread, o operand, d map[[2]int]uint64) {
	each := max(1, 32/int(widths[o.typ]))
	for l, t := range lanes {
		for r, reg := range elements(&t.inst().Args[0]) {
			v := uint64(0)
			for e := range each {
				row, col := o.at(l, r*each+e)
				v |= d[[2]int{row, col}] << (uint(e) * widths[o.typ])
			}
			t.set(&reg, v)
		}
	}
}

// spaceOf returns the state spaces among the qualifiers.
func spaceOf(in *ptx.Inst) (list []string) {
	for _, q := range in.Mods {
		if q, _, _ = strings.Cut(q, "::"); q == "shared" || q == "global" {
			list = append(list, q)
		}
	}
	return list
}

// moveMatrix executes wmma.load and wmma.store.
func moveMatrix(in *ptx.Inst, lanes [warpSize]*thread) error {
	_, m, n, k := shape(in)
	typ := matrixTypes(in)[0]
	rows, cols := m, n
	switch {
	case in.Has("a"):
		cols = k
	case in.Has("b"):
		rows = k
	}
	stride, length := uint64(cols), cols
	if in.Has("col") {
		stride, length = uint64(rows), rows
	}
	mem := 1
	if in.Has("store") {
		mem = 0
	}
	if len(in.Args) > 2 {
		stride = lanes[0].val(&in.Args[2], ptx.U32)
	}
	o := operand{typ, linear(rows, cols)}
	space := spaceOf(in)
	line := func(i int) ([]byte, error) {
		at := in.Args[mem]
		at.Off += int64(uint64(i) * stride * uint64(widths[typ]) / 8)
		var b []byte
		for j := range length * int(widths[typ]) / 8 {
			x, err := lanes[0].bytes(&ptx.Inst{Mods: space}, &ptx.Operand{Kind: at.Kind, Off: at.Off + int64(j), List: at.List}, 1)
			if err != nil {
				return nil, err
			}
			if b == nil {
				b = x[:1:cap(x)]
			}
		}
		return b[:length*int(widths[typ])/8], nil
	}
	var values map[[2]int]uint64
	if mem == 0 {
		values = dense(lanes, 1, o)
	} else {
		values = map[[2]int]uint64{}
	}
	for row := range rows {
		for col := range cols {
			i, j := row, col
			if in.Has("col") {
				i, j = col, row
			}
			b, err := line(i)
			if err != nil {
				return err
			}
			w := widths[typ]
			if w < 8 {
				values[[2]int{row, col}] = uint64(b[uint(j)*w/8]) >> (uint(j) * w % 8) & (1<<w - 1)
				continue
			}
			b = b[j*int(w/8):][:w/8]
			if mem == 0 {
				writeUint(b, values[[2]int{row, col}])
			} else {
				values[[2]int{row, col}] = readUint(b)
			}
		}
	}
	if mem == 1 {
		writeMatrix(lanes, o, values)
	}
	return nil
}

// moveTiles executes ldmatrix, stmatrix and movmatrix.
func moveTiles(in *ptx.Inst, lanes [warpSize]*thread) error {
	if in.Op == "movmatrix" { // lane 4r+c has (r, 2c) and (r, 2c+1)
		var v [8][8]uint64
		for l, t := range lanes {
			x := t.val(&in.Args[1], ptx.B32)
			v[l/4][l%4*2], v[l/4][l%4*2+1] = x&0xffff, x>>16
		}
		for l, t := range lanes {
			t.set(&t.inst().Args[0], v[l%4*2][l/4]|v[l%4*2+1][l/4]<<16)
		}
		return nil
	}
	mem, regs := 1, 0
	if in.Op == "stmatrix" {
		mem, regs = 0, 1
	}
	result := make([][warpSize]uint64, len(elements(&in.Args[regs])))
	space := spaceOf(in)
	for i := range result {
		for row := range 8 {
			owner := lanes[8*i+row]
			b, err := owner.bytes(&ptx.Inst{Mods: space}, &owner.inst().Args[mem], 16)
			if err != nil {
				return err
			}
			for col := range 8 {
				r, c := row, col
				if in.Has("trans") {
					r, c = col, row
				}
				l, shift := 4*r+c/2, uint(c%2)*16
				if mem == 1 {
					result[i][l] |= readUint(b[2*col:2*col+2]) << shift
				} else {
					writeUint(b[2*col:2*col+2], lanes[l].val(&elements(&in.Args[1])[i], ptx.B32)>>shift)
				}
			}
		}
	}
	if mem == 1 {
		for l, t := range lanes {
			for i, reg := range elements(&t.inst().Args[0]) {
				t.set(&reg, result[i][l])
			}
		}
	}
	return nil
}
