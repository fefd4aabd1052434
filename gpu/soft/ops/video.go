package ops

import "fmt"

// Video is a video instruction (PTX ISA, "Video Instructions"): an operation on one
// part of each source, or on two halves or four bytes.
type Video struct {
	Op      string  // add, sub, absdiff, min, max, avrg, "shl clamp", "shr wrap", "set eq"
	Parts   uint    // 1, 2 or 4
	Signed  [3]bool // of the result, and of both sources
	Sat     bool    // results are clamped to the range of a part
	Then    string  // add, min, max: combined with the third source afterwards; or empty
	Sources int     // 2 or 3

	// Of has the parts of the result and of both sources, if Parts is 1.
	Of [3]BitRange
	// From has, if Parts is more, the part of each source that each part of the result is
	// computed from. The parts of the first source are numbered first, followed by those
	// of the second.
	From [2][4]uint8
	// Mask has the parts of the result that are computed; others are copied from the third
	// source.
	Mask uint8
}

// BitRange is a range of bits of a register.
type BitRange struct{ From, Bits uint }

// Operation returns the operation of the instruction.
func (v Video) Operation() Operation {
	return Operation{Name: fmt.Sprintf("v%s%+v", v.Op, v), Loop: v.loop()}
}

func (v Video) loop() any {
	value := v.scalar
	if v.Parts > 1 {
		value = v.each
	}
	if v.Sources == 2 {
		return func(d, a, b []uint32) {
			for i := range d {
				d[i] = value(a[i], b[i], 0)
			}
		}
	}
	return func(d, a, b, c []uint32) {
		for i := range d {
			d[i] = value(a[i], b[i], c[i])
		}
	}
}

func (v Video) scalar(a, b, c uint32) (d uint32) {
	to := v.Of[0]
	t := v.part(extend(a>>v.Of[1].From, v.Of[1].Bits, v.Signed[1]), extend(b>>v.Of[2].From, v.Of[2].Bits, v.Signed[2]))
	d = uint32(v.saturated(t, to.Bits))
	switch v.Then {
	case "add":
		return c + d
	case "min":
		return uint32(min(extend(d, 32, v.Signed[0]), extend(c, 32, v.Signed[0])))
	case "max":
		return uint32(max(extend(d, 32, v.Signed[0]), extend(c, 32, v.Signed[0])))
	}
	mask := uint32(1<<to.Bits-1) << to.From
	return d<<to.From&mask | c&^mask
}

func (v Video) each(a, b, c uint32) (d uint32) {
	bits := 32 / v.Parts
	both := uint64(b)<<32 | uint64(a)
	sum := c
	for i := range v.Parts {
		mask := uint32(1<<bits-1) << (i * bits)
		if v.Mask>>i&1 == 0 {
			d |= c & mask
			continue
		}
		x, y := both>>(uint(v.From[0][i])*bits), both>>(uint(v.From[1][i])*bits)
		t := uint32(v.saturated(v.part(extend(uint32(x), bits, v.Signed[1]), extend(uint32(y), bits, v.Signed[2])), bits))
		sum += t
		d |= t << (i * bits) & mask
	}
	if v.Then == "add" {
		return sum
	}
	return d
}

// saturated clamps a result to the range of a number of bits, if the instruction does.
func (v Video) saturated(t int64, bits uint) int64 {
	switch {
	case !v.Sat:
		return t
	case v.Signed[0]:
		return min(max(t, -1<<(bits-1)), 1<<(bits-1)-1)
	}
	return min(max(t, 0), 1<<bits-1)
}

func (v Video) part(a, b int64) int64 {
	switch v.Op {
	case "sub":
		return a - b
	case "absdiff":
		return max(a-b, b-a)
	case "min":
		return min(a, b)
	case "max":
		return max(a, b)
	case "avrg": // rounded away from zero
		if a+b >= 0 {
			return (a + b + 1) >> 1
		}
		return (a + b) >> 1
	case "shl clamp":
		if b >= 32 { // all 32 bits are shifted out, and clamping must see that the result is large
			return min(a, 1<<30) << 32
		}
		return a << b
	case "shl wrap":
		return a << (b & 31)
	case "shr clamp":
		return a >> min(b, 32)
	case "shr wrap":
		return a >> (b & 31)
	}
	if compare := videoCompares[v.Op]; compare != nil {
		if compare(a, b) {
			return 1
		}
		return 0
	}
	return a + b
}

// videoCompares has the comparisons of vset.
var videoCompares = map[string]func(a, b int64) bool{
	"set eq": func(a, b int64) bool { return a == b }, "set ne": func(a, b int64) bool { return a != b },
	"set lt": func(a, b int64) bool { return a < b }, "set le": func(a, b int64) bool { return a <= b },
	"set gt": func(a, b int64) bool { return a > b }, "set ge": func(a, b int64) bool { return a >= b },
}

// extend returns the low bits of a register as a number.
func extend(a uint32, bits uint, signed bool) int64 {
	if signed {
		return int64(int32(a<<(32-bits)) >> (32 - bits))
	}
	return int64(a << (32 - bits) >> (32 - bits))
}
