package ops

import "fmt"

// Video is a video instruction on whole registers (PTX ISA, "Video Instructions"):
// one operation on a register's 32 bits, two halves or four bytes.
type Video struct {
	Op      string  // add, sub, absdiff, min, max, avrg
	Parts   uint    // 1, 2 or 4
	Signed  [3]bool // of the result, and of both sources
	Sat     bool    // results are clamped to the range of a part
	Then    string  // add, min, max: with the third source, after that; or empty
	Sources int     // 2 or 3
}

// Operation returns what the instruction computes.
func (v Video) Operation() Operation {
	return Operation{Name: fmt.Sprintf("v%s%+v", v.Op, v), Loop: v.loop()}
}

func (v Video) loop() any {
	if v.Sources == 2 {
		return func(d, a, b []uint32) {
			for i := range d {
				d[i] = v.value(a[i], b[i], 0)
			}
		}
	}
	return func(d, a, b, c []uint32) {
		for i := range d {
			d[i] = v.value(a[i], b[i], c[i])
		}
	}
}

func (v Video) value(a, b, c uint32) (d uint32) {
	bits := 32 / v.Parts
	sum := c
	for at := uint(0); at < 32; at += bits {
		t := v.part(extend(a>>at, bits, v.Signed[1]), extend(b>>at, bits, v.Signed[2]))
		if v.Sat {
			lo, hi := int64(0), int64(1)<<bits-1
			if v.Signed[0] {
				lo, hi = -1<<(bits-1), 1<<(bits-1)-1
			}
			t = min(max(t, lo), hi)
		}
		sum += uint32(t)
		d |= uint32(t) & (1<<bits - 1) << at
	}
	switch v.Then {
	case "add":
		return sum
	case "min":
		return uint32(min(extend(d, 32, v.Signed[0]), extend(c, 32, v.Signed[0])))
	case "max":
		return uint32(max(extend(d, 32, v.Signed[0]), extend(c, 32, v.Signed[0])))
	}
	return d
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
	}
	return a + b
}

// extend reads the low bits of a register as a number.
func extend(a uint32, bits uint, signed bool) int64 {
	if signed {
		return int64(int32(a<<(32-bits)) >> (32 - bits))
	}
	return int64(a << (32 - bits) >> (32 - bits))
}
